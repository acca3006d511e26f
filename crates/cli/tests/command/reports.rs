//! Tests of `serdes check`: reports, levels, baselines.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::testkit::{command, objects, printed, root, serdes, status, text};

/// versions { producer: 2474 min_consumer: 1400 }: every release but 2.12 accepts it.
const NOT_FOR_2_12: [u8; 8] = [0x22, 0x06, 0x08, 0xaa, 0x13, 0x10, 0xf8, 0x0a];

/// Returns a model of which releases before 2.17 drop an attribute that changes what it computes.
fn differing() -> String {
    text(&root().join("tests/data/rules/attribute_dropped.pbtxt")).to_owned()
}

/// Creates a folder with graphs that 2.12 refuses.
fn graphs(names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        fs::write(folder.path().join(name), NOT_FOR_2_12).unwrap();
    }
    folder
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn error(arguments: &[&str]) -> String {
    let found = serdes(arguments);
    assert_eq!(status(&found), 2, "{arguments:?}");
    String::from_utf8(found.stderr).unwrap()
}

#[test]
fn reports_of_one_run_agree_in_every_form() {
    let folder = graphs(&["a.pb", "b.pb"]);
    let out = |name: &str| folder.path().join("out").join(name);
    fs::create_dir(folder.path().join("out")).unwrap();
    let forms = ["json", "github", "gitlab", "sarif", "junit", "markdown", "html", "text"];
    let formats: Vec<String> =
        forms.iter().map(|form| format!("{form}={}", out(form).display())).collect();
    let mut check = command();
    check.args(["check", text(folder.path()), "--tensorflow", "2.12..2.13"]);
    check.args(["--exclude", "out/"]);
    for format in &formats {
        check.args(["--format", format]);
    }
    let found = check.output().unwrap();
    assert_eq!(status(&found), 1, "{found:?}");
    assert!(printed(&found).contains("all load from 2.13 on"), "{}", printed(&found));
    let sarif: Value = serde_json::from_str(&read(&out("sarif"))).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    assert_eq!(results[0]["ruleId"], "min_consumer");
    assert_eq!(results[0]["properties"]["releases"], json!(["2.12"]));
    let rule = &sarif["runs"][0]["tool"]["driver"]["rules"][0];
    assert!(rule["helpUri"].as_str().unwrap().ends_with("rules.md#min_consumer"));
    let issues: Vec<Value> = serde_json::from_str(&read(&out("gitlab"))).unwrap();
    assert_eq!(issues.len(), 2);
    assert_ne!(issues[0]["fingerprint"], issues[1]["fingerprint"]);
    assert_eq!(read(&out("github")).matches("::error ").count(), 2);
    let junit = read(&out("junit"));
    assert!(junit.contains("tests=\"4\" failures=\"2\" errors=\"0\" skipped=\"0\""), "{junit}");
    assert_eq!(read(&out("markdown")).matches("❌ no").count(), 2);
    assert_eq!(read(&out("html")).matches("✗ no</a></td>").count(), 2);
    let lines = read(&out("json")).lines().count();
    assert_eq!(lines, 7, "two releases and their sum a graph, and the folder");
    assert!(read(&out("text")).contains("min_consumer"));
    assert_eq!(fs::read_dir(folder.path().join("out")).unwrap().count(), forms.len());
}

#[test]
fn a_form_goes_to_standard_output_or_into_the_file_of_o() {
    let folder = graphs(&["a.pb"]);
    let graph = folder.path().join("a.pb");
    let found = serdes(&["check", text(&graph), "--format", "sarif"]);
    let sarif: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let file = folder.path().join("report");
    let found = serdes(&["check", text(&graph), "--format", "junit", "-o", text(&file)]);
    assert_eq!((status(&found), found.stdout.len()), (0, 0));
    assert!(read(&file).starts_with("<?xml"));
    let plain = serdes(&["check", text(&graph), "--json"]);
    let formatted = serdes(&["check", text(&graph), "--format", "json"]);
    assert_eq!(plain.stdout, formatted.stdout);
    let missing = folder.path().join("no/report");
    assert!(error(&["check", text(&graph), "-o", text(&missing)]).contains("cannot write"));
}

#[test]
fn a_job_of_github_gets_its_summary() {
    let folder = graphs(&["a.pb"]);
    let summary = folder.path().join("summary.md");
    fs::write(&summary, "before\n").unwrap();
    let found = command()
        .args(["check", text(&folder.path().join("a.pb")), "--tensorflow", "2.12"])
        .args(["--format", "github"])
        .env("GITHUB_STEP_SUMMARY", &summary)
        .output()
        .unwrap();
    assert!(printed(&found).starts_with("::error file="), "{found:?}");
    let summary = read(&summary);
    assert!(summary.starts_with("before\n### serdes\n"), "{summary}");
    assert!(summary.contains("❌ no"), "{summary}");
}

#[test]
fn a_model_that_computes_something_else_is_never_a_plain_yes() {
    let model = differing();
    let check = |more: &[&str]| {
        serdes(&[&["check", &model, "--tensorflow", "2.16..2.17"][..], more].concat())
    };
    let found = check(&[]);
    let shown = printed(&found);
    assert_eq!(status(&found), 0, "{shown}");
    assert!(shown.contains("differs"), "{shown}");
    assert!(shown.contains("computes something else"), "{shown}");
    assert!(shown.contains("warning: attribute_dropped") && shown.contains("help: "), "{shown}");
    let objects = objects(&check(&["--json"]));
    let releases = objects.iter().find(|object| object["releases"].is_object()).unwrap();
    assert_eq!(releases["differs"], json!(["2.16", "2.17"]), "{releases}");
    let denied = check(&["--deny", "attribute_dropped"]);
    assert_eq!(status(&denied), 1);
    assert!(printed(&denied).contains("reason: attribute_dropped"));
    // The last one wins.
    let order = ["--deny", "attribute_dropped", "--allow", "attribute-dropped"];
    let allowed = check(&order);
    assert_eq!(status(&allowed), 0);
    assert!(!printed(&allowed).contains("warning: "), "{}", printed(&allowed));
    assert_eq!(status(&check(&["--strict"])), 1);
    assert_eq!(status(&check(&["--strict", "--warn", "attribute_dropped"])), 0);
}

#[test]
fn levels_change_the_objects_as_strict_does() {
    let model = differing();
    let check = |more: &[&str]| {
        let base = ["check", &model, "--tensorflow", "2.16..2.17", "--json"];
        objects(&serdes(&[&base[..], more].concat()))
    };
    assert_eq!(check(&["--strict"]), check(&["--deny", "attribute_dropped"]));
    assert_eq!(check(&[]), check(&["--warn", "attribute_dropped"]));
    let allowed = check(&["--allow", "attribute_dropped"]);
    assert_eq!(allowed[0]["warnings"], json!([]));
}

#[test]
fn levels_of_rules_that_refuse_are_bad_usage() {
    for (arguments, words) in [
        (&["--allow", "unknown_op"][..], "the rule refuses"),
        (&["--deny", "attribute_droped"], "did you mean attribute_dropped?"),
        (&["--format", "sarfi"], "did you mean sarif?"),
        (&["--baseline", "absent"], "cannot read absent"),
    ] {
        let error = error(&[&["check", "absent.pb"][..], arguments].concat());
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn findings_of_the_baseline_do_not_count() {
    let folder = graphs(&["a.pb", "b.pb"]);
    let baseline = folder.path().join("known");
    let check = |more: &[&str]| {
        let base = ["check", text(folder.path()), "--tensorflow", "2.12..2.13"];
        serdes(&[&base[..], &["--exclude", "known"], more].concat())
    };
    let written = check(&["--write-baseline", text(&baseline)]);
    assert_eq!(status(&written), 0, "all of it is known now: {written:?}");
    assert_eq!(read(&baseline).lines().count(), 3);
    let known = ["--baseline", text(&baseline)];
    let found = check(&known);
    assert_eq!(status(&found), 0);
    assert!(printed(&found).contains("known: min_consumer"), "{}", printed(&found));
    // The verdict itself does not depend on the baseline.
    let objects = objects(&check(&[&known[..], &["--json"]].concat()));
    assert_eq!(objects[0]["verdict"], "unacceptable");
    assert_eq!(objects[0]["reasons"][0]["known"], "");
    fs::write(folder.path().join("c.pb"), NOT_FOR_2_12).unwrap();
    let found = check(&known);
    assert_eq!(status(&found), 1);
    assert!(printed(&found).contains("2 findings known to the baseline; 1 is new"));
}

#[test]
fn entries_of_a_baseline_that_no_longer_occur_are_said() {
    let folder = graphs(&["a.pb", "b.pb"]);
    let baseline = folder.path().join("known");
    let check = |more: &[&str]| {
        let base = ["check", text(folder.path()), "--tensorflow", "2.12"];
        serdes(&[&base[..], &["--exclude", "known"], more].concat())
    };
    check(&["--write-baseline", text(&baseline)]);
    let reasoned = read(&baseline).replace("\"reason\":null", "\"reason\":\"waits for 2.13\"");
    fs::write(&baseline, reasoned).unwrap();
    fs::write(folder.path().join("a.pb"), [0x22, 2, 0x08, 7]).unwrap();
    fs::remove_file(folder.path().join("b.pb")).unwrap();
    let found = check(&["--baseline", text(&baseline)]);
    let said = String::from_utf8(found.stderr.clone()).unwrap();
    assert_eq!(status(&found), 0);
    assert!(said.contains("a.pb (2.12) no longer occurs"), "{said}");
    assert!(said.contains("b.pb (2.12) is of a file that is gone"), "{said}");
    // A reason is kept as long as its finding.
    fs::write(folder.path().join("a.pb"), NOT_FOR_2_12).unwrap();
    check(&["--write-baseline", text(&baseline)]);
    assert_eq!(read(&baseline).matches("waits for 2.13").count(), 1);
}

#[test]
fn a_table_is_as_wide_as_the_columns_and_breaks_no_word() {
    let long = "a-really-long-team-name-and-model-that-does-not-fit-beside-ten-releases.pb";
    let folder = graphs(&["a.pb", long]);
    let found = command()
        .args(["check", text(folder.path()), "--tensorflow", "all"])
        .env("COLUMNS", "80")
        .output()
        .unwrap();
    let shown = printed(&found);
    for line in shown.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(
        shown.contains("2 of 2 fail in at least one release; all load from 2.13 on"),
        "{shown}"
    );
    assert!(shown.lines().any(|line| line.ends_with(long)), "{shown}");
}
