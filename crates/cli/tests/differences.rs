//! What `diff` counts as equal, and what `restore --salvage` says of what is lost.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

fn serdes(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_serdes")).args(arguments).output().unwrap()
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/safetensors/tiny.safetensors")
}

fn objects(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// An npy file of these 64-bit floats.
fn npy(path: &Path, values: &[f64]) {
    let header =
        format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({},), }}\n", values.len());
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    fs::write(path, bytes).unwrap();
}

#[test]
fn numbers_that_are_close_enough_are_equal_where_the_caller_says_how_close() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("before.npy"), folder.path().join("after.npy"));
    npy(&a, &[1.0, 100.0, f64::NAN, -0.0]);
    npy(&b, &[1.0, 101.0, -f64::NAN, 0.0]);
    let diff = |options: &[&str]| {
        let output = serdes(&[&["diff", text(&a), text(&b), "--json"], options].concat());
        let object = objects(&output).remove(0);
        (status(&output), object)
    };
    let (status, found) = diff(&[]);
    assert_eq!((status, &found["result"]), (1, &"differs".into()));
    assert_eq!((&found["elements"], &found["differing"]), (&4.into(), &3.into()));
    assert_eq!(found["name"], "before");
    for (options, differing) in [
        (&["--rtol", "0.01"][..], 0),
        (&["--atol", "1"], 0),
        (&["--atol", "0.99"], 1),
        (&["--rtol", "0.005", "--atol", "0.5"], 0),
        (&["--rtol", "0", "--atol", "0"], 1),
        (&["--atol", "inf"], 0),
    ] {
        let (status, found) = diff(options);
        assert_eq!((status, &found["differing"]), (differing, &differing.into()), "{options:?}");
        assert_eq!((&found["elements"], &found["max_abs"]), (&4.into(), &1.0.into()));
    }
    for options in [
        &["--rtol", "-1"][..],
        &["--rtol=-0.1"],
        &["--atol", "nan"],
        &["--atol", "NaN", "--rtol", "1"],
        &["--rtol", "much"],
    ] {
        let (status, found) = diff(options);
        assert_eq!(status, 2, "{options:?}");
        assert!(found["error"].is_string(), "{options:?}");
    }
    let same = serdes(&["diff", text(&a), text(&a), "--json"]);
    assert_eq!(objects(&same)[0]["elements"], 4);
}

#[test]
fn what_cannot_be_compared_is_no_yes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("objects.npy");
    let header = "{'descr': '|O', 'fortran_order': False, 'shape': (), }\n";
    let bytes =
        [&b"\x93NUMPY\x01\x00"[..], &(header.len() as u16).to_le_bytes(), header.as_bytes()];
    fs::write(&path, bytes.concat()).unwrap();
    let output = serdes(&["diff", text(&path), text(&path)]);
    assert_eq!(status(&output), 2, "{output:?}");
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
    // What is wanted is there.
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
