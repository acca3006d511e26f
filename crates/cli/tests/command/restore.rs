//! Tests of `serdes restore`: whole states, parts of them, and the undamaged rest of damaged ones.

use std::fs;

use crate::testkit::{objects, root, serdes, state_of, status, text, tiny};

#[test]
fn restore_takes_names_and_answers_with_differences() {
    let folder = tempfile::tempdir().unwrap();
    let (state, part) = (folder.path().join("state.sds"), folder.path().join("part.sds"));
    assert_eq!(status(&serdes(&["save", "--from", text(&tiny()), "-o", text(&state)])), 0);
    let inspect = serdes(&["inspect", text(&state), "--json"]);
    let name = objects(&inspect)[0]["tensors"][0]["name"].as_str().unwrap().to_owned();
    let only = serdes(&["restore", text(&state), "--only", &name, "--to", text(&part), "--json"]);
    assert_eq!(status(&only), 0, "{only:?}");
    assert_eq!(objects(&only)[0]["tensors"], 1);
    let diff = serdes(&["diff", text(&state), text(&part), "--json"]);
    assert_eq!(status(&diff), 1, "{diff:?}");
    assert!(objects(&diff).iter().any(|found| found["result"] == "only_in_a"));
    let none = serdes(&["restore", text(&state), "--only", "no such tensor *"]);
    assert_eq!(status(&none), 2, "{none:?}");
}

#[test]
fn a_pattern_that_nothing_matches_is_no_success_of_a_salvage() {
    let folder = tempfile::tempdir().unwrap();
    let state = state_of(folder.path(), "a");
    let whole = fs::read(&state).unwrap();
    for bytes in [&whole[..], &whole[..whole.len() - 1]] {
        fs::write(&state, bytes).unwrap();
        let none = serdes(&["restore", text(&state), "--salvage", "--only", "z*", "--json"]);
        assert_eq!(status(&none), 2, "{none:?}");
        assert!(objects(&none)[0]["error"].as_str().unwrap().contains("z*"), "{none:?}");
        let some = serdes(&["restore", text(&state), "--salvage", "--only", "a", "--json"]);
        assert_eq!(status(&some), 0, "{some:?}");
        assert_eq!(objects(&some)[0]["tensors"], 1);
    }
}

#[test]
fn lost_part_is_named_and_costs_only_its_tensors() {
    let folder = tempfile::tempdir().unwrap();
    let golden = root().join("tests/golden/device_state/v0");
    let (state, parts) = (folder.path().join("merged.sds"), folder.path().join("merged.sds.parts"));
    fs::copy(golden.join("merged.sds"), &state).unwrap();
    fs::create_dir(&parts).unwrap();
    let [first, second] =
        [0, 1].map(|number| format!("{}-00000{number}-of-000002.part", "01".repeat(16)));
    fs::copy(golden.join("merged.sds.parts").join(&first), parts.join(&first)).unwrap();
    let salvage = ["restore", text(&state), "--salvage", "--json"];
    // First a missing file, then one of a newer build.
    for status_without in [2, 1] {
        let restore = serdes(&["restore", text(&state), "--json"]);
        assert_eq!(status(&restore), status_without, "{restore:?}");
        let salvaged = serdes(&salvage);
        assert_eq!(status(&salvaged), 1, "{salvaged:?}");
        let report = &objects(&salvaged)[0];
        assert_eq!(report["tensors"], 2);
        assert_eq!(report["lost"], serde_json::json!(["own-1", "w"]));
        assert_eq!(report["lost_parts"], serde_json::json!([second]));
        let future = root().join("tests/golden/device_state/future.sds");
        fs::copy(future, parts.join(&second)).unwrap();
    }
}

#[test]
fn a_salvage_that_lost_something_or_may_have_is_no_yes() {
    let folder = tempfile::tempdir().unwrap();
    let (state, to) = (folder.path().join("a.sds"), folder.path().join("b.safetensors"));
    assert_eq!(status(&serdes(&["save", "--from", text(&tiny()), "-o", text(&state)])), 0);
    let salvage = |more: &[&str]| {
        let arguments = ["restore", text(&state), "--salvage", "--to", text(&to), "--json"];
        let output = serdes(&[&arguments, more].concat());
        let object = objects(&output).remove(0);
        (status(&output), object["verified"].as_bool(), object)
    };
    assert_eq!(salvage(&[]).0, 0);
    let whole = fs::read(&state).unwrap();
    fs::write(&state, &whole[..whole.len() / 2]).unwrap();
    let (status, verified, object) = salvage(&[]);
    assert_eq!((status, verified), (1, Some(false)), "{object}");
    assert!(object["tensors"].as_u64().unwrap() < 9);
    // One tensor is damaged, and the index says which.
    let mut damaged = whole.clone();
    let tensors = objects(&serdes(&["inspect", text(&tiny()), "--json"]));
    drop(tensors);
    let middle = whole.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&state, &damaged).unwrap();
    let (status, verified, object) = salvage(&[]);
    assert_eq!((status, verified), (1, Some(false)), "{object}");
    assert_eq!(object["lost"].as_array().unwrap().len(), 1, "{object}");
    // The wanted tensors are undamaged.
    let lost = object["lost"][0].as_str().unwrap().to_owned();
    let inspected = objects(&serdes(&["inspect", text(&state), "--json"]));
    let other = inspected[0]["tensors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tensor| tensor["name"].as_str().unwrap())
        .find(|name| *name != lost)
        .unwrap();
    let (status, verified, _) = salvage(&["--only", other]);
    assert_eq!((status, verified), (0, Some(true)));
}

#[test]
fn aliases_are_names_in_a_state_and_tensors_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let head = br#"{"__metadata__":{"serdes_ml.aliases":"{\"head\": \"w\"}","step":"7"},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"w":{"dtype":"U8","shape":[3],"data_offsets":[2,5]}}"#;
    let file = [&(head.len() as u64).to_le_bytes(), &head[..], &[1, 2, 3, 4, 5]].concat();
    let (from, state) = (path("in.safetensors"), path("a.sds"));
    fs::write(&from, file).unwrap();
    assert_eq!(status(&serdes(&["save", "--from", text(&from), "-o", text(&state)])), 0);
    // Returns the names of tensors and the metadata of `to`, as `inspect` shows them.
    let restored = |to: &str, only: &[&str]| {
        let to = path(to);
        let restore = [&["restore", text(&state), "--to", text(&to)], only].concat();
        assert_eq!(status(&serdes(&restore)), 0, "{restore:?}");
        let found = objects(&serdes(&["inspect", text(&to), "--json"])).remove(0);
        let mut names: Vec<String> = found["tensors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tensor| tensor["name"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        (names, found["metadata"].clone())
    };
    let step = serde_json::json!({"step": "7"});
    let (names, metadata) = restored("whole.sds", &[]);
    assert_eq!(names, ["b", "w"]);
    assert_eq!(metadata["serdes_ml.aliases"], r#"{"head": "w"}"#);
    assert_eq!(restored("whole.safetensors", &[]).0, ["b", "head", "w"]);
    // Restored alone it is an independent tensor, and tensors that are left out leave no alias.
    assert_eq!(restored("head.sds", &["--only", "head"]), (vec!["head".to_owned()], step.clone()));
    assert_eq!(restored("b.sds", &["--only", "b"]), (vec!["b".to_owned()], step));
    for to in ["whole.sds", "whole.safetensors"] {
        let diff = serdes(&["diff", text(&state), text(&path(to))]);
        assert_eq!(status(&diff), 0, "{to}: {diff:?}");
    }
}

#[test]
fn restore_writes_a_state_at_the_version_of_its_reader() {
    let folder = tempfile::tempdir().unwrap();
    let (state, old) = (state_of(folder.path(), "a"), folder.path().join("old.sds"));
    for (version, number) in [("4", 4), ("minimum", 0), ("current", 6)] {
        let arguments =
            ["restore", text(&state), "--to", text(&old), "--serdes-version", version, "--json"];
        let restored = serdes(&arguments);
        assert_eq!(status(&restored), 0, "{restored:?}");
        let inspected = serdes(&["inspect", text(&old), "--json"]);
        assert_eq!(objects(&inspected)[0]["details"]["requested"], number.to_string());
    }
    let without = serdes(&["restore", text(&state), "--serdes-version", "4"]);
    assert_eq!(status(&without), 2, "{without:?}");
    let unknown = serdes(&["restore", text(&state), "--to", text(&old), "--serdes-version", "99"]);
    assert_eq!(status(&unknown), 2, "{unknown:?}");
}

#[test]
fn damaged_state_is_named_once_in_each_line() {
    let folder = tempfile::tempdir().unwrap();
    let state = state_of(folder.path(), "w");
    let whole = fs::read(&state).unwrap();
    let data = whole.windows(2).rposition(|two| two == b"ab").unwrap();
    let target = folder.path().join("to.safetensors");
    for at in [40, data] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(&state, damaged).unwrap();
        for command in [
            &["restore", text(&state)][..],
            &["convert", text(&state), text(&target)],
            &["check", text(&state), "--verify-data"],
        ] {
            let output = serdes(command);
            assert_eq!(status(&output), 2, "{command:?} {output:?}");
            let said = [&output.stdout[..], &output.stderr].concat();
            let said = String::from_utf8(said).unwrap();
            assert!(said.contains(text(&state)), "{command:?}: {said}");
            for line in said.lines() {
                assert!(line.matches(text(&state)).count() < 2, "{command:?}: {line}");
            }
        }
    }
}

#[test]
fn salvage_without_a_header_advises_no_salvage() {
    let folder = tempfile::tempdir().unwrap();
    let state = state_of(folder.path(), "w");
    let mut damaged = fs::read(&state).unwrap();
    damaged[40] ^= 1;
    fs::write(&state, damaged).unwrap();
    let plain = String::from_utf8(serdes(&["restore", text(&state)]).stderr).unwrap();
    assert!(plain.contains("take another copy") && !plain.contains("salvage"), "{plain}");
    let output = serdes(&["restore", text(&state), "--salvage"]);
    assert_eq!(status(&output), 2, "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("can be salvaged") && said.contains("take another copy"), "{said}");
    assert!(!said.contains("salvage what is whole"), "{said}");
}

#[test]
fn salvage_does_not_advise_to_salvage() {
    let folder = tempfile::tempdir().unwrap();
    let state = state_of(folder.path(), "w");
    let mut damaged = fs::read(&state).unwrap();
    let data = damaged.windows(2).rposition(|two| two == b"ab").unwrap();
    damaged[data] ^= 1;
    fs::write(&state, damaged).unwrap();
    let plain = String::from_utf8(serdes(&["restore", text(&state)]).stderr).unwrap();
    assert!(plain.contains("salvage what is whole"), "{plain}");
    let output = serdes(&["restore", text(&state), "--salvage"]);
    assert_eq!(status(&output), 1, "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("\"w\" is lost: damaged at its data of \"w\""), "{said}");
    assert!(said.contains("expected") && !said.contains("salvage what is whole"), "{said}");
}
