//! Tests of the index over several files of tensors: the messages if the index and its files
//! differ.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::testkit::{data, objects, objects_of, printed, serdes, status, text};

const INDEX: &str = "model.safetensors.index.json";
const FIRST: &str = "model-00001-of-00002.safetensors";
const SECOND: &str = "model-00002-of-00002.safetensors";

/// Returns a safetensors file of tensors of four bytes.
fn file_of(names: &[&str]) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    for (number, name) in names.iter().enumerate() {
        let place = [4 * number, 4 * number + 4];
        let tensor = json!({ "dtype": "F32", "shape": [1], "data_offsets": place });
        header.insert((*name).to_owned(), tensor);
    }
    let header = Value::Object(header).to_string();
    let length = (header.len() as u64).to_le_bytes();
    [&length, header.as_bytes(), &vec![7; 4 * names.len()]].concat()
}

/// Writes two files with `a`, `b` in the first and `c` in the second, and this index.
fn set(index: &Value) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(FIRST), file_of(&["a", "b"])).unwrap();
    fs::write(folder.path().join(SECOND), file_of(&["c"])).unwrap();
    let path = folder.path().join(INDEX);
    fs::write(&path, index.to_string()).unwrap();
    (folder, path)
}

fn good() -> Value {
    json!({ "metadata": { "total_size": 12 }, "weight_map": { "a": FIRST, "b": FIRST, "c": SECOND } })
}

fn check(path: &Path) -> (i32, Vec<Value>) {
    let output = serdes(&["check", text(path), "--json", "--verify-data"]);
    (status(&output), objects(&output))
}

fn reason(verdict: &Value) -> (&str, &str) {
    let reason = &verdict["reasons"][0];
    (reason["rule"].as_str().unwrap_or(""), reason["message"].as_str().unwrap_or(""))
}

#[test]
fn check_counts_a_set_of_shards_once() {
    let (folder, index) = set(&good());
    fs::write(folder.path().join("other.safetensors"), file_of(&["x"])).unwrap();
    let (code, found) = check(folder.path());
    let paths: Vec<_> = found.iter().map(|one| one["path"].as_str().unwrap()).collect();
    assert_eq!((code, found.len()), (0, 3), "{found:?}");
    assert!(paths[0].ends_with(INDEX) && paths[1].ends_with("other.safetensors"), "{paths:?}");
    assert_eq!((&found[2]["checked"], &found[2]["skipped"]), (&json!(2), &json!(0)));
    assert_eq!(found[0]["kind"], "shard_index");
    assert_eq!((check(&index).0, &check(&index).1[0]["warnings"]), (0, &json!([])));
    // A file of the set is judged by itself if it is named, or if its index is excluded.
    assert_eq!(check(&folder.path().join(FIRST)).1[0]["kind"], "safetensors");
    let left = objects_of(&["check", text(folder.path()), "--json", "--exclude", "*.json"]);
    assert_eq!(left.last().unwrap()["checked"], 3);
}

#[test]
fn check_names_the_file_that_an_index_lacks() {
    let (folder, index) = set(&good());
    fs::remove_file(folder.path().join(FIRST)).unwrap();
    for path in [folder.path(), &index] {
        let (code, found) = check(path);
        let (rule, message) = reason(&found[0]);
        assert_eq!((code, rule), (2, "not_found"), "{found:?}");
        assert!(message.contains(FIRST) && message.contains("2 tensors"), "{message}");
        assert!(found[0]["reasons"][0]["remedy"].as_str().unwrap().contains("fetch"), "{found:?}");
    }
    let target = folder.path().join("o.sds");
    let output = serdes(&["convert", text(&index), text(&target)]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(INDEX) && said.contains("2 tensors"), "{said}");
}

#[test]
fn check_names_tensors_that_their_file_lacks() {
    let mut index = good();
    index["weight_map"]["d"] = json!(SECOND);
    let (folder, path) = set(&index);
    for path in [folder.path(), &path] {
        let (code, found) = check(path);
        let (rule, message) = reason(&found[0]);
        assert_eq!((code, rule), (2, "corrupt"), "{found:?}");
        assert!(message.contains(&format!("d in {SECOND}")), "{message}");
    }
}

#[test]
fn check_warns_of_tensors_and_sizes_that_loaders_ignore() {
    let index =
        json!({ "metadata": { "total_size": 13 }, "weight_map": { "a": FIRST, "c": SECOND } });
    let (_folder, path) = set(&index);
    let (code, found) = check(&path);
    assert_eq!((code, reason(&found[0])), (0, ("", "")), "{found:?}");
    let said = found[0]["warnings"].to_string();
    assert!(said.contains("1 tensor that") && said.contains("13 bytes"), "{said}");
    // Loaders accept a tensor that the index does not name.
    let inspected = objects_of(&["inspect", text(&path), "--json"]);
    assert_eq!(inspected[0]["tensors"].as_array().unwrap().len(), 3);
    let strict = serdes(&["check", text(&path), "--strict"]);
    assert_eq!(status(&strict), 2);
}

#[test]
fn the_index_decides_which_of_two_tensors_is_taken() {
    let (folder, path) = set(&good());
    let mut other = file_of(&["c", "a"]);
    let length = other.len();
    other[length - 8..].copy_from_slice(&[1, 2, 3, 4, 9, 9, 9, 9]);
    fs::write(folder.path().join(SECOND), other).unwrap();
    assert_eq!(check(&path).0, 0);
    let state = folder.path().join("o.safetensors");
    assert_eq!(status(&serdes(&["convert", text(&path), text(&state)])), 0);
    let bytes = fs::read(&state).unwrap();
    assert!(bytes.ends_with(&[7, 7, 7, 7, 7, 7, 7, 7, 1, 2, 3, 4]), "{bytes:?}");
}

#[test]
fn inspect_shows_what_an_index_covers() {
    let (folder, path) = set(&good());
    let object = &objects_of(&["inspect", text(&path), "--json"])[0];
    assert_eq!((&object["kind"], &object["shards"]), (&json!("shard_index"), &json!(2)));
    assert_eq!(object["details"]["total_size"], "12");
    assert_eq!(object["details"][format!("file {FIRST}")], "2 tensors");
    let shown = printed(&serdes(&["inspect", text(&path)]));
    assert!(shown.contains("tensors     3 (12 B)") && shown.contains("shards      2"), "{shown}");
    // The existing files are shown if one is missing.
    fs::remove_file(folder.path().join(SECOND)).unwrap();
    let object = &objects_of(&["inspect", text(&path), "--json"])[0];
    assert_eq!(object["tensors"].as_array().unwrap().len(), 2);
    assert!(object["details"]["fault 1"].as_str().unwrap().contains(SECOND), "{object}");
}

#[test]
fn an_index_is_told_by_content_and_by_names_of_variants() {
    let (folder, path) = set(&good());
    let text_of = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    for name in [
        "weights.json",
        "model.safetensors.index.fp16.json",
        "diffusion_pytorch_model.fp16.safetensors.index.json",
        "pytorch_model.bin.index.json",
    ] {
        let path = folder.path().join(name);
        fs::write(&path, &text_of).unwrap();
        let (code, found) = check(&path);
        assert_eq!((code, &found[0]["kind"]), (0, &json!("shard_index")), "{name}: {found:?}");
        assert_eq!(status(&serdes(&["diff", text(&path), text(&path)])), 0, "{name}");
        fs::remove_file(&path).unwrap();
    }
    // A saved error response is not an index, and neither is other JSON.
    fs::write(&path, r#"{"error": "Entry not found"}"#).unwrap();
    assert_eq!(reason(&check(&path).1[0]).0, "corrupt");
    let other = folder.path().join("config.json");
    fs::write(&other, r#"{"model": {"weight_map": {}}}"#).unwrap();
    assert_eq!(check(&other).1[0]["kind"], "json");
    fs::write(&path, "<!DOCTYPE html><p>").unwrap();
    assert_eq!(reason(&check(&path).1[0]).0, "other_kind");
}

#[test]
fn an_index_leads_nowhere_else() {
    for file in ["../a.safetensors", "/etc/passwd", "C:x", "a\\b", "", ".."] {
        let (folder, path) = set(&json!({ "weight_map": { "a": file } }));
        for path in [folder.path(), &path] {
            let (code, found) = check(path);
            let index = found.iter().find(|one| one["kind"] == "shard_index").unwrap();
            assert_eq!((code, reason(index).0), (2, "corrupt"), "{file}: {found:?}");
        }
    }
    let huge: serde_json::Map<String, Value> =
        (0..100_000).map(|number| (format!("t{number}"), json!(format!("f{number}")))).collect();
    let (_folder, path) = set(&json!({ "weight_map": huge }));
    let (code, found) = check(&path);
    assert_eq!(code, 2);
    assert!(found[0]["reasons"].as_array().unwrap().len() <= 100);
    let stream = std::process::Command::new(crate::testkit::BINARY)
        .args(["check", "-", "--json"])
        .stdin(fs::File::open(&path).unwrap())
        .output()
        .unwrap();
    assert_eq!(objects(&stream)[0]["reasons"][0]["rule"], "unsupported");
}

#[test]
fn an_index_of_files_of_torch_is_judged_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let shard = folder.path().join("pytorch_model-00001-of-00001.bin");
    fs::copy(data("torch/2.15.0/every_type.pt"), &shard).unwrap();
    let inside = &objects_of(&["inspect", text(&shard), "--json"])[0]["tensors"];
    let names: serde_json::Map<String, Value> = inside
        .as_array()
        .unwrap()
        .iter()
        .map(|tensor| {
            let name = tensor["name"].as_str().unwrap().to_owned();
            (name, json!("pytorch_model-00001-of-00001.bin"))
        })
        .collect();
    let path = folder.path().join("pytorch_model.bin.index.json");
    fs::write(&path, json!({ "metadata": {}, "weight_map": names }).to_string()).unwrap();
    let (_, found) = check(&path);
    assert_eq!((&found[0]["kind"], reason(&found[0])), (&json!("shard_index"), ("", "")));
    fs::write(&shard, b"Entry not found").unwrap();
    assert_eq!(check(&path).0, 2);
}
