//! `serdes inspect`: what is shown, and that it does nothing to a terminal.

use std::fs;

use crate::testkit::{data, objects, objects_of, printed, serdes, state_of, text, tiny};

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
