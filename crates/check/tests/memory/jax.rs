//! Tests of the memory that the check of a JAX artifact takes: the whole file is read, and its
//! constants are not copied.

use std::fs;

use serdes_check::{self as check, Consumer, Kind};
use serdes_mlir_bytecode::{SectionKind, write_section, write_varint};

use crate::{MEMORY, counting};

const MIB: usize = 1 << 20;

/// Size of the constant: 100 MB.
const CONSTANT: usize = 100_000_000;

fn varints(numbers: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    numbers.iter().for_each(|number| write_varint(&mut out, *number));
    out
}

/// Returns a module with a dictionary that names one constant of `constant` bytes.
fn module(constant: usize) -> Vec<u8> {
    // A location; the string `a.b`; a dictionary of it and the constant; the constant.
    let mut dense = varints(&[18, 0, constant as u64]);
    dense.resize(dense.len() + constant, 7);
    let entries = [varints(&[15]), varints(&[2, 2]), varints(&[1, 1, 1, 3]), dense];
    let types = [varints(&[1])];
    let mut offsets = varints(&[entries.len() as u64, types.len() as u64]);
    for group in [&entries[..], &types] {
        offsets.extend(varints(&[0, group.len() as u64]));
        group.iter().for_each(|entry| write_varint(&mut offsets, (entry.len() as u64) << 1 | 1));
    }
    let strings = [varints(&[3, 4, 7, 8]), b"builtin\0module\0a.b\0".to_vec()].concat();
    let data = [entries.concat(), types.concat()].concat();
    let dialects = varints(&[1, 0, 1, 0, 1, 3]);
    // A block of one operation, `module`, with the location and the dictionary.
    let operations = [varints(&[2, 0]), vec![1], varints(&[0, 2])].concat();
    let mut file = b"ML\xEFR\x0DStableHLO_v1.0.0\0".to_vec();
    for (kind, contents) in [
        (SectionKind::Strings, &strings),
        (SectionKind::Dialects, &dialects),
        (SectionKind::AttributesAndTypes, &data),
        (SectionKind::Offsets, &offsets),
        (SectionKind::Operations, &operations),
        (SectionKind::Properties, &varints(&[0])),
    ] {
        write_section(&mut file, kind, None, contents);
    }
    file
}

#[test]
fn a_module_of_100_mb_of_constants_takes_twice_the_file() {
    let _alone = counting();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("module.mlirbc");
    fs::write(&path, module(CONSTANT)).unwrap();
    let size = fs::metadata(&path).unwrap().len() as usize;
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let artifact = check::path(&path).unwrap();
    let verdict = artifact.for_consumer(&Consumer::newest());
    let peak = MEMORY.peak_usage() - before;
    assert_eq!(artifact.kind(), Kind::StableHlo);
    assert!(verdict.is_acceptable(), "{verdict:?}");
    // The buffer is moved as it grows, so that a part of it exists twice for a moment.
    assert!(peak <= 2 * size + 16 * MIB, "{peak} bytes for {size}");
}
