//! Tests of `serdes abi diff` over the layouts of the PJRT C API, which need no file.

use std::process::{Command, Output};

use serde_json::Value;

fn diff(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_serdes"))
        .args(["abi", "diff"])
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn any_two_minors_are_compared_by_their_names() {
    let found = diff(&["pjrt-0.54", "pjrt-0.112", "--json"]);
    assert_eq!(found.status.code(), Some(0), "{found:?}");
    let object: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(
        (&object["old_version"], &object["new_version"]),
        (&"0.54.0".into(), &"0.112.0".into())
    );
    let changes = object["changes"].as_array().unwrap();
    let has = |structure: &str, field: &str, change: &str| {
        changes.iter().any(|found| {
            found["struct"] == structure && found["field"] == field && found["change"] == change
        })
    };
    assert!(has("PJRT_ExecuteOptions", "num_tasks", "appended"));
    assert!(has("PJRT_Api", "PJRT_Client_DmaMap", "appended"));
    // A minor without a break passes a gate that allows no break.
    assert_eq!(diff(&["pjrt-0.111", "pjrt-0.112", "--allow", "minor"]).status.code(), Some(0));
    assert_eq!(diff(&["pjrt-0.74", "pjrt-0.75", "--allow", "minor"]).status.code(), Some(1));
}

#[test]
fn a_minor_that_is_not_known_is_told_with_those_that_are() {
    let found = diff(&["pjrt-0.54", "pjrt-0.999"]);
    assert_eq!(found.status.code(), Some(2));
    let said = String::from_utf8_lossy(&found.stderr);
    assert!(said.contains("pjrt-0.1 to pjrt-0.117"), "{said}");
}
