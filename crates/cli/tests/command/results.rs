//! Results that cannot be written are failures; a reader that went away is none to speak of.

use std::{
    fs,
    io::Read,
    process::{Command, Output, Stdio},
};

use crate::testkit::{BINARY, command, objects, root, serdes, status, text, tiny};

#[test]
fn a_state_of_a_newer_build_is_an_answer_in_every_command() {
    let future = root().join("tests/golden/device_state/future.sds");
    let (future, tiny) = (text(&future), tiny());
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.sds");
    for command in [
        &["inspect", future][..],
        &["check", future],
        &["restore", future],
        &["restore", future, "--salvage"],
        &["restore", future, "--direct"],
        &["diff", future, text(&tiny)],
        &["save", "--from", future, "-o", text(&out)],
    ] {
        let output = serdes(&[command, &["--json"]].concat());
        assert_eq!(status(&output), 1, "{command:?}: {output:?}");
        assert_eq!(objects(&output).len(), 1, "{command:?}");
    }
}

/// Runs the command behind words of a shell, as `>&-`.
fn shell(redirection: &str, arguments: &[&str]) -> Output {
    Command::new("sh")
        .args(["-c", &format!("exec \"$0\" \"$@\" {redirection}")])
        .arg(BINARY)
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn results_that_cannot_be_written_are_failures_of_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let (state, tiny) = (folder.path().join("a.sds"), tiny());
    let save = ["save", "--from", text(&tiny), "-o", text(&state)];
    assert_eq!(status(&shell("", &save)), 0);
    let layouts = root().join("crates/abi/layouts.json");
    let layout = format!("{}#history/2.6.5", layouts.display());
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["help", "save"],
        &["save", "--help"],
        &["versions"],
        &["versions", "--json"],
        &["check", text(&state)],
        &["check", text(&state), "--json"],
        &["explain"],
        &["inspect", text(&state)],
        &save,
        &["save", "--from", text(&tiny), "-o", "-"],
        &["restore", text(&state)],
        &["restore", text(&state), "--to", "-"],
        &["diff", text(&state), text(&tiny)],
        &["plugin", "check", "host"],
        &["plugin", "verify", "host"],
        &["abi", "diff", &layout, &layout],
        &["serve"],
        &["completions", "bash"],
    ] {
        for redirection in [">/dev/full", ">&-"] {
            let output = shell(redirection, arguments);
            assert_eq!(status(&output), 2, "{arguments:?} {redirection}: {output:?}");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.contains("error: "), "{arguments:?} {redirection}: {said}");
        }
        if arguments[0] != "serve" {
            // Somebody who wants no results has them.
            let output = shell(">/dev/null", arguments);
            assert_eq!(status(&output), 0, "{arguments:?}: {output:?}");
            let output = shell("1<>/dev/null", arguments);
            assert_eq!(status(&output), 0, "{arguments:?}: {output:?}");
        }
    }
}

#[test]
fn an_answer_that_is_no_is_a_failure_where_nobody_gets_it() {
    let tiny = tiny();
    let folder = tempfile::tempdir().unwrap();
    let graph = folder.path().join("graph.pb");
    // versions { producer: 2474 min_consumer: 1400 }
    fs::write(&graph, [0x22, 0x06, 0x08, 0xaa, 0x13, 0x10, 0xf8, 0x0a]).unwrap();
    let no = ["check", text(&graph), "--tensorflow", "2.12.0", "--json"];
    assert_eq!(status(&shell("", &no)), 1);
    assert_eq!(status(&shell(">/dev/full", &no)), 2);
    let future = root().join("tests/golden/device_state/future.sds");
    let no = ["diff", text(&future), text(&tiny), "--json"];
    assert_eq!(status(&shell("", &no)), 1);
    assert_eq!(status(&shell(">/dev/full", &no)), 2);
}

#[test]
fn a_reader_that_went_away_is_not_told_about() {
    let mut child = command()
        .args(["versions", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    assert_eq!(said, "");
}

#[test]
fn numbers_of_versions_are_written_plainly() {
    let folder = tempfile::tempdir().unwrap();
    let (state, tiny) = (folder.path().join("a.sds"), tiny());
    for number in ["+1", "-0", "01", " 1", "1 ", "-1", "one"] {
        let arguments =
            ["save", "--from", text(&tiny), "-o", text(&state), "--serdes-version", number];
        let output = shell("", &arguments);
        assert_eq!(status(&output), 2, "{number:?}: {output:?}");
        assert!(!state.exists());
    }
}
