//! Tests of how the commands treat TensorFlow's file `checkpoint` and its folder.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::testkit::{data, objects, objects_of, serdes, status, text};

/// Copies a folder of checkpoints that TensorFlow wrote.
fn copy(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join(name);
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(data("tensorflow/checkpoint_state").join(name)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    (folder, copy)
}

/// Returns the verdict on the file in a folder.
fn verdict(folder: &Path) -> Value {
    objects_of(&["check", text(&folder.join("checkpoint")), "--json"]).swap_remove(0)
}

/// Returns the texts and locations of the warnings.
fn warnings(verdict: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let warnings = verdict["warnings"].as_array().unwrap();
    warnings.iter().map(|one| (text(&one["rule"]), text(&one["where"]))).collect()
}

/// Runs a command that fails, and returns its standard error.
fn refused(arguments: &[&str]) -> String {
    let output = serdes(arguments);
    assert_eq!(status(&output), 2, "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn the_newest_checkpoint_is_the_one_that_tensorflow_gives() {
    let (_kept, run) = copy("run");
    let cases = data("tensorflow/checkpoint_state/cases.jsonl");
    for line in fs::read_to_string(cases).unwrap().lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let hex = case["text"].as_str().unwrap();
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
        fs::write(run.join("checkpoint"), &bytes).unwrap();
        let file = run.join("checkpoint");
        let shown = String::from_utf8_lossy(&bytes);
        let output = serdes(&["check", text(&file), "--kind", "checkpoint_state", "--json"]);
        let verdict = objects(&output).swap_remove(0);
        let is_found = case["latest"].is_string();
        assert_eq!(verdict["verdict"] == "acceptable", is_found, "{shown}: {verdict}");
        let target = run.join("target.sds");
        let converted = serdes(&["convert", text(&run), text(&target)]);
        assert_eq!(status(&converted) == 0, is_found, "{shown}: {converted:?}");
        if let Some(name) = case["latest"].as_str() {
            let same = serdes(&["diff", text(&run), text(&run.join(name)), "--json"]);
            assert_eq!(status(&same), 0, "{shown}: {same:?}");
        }
    }
}

#[test]
fn a_missing_newest_checkpoint_is_refused_by_name() {
    let (_kept, run) = copy("run");
    for suffix in ["index", "data-00000-of-00001"] {
        fs::remove_file(run.join(format!("ckpt-4.{suffix}"))).unwrap();
    }
    let found = verdict(&run);
    let reason = &found["reasons"][0];
    let is = (&found["kind"], &found["verdict"], &reason["rule"], &reason["where"]);
    let expected =
        (json!("checkpoint_state"), json!("unreadable"), json!("not_found"), json!("ckpt-4"));
    assert_eq!(is, (&expected.0, &expected.1, &expected.2, &expected.3), "{found}");
    // The folder gives the same reason; the message names what can be converted instead.
    let output = serdes(&["check", text(&run), "--json"]);
    assert_eq!(status(&output), 2);
    assert_eq!(objects(&output)[0]["reasons"][0]["rule"], "not_found");
    let said = refused(&["convert", text(&run), text(&run.join("o.sds"))]);
    assert!(said.contains("\"ckpt-4\", is not there; name a prefix"), "{said}");
    assert!(said.contains(text(&run.join("ckpt-2"))), "{said}");
}

#[test]
fn a_moved_folder_says_which_prefix_to_give() {
    let (_kept, run) = copy("run");
    fs::write(run.join("checkpoint"), "model_checkpoint_path: \"/elsewhere/ckpt-3\"\n").unwrap();
    let remedy = verdict(&run)["reasons"][0]["remedy"].to_string();
    assert!(remedy.contains(text(&run.join("ckpt-3"))), "{remedy}");
}

#[test]
fn checkpoints_that_are_not_pointed_to_are_said() {
    let (_kept, run) = copy("run");
    assert!(warnings(&verdict(&run)).is_empty(), "{}", verdict(&run));
    fs::write(run.join("checkpoint"), "model_checkpoint_path: \"ckpt-2\"\n").unwrap();
    let found = verdict(&run);
    assert_eq!(found["verdict"], "acceptable");
    let unlisted = |name: &str| ("unlisted_checkpoint".to_owned(), name.to_owned());
    assert_eq!(warnings(&found), [unlisted("ckpt-3"), unlisted("ckpt-4")]);
    let message = found["warnings"][0]["message"].as_str().unwrap();
    assert!(message.contains("is not what `checkpoint` points to"), "{message}");
    let of_folder = objects_of(&["check", text(&run), "--json"]);
    assert_eq!(warnings(&of_folder[0]), warnings(&found));
    assert_eq!(of_folder.iter().filter(|one| one["kind"] == "tensor_bundle").count(), 3);
    // Older checkpoints that are missing.
    let gone = "model_checkpoint_path: \"ckpt-4\" all_model_checkpoint_paths: \"ckpt-1\"";
    fs::write(run.join("checkpoint"), gone).unwrap();
    assert!(warnings(&verdict(&run)).contains(&("not_found".to_owned(), "ckpt-1".to_owned())));
}

#[test]
fn a_state_whose_newest_checkpoint_is_damaged_is_refused() {
    let (_kept, run) = copy("run");
    fs::write(run.join("ckpt-4.index"), "no table").unwrap();
    assert_eq!(verdict(&run)["reasons"][0]["rule"], "corrupt");
    // In the folder each checkpoint has its own verdict.
    let of_folder = objects_of(&["check", text(&run), "--json"]);
    let refused = of_folder.iter().filter(|one| one["verdict"] == "unreadable");
    assert_eq!(refused.count(), 1, "{of_folder:?}");
}

#[test]
fn inspect_lists_the_checkpoints_with_their_times() {
    let run = data("tensorflow/checkpoint_state/run/checkpoint");
    let found = objects_of(&["inspect", text(&run), "--json"]).swap_remove(0);
    assert_eq!(
        (&found["newest"], &found["newest_kind"]),
        (&json!("ckpt-4"), &json!("tensor_bundle"))
    );
    let checkpoints = found["checkpoints"].as_array().unwrap();
    let prefixes: Vec<_> = checkpoints.iter().map(|one| &one["prefix"]).collect();
    assert_eq!(prefixes, ["ckpt-2", "ckpt-3", "ckpt-4"]);
    assert!(checkpoints.iter().all(|one| one["timestamp"].as_str().unwrap().starts_with("17")));
    let output = serdes(&["inspect", text(&run)]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(
        shown.contains("newest") && shown.contains("ckpt-2") && shown.contains("UTC"),
        "{shown}"
    );
}

#[test]
fn v1_checkpoints_are_converted_by_file_pattern_and_list() {
    let folder = tempfile::tempdir().unwrap();
    let all = data("tensorflow/checkpoint_state");
    let target = folder.path().join("o.npz");
    for source in ["v1", "v1/model.ckpt", "sharded", "sharded/model.ckpt-?????-of-00001"] {
        let source = all.join(source);
        let converted = serdes(&["convert", text(&source), text(&target)]);
        assert_eq!(status(&converted), 0, "{source:?}: {converted:?}");
        let listed = objects_of(&["inspect", text(&target), "--json"]).swap_remove(0);
        let named = |tensor: &Value| (tensor["name"].clone(), tensor["shape"].clone());
        let tensors: Vec<_> = listed["tensors"].as_array().unwrap().iter().map(named).collect();
        assert_eq!(tensors, [(json!("a"), json!([3])), (json!("b"), json!([2, 2]))], "{source:?}");
    }
    // One of several files; another one has a part of a tensor.
    let part = folder.path().join("model.ckpt-00000-of-00002");
    fs::copy(all.join("sharded/model.ckpt-00000-of-00001"), &part).unwrap();
    assert_eq!(status(&serdes(&["diff", text(&part), text(&target)])), 0);
}

#[test]
fn every_command_says_the_prefix_of_a_data_file() {
    let (_kept, run) = copy("run");
    let prefix = run.join("ckpt-4");
    let shard = run.join("ckpt-4.data-00000-of-00001");
    let target = run.join("o.sds");
    let commands: [&[&str]; 6] = [
        &["convert", text(&shard), text(&target)],
        &["save", "--from", text(&shard), "-o", text(&target)],
        &["diff", text(&shard), text(&shard)],
        &["restore", text(&shard)],
        &["check", text(&shard)],
        &["inspect", text(&shard)],
    ];
    for is_whole in [true, false] {
        for command in commands {
            let output = serdes(command);
            let said = [&output.stderr[..], &output.stdout[..]].concat();
            let said = String::from_utf8(said).unwrap();
            let is_named = said.replace(text(&shard), "").contains(text(&prefix));
            assert!(is_named, "{command:?}, {is_whole}: {said}");
            let reads = is_whole && matches!(command[0], "check" | "inspect");
            assert_eq!(status(&output), if reads { 0 } else { 2 }, "{command:?}: {said}");
        }
        let index = run.join("ckpt-4.index");
        if is_whole {
            fs::remove_file(index).unwrap();
        }
    }
}

#[test]
fn a_folder_without_a_list_says_its_prefixes() {
    let (_kept, run) = copy("run");
    fs::remove_file(run.join("checkpoint")).unwrap();
    let said = refused(&["convert", text(&run), text(&run.join("o.sds"))]);
    assert!(said.contains("one of its 3 checkpoints"), "{said}");
    // Orbax before 0.5 stores its tree in a file of the same name.
    fs::write(run.join("checkpoint"), b"\x81\xa1w\x01").unwrap();
    let said = refused(&["convert", text(&run), text(&run.join("o.sds"))]);
    assert!(said.contains("checkpoint of Orbax"), "{said}");
}
