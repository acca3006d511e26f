//! The targets over tables and checkpoints.
//!
//! The first byte of an input says how the rest becomes files: unchanged, or as contents to which
//! correct checksums are added, so that the fuzzer gets past them.

use std::path::PathBuf;

use serdes_checkpoints::{
    checkpoint_v1::CheckpointV1,
    table::{MAGIC, Table, TableOptions, TableWriter},
    tensor_bundle::{Bundle, MemoryFiles, VerifyOptions},
};
use serdes_graph_format::data_type::DataType;

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a block with its trailer to `file`, and returns its handle.
fn block(file: &mut Vec<u8>, contents: &[u8], kind: u8) -> Vec<u8> {
    let mut handle = Vec::new();
    varint(&mut handle, file.len() as u64);
    varint(&mut handle, contents.len() as u64);
    let start = file.len();
    file.extend_from_slice(contents);
    file.push(kind);
    // Checksums are stored masked: rotated right by 15 bits, plus a constant.
    let crc = crc_fast::crc32_iscsi(&file[start..]).rotate_right(15).wrapping_add(0xa282_ead8);
    file.extend_from_slice(&crc.to_le_bytes());
    handle
}

/// Returns a table with `contents` as its only data block or, if `index`, as its index block.
fn around_a_block(contents: &[u8], kind: u8, index: bool) -> Vec<u8> {
    let mut file = Vec::new();
    let handle = block(&mut file, contents, kind);
    let last = if index {
        handle.clone()
    } else {
        let mut entry = vec![0, 1, handle.len() as u8, 0xff];
        entry.extend_from_slice(&handle);
        entry.extend_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0]);
        block(&mut file, &entry, 0)
    };
    let mut footer = [handle, last].concat();
    footer.resize(40, 0);
    footer.extend_from_slice(&MAGIC.to_le_bytes());
    file.extend_from_slice(&footer);
    file
}

/// Returns a table of the entries of `input` (length and bytes of a key, length and bytes of a
/// value) as long as their keys ascend, and the remaining input.
fn around_entries(mut input: &[u8]) -> (Vec<u8>, &[u8]) {
    fn take<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
        let (len, rest) = input.split_first()?;
        let (bytes, rest) = rest.split_at_checked(usize::from(*len))?;
        *input = rest;
        Some(bytes)
    }
    let mut writer = TableWriter::new(Vec::new(), TableOptions::default().with_block_size(200));
    loop {
        let mut rest = input;
        let (Some(key), Some(value)) = (take(&mut rest), take(&mut rest)) else { break };
        if writer.add(key, value).is_err() {
            break;
        }
        input = rest;
    }
    (writer.finish().map(|(bytes, _)| bytes).unwrap_or_default(), input)
}

/// Returns the table file of an input, and the remaining bytes for other files.
fn table_file(input: &[u8]) -> (Vec<u8>, Vec<u8>) {
    match input.split_first() {
        None => (Vec::new(), Vec::new()),
        Some((0, rest)) => {
            let len =
                rest.first_chunk::<2>().map_or(0, |len| usize::from(u16::from_le_bytes(*len)));
            let rest = rest.get(2..).unwrap_or_default();
            let (table, data) = rest.split_at(len.min(rest.len()));
            (table.to_vec(), data.to_vec())
        }
        Some((1, rest)) => {
            let (table, data) = around_entries(rest);
            (table, data.to_vec())
        }
        Some((mode, rest)) => (around_a_block(rest, (mode >> 1) & 1, mode & 4 != 0), Vec::new()),
    }
}

/// Iterates over a table, seeks every key that it found, and verifies the table.
pub fn table(input: &[u8]) {
    let (file, _) = table_file(input);
    let Ok(table) = Table::open(file) else { return };
    let mut cursor = table.cursor();
    cursor.first();
    let mut keys = Vec::new();
    while cursor.valid() && keys.len() < 1000 {
        keys.push(cursor.key().to_vec());
        cursor.advance();
    }
    let sound = cursor.defects().is_empty() && keys.is_sorted_by(|a, b| a < b);
    for key in &keys {
        let found = table.get(key);
        // In a well-formed table, seeking finds every listed key.
        if sound && input.first() == Some(&1) {
            assert!(matches!(found, Ok(Some(_))), "{key:?}");
        }
    }
    let defects = table.verify_blocks();
    assert!(input.first() != Some(&1) || defects.is_empty(), "{defects:?}");
}

/// Opens, lists, verifies and reads a bundle. Verified tensors must be readable, with the same
/// result in every way of reading.
pub fn tensor_bundle(input: &[u8]) {
    let (index, data) = table_file(input);
    let mut files = MemoryFiles::new();
    files.insert("c.index", index);
    files.insert("c.data-00000-of-00001", data);
    let Ok(bundle) = Bundle::open_any(files, "c") else { return };
    let report = bundle.verify(&VerifyOptions::default().with_data(true).with_threads(1));
    let mut failed = 0;
    for listed in &report.tensors {
        let Ok(tensor) = bundle.tensor(listed.key()) else {
            failed += 1;
            continue;
        };
        let read = match tensor.data_type() {
            Some(DataType::String) => bundle.strings(&tensor).map(|_| ()),
            Some(DataType::Variant) => bundle.for_each_variant(&tensor, |_| ()),
            _ => bundle.read(&tensor).map(|bytes| {
                assert_eq!(Some(bytes.len() as u64), tensor.byte_len());
                let mut chunks = Vec::new();
                let mut chunk = [0; 7];
                let mut reader = bundle.reader(&tensor).expect("it was read");
                loop {
                    match reader.read_chunk(&mut chunk).expect("it was read") {
                        0 => break,
                        count => chunks.extend_from_slice(&chunk[..count]),
                    }
                }
                assert_eq!(chunks, bytes);
            }),
        };
        failed += usize::from(read.is_err());
    }
    assert!(failed == 0 || !report.errors.is_empty(), "{failed} fail and none is reported");
}

/// Opens, lists, verifies and reads a V1 checkpoint.
pub fn checkpoint_v1(input: &[u8]) {
    let (file, _) = table_file(input);
    let mut files = MemoryFiles::new();
    files.insert("c", file);
    let Ok(checkpoint) = CheckpointV1::open_files(&files, &[PathBuf::from("c")], None) else {
        return;
    };
    let (_, errors) = checkpoint.verify(&VerifyOptions::default().with_data(true));
    let mut failed = 0;
    for tensor in checkpoint.tensors() {
        let read = match tensor.data_type() {
            Some(DataType::String) => checkpoint.strings(tensor).map(|_| ()),
            _ => checkpoint
                .read(tensor)
                .map(|bytes| assert_eq!(Some(bytes.len() as u64), tensor.byte_len())),
        };
        failed += usize::from(read.is_err());
    }
    assert!(failed == 0 || !errors.is_empty(), "{failed} fail and none is reported");
}
