//! Tests of `serdes restore --dry-run`: the fit of a state with the devices of a plug-in.

use std::fs;

use serde_json::{Value, json};

use crate::testkit::{objects, printed, root, serdes, state_of, status, text};

/// Returns the answer and the status of a dry run of a state over four devices.
fn dry_run(plugin: &str, more: &[&str]) -> (i32, Value) {
    let state = root().join("tests/golden/device_state/v0/merged.sds");
    let arguments = ["restore", text(&state), "--dry-run", "--json", "--plugin", plugin];
    let output = serdes(&[&arguments, more].concat());
    (status(&output), objects(&output).remove(0))
}

#[test]
fn a_state_fits_devices_of_which_each_has_room_for_its_shards() {
    let (status, found) = dry_run("host:devices=4,memory=70", &[]);
    assert_eq!((status, &found["fits"]), (0, &json!(true)), "{found}");
    assert_eq!((&found["tensors"], &found["bytes"]), (&json!(4), &json!(216)));
    assert_eq!(found["types"]["needed"], json!(["U8"]));
    assert_eq!(found["mesh"], json!({"fits": true, "needed": 4, "offered": 4}));
    // Each device gets a copy of the replicated tensor.
    let device = |at: usize, needed: u64| json!({"device": at, "saved_from": at, "needed": needed, "offered": 70, "fits": true});
    let devices = json!([device(0, 66), device(1, 60), device(2, 60), device(3, 60)]);
    assert_eq!(found["memory"], json!({"fits": true, "devices": devices}));
    // One device is too small for all of it.
    let one = json!({"fits": false, "device": 0, "needed": 216, "offered": 70});
    assert_eq!(found["one_device"], one);
}

#[test]
fn a_device_with_too_little_memory_is_a_no_with_both_values() {
    let (status, found) = dry_run("host:devices=4,memory=65", &[]);
    assert_eq!((status, &found["fits"]), (1, &json!(false)), "{found}");
    let first = json!({"device": 0, "saved_from": 0, "needed": 66, "offered": 65, "fits": false});
    assert_eq!(found["memory"]["devices"][0], first);
    assert_eq!(found["memory"]["devices"][1]["fits"], json!(true));
    // Restoring fewer tensors needs less memory of the devices.
    let (status, found) = dry_run("host:devices=4,memory=65", &["--only", "w"]);
    assert_eq!((status, &found["memory"]["fits"]), (0, &json!(true)), "{found}");
}

#[test]
fn too_few_devices_are_a_no_though_one_has_room_for_all() {
    let (status, found) = dry_run("host:devices=2,memory=1000", &[]);
    assert_eq!(status, 1, "{found}");
    assert_eq!(found["mesh"], json!({"fits": false, "needed": 4, "offered": 2}));
    assert_eq!(found["memory"]["devices"][2]["device"], Value::Null);
    assert_eq!(found["one_device"]["fits"], json!(true));
    let state = root().join("tests/golden/device_state/v0/merged.sds");
    let output =
        serdes(&["restore", text(&state), "--dry-run", "--plugin", "host:devices=2,memory=1000"]);
    let shown = printed(&output);
    assert!(shown.contains("4 devices needed, 2 offered"), "{shown}");
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(note.contains("device 0: 216 B needed, 1000 B free"), "{note}");
}

#[test]
fn a_dry_run_takes_no_target_and_a_damaged_head_is_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let (state, to) = (state_of(folder.path(), "a"), folder.path().join("b.npy"));
    let both = serdes(&["restore", text(&state), "--dry-run", "--to", text(&to)]);
    assert_eq!((status(&both), to.exists()), (2, false));
    assert_eq!(status(&serdes(&["restore", text(&state), "--dry-run"])), 0);
    fs::write(&state, &fs::read(&state).unwrap()[..20]).unwrap();
    assert_eq!(status(&serdes(&["restore", text(&state), "--dry-run"])), 2);
}
