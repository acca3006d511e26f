//! Tests of `serdes check --against`: how a change affects which releases load an artifact.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

use crate::testkit::{command, copy_model, data, objects, printed, status};

const GOOD: &str = "tf2";
const REFUSED_BY_2_21: &str = "sm_tf2_bad_consumers_V";

/// Copies the message of a test model to `place`.
fn put(folder: &Path, place: &str, model: &str) {
    copy_model(model, &folder.join(place));
}

fn git(folder: &Path, words: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
    let output = Command::new("git")
        .args(identity)
        .args(words)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
}

fn commit(folder: &Path) {
    git(folder, &["init", "--quiet"]);
    git(folder, &["add", "."]);
    git(folder, &["commit", "--quiet", "--message", "before"]);
}

fn check(folder: &Path, arguments: &[&str]) -> Output {
    let releases = ["--tensorflow", "2.19..2.21"];
    command().arg("check").args(arguments).args(releases).current_dir(folder).output().unwrap()
}

fn change<'f>(found: &'f [Value], path: &str) -> &'f Value {
    found.iter().find(|one| one["path"] == path).unwrap_or_else(|| panic!("{path}: {found:?}"))
}

#[test]
fn a_revision_is_compared_artifact_by_artifact() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    put(folder, "models/worse", GOOD);
    put(folder, "models/better", REFUSED_BY_2_21);
    put(folder, "models/same", GOOD);
    put(folder, "models/removed", GOOD);
    commit(folder);
    put(folder, "models/worse", REFUSED_BY_2_21);
    put(folder, "models/better", GOOD);
    put(folder, "models/added", GOOD);
    fs::remove_dir_all(folder.join("models/removed")).unwrap();

    let output = check(folder, &["models", "--against", "HEAD", "--json"]);
    assert_eq!(status(&output), 1, "{output:?}");
    let found = objects(&output);
    for word in ["worse", "better", "same", "removed", "added"] {
        assert_eq!(change(&found, &format!("models/{word}"))["change"], word, "{found:?}");
    }
    let worse = change(&found, "models/worse");
    assert_eq!(
        (&worse["before"]["newest"], &worse["after"]["newest"]),
        (&"2.21".into(), &"2.20".into())
    );
    assert_eq!(worse["lost"], serde_json::json!(["2.21"]));
    assert_eq!(worse["reasons"][0]["rule"], "bad_consumer");
    assert_eq!(change(&found, "models/added")["before"], Value::Null);
    assert_eq!(found.last().unwrap()["worse"], 1);

    let text = printed(&check(folder, &["models", "--against", "HEAD"]));
    assert!(text.contains("models/worse: worse") && !text.contains("models/same:"), "{text}");
    assert!(text.contains("5 artifacts against HEAD: 1 worse"), "{text}");

    // In a folder of the work tree, by a path relative to it.
    let below = check(&folder.join("models"), &["worse", "--against", "HEAD", "--json"]);
    assert_eq!(change(&objects(&below), "worse")["change"], "worse");
    let better = check(folder, &["models/better", "--against", "HEAD"]);
    assert_eq!(status(&better), 0, "{better:?}");
}

#[test]
fn a_folder_stands_for_the_earlier_state() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    put(folder, "new/m", REFUSED_BY_2_21);
    put(folder, "old/m", GOOD);
    let output = check(folder, &["new", "--against", "old", "--json"]);
    assert_eq!(status(&output), 1, "{output:?}");
    assert_eq!(change(&objects(&output), "new/m")["change"], "worse");
    let unknown = check(folder, &["new", "--against", "none"]);
    assert_eq!(status(&unknown), 2);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("neither a revision"), "{unknown:?}");
}

#[test]
fn pointers_of_git_lfs_are_said_or_followed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let identifier = "ab".repeat(32);
    let message = fs::read(data("tensorflow/sm/tf2/saved_model.pb")).unwrap();
    let pointer = format!(
        "version https://git-lfs.github.com/spec/v1\noid sha256:{identifier}\nsize {}\n",
        message.len()
    );
    fs::create_dir(folder.join("m")).unwrap();
    fs::write(folder.join("m/saved_model.pb"), pointer).unwrap();
    commit(folder);
    fs::write(folder.join("m/saved_model.pb"), &message).unwrap();
    let said = check(folder, &["m", "--against", "HEAD"]);
    let words = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(
        words.contains("1 pointer of Git LFS") && words.contains("m/saved_model.pb"),
        "{words}"
    );
    let object = folder.join(format!(".git/lfs/objects/ab/ab/{identifier}"));
    fs::create_dir_all(object.parent().unwrap()).unwrap();
    fs::write(object, &message).unwrap();
    let followed = check(folder, &["m", "--against", "HEAD", "--json"]);
    assert_eq!(change(&objects(&followed), "m")["change"], "same", "{followed:?}");
}
