use std::{path::Path, sync::Arc};

use serdes::ifrt::{DType, Shape};

use super::{read::NpySource, write::encode_header};
use crate::{Error, Source, TensorInfo};

fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn open(bytes: Vec<u8>) -> Result<NpySource, Error> {
    NpySource::new(Arc::new(bytes), Path::new("x.npy"), "x")
}

fn read(source: &NpySource) -> Vec<u8> {
    let mut bytes = Vec::new();
    source.read(0).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_header_is_written_as_numpy_writes_it() {
    let info = TensorInfo::new("x", DType::F32, Shape::new([3, 4]).unwrap()).unwrap();
    let header = encode_header(&info).unwrap();
    assert_eq!(header.len(), 128);
    let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }";
    assert_eq!(&header[10..10 + text.len()], text.as_bytes());
    assert!(header.ends_with(b" \n"));
    let mut bytes = header;
    bytes.extend([7; 48]);
    let source = open(bytes).unwrap();
    assert_eq!(source.tensors(), [info]);
    assert_eq!(read(&source), [7; 48]);
}

#[test]
fn scalars_and_vectors_have_their_own_notation() {
    for (dims, notation) in [(&[][..], "()"), (&[5][..], "(5,)"), (&[0, 2][..], "(0, 2)")] {
        let info = TensorInfo::new("x", DType::S8, Shape::new(dims).unwrap()).unwrap();
        let mut bytes = encode_header(&info).unwrap();
        let found = String::from_utf8_lossy(&bytes).contains(&format!("'shape': {notation}, }}"));
        assert!(found, "{notation}");
        bytes.resize(bytes.len() + info.bytes as usize, 1);
        assert_eq!(open(bytes).unwrap().tensors(), [info]);
    }
}

#[test]
fn big_endian_numbers_are_turned() {
    let source = open(file(
        "{'descr': '>c8', 'fortran_order': False, 'shape': (1,), }",
        &[1, 2, 3, 4, 5, 6, 7, 8],
    ))
    .unwrap();
    assert_eq!(source.tensors()[0].dtype, DType::C64);
    assert_eq!(read(&source), [4, 3, 2, 1, 8, 7, 6, 5]);
}

#[test]
fn fortran_order_becomes_row_major() {
    // a[i][j][k] = 100 i + 10 j + k, first index fastest.
    let (mut column_major, mut row_major) = (Vec::new(), Vec::new());
    for k in 0..4 {
        for j in 0..3 {
            for i in 0..2 {
                column_major.push(100 * i + 10 * j + k);
            }
        }
    }
    for i in 0..2 {
        for j in 0..3 {
            for k in 0..4 {
                row_major.push(100 * i + 10 * j + k);
            }
        }
    }
    let header = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4), }";
    assert_eq!(read(&open(file(header, &column_major)).unwrap()), row_major);
}

#[test]
fn types_that_say_too_little_are_refused_by_name() {
    for descr in ["'|O'", "'|V1'", "'<U3'", "'<f16'", "[('a', '<f4'), ('b', '<f4', (2,))]", "'>V2'"]
    {
        let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (), }}");
        let source = open(file(&header, b"")).unwrap();
        assert_eq!((source.tensors().len(), source.refused().len()), (0, 1), "{descr}");
    }
}

#[test]
fn damaged_files_are_refused() {
    let good = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }";
    for (header, data) in [
        (good, &b"x"[..]),
        ("{'descr': '|u1', 'fortran_order': False, 'shape': (-2,), }", b"xy"),
        ("{'descr': '|u1', 'fortran_order': False, }", b"xy"),
        ("{'descr': '|u1', 'fortran_order': 0, 'shape': (2,), }", b"xy"),
        ("{'descr': '|u1' 'fortran_order': False, 'shape': (2,), }", b"xy"),
        ("{'descr': '|u1', 'fortran_order': False, 'shape': (2,), } junk", b"xy"),
        ("{'descr': [[[[", b""),
        ("", b""),
    ] {
        assert!(matches!(open(file(header, data)), Err(Error::Corrupt { .. })), "{header}");
    }
    assert!(
        open(file(
            "{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775807, 4), }",
            b""
        ))
        .is_err()
    );
    let bytes = file(good, b"xy");
    for length in 0..bytes.len() {
        assert!(open(bytes[..length].to_vec()).is_err(), "{length}");
    }
}

#[test]
fn bytes_behind_the_elements_are_passed_over_as_numpy_does() {
    let source =
        open(file("{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }", b"xyz")).unwrap();
    assert_eq!(read(&source), b"xy");
    let [found] = source.passed_over() else { panic!("{:?}", source.passed_over()) };
    assert!(found.reason.contains("1 bytes behind its elements"), "{}", found.reason);
    // The size is known even for types that cannot be transferred.
    let dates = file("{'descr': '<M8[s]', 'fortran_order': False, 'shape': (1,), }", b"12345678z");
    open(dates).unwrap().compare_size().unwrap();
    let dates = file("{'descr': '<M8[s]', 'fortran_order': False, 'shape': (1,), }", b"1234567");
    assert!(open(dates).unwrap().compare_size().is_err());
}

#[test]
fn as_many_dimensions_as_numpy_has_are_read_and_no_more() {
    let shape = |rank: usize| format!("({})", "1, ".repeat(rank));
    let header =
        |rank| format!("{{'descr': '|u1', 'fortran_order': True, 'shape': {}, }}", shape(rank));
    assert_eq!(read(&open(file(&header(64), b"x")).unwrap()), b"x");
    assert!(matches!(open(file(&header(65), b"x")), Err(Error::Corrupt { .. })));
}
