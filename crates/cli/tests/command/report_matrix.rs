//! Tests of `serdes check`: reports on whole folders of models, compared with ten releases of
//! TensorFlow.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{Cursor, Read},
    path::Path,
};

use serde_json::Value;

use crate::testkit::{command, objects, printed, root, status, text};

/// The releases that refused a model, by model.
type Refusals = BTreeMap<String, BTreeSet<String>>;

/// Opens the archive of artifacts with the answers of each release of TensorFlow.
fn corpus() -> zip::ZipArchive<Cursor<Vec<u8>>> {
    let bytes = fs::read(root().join("tests/data/tensorflow/op_corpus.zip")).unwrap();
    zip::ZipArchive::new(Cursor::new(bytes)).unwrap()
}

/// Puts the SavedModels of TensorFlow 2.21 into a folder; returns which of ten releases' `load_v1`
/// refused each of them.
fn models_of_2_21(folder: &Path) -> Refusals {
    let mut corpus = corpus();
    let names: Vec<String> = corpus.file_names().map(|name| name.unwrap().into_owned()).collect();
    for name in names.iter().filter(|name| name.starts_with("sm21/")) {
        let mut content = Vec::new();
        corpus.by_name(name).unwrap().read_to_end(&mut content).unwrap();
        let place = folder.join(name.strip_prefix("sm21/").unwrap());
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, content).unwrap();
    }
    let mut lines = String::new();
    corpus.by_name("verdicts.jsonl").unwrap().read_to_string(&mut lines).unwrap();
    let answers = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let answers = answers.filter(|answer| answer["op"] == "load_v1");
    let of_2_21 = answers.filter_map(|answer| {
        let model = answer["path"].as_str().unwrap().strip_prefix("sm21/")?.to_owned();
        Some((model, refusing(answer["verdicts"].as_array().unwrap())))
    });
    of_2_21.collect()
}

/// Returns the releases that refused, from answers by ranges of releases.
fn refusing(answers: &[Value]) -> BTreeSet<String> {
    let minor = |release: &Value| {
        let release = release.as_str().unwrap().strip_prefix("2.").unwrap();
        release.split('.').next().unwrap().parse::<u32>().unwrap()
    };
    let refused = answers.iter().filter(|answer| answer["verdict"] == "reject");
    let releases = refused.flat_map(|answer| minor(&answer["from"])..=minor(&answer["to"]));
    releases.map(|release| format!("2.{release}")).collect()
}

/// Returns the refusals in a page of HTML: cells of the class `no` below the releases of the
/// header.
fn of_html(page: &str) -> Refusals {
    let between = |text: &'static str, end: &'static str| {
        move |part: &str| part.split_once(text).unwrap().1.split_once(end).unwrap().0.to_owned()
    };
    let header = between("<thead>", "</thead>")(page);
    let releases: Vec<&str> = header
        .split("<th scope=\"col\">")
        .skip(2)
        .map(|cell| cell.split('<').next().unwrap())
        .collect();
    let rows = page.split("<tr data-artifact=").skip(1);
    let row = |row: &str| {
        let header = between("<th scope=\"row\">", "</th>")(row);
        let name = header.split_once(" <small>").unwrap().0;
        let name = name.rsplit_once("\">").map_or(name, |(_, name)| name);
        let name = name.trim_end_matches("</a>").to_owned();
        let cells = row.split("<td class=\"").skip(1);
        let refused = cells.zip(&releases).filter(|(cell, _)| cell.starts_with("no\""));
        (name, refused.map(|(_, release)| (*release).to_owned()).collect())
    };
    rows.map(row).collect()
}

/// Returns the refusals in SARIF: the releases of results that are errors.
fn of_sarif(page: &str) -> Refusals {
    let log: Value = serde_json::from_str(page).unwrap();
    let mut found = Refusals::new();
    for result in log["runs"][0]["results"].as_array().unwrap() {
        if result["level"] == "error" {
            let place = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
            let releases = result["properties"]["releases"].as_array().unwrap();
            let releases = releases.iter().map(|release| release.as_str().unwrap().to_owned());
            let model = place.as_str().unwrap().trim_end_matches("/saved_model.pb");
            found.entry(model.to_owned()).or_default().extend(releases);
        }
    }
    found
}

/// Returns the refusals in the table for people.
fn of_table(page: &str) -> Refusals {
    let mut lines = page.lines();
    let releases: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    let rows = lines.take_while(|line| !line.is_empty()).map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap().to_owned();
        let refused = words.zip(&releases).filter(|(word, _)| *word == "no");
        (name, refused.map(|(_, release)| (*release).to_owned()).collect())
    });
    rows.collect()
}

#[test]
fn reports_say_what_ten_tensorflows_did() {
    let folder = tempfile::tempdir().unwrap();
    let models = folder.path().join("models");
    let expected = models_of_2_21(&models);
    assert!(expected.len() >= 14, "{}", expected.len());
    let refused = |found: &Refusals| {
        let refused = found.iter().filter(|(_, releases)| !releases.is_empty());
        refused.map(|(model, releases)| (model.clone(), releases.clone())).collect::<Refusals>()
    };
    assert!(refused(&expected).len() >= 9, "{expected:?}");
    let names: Vec<&String> = expected.keys().collect();
    let (html, sarif) = (folder.path().join("report.html"), folder.path().join("report.sarif"));
    let found = command()
        .arg("check")
        .args(&names)
        .args(["--tensorflow", "all", "--format", &format!("html={}", text(&html))])
        .args(["--format", &format!("sarif={}", text(&sarif))])
        .current_dir(&models)
        .env("COLUMNS", "120")
        .output()
        .unwrap();
    assert_eq!(status(&found), 1);
    assert_eq!(of_table(&printed(&found)), expected);
    assert_eq!(of_html(&fs::read_to_string(html).unwrap()), expected);
    assert_eq!(of_sarif(&fs::read_to_string(sarif).unwrap()), refused(&expected));
}

/// Returns a graph with an operation that no release has, after the nodes `before`.
fn graph(before: &[&str], unknown: &str) -> String {
    let node =
        |name: &str, operation: &str| format!("node {{ name: {name:?} op: {operation:?} }}\n");
    let before: String = before.iter().map(|name| node(name, "NoOp")).collect();
    format!("{before}{}versions {{ producer: 1395 }}\n", node(unknown, "NotThere"))
}

fn check(folder: &Path, more: &[&str]) -> std::process::Output {
    let mut check = command();
    check.args(["check", "models", "--tensorflow", "2.12"]).args(more).current_dir(folder);
    check.output().unwrap()
}

/// Returns the fingerprints of the results, by file.
fn fingerprints(folder: &Path, releases: &str) -> BTreeMap<String, String> {
    let sarif = check(folder, &["--tensorflow", releases, "--format", "sarif"]);
    let log: Value = serde_json::from_slice(&sarif.stdout).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap().iter().map(|result| {
        let place = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
        let print = &result["partialFingerprints"]["serdes/v1"];
        (place.as_str().unwrap().to_owned(), print.as_str().unwrap().to_owned())
    });
    results.collect()
}

#[test]
fn a_new_finding_beside_200_known_ones_is_the_one_that_counts() {
    let folder = tempfile::tempdir().unwrap();
    let models = folder.path().join("models");
    fs::create_dir(&models).unwrap();
    for number in 0..200 {
        fs::write(models.join(format!("{number}.pbtxt")), graph(&[], "x")).unwrap();
    }
    assert_eq!(status(&check(folder.path(), &[])), 1);
    assert_eq!(status(&check(folder.path(), &["--write-baseline", "known"])), 0);
    let lines = fs::read_to_string(folder.path().join("known")).unwrap().lines().count();
    assert_eq!(lines, 201, "a line of the form, and one a finding");
    let known = ["--baseline", "known"];
    assert_eq!(status(&check(folder.path(), &known)), 0);
    // A file that the baseline does not know.
    fs::write(models.join("new.pbtxt"), graph(&["a"], "y")).unwrap();
    let found = check(folder.path(), &[&known[..], &["--format", "github"]].concat());
    let shown = printed(&found);
    assert_eq!(status(&found), 1);
    assert_eq!(shown.matches("::error ").count(), 1, "{shown}");
    assert!(shown.contains("file=models/new.pbtxt,"), "{shown}");
    let found = check(folder.path(), &[&known[..], &["--format", "sarif"]].concat());
    let log: Value = serde_json::from_slice(&found.stdout).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    let new = results.iter().filter(|result| result["suppressions"].is_null());
    assert_eq!((results.len(), new.count()), (201, 1));
    let objects = objects(&check(folder.path(), &[&known[..], &["--json"]].concat()));
    let reasons = objects.iter().filter_map(|object| object["reasons"].as_array()).flatten();
    assert_eq!(reasons.filter(|reason| reason["known"].is_null()).count(), 1);
}

#[test]
fn fingerprints_stay_when_other_things_change() {
    let folder = tempfile::tempdir().unwrap();
    let models = folder.path().join("models");
    fs::create_dir(&models).unwrap();
    fs::write(models.join("a.pbtxt"), graph(&["one", "two"], "x")).unwrap();
    fs::write(models.join("b.pbtxt"), graph(&[], "y")).unwrap();
    let before = fingerprints(folder.path(), "2.13");
    assert_eq!(before.len(), 2);
    // The node moves, the other file is renamed, and a release is added.
    fs::write(models.join("a.pbtxt"), graph(&[], "x")).unwrap();
    fs::rename(models.join("b.pbtxt"), models.join("c.pbtxt")).unwrap();
    for releases in ["2.14", "2.13..2.14"] {
        let after = fingerprints(folder.path(), releases);
        assert_eq!(after["models/a.pbtxt"], before["models/a.pbtxt"], "{releases}");
        assert_ne!(after["models/c.pbtxt"], before["models/b.pbtxt"], "{releases}");
    }
    // A finding of the same rule and node in another file is another one.
    fs::write(models.join("0-new.pbtxt"), graph(&[], "x")).unwrap();
    let after = fingerprints(folder.path(), "2.14");
    assert_eq!(after.len(), 3);
    assert_eq!(after["models/a.pbtxt"], before["models/a.pbtxt"]);
    assert_ne!(after["models/0-new.pbtxt"], before["models/a.pbtxt"]);
    // Another finding in the same file is another one.
    fs::write(models.join("a.pbtxt"), graph(&[], "z")).unwrap();
    assert_ne!(fingerprints(folder.path(), "2.14")["models/a.pbtxt"], before["models/a.pbtxt"]);
}
