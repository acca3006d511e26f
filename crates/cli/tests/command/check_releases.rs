//! Tests of `serdes check` for several releases at once.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::testkit::{objects, printed, serdes, status, text};

/// versions { producer: 2474 min_consumer: 1400 }: every release but 2.12 accepts it.
const NOT_FOR_2_12: [u8; 8] = [0x22, 0x06, 0x08, 0xaa, 0x13, 0x10, 0xf8, 0x0a];

fn graph(folder: &Path) -> String {
    let path = folder.join("graph.pb");
    fs::write(&path, NOT_FOR_2_12).unwrap();
    text(&path).to_owned()
}

#[test]
fn every_release_has_an_object_and_the_path_one_for_all_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let graph = graph(folder.path());
    let found = serdes(&["check", &graph, "--tensorflow", "all", "--json"]);
    assert_eq!(status(&found), 1, "one of them refuses");
    let objects = objects(&found);
    assert_eq!(objects.len(), 11);
    let names: Vec<&Value> = objects[..10].iter().map(|object| &object["release"]).collect();
    assert_eq!((names[0], names[1], names[9]), (&json!("2.12"), &json!("2.13"), &json!("2.21")));
    assert_eq!(objects[0]["reasons"][0]["rule"], "min_consumer");
    assert_eq!(objects[1]["verdict"], "acceptable");
    let all = &objects[10];
    assert_eq!(all["path"], graph.as_str());
    assert_eq!(all["releases"]["2.12"], "unacceptable");
    assert_eq!(all["releases"].as_object().unwrap().len(), 10);
    assert_eq!((&all["oldest"], &all["newest"]), (&json!("2.13"), &json!("2.21")));
}

#[test]
fn releases_are_a_range_or_named_one_by_one_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let graph = graph(folder.path());
    let releases = |arguments: &[&str]| {
        let found = serdes(&[&["check", &graph, "--json"][..], arguments].concat());
        let objects = objects(&found);
        let names: Vec<String> = objects
            .iter()
            .filter(|object| object["verdict"].is_string())
            .map(|object| object["release"].as_str().unwrap().to_owned())
            .collect();
        let has_end = objects.last().unwrap()["releases"].is_object();
        (status(&found), names.join(" "), has_end)
    };
    assert_eq!(releases(&["--tensorflow", "2.13..2.15"]), (0, "2.13 2.14 2.15".into(), true));
    assert_eq!(
        releases(&["--tensorflow", "2.21", "--tensorflow", "2.12", "--tensorflow", "2.12.1"]),
        (1, "2.12 2.21".into(), true)
    );
    assert_eq!(releases(&["--tensorflow", "2.12..2.12"]), (1, "2.12".into(), true));
    // An open end stands for the oldest or the newest release.
    let newest = (0, "2.19 2.20 2.21".to_owned(), true);
    assert_eq!(releases(&["--tensorflow", "2.19.."]), newest);
    assert_eq!(releases(&["--tensorflow", ">=2.19"]), newest);
    assert_eq!(releases(&["--tensorflow", "..2.13"]), (1, "2.12 2.13".into(), true));
    // For a single release there is no object with the list of releases.
    assert_eq!(releases(&["--tensorflow", "latest"]), (0, "2.21".into(), false));
    assert_eq!(releases(&["--tensorflow", "2.12"]), (1, "2.12".into(), false));
}

#[test]
fn accepting_release_is_never_null() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph.pb");
    // min_consumer: 2475
    fs::write(&path, [0x22, 0x06, 0x08, 0xaa, 0x13, 0x10, 0xab, 0x13]).unwrap();
    let found = serdes(&["check", text(&path), "--tensorflow", "2.20..2.21", "--json"]);
    let all = objects(&found).pop().unwrap();
    assert_eq!((&all["oldest"], &all["newest"]), (&Value::Null, &Value::Null));
}

#[test]
fn people_get_what_releases_have_in_common_and_a_table() {
    let folder = tempfile::tempdir().unwrap();
    graph(folder.path());
    fs::write(folder.path().join("other.pb"), [0x22, 2, 0x08, 7]).unwrap();
    let found = serdes(&["check", text(folder.path()), "--tensorflow", "all"]);
    assert_eq!(status(&found), 1);
    let shown = printed(&found);
    assert!(shown.contains("  2.12: unacceptable\n    reason: min_consumer"), "{shown}");
    assert!(shown.contains("  2.13 to 2.21: acceptable\n"), "{shown}");
    let table: Vec<Vec<&str>> =
        shown.lines().map(|line| line.split_whitespace().collect()).collect();
    let row = |name: &str, first: &str| {
        let path = folder.path().join(name);
        let cells = std::iter::once(first).chain(["yes"; 9]).map(str::to_owned);
        std::iter::once(text(&path).to_owned()).chain(cells).collect::<Vec<_>>()
    };
    assert!(table.iter().any(|line| *line == row("graph.pb", "no")), "{shown}");
    assert!(table.iter().any(|line| *line == row("other.pb", "yes")), "{shown}");
    assert!(shown.contains("1 of 2 load in each of these releases"), "{shown}");
}

#[test]
fn a_checkpoint_has_a_verdict_of_each_release_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = folder.path().join("ckpt.index");
    fs::write(&nothing, b"no table").unwrap();
    let found = serdes(&["check", text(&nothing), "--tensorflow", "2.12..2.14", "--json"]);
    assert_eq!((status(&found), objects(&found).len()), (2, 4));
    let absent = serdes(&["check", "absent", "--tensorflow", "2.12..2.14", "--json"]);
    let all = objects(&absent).pop().unwrap();
    assert_eq!((status(&absent), &all["releases"]["2.13"]), (2, &json!("unreadable")));
}

#[test]
fn releases_that_are_none_are_bad_usage() {
    let folder = tempfile::tempdir().unwrap();
    let graph = graph(folder.path());
    for (arguments, words) in [
        (&["--tensorflow", "2.16..2.12"][..], "the older one first"),
        (&["--tensorflow", ".."], "2.21.0"),
        (&["--tensorflow", "everything"], "2.21.0"),
        (&["--tensorflow", "all", "--consumer", "graph_def=1395"], "one consumer"),
    ] {
        let found = serdes(&[&["check", &graph, "--json"][..], arguments].concat());
        assert_eq!(status(&found), 2, "{arguments:?}");
        let error = objects(&found)[0]["error"].as_str().unwrap().to_owned();
        assert!(error.contains(words), "{error}");
    }
}
