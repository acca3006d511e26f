use std::{fs, path::Path};

use super::*;
use crate::{
    device_state::{self, Reader, Versions, Watch},
    stream_executor::{Device, Plugin},
};

fn device() -> Device {
    Plugin::host().device(0).unwrap()
}

fn options() -> WriteOptions {
    WriteOptions::new(Versions::current()).with_sync(Sync::None)
}

/// A canonical safetensors file with tensors of many kinds.
fn weights() -> Vec<u8> {
    let mut header = concat!(
        r#"{"__metadata__":{"format":"pt"},"#,
        r#""c":{"dtype":"F64","shape":[],"data_offsets":[0,8]},"#,
        r#""a":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},"#,
        r#""b":{"dtype":"BF16","shape":[4],"data_offsets":[32,40]},"#,
        r#""e":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[40,42]},"#,
        r#""n":{"dtype":"I8","shape":[0],"data_offsets":[42,42]},"#,
        r#""p":{"dtype":"F4","shape":[2,2],"data_offsets":[42,44]}}"#,
    )
    .to_owned();
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend((0..44).map(|n: u8| n.wrapping_mul(37)));
    bytes
}

fn save_one(source: &Path, state: &Path) -> Result<SaveReport, Error> {
    save(&[open(source)?], state, &device(), &options(), false, &Watch::new())
}

fn restore_all(state: &Path, target: &Path) -> Result<RestoreReport, Error> {
    let reader = Reader::open(state)?;
    let tensors = reader.select::<&str>(&[])?;
    let target = create(target, &options())?;
    restore(&reader, &tensors, &device(), Some(target), &Watch::new())
}

#[test]
fn a_safetensors_file_makes_the_trip_byte_for_byte() {
    let directory = tempfile::tempdir().unwrap();
    let [source, state, target] =
        ["a.safetensors", "a.sds", "b.safetensors"].map(|name| directory.path().join(name));
    fs::write(&source, weights()).unwrap();
    let saved = save_one(&source, &state).unwrap();
    assert_eq!((saved.tensors, saved.bytes), (6, 46));
    let restored = restore_all(&state, &target).unwrap();
    assert_eq!((restored.tensors, restored.bytes), (6, 46));
    assert!(restored.read_back_verified);
    assert_eq!(fs::read(&target).unwrap(), weights());
}

#[test]
fn tensors_go_from_form_to_form() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let header = concat!(
        r#"{"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"#,
        r#""b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]}}"#,
    );
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(0..32_u8);
    fs::write(path("0.safetensors"), bytes).unwrap();
    let mut forms = vec!["0.safetensors", "1.sds", "2", "3.sds"];
    if cfg!(feature = "npz") {
        forms.extend(["4.npz", "5.sds"]);
    }
    forms.push("6.safetensors");
    for pair in forms.windows(2) {
        let (from, to) = (path(pair[0]), path(pair[1]));
        let source = open(&from).unwrap();
        let mut target = create(&to, &options()).unwrap();
        for position in target.begin(source.tensors(), source.metadata()).unwrap() {
            target.write(position, &mut *source.read(position).unwrap()).unwrap();
        }
        target.finish().unwrap();
    }
    let last = open(path("6.safetensors")).unwrap();
    let mut data = Vec::new();
    for position in 0..2 {
        last.read(position).unwrap().read_to_end(&mut data).unwrap();
    }
    assert_eq!(data, (0..32).collect::<Vec<u8>>());
}

#[test]
fn a_checkpoint_with_strings_makes_the_trip() {
    use crate::artifact::{
        data_type::DataType,
        tensor_bundle::{Bundle, BundleOptions, BundleWriter},
    };

    let directory = tempfile::tempdir().unwrap();
    let [source, state, target] =
        ["ckpt-1", "a.sds", "ckpt-2"].map(|name| directory.path().join(name));
    let mut writer = BundleWriter::create(&source, BundleOptions::default()).unwrap();
    writer.add_bytes("w", DataType::Float32, &[2], &[1; 8]).unwrap();
    writer.add_strings("words", &[2], &["", "caf\u{e9}"]).unwrap();
    writer.finish().unwrap();
    let saved = save_one(&source, &state).unwrap();
    assert_eq!(saved.tensors, 2);
    restore_all(&state, &target).unwrap();
    let bundle = Bundle::open(&target).unwrap();
    let words = bundle.strings(&bundle.tensor("words").unwrap()).unwrap();
    assert_eq!(words, [&b""[..], "caf\u{e9}".as_bytes()]);
    assert_eq!(bundle.read(&bundle.tensor("w").unwrap()).unwrap(), [1; 8]);
    // safetensors have no place for strings: nothing is written, and the old file stays.
    let other = directory.path().join("x.safetensors");
    fs::write(&other, "old").unwrap();
    assert!(matches!(restore_all(&state, &other), Err(Error::Refused { .. })));
    assert_eq!(fs::read(&other).unwrap(), b"old");
}

#[test]
fn what_cannot_be_held_is_refused_by_name_or_left_out_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let (path, state) = (directory.path().join("a.safetensors"), directory.path().join("a.sds"));
    let header = concat!(
        r#"{"odd":{"dtype":"Q3","shape":[1],"data_offsets":[0,1]},"#,
        r#""good":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#,
    );
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(b"xy");
    fs::write(&path, bytes).unwrap();
    let error = save_one(&path, &state).unwrap_err().to_string();
    assert!(error.contains("odd") && error.contains("Q3"), "{error}");
    assert!(!state.exists());
    let sources = [open(&path).unwrap()];
    let report = save(&sources, &state, &device(), &options(), true, &Watch::new()).unwrap();
    assert_eq!((report.tensors, report.skipped.len()), (1, 1));
}

#[test]
fn two_sources_with_a_name_in_common_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (path, state) = (directory.path().join("a.safetensors"), directory.path().join("a.sds"));
    fs::write(&path, weights()).unwrap();
    let sources = [open(&path).unwrap(), open(&path).unwrap()];
    let result = save(&sources, &state, &device(), &options(), false, &Watch::new());
    let Err(Error::DeviceState(error)) = result else { panic!("{result:?}") };
    assert!(matches!(*error, device_state::Error::DuplicateName { .. }));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn other_files_are_named_as_what_they_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.bin");
    assert!(matches!(open(&path), Err(Error::Io { .. })));
    fs::write(&path, "hello, world").unwrap();
    assert!(matches!(open(&path), Err(Error::UnknownForm { .. })));
    fs::write(&path, weights()).unwrap();
    assert_eq!(open(&path).unwrap().kind(), "safetensors");
}

#[cfg(unix)]
#[test]
fn a_device_of_the_system_is_no_prefix_of_a_checkpoint() {
    let refused = create("/dev/null", &options()).map(|_| ());
    assert!(matches!(refused, Err(Error::UnknownForm { .. })), "{refused:?}");
}
