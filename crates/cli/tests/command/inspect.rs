//! Tests of `serdes inspect`: what it shows, and that its output does not control a terminal.

use std::fs;

use crate::testkit::{data, objects, objects_of, printed, serdes, state_of, status, text, tiny};

#[test]
fn names_out_of_a_file_do_nothing_to_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a\nb", "red\u{1b}[31m", "turned\u{202e}name", "", "bell\u{7}/x"] {
        let state = state_of(folder.path(), name);
        let source = state.with_file_name("source.safetensors");
        fs::write(&source, fs::read(tiny()).unwrap()).unwrap();
        for command in [&["inspect", text(&state)][..], &["diff", text(&state), text(&source)]] {
            let arguments = [&["--color", "always"], command].concat();
            let shown = String::from_utf8(serdes(&arguments).stdout).unwrap();
            for part in name.split('/').filter(|part| !part.is_empty()) {
                assert!(!shown.contains(part) || part == "x", "{part:?} in {shown:?}");
            }
            assert!(!shown.contains('\u{202e}') && !shown.contains('\u{7}'), "{shown:?}");
        }
        let found = objects(&serdes(&["inspect", text(&state), "--json"]));
        assert_eq!(found[0]["tensors"][0]["name"], name);
    }
}

#[test]
fn labels_and_values_stand_apart() {
    let model = data("tensorflow/sm/sm_tf2_wrong_tags");
    let output = printed(&serdes(&["inspect", text(&model)]));
    assert!(output.contains("written by TensorFlow  2."), "{output}");
    assert!(output.contains("stripped_default_attrs "), "{output}");
    let object = &objects_of(&["inspect", text(&model), "--json"])[0];
    assert!(object["stripped_default_attrs"].is_boolean(), "{object}");
    let library = std::env::current_exe().unwrap();
    let output = printed(&serdes(&["inspect", text(&library)]));
    assert!(output.contains("architecture  x86_64") || !cfg!(target_arch = "x86_64"), "{output}");
    assert!(!output.contains("\"\""), "{output}");
}

#[test]
fn a_directory_is_walked_and_each_artifact_in_it_shown() {
    let folder = tempfile::tempdir().unwrap();
    let models = folder.path().join("models");
    fs::create_dir(&models).unwrap();
    let nothing = serdes(&["inspect", text(&models), "--json"]);
    assert_eq!(status(&nothing), 2);
    let error = objects(&nothing)[0]["error"].as_str().unwrap().to_owned();
    assert!(error.contains(text(&models)) && error.contains("no artifact"), "{error}");
    fs::copy(state_of(folder.path(), "a"), models.join("a.sds")).unwrap();
    fs::copy(tiny(), models.join("b.safetensors")).unwrap();
    fs::write(models.join("notes.md"), "notes").unwrap();
    let whole = serdes(&["inspect", text(&models), "--json"]);
    assert_eq!(status(&whole), 0, "{whole:?}");
    let kinds: Vec<_> = objects(&whole).iter().map(|found| found["kind"].clone()).collect();
    assert_eq!(kinds, ["device_state", "safetensors"]);
    assert!(String::from_utf8(whole.stderr).unwrap().contains("1 file of no kind"));
    // A file that cannot be read is named, and the walk continues.
    fs::write(models.join("aa.sds"), "no state").unwrap();
    let damaged = serdes(&["inspect", text(&models), "--json"]);
    assert_eq!(status(&damaged), 2);
    let found = objects(&damaged);
    assert!(found[1]["error"].as_str().unwrap().contains("aa.sds"), "{}", found[1]);
    assert_eq!((found.len(), &found[2]["kind"]), (3, &"safetensors".into()));
}

#[test]
fn signatures_are_listed_as_tensorflow_lists_them() {
    let model = data("tensorflow/sm/tf2");
    let listed = printed(&serdes(&["inspect", "--signatures", text(&model)]));
    for line in [
        "meta graph [serve]  written by TensorFlow 2.21.0",
        "    signature serving_default",
        "      input x\n        dtype: DT_FLOAT\n        shape: (-1, 2)\n        name: serving_default_x:0",
        "        shape: unknown_rank\n        name: NoOp",
        "      method: tensorflow/serving/predict",
        "    function f\n      option 1\n        TensorSpec(shape=(None, 2), dtype=tf.float32, name='x')",
    ] {
        assert!(listed.contains(line), "{line}\n{listed}");
    }
    let object = &objects_of(&["inspect", "--json", text(&model)])[0];
    let input = &object["meta_graphs"][0]["signatures"]["serving_default"]["inputs"]["x"];
    assert_eq!((&input["dtype"], &input["shape"]), (&"F32".into(), &serde_json::json!([-1, 2])));
    assert_eq!(object["meta_graphs"][0]["tags"], serde_json::json!(["serve"]));
    assert!(object["fingerprint"]["checkpoint_hash"].is_string(), "{object}");
    assert_eq!(object["assets"], serde_json::json!([]));
}

#[test]
fn state_says_which_builds_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let state = state_of(folder.path(), "w");
    let shown = printed(&serdes(&["inspect", text(&state)]));
    let fact = |label: &str| {
        let line = shown.lines().find_map(|line| line.trim_start().strip_prefix(label));
        line.unwrap_or_else(|| panic!("{label}: {shown}")).trim_start().to_owned()
    };
    assert!(fact("written by").contains("(container version 0 of 2026-11-20)"), "{shown}");
    assert!(fact("read by").starts_with("builds from 2026-11-20 on (container version 0, "));
    assert!(fact("saved at").starts_with("IFRT SerDes version "), "{shown}");
    for word in ["min_consumer", "producer", "device_state 0"] {
        assert!(!shown.contains(word), "{word}: {shown}");
    }
    let object = &objects_of(&["inspect", text(&state), "--json"])[0];
    assert_eq!(object["versions"]["min_consumer"], 0, "{object}");
    assert_eq!(object["nested"][0]["type"], "device_state", "{object}");
}
