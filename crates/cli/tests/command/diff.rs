//! Tests of `serdes diff`: what counts as equal.

use std::{fs, path::Path};

use crate::testkit::{objects, serdes, status, text};

/// Writes an npy file of these 64-bit floats.
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
fn numbers_within_the_tolerance_are_equal() {
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
fn incomparable_files_are_not_equal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("objects.npy");
    let header = "{'descr': '|O', 'fortran_order': False, 'shape': (), }\n";
    let bytes =
        [&b"\x93NUMPY\x01\x00"[..], &(header.len() as u16).to_le_bytes(), header.as_bytes()];
    fs::write(&path, bytes.concat()).unwrap();
    let output = serdes(&["diff", text(&path), text(&path)]);
    assert_eq!(status(&output), 2, "{output:?}");
}

/// With status 2 there is an object for programs as well.
#[test]
fn a_tensor_that_cannot_be_compared_is_an_object() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("words.npy");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    let header = "{'descr': '<U2', 'fortran_order': False, 'shape': (1,), }\n";
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend([0; 8]);
    fs::write(&path, bytes).unwrap();
    let output = serdes(&["diff", text(&path), text(&path), "--json"]);
    assert_eq!(status(&output), 2, "{output:?}");
    let found = objects(&output);
    assert_eq!((found.len(), &found[0]["name"]), (2, &"words".into()));
    assert!(found[0]["error"].as_str().unwrap().contains("<U2"), "{}", found[0]);
}
