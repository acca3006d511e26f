use std::{fs, sync::Arc};

use serdes_device_state::Durability;

use super::*;
use crate::{Error, Output, Source, Target};

fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn open(bytes: Vec<u8>) -> Result<SafetensorsSource, Error> {
    SafetensorsSource::new(Arc::new(bytes), "x.safetensors".as_ref())
}

fn read(source: &SafetensorsSource, position: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    source.read(position).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

/// Copies the tensors of a file through a source and a target.
fn copy(bytes: Vec<u8>) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("copy.safetensors");
    let source = open(bytes).unwrap();
    let target = Box::new(SafetensorsTarget::new(Output::create(&path, Durability::None).unwrap()));
    let mut target = target.begin(source.tensors().to_vec(), source.metadata()).unwrap();
    for position in target.order().to_vec() {
        target.write(position, &mut source.read(position).unwrap()).unwrap();
    }
    target.finish().unwrap();
    fs::read(path).unwrap()
}

#[test]
fn a_canonical_file_comes_back_byte_for_byte() {
    let header = concat!(
        r#"{"__metadata__":{"format":"pt","a":"ü\"/"},"#,
        r#""w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"#,
        r#""h\n":{"dtype":"BF16","shape":[2],"data_offsets":[8,12]},"#,
        r#""e":{"dtype":"F8_E4M3","shape":[0,3],"data_offsets":[12,12]},"#,
        r#""s":{"dtype":"I8","shape":[],"data_offsets":[12,13]},"#,
        r#""p":{"dtype":"F4","shape":[6],"data_offsets":[13,16]}}"#,
    );
    let mut header = header.to_owned();
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    let bytes = file(&header, b"0123456789abcdef");
    assert_eq!(copy(bytes.clone()), bytes);
    let source = open(bytes).unwrap();
    let names: Vec<_> = source.tensors().iter().map(|info| info.name.as_str()).collect();
    assert_eq!(names, ["w", "h\n", "e", "s", "p"]);
    assert_eq!(source.tensors()[4].bytes, 6);
    assert_eq!(read(&source, 4), [0x4, 0x6, 0x5, 0x6, 0x6, 0x6]);
}

#[test]
fn misaligned_data_is_sorted_as_by_the_reference() {
    let bytes = file(
        concat!(
            r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"#,
            r#""b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}}"#,
        ),
        b"x1234",
    );
    let sorted = copy(bytes);
    assert!(sorted.ends_with(b"1234x"));
    assert_eq!(open(sorted).unwrap().tensors()[0].name, "b");
}

#[test]
fn no_metadata_and_empty_metadata_stay_different() {
    for header in ["{}      ", r#"{"__metadata__":{}}     "#] {
        let bytes = file(header, b"");
        assert_eq!(copy(bytes.clone()), bytes);
    }
}

#[test]
fn an_unknown_type_is_refused_by_name_and_the_rest_is_read() {
    let source = open(file(
        concat!(
            r#"{"a":{"dtype":"Q3","shape":[1],"data_offsets":[0,1]},"#,
            r#""b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#,
        ),
        b"xy",
    ))
    .unwrap();
    assert_eq!(source.refused().len(), 1);
    assert!(source.refused()[0].reason.contains("Q3"));
    assert_eq!(read(&source, 0), b"y");
}

#[test]
fn tensor_entry_is_read_in_any_order_as_by_the_reference() {
    for entry in [
        r#"{"data_offsets":[0,2],"note":{"deep":[1]},"shape":[2],"dtype":"U8"}"#,
        r#"["U8",[2],[0,2]]"#,
    ] {
        let source = open(file(&format!(r#"{{"a":{entry}}}"#), b"xy")).unwrap();
        assert_eq!(read(&source, 0), b"xy", "{entry}");
    }
    for (entry, expected) in [
        (r#"{"shape":[2],"data_offsets":[0,2]}"#, "missing field `dtype`"),
        (r#"{"dtype":"U8","data_offsets":[0,2]}"#, "missing field `shape`"),
        (r#"{"dtype":"U8","shape":[2]}"#, "missing field `data_offsets`"),
        (
            r#"{"dtype":"U8","dtype":"U8","shape":[2],"data_offsets":[0,2]}"#,
            "duplicate field `dtype`",
        ),
        (r#"["U8",[2]]"#, "invalid length 2"),
        (r#"["U8",[2],[0,2],1]"#, "trailing characters"),
        ("1", "expected a tensor with dtype, shape and data_offsets"),
    ] {
        let error = open(file(&format!(r#"{{"a":{entry}}}"#), b"xy")).err().unwrap().to_string();
        assert!(error.contains(expected), "{entry}: {error}");
    }
}

#[test]
fn spaces_before_the_object_are_accepted_as_by_the_reference() {
    let source =
        open(file(" \n{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", b"xy"));
    let source = source.unwrap();
    assert_eq!(read(&source, 0), b"xy");
    let [found] = source.passed_over() else { panic!("{:?}", source.passed_over()) };
    assert!(found.name.is_empty() && found.reason.contains("2 spaces"), "{}", found.reason);
    for header in ["\u{feff}{}", "\u{a0}{}", "  [] ", "   "] {
        assert!(matches!(open(file(header, b"")), Err(Error::Corrupt { .. })), "{header:?}");
    }
}

#[test]
fn repeated_name_takes_the_last_entry_as_in_the_reference() {
    let twice = |first: &str| {
        let last = r#"{"dtype":"U8","shape":[2],"data_offsets":[0,2]}"#;
        open(file(
            &format!(r#"{{"__metadata__":{{"k":"1","k":"2"}},"a":{first},"a":{last}}}"#),
            b"xy",
        ))
    };
    let source = twice(r#"{"dtype":"I8","shape":[7],"data_offsets":[0,1]}"#).unwrap();
    assert_eq!((source.tensors().len(), read(&source, 0)), (1, b"xy".to_vec()));
    assert_eq!(source.passed_over()[0].name, "a");
    assert_eq!(source.metadata(), &Some(vec![("k".to_owned(), "2".to_owned())]));
    let source = twice(r#"{"dtype":"Q3","shape":[1],"data_offsets":[0,1]}"#).unwrap();
    assert_eq!(source.refused().len(), 1);
    assert!(matches!(twice("null"), Err(Error::Corrupt { .. })));
    let metadata = r#"{"__metadata__":{},"__metadata__":{}}"#;
    assert!(matches!(open(file(metadata, b"")), Err(Error::Corrupt { .. })));
}

#[test]
fn hostile_headers_are_refused() {
    let one = |entry: &str| format!(r#"{{"a":{entry}}}"#);
    let cases = [
        ("hole", one(r#"{"dtype":"U8","shape":[1],"data_offsets":[1,2]}"#)),
        ("backwards", one(r#"{"dtype":"U8","shape":[1],"data_offsets":[2,0]}"#)),
        ("too short", one(r#"{"dtype":"U8","shape":[2],"data_offsets":[0,1]}"#)),
        ("trailing data", one(r#"{"dtype":"U8","shape":[1],"data_offsets":[0,1]}"#)),
        (
            "overflow",
            one(r#"{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,2]}"#),
        ),
        (
            "overflow before a zero",
            one(r#"{"dtype":"U8","shape":[4294967296,4294967296,0],"data_offsets":[0,0]}"#),
        ),
        ("negative", one(r#"{"dtype":"U8","shape":[-2],"data_offsets":[0,2]}"#)),
        ("huge", one(r#"{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,2]}"#)),
        ("half a byte", one(r#"{"dtype":"F4","shape":[5],"data_offsets":[0,2]}"#)),
        ("not an object", "[]".to_owned()),
        ("number as metadata", r#"{"__metadata__":{"a":1}}"#.to_owned()),
        ("deep", format!("{}1{}", r#"{"a":"#.repeat(1000), "}".repeat(1000))),
        (
            "same name twice",
            concat!(
                r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"#,
                r#""a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#
            )
            .to_owned(),
        ),
        (
            "overlap",
            concat!(
                r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"#,
                r#""b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#
            )
            .to_owned(),
        ),
    ];
    for (what, header) in cases {
        let result = open(file(&header, b"xy"));
        assert!(matches!(result, Err(Error::Corrupt { .. })), "{what}");
    }
    for bytes in [vec![], vec![1; 7], vec![0; 8], vec![0xff; 8], file("{", b"")] {
        assert!(matches!(open(bytes), Err(Error::Corrupt { .. })));
    }
}

#[test]
fn a_target_wants_all_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.safetensors");
    let source =
        open(file(r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#, b"xy")).unwrap();
    let target = Box::new(SafetensorsTarget::new(Output::create(&path, Durability::None).unwrap()));
    let mut target = target.begin(source.tensors().to_vec(), &None).unwrap();
    assert!(matches!(target.write(0, &mut &b"x"[..]), Err(Error::Data { .. })));
    drop(target);
    assert!(!path.exists());
}

#[test]
fn a_damaged_file_says_how_it_is_damaged() {
    let good = file(r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}"#, b"wxyz");
    let longer = [&good[..], &[0; 17]].concat();
    let mut long_header = good.clone();
    long_header[..8].copy_from_slice(&5000_u64.to_le_bytes());
    for (bytes, said) in [
        (good[..good.len() - 3].to_vec(), "cut off, 3 bytes short"),
        (longer, "17 bytes too many behind the data"),
        (good[..40].to_vec(), "cut off, at least 21 bytes short"),
        (long_header, "cut off"),
        (vec![0; 4096], "zeros, as in a file that was made and never filled"),
        (vec![], "an empty file"),
        (b"Entry not found".to_vec(), "a text that begins"),
        (b"<!DOCTYPE html><html></html>".to_vec(), "a page of HTML"),
        (b"version https://git-lfs.github.com/spec/v1\noid".to_vec(), "a pointer of git-lfs"),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff".to_vec(), "at most 100000000 bytes"),
    ] {
        let error = open(bytes).err().unwrap();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        assert!(error.to_string().contains(said), "{said}: {error}");
    }
}
