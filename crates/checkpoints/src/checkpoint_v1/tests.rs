use std::path::{Path, PathBuf};

use serdes_graph_format::data_type::DataType;
use serdes_testkit::fields::field;

use super::*;
use crate::{
    StatusCode,
    slice::TensorSlice,
    table::{TableOptions, TableWriter},
    tensor_bundle::{MemoryFiles, VerifyOptions},
};

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/tensorflow/ckpt")
        .join(name)
        .join("model.ckpt")
}

/// Returns the only tensor of a checkpoint, with its bytes.
fn only(name: &str) -> (DataType, Vec<i64>, Vec<u8>) {
    let checkpoint = CheckpointV1::open(corpus(name)).unwrap();
    let [tensor] = checkpoint.tensors() else { panic!("{:?}", checkpoint.tensors()) };
    (tensor.data_type().unwrap(), tensor.shape().to_vec(), checkpoint.read(tensor).unwrap())
}

#[test]
fn typed_fields_become_the_elements_that_tensorflow_restores() {
    assert_eq!(only("v1_dtype_quint8"), (DataType::Quint8, vec![3], vec![1, 2, 3]));
    let (data_type, shape, bytes) = only("v1_dtype_complex64");
    assert_eq!((data_type, shape.as_slice()), (DataType::Complex64, &[2][..]));
    assert_eq!(
        bytes,
        [1.0f32, 2.0, 3.0, -4.0].iter().flat_map(|part| part.to_le_bytes()).collect::<Vec<_>>()
    );
    let (data_type, shape, bytes) = only("v1_dtype_float16");
    assert_eq!((data_type, shape.as_slice(), bytes.len()), (DataType::Float16, &[3, 5][..], 30));
    assert_eq!(bytes[..4], [0xb0, 0x54, 0xf0, 0x55]);
    assert_eq!(only("v1_dtype_scalar_f32").1, Vec::<i64>::new());
}

#[test]
fn strings_and_slices_are_joined() {
    let checkpoint = CheckpointV1::open(corpus("v1_dtype_string")).unwrap();
    let strings = checkpoint.strings(checkpoint.tensor("string").unwrap()).unwrap();
    assert_eq!(strings[..3], [b"".to_vec(), b"a".to_vec(), "h\u{e9}llo".as_bytes().to_vec()]);
    assert_eq!(strings[3], [b'x'; 200]);
    let checkpoint = CheckpointV1::open(corpus("saver_v1")).unwrap();
    let part = checkpoint.tensor("part1").unwrap();
    assert_eq!((part.shape(), part.slices().count()), (&[4, 7][..], 2));
    let ones: Vec<u8> = std::iter::repeat_n(1f32.to_le_bytes(), 28).flatten().collect();
    assert_eq!(checkpoint.read(part).unwrap(), ones);
}

/// Returns a file with rows `first..first + rows` of the int32 tensor "t" of `shape` rows by 2.
fn shard(shape: u8, first: u8, rows: u8, values: &[u8]) -> Vec<u8> {
    let slice = [field(1, &[8, first, 16, rows]), field(1, &[])].concat();
    let dimensions = [field(2, &[8, shape]), field(2, &[8, 2])].concat();
    let tensor = [field(1, b"t"), field(2, &dimensions), vec![0x18, 3], field(4, &slice)].concat();
    let header = field(1, &[field(1, &tensor), field(2, &[8, 1])].concat());
    let saved = field(2, &[field(1, b"t"), field(2, &slice), field(3, &field(7, values))].concat());
    let (_, place) = TensorSlice::parse_specification(&format!("9 2 {first},{rows}:-")).unwrap();
    let mut writer = TableWriter::new(Vec::new(), TableOptions::default());
    writer.add(b"", &header).unwrap();
    writer.add(&place.key(b"t"), &saved).unwrap();
    writer.finish().unwrap().0
}

fn open(files: &[Vec<u8>]) -> Result<CheckpointV1, CheckpointV1Error> {
    let mut memory = MemoryFiles::new();
    let paths: Vec<_> = (0..files.len()).map(|i| PathBuf::from(format!("f{i}"))).collect();
    for (path, bytes) in paths.iter().zip(files) {
        memory.insert(path, bytes.clone());
    }
    CheckpointV1::open_files(&memory, &paths, Some(&default_consumer()))
}

#[test]
fn slices_of_several_files_are_joined_and_compared() {
    let checkpoint = open(&[shard(3, 2, 1, &[5, 6]), shard(3, 0, 2, &[1, 2, 3, 4])]).unwrap();
    let tensor = checkpoint.tensor("t").unwrap();
    let expected: Vec<u8> = (1..=6i32).flat_map(i32::to_le_bytes).collect();
    assert_eq!(checkpoint.read(tensor).unwrap(), expected);

    let status = |files: &[Vec<u8>]| open(files).unwrap_err().status();
    assert_eq!(status(&[shard(3, 0, 2, &[1; 4]), shard(4, 2, 1, &[1; 2])]), StatusCode::Internal);
    assert_eq!(status(&[shard(3, 0, 2, &[1; 4]), shard(3, 1, 2, &[1; 4])]), StatusCode::Internal);
    let hole = open(&[shard(3, 0, 2, &[1; 4])]).unwrap();
    let error = hole.read(hole.tensor("t").unwrap()).unwrap_err();
    assert!(matches!(error, CheckpointV1Error::SlicesMissing { covered: 4, needed: 6, .. }));
    let few = open(&[shard(2, 0, 2, &[1; 3])]).unwrap();
    let error = few.read(few.tensor("t").unwrap()).unwrap_err();
    assert!(matches!(error, CheckpointV1Error::SliceData { .. }));
}

#[test]
fn slices_that_overlap_beside_a_hole_are_no_tensor() {
    let rows = |rows: [u8; 6]| open(&rows.map(|row| shard(6, row, 1, &[row; 2]))).unwrap();
    let whole = rows([5, 1, 2, 3, 4, 0]);
    let bytes = whole.read(whole.tensor("t").unwrap()).unwrap();
    assert_eq!(bytes[40..], [5, 0, 0, 0, 5, 0, 0, 0]);
    // The last row repeats a row of the first file, and row 0 is missing.
    let hole = rows([5, 1, 2, 3, 4, 5]);
    let error = hole.read(hole.tensor("t").unwrap()).unwrap_err();
    assert!(matches!(error, CheckpointV1Error::Overlap { .. }), "{error}");
}

#[test]
fn tensor_without_elements_needs_no_values() {
    let slice = [field(1, &[]), field(1, &[])].concat();
    let dimensions = [field(2, &[8, 0]), field(2, &[8, 2])].concat();
    let tensor = [field(1, b"t"), field(2, &dimensions), vec![0x18, 3], field(4, &slice)].concat();
    let header = field(1, &[field(1, &tensor), field(2, &[8, 1])].concat());
    let mut writer = TableWriter::new(Vec::new(), TableOptions::default());
    writer.add(b"", &header).unwrap();
    writer.add(&TensorSlice::full(2).key(b"t"), &[0x07]).unwrap();
    let checkpoint = open(&[writer.finish().unwrap().0]).unwrap();
    assert!(checkpoint.read(checkpoint.tensor("t").unwrap()).unwrap().is_empty());
    let (warnings, errors) = checkpoint.verify(&VerifyOptions::default().with_data(true));
    assert!(errors.is_empty(), "{errors:?}");
    assert!(matches!(warnings[..], [CheckpointV1Error::SliceData { .. }]), "{warnings:?}");
}

#[test]
fn a_pattern_stands_for_its_files_in_order() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("m-00000-of-00002"), shard(3, 0, 2, &[1; 4])).unwrap();
    std::fs::write(directory.path().join("m-00001-of-00002"), shard(3, 2, 1, &[1; 2])).unwrap();
    let checkpoint = CheckpointV1::open(directory.path().join("m-?????-of-00002")).unwrap();
    assert_eq!(checkpoint.versions().count(), 2);
    assert!(checkpoint.read(checkpoint.tensor("t").unwrap()).is_ok());
    for missing in ["n-?????-of-00002", "n"] {
        let error = CheckpointV1::open(directory.path().join(missing)).unwrap_err();
        assert_eq!(error.status(), StatusCode::NotFound, "{missing}");
    }
}

#[test]
fn every_flipped_bit_and_every_cut_is_refused_or_harmless() {
    let good = std::fs::read(corpus("saver_v1_plain")).unwrap();
    let wanted = only("saver_v1_plain").2;
    let check = |bytes: Vec<u8>, what: &str| {
        let Ok(checkpoint) = open(&[bytes]) else { return false };
        let (_, errors) = checkpoint.verify(&VerifyOptions::default().with_data(true));
        let read = checkpoint.tensor("plain").and_then(|tensor| checkpoint.read(tensor));
        assert_eq!(read.is_ok(), errors.is_empty(), "{what}");
        if let Ok(read) = &read {
            assert_eq!(*read, wanted, "{what}");
        }
        read.is_ok()
    };
    assert!(check(good.clone(), "whole"));
    // TensorFlow ignores the metaindex block, its handle and the padding.
    let metaindex = 82 + 5..82 + 5 + 13;
    let mut harmless = 0;
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        if check(bytes, &format!("bit {bit}")) {
            harmless += 1;
            let at = bit / 8;
            assert!(metaindex.contains(&at) || at >= good.len() - 48, "bit {bit}");
        }
    }
    assert!(harmless > 0);
    for len in 0..good.len() {
        assert!(!check(good[..len].to_vec(), &format!("cut to {len}")));
    }
}
