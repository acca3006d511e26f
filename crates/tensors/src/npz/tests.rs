use std::{fs, io::Write, path::Path, sync::Arc};

use serdes::ifrt::{DType, Shape};
use serdes_device_state::Durability;
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use super::{read::NpzSource, write::NpzTarget};
use crate::{Error, Source, Target, TensorInfo};

fn archive(entries: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        let options = SimpleFileOptions::default().compression_method(method);
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn open(bytes: Vec<u8>) -> Result<NpzSource, Error> {
    NpzSource::new(Arc::new(bytes), Path::new("x.npz"))
}

fn read(source: &NpzSource, position: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    source.read(position).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

fn npy(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

#[test]
fn arrays_come_back_stored_and_compressed() {
    let a = npy("<i2", "False", "(3,)", &[1, 0, 2, 0, 3, 0]);
    let b = npy(">i2", "True", "(2, 2)", &[0, 1, 0, 2, 0, 3, 0, 4]);
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let source = open(archive(&[("a.npy", &a), ("dir/b.npy", &b)], method)).unwrap();
        let names: Vec<_> = source.tensors().iter().map(|info| info.name.as_str()).collect();
        assert_eq!(names, ["a", "dir/b"]);
        assert_eq!(read(&source, 0), [1, 0, 2, 0, 3, 0]);
        assert_eq!(read(&source, 1), [1, 0, 3, 0, 2, 0, 4, 0]);
    }
}

#[test]
fn a_target_writes_what_a_source_reads() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.npz");
    let infos = [
        TensorInfo::new("w", DType::BF16, Shape::new([2, 2]).unwrap()).unwrap(),
        TensorInfo::new("e", DType::F32, Shape::new([0]).unwrap()).unwrap(),
    ];
    let target = Box::new(NpzTarget::create(&path, Durability::None).unwrap());
    let mut target = target.begin(infos.to_vec(), &None).unwrap();
    for position in target.order().to_vec() {
        let data = vec![position as u8 + 1; infos[position].bytes as usize];
        target.write(position, &mut &data[..]).unwrap();
    }
    target.finish().unwrap();
    let source = open(fs::read(&path).unwrap()).unwrap();
    assert_eq!(source.tensors(), infos);
    assert_eq!(read(&source, 0), [1; 8]);
    assert_eq!(read(&source, 1), [0; 0]);
}

#[test]
fn damage_is_found() {
    let a = npy("|u1", "False", "(64,)", &[9; 64]);
    let bytes = archive(&[("a.npy", &a)], CompressionMethod::Stored);
    let data = bytes.windows(64).position(|window| window == [9; 64]).unwrap();
    let mut flipped = bytes.clone();
    flipped[data + 5] ^= 1;
    let source = open(flipped).unwrap();
    let error = source.read(0).unwrap().read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    for length in 0..bytes.len() {
        assert!(open(bytes[..length].to_vec()).is_err(), "{length}");
    }
}

#[test]
fn bytes_behind_the_elements_are_passed_over_as_numpy_does() {
    let [good, turned] =
        ["<i2", ">i2"].map(|descr| npy(descr, "False", "(2,)", b"\x01\x02\x03\x04zz"));
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let bytes = archive(&[("a.npy", &good), ("b.npy", &turned)], method);
        let source = open(bytes.clone()).unwrap();
        assert_eq!(source.passed_over().len(), 2);
        assert_eq!([read(&source, 0), read(&source, 1)], [[1, 2, 3, 4], [2, 1, 4, 3]]);
        if method == CompressionMethod::Stored {
            let at = bytes.windows(2).position(|two| two == b"zz").unwrap();
            let mut flipped = bytes;
            flipped[at] ^= 1;
            assert!(open(flipped).unwrap().read(0).is_err());
        }
    }
}

#[test]
fn member_that_is_no_array_is_refused_by_name() {
    let a = npy("|O", "False", "()", b"");
    let source =
        open(archive(&[("a.npy", &a), ("notes.txt", b"hi")], CompressionMethod::Stored)).unwrap();
    let names: Vec<_> = source.refused().iter().map(|refused| refused.name.as_str()).collect();
    assert_eq!(names, ["a", "notes.txt"]);
}

#[test]
fn two_entries_of_one_name_are_refused() {
    let [a, b] = [1, 2].map(|value| npy("|u1", "False", "(1,)", &[value]));
    // The writer of archives refuses such a name, so one letter is changed in the result.
    let mut bytes = archive(&[("a.npy", &a), ("b.npy", &b)], CompressionMethod::Stored);
    let places: Vec<usize> =
        (0..bytes.len() - 5).filter(|at| &bytes[*at..*at + 5] == b"b.npy").collect();
    assert_eq!(places.len(), 2);
    for at in places {
        bytes[at] = b'a';
    }
    let error = open(bytes).map(|_| ()).unwrap_err();
    assert!(
        matches!(error, Error::Corrupt { .. }) && error.to_string().contains("one name"),
        "{error}"
    );
}

#[test]
fn names_that_climb_out_are_read_as_names_and_not_written() {
    let a = npy("|u1", "False", "(1,)", &[7]);
    let source = open(archive(&[("../../x.npy", &a)], CompressionMethod::Stored)).unwrap();
    assert_eq!(source.tensors()[0].name, "../../x");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npz");
    let target = Box::new(NpzTarget::create(&path, Durability::None).unwrap());
    let refused = target.begin(source.tensors().to_vec(), &None).map(drop);
    assert!(matches!(refused, Err(Error::Refused { .. })));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
