//! Flatbuffers: models of TensorFlow Lite, and what jax.export serializes.

use std::io;

use super::file::File;

/// Where the outermost table stands. Tables are aligned to four bytes, which tells a flatbuffer
/// from a graph: the first two bytes of that are a tag of a node and its length, and the tag is no
/// multiple of four.
fn root(file: &File<'_>) -> Option<usize> {
    let root = u32::from_le_bytes(*file.head.first_chunk()?);
    let inside = u64::from(root) + 4 <= file.size;
    (root >= 4 && root.is_multiple_of(4) && inside).then(|| usize::try_from(root).ok()).flatten()
}

/// Whether a file has the mark of TensorFlow Lite's models, behind the place of a table.
pub(super) fn is_tflite(file: &File<'_>) -> bool {
    file.head.get(4..8) == Some(b"TFL3") && root(file).is_some()
}

/// Whether a file is a serialized `jax.export.Exported`. It has no mark: its outermost table begins
/// with a small number, the version of the serialization, and one of its other fields is a vector
/// of bytes that is MLIR bytecode.
pub(super) fn is_jax_export(file: &File<'_>) -> io::Result<bool> {
    let Some(table) = root(file).and_then(|root| Table::new(file.head, root)) else {
        return Ok(false);
    };
    if !table.number(0).is_some_and(|version| (1..=1000).contains(&version)) {
        return Ok(false);
    }
    for field in 1..table.fields() {
        let Some(vector) = table.reference(field) else { continue };
        let mut start = [0; 8];
        let start = file.read(&mut start, vector)?;
        if let Some((length, rest)) = start.split_first_chunk()
            && u64::from(u32::from_le_bytes(*length)) <= file.size
            && rest == b"ML\xefR"
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A table, and where its fields are.
struct Table<'f> {
    head: &'f [u8],
    at: usize,
    /// The places of its fields, two bytes each, counted from the table.
    places: &'f [u8],
}

impl<'f> Table<'f> {
    /// The most fields that are looked at; an exported function has twenty.
    const MOST_FIELDS: usize = 64;

    fn new(head: &'f [u8], at: usize) -> Option<Self> {
        let back = i32::from_le_bytes(*head.get(at..)?.first_chunk()?);
        let places = i64::try_from(at).ok()?.checked_sub(i64::from(back))?;
        let places = head.get(usize::try_from(places).ok()?..)?;
        let length = usize::from(u16::from_le_bytes(*places.first_chunk()?));
        if !length.is_multiple_of(2) || !(4..=4 + 2 * Self::MOST_FIELDS).contains(&length) {
            return None;
        }
        Some(Self { head, at, places: places.get(4..length)? })
    }

    fn fields(&self) -> usize {
        self.places.len() / 2
    }

    /// The bytes of a field, and where they are.
    fn field(&self, number: usize) -> Option<(usize, &'f [u8])> {
        let place = u16::from_le_bytes(*self.places.get(2 * number..)?.first_chunk()?);
        let at = self.at + usize::from(place);
        if place == 0 { None } else { Some((at, self.head.get(at..)?)) }
    }

    fn number(&self, field: usize) -> Option<u16> {
        Some(u16::from_le_bytes(*self.field(field)?.1.first_chunk()?))
    }

    /// Where that is what a field refers to.
    fn reference(&self, field: usize) -> Option<u64> {
        let (at, bytes) = self.field(field)?;
        Some(at as u64 + u64::from(u32::from_le_bytes(*bytes.first_chunk()?)))
    }
}
