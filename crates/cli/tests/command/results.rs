//! Tests that results that cannot be written are failures, and that a reader that went away is not
//! reported.

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

/// Runs the command in a shell with a redirection such as `>&-`.
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
            // Results that the caller discards are no failure.
            let output = shell(">/dev/null", arguments);
            assert_eq!(status(&output), 0, "{arguments:?}: {output:?}");
            let output = shell("1<>/dev/null", arguments);
            assert_eq!(status(&output), 0, "{arguments:?}: {output:?}");
        }
    }
}

#[test]
fn negative_answer_is_a_failure_if_it_cannot_be_written() {
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

#[cfg(target_os = "linux")]
#[test]
fn a_path_that_is_no_text_is_a_result_all_the_same() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::PathBuf};

    let folder = tempfile::tempdir().unwrap();
    let odd = |name: &[u8]| -> PathBuf { folder.path().join(OsStr::from_bytes(name)) };
    let (target, library, lines) = (odd(b"a\xff.sds"), odd(b"b\xff.so"), odd(b"c\xff"));
    fs::copy(crate::testkit::stub("").1, &library).unwrap();
    fs::create_dir(&lines).unwrap();
    let versions = root().join("examples/downstream/versions.toml");
    fs::copy(versions, lines.join("versions.toml")).unwrap();
    let printed = |arguments: &[&OsStr]| {
        let output = command().args(arguments).arg("--json").output().unwrap();
        assert_eq!(status(&output), 0, "{arguments:?}: {output:?}");
        objects(&output).remove(0)
    };
    let word = OsStr::new;
    let tiny = tiny();
    let converted = printed(&[word("convert"), tiny.as_os_str(), target.as_os_str()]);
    assert!(converted["target"].as_str().unwrap().ends_with("a\u{fffd}.sds"), "{converted}");
    let inspected = printed(&[word("plugin"), word("inspect"), library.as_os_str()]);
    assert!(inspected["path"].as_str().unwrap().ends_with("b\u{fffd}.so"), "{inspected}");
    let add = [word("versions"), word("add"), word("runs"), word("--summary"), word("more")];
    let added = printed(&[&add[..], &[word("--directory"), lines.as_os_str()]].concat());
    assert!(added["path"].as_str().unwrap().contains("c\u{fffd}"), "{added}");
}

/// The user typed them, but a script may have as well.
#[test]
fn names_of_targets_do_nothing_to_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("red\u{1b}[31m.sds");
    let tiny = tiny();
    for arguments in [
        &["convert", text(&tiny), text(&target)][..],
        &["save", "--from", text(&tiny), "-o", text(&target)],
        &["restore", text(&target), "--to", text(&target)],
    ] {
        let output = serdes(&[&["--color", "always"], arguments].concat());
        assert_eq!(status(&output), 0, "{output:?}");
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(shown.contains(r"red\u{1b}[31m.sds"), "{shown:?}");
    }
}
