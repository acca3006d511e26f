//! Tests that some hundred headers of npy files are judged as NumPy judges them;
//! `tests/interop/numpy_headers.py` recorded NumPy's answers.

use std::{fs, path::Path};

use serdes_check::{self as check, Options, Rule, Verdict};

/// Returns the verdict on a file with this header, and `bytes` zeros behind it.
fn verdict(version: u8, header: &str, bytes: usize) -> Verdict {
    let text = match version {
        3 => header.as_bytes().to_vec(),
        _ => header.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect(),
    };
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version, 0]);
    match version {
        1 => file.extend(u16::try_from(text.len()).unwrap().to_le_bytes()),
        _ => file.extend(u32::try_from(text.len()).unwrap().to_le_bytes()),
    }
    file.extend(text);
    file.resize(file.len() + bytes, 0);
    check::bytes(file).check(&Options::default()).unwrap()
}

#[test]
fn npy_headers_are_taken_as_numpy_takes_them() {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/npy/headers.jsonl");
    let (mut taken, mut refused, mut differ) = (0, 0, Vec::new());
    for line in fs::read_to_string(list).unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let header = line["header"].as_str().unwrap();
        let version = u8::try_from(line["version"].as_u64().unwrap()).unwrap();
        let bytes = usize::try_from(line["bytes"].as_u64().unwrap()).unwrap();
        let found = verdict(version, header, bytes);
        *if line["taken"] == true { &mut taken } else { &mut refused } += 1;
        if line["taken"] != found.is_acceptable() {
            differ.push(format!("{version} {header:?}: {found}"));
        }
    }
    assert!(taken > 250 && refused > 200, "{taken} {refused}");
    // NumPy has no one-byte type `f1`; ml_dtypes writes float8_e5m2 under that name.
    let differ: Vec<_> = differ.iter().filter(|line| !line.contains("'<f1'")).collect();
    assert!(differ.is_empty(), "{} differ: {differ:#?}", differ.len());
}

#[test]
fn npy_versions_are_those_that_numpy_has() {
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (), }";
    for version in 0..=5 {
        let is_known = (1..=3).contains(&version);
        assert_eq!(verdict(version, header, 1).is_acceptable(), is_known, "{version}");
    }
}

#[test]
fn npy_types_of_ml_dtypes_are_read_by_their_names() {
    for (name, bytes) in [("bfloat16", 2), ("float8_e4m3fn", 1), ("int4", 1), ("float4_e2m1fn", 1)]
    {
        let header = format!("{{'descr': '{name}', 'fortran_order': False, 'shape': (), }}");
        let found = verdict(1, &header, bytes);
        assert!(found.is_acceptable() && found.warnings().is_empty(), "{name}: {found}");
    }
}

#[test]
fn npy_objects_are_refused_as_numpy_refuses_them() {
    for descr in ["'|O'", "[('a', '<f4'), ('b', 'O')]", "('O', (2,))", "'object'"] {
        let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (3,), }}");
        let found = verdict(1, &header, 17);
        let rules: Vec<_> = found.reasons().iter().map(|reason| reason.rule).collect();
        assert_eq!(rules, [Rule::PickledObjects], "{descr}: {found}");
        assert!(found.warnings().is_empty(), "{descr}: {found}");
        assert!(found.to_string().contains("allow_pickle"), "{found}");
    }
}
