//! Tests of `serdes merge`: states of which several processes saved one part each.

use std::fs;

use crate::testkit::{objects, serdes, state_of, status, text};

#[test]
fn the_parts_of_processes_are_merged_into_one_state() {
    let folder = tempfile::tempdir().unwrap();
    let sources = ["a", "b"].map(|name| {
        let own = folder.path().join(name);
        fs::create_dir(&own).unwrap();
        state_of(&own, name)
    });
    let [first, second] = &sources;
    let name = folder.path().join("step-10.sds");
    let part = |from, part: &str| {
        let arguments = ["save", "--from", from, "--part", part, "--id", "step-10", "-o"];
        serdes(&[&arguments[..], &[text(&name), "--json"]].concat())
    };
    let saved = part(text(first), "0/2");
    assert_eq!(status(&saved), 0, "{saved:?}");
    assert_eq!(objects(&saved)[0]["part"], "0/2");
    let merge = ["merge", text(&name), "--id", "step-10", "--json"];
    let early = serdes(&merge);
    assert_eq!(status(&early), 2, "{early:?}");
    let said = String::from_utf8(early.stderr.clone()).unwrap();
    assert!(said.contains("step-10.sds"), "the state is named: {said}");
    assert!(!name.exists(), "no state appears before all parts are there");
    assert_eq!(status(&part(text(second), "1/2")), 0);
    let merged = serdes(&merge);
    assert_eq!(status(&merged), 0, "{merged:?}");
    assert_eq!(objects(&merged)[0]["parts"], 2);
    assert_eq!(objects(&merged)[0]["tensors"], 2);
    let inspect = &objects(&serdes(&["inspect", text(&name), "--json"]))[0];
    assert_eq!(inspect["parts"], 2, "{inspect}");
    assert_eq!(inspect["pieces"], 2, "{inspect}");
    let restore = serdes(&["restore", text(&name), "--only", "b", "--json"]);
    assert_eq!(status(&restore), 0, "{restore:?}");
    for wrong in ["2/2", "1", "a/b", "-1/2", "0/0", "01/2"] {
        let refused = part(text(first), wrong);
        assert_eq!(status(&refused), 2, "{wrong}: {refused:?}");
    }
    let alone = serdes(&["save", "--from", text(first), "--part", "0/1", "-o", text(&name)]);
    assert_eq!(status(&alone), 2, "a part needs the id of its save: {alone:?}");
}
