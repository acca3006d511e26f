//! Tests of mistakes of users and of malicious files: the command says what is wrong, and does
//! nothing else.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

fn serdes(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_serdes")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the message about bad usage or a failure.
fn failed(arguments: &[&str]) -> String {
    let output = serdes(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    text(&output.stderr)
}

/// Returns a file that real PyTorch wrote.
fn torch(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("tests/data/torch/2.15.0").join(name)
}

/// Writes a safetensors file with this header, and these bytes behind it.
fn safetensors(path: &Path, header: &str, data: &[u8]) {
    let length = (header.len() as u64).to_le_bytes();
    fs::write(path, [&length[..], header.as_bytes(), data].concat()).unwrap();
}

#[test]
fn an_id_that_is_empty_is_no_id() {
    // As from an unset shell variable.
    let said = failed(&["merge", "x.sds", "--id", ""]);
    assert!(said.contains("--id"), "{said}");
    let part = ["save", "--from", "x.npy", "-o", "x.sds", "--part", "0/2", "--id", ""];
    assert!(failed(&part).contains("--id"));
}

#[test]
fn a_merge_without_any_part_asks_for_the_path_and_the_id() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sds");
    let said = failed(&["merge", path.to_str().unwrap(), "--id", "a"]);
    assert!(said.contains("no part of the save") && said.contains("check the path"), "{said}");
}

#[test]
fn torch_file_is_shown_and_not_judged() {
    let path = torch("training_state.pt");
    let path = path.to_str().unwrap();
    let output = serdes(&["inspect", path, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["kind"], "torch");
    let tensors = found["tensors"].as_array().unwrap();
    let weight = tensors.iter().find(|tensor| tensor["name"] == "model/0.weight").unwrap();
    assert_eq!(weight["dtype"], "F32");
    assert_eq!(weight["shape"].as_array().unwrap().len(), 2);
    assert!(found["details"]["values"].as_str().unwrap().contains("param_groups"));
    let shown = text(&serdes(&["inspect", path]).stdout);
    assert!(shown.contains("0.weight") && shown.contains("F32["), "{shown}");
    // The check only says that the file is of another kind.
    let output = serdes(&["check", path]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stdout).contains("other_kind"), "{output:?}");
    // For a file that cannot be read, the output has the reason and the known facts.
    let output = serdes(&["inspect", torch("module.pt").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("state_dict()"), "{output:?}");
}

#[test]
fn words_of_a_file_do_nothing_to_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.safetensors");
    let evil = r"\u001b]0;owned\u0007";
    let header = format!(
        r#"{{"__metadata__":{{"{evil}":"{evil}"}},"{evil}/a":{{"dtype":"{evil}","shape":[1],"data_offsets":[0,1]}},"{evil}/b":{{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}}}"#
    );
    safetensors(&file, &header, b"xy");
    let path = file.to_str().unwrap();
    let target = folder.path().join("x.sds");
    let target = target.to_str().unwrap();
    for arguments in [
        &["inspect", path][..],
        &["check", path],
        &["convert", path, target],
        &["convert", path, target, "--skip-unsupported"],
        &["diff", path, path],
        &["inspect", target],
    ] {
        // With colours forced, as on a terminal, no escape sequences are stripped from the output.
        let all: Vec<&str> = arguments.iter().copied().chain(["--color", "always"]).collect();
        let output = serdes(&all);
        for shown in [&output.stdout, &output.stderr] {
            let shown = text(shown);
            assert!(!shown.contains("\u{1b}]") && !shown.contains('\u{7}'), "{all:?}: {shown:?}");
        }
        assert!(!output.stdout.is_empty() || !output.stderr.is_empty());
    }
}

#[test]
fn a_name_of_very_many_parts_takes_no_more_lines_than_a_screen() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.safetensors");
    let name = "a/".repeat(5_000);
    let header = format!(r#"{{"{name}b":{{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}}}"#);
    safetensors(&file, &header, b"x");
    let output = serdes(&["inspect", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stdout.len() < 30_000, "{}", output.stdout.len());
}

#[test]
fn numbers_with_a_sign_are_bad_usage() {
    let tiny = crate::testkit::tiny();
    let tiny = tiny.to_str().unwrap();
    for arguments in [
        &["check", tiny, "--consumer", "ifrt_serdes=+5"][..],
        &["check", tiny, "--consumer", "graph_def=5:+1"],
        &["negotiate", "127.0.0.1:1", "--serdes", "+0..6"],
        &["negotiate", "127.0.0.1:1", "--protocol", "1..+2"],
        &["save", "--from", tiny, "-o", "/dev/null", "--device", "+0"],
        &["save", "--from", tiny, "-o", "/dev/null", "--part", "+0/2", "--id", "a"],
        &["plugin", "check", "host", "--time-limit", "+5"],
        &["serve", "--state", "s", "--keep", "+1"],
    ] {
        assert_eq!(serdes(arguments).status.code(), Some(2), "{arguments:?}");
    }
}
