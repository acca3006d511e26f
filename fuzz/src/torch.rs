//! The target over files of PyTorch.
//!
//! The first byte of an input says how the rest becomes a file: unchanged, as the pickle of an
//! archive with correct checksums, or as the object of a file of a version before 1.6.

use std::{
    io::{Cursor, Read, Write},
    sync::Arc,
};

use serdes_tensors::{Form, open_at};

/// Limit on the bytes of tensors that are read from a file.
const READ: u64 = 1 << 20;

/// First bytes of a file of a version before 1.6: a magic number, the version, and a machine.
const BEFORE: &[u8] = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}X\x0d\x00\x00\x00little_endian\x88s.";

/// The last bytes of such a file: the list of its only storage key, `0`, and the storage's four
/// bytes.
const BEHIND: &[u8] =
    b"\x80\x02]X\x01\x00\x00\x000a.\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x3f";

/// Returns an archive of stored entries.
fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, bytes) in entries {
        if writer.start_file(*name, options).is_err() || writer.write_all(bytes).is_err() {
            return Vec::new();
        }
    }
    writer.finish().map(Cursor::into_inner).unwrap_or_default()
}

/// Opens a file, and reads its tensors. Each must give the declared number of bytes, or an error.
pub fn torch(input: &[u8]) {
    let file = match input.split_first() {
        None => Vec::new(),
        Some((0, rest)) => rest.to_vec(),
        Some((1, rest)) => [BEFORE, rest, BEHIND].concat(),
        Some((_, rest)) => archive(&[("m/data.pkl", rest), ("m/data/0", &[1; 64])]),
    };
    let size = file.len() as u64;
    let Ok(source) = open_at(Arc::new(file), "m.pt", Some(Form::Torch)) else { return };
    let mut left = READ;
    let mut total = 0_u64;
    for (position, info) in source.tensors().iter().enumerate() {
        total = total.saturating_add(info.bytes);
        if let Some(other) = source.alias_of(position) {
            let first = &source.tensors()[other];
            assert_eq!((&first.shape, first.dtype), (&info.shape, info.dtype));
            assert_eq!(source.alias_of(other), None);
        }
        if left == 0 {
            continue;
        }
        let Ok(reader) = source.read(position) else { continue };
        let mut bytes = Vec::new();
        if reader.take(left).read_to_end(&mut bytes).is_ok() {
            assert_eq!(bytes.len() as u64, info.bytes.min(left), "{}", info.name);
            left -= bytes.len() as u64;
        }
    }
    // The size of the description is bounded by the size of the file.
    assert!(total <= 16 * size + (256 << 20), "{total} of {size}");
}
