//! Flatbuffers: TensorFlow Lite models, and files of jax.export.

use std::io;

use super::{file::File, mlir::MAGIC};

/// Returns the offset of the root table. Tables are aligned to four bytes, which distinguishes a
/// flatbuffer from a graph: the first two bytes of a graph are a tag of a node and its length, and
/// the tag is not a multiple of four.
fn root(file: &File<'_>) -> Option<u64> {
    let root = u64::from(u32::from_le_bytes(*file.head.first_chunk()?));
    let inside = root + 4 <= file.size;
    (root >= 4 && root.is_multiple_of(4) && inside).then_some(root)
}

/// Returns true if a file has the identifier of TensorFlow Lite's models after the offset of a
/// table.
pub(super) fn is_tflite(file: &File<'_>) -> bool {
    file.head.get(4..8) == Some(b"TFL3") && root(file).is_some()
}

/// The field numbers of a serialized function that identify it.
const NAME: usize = 1;
const TREES: [usize; 2] = [2, 4];
const MODULE: usize = 13;

/// Smallest number of fields that any release of jax writes.
const FEWEST_FIELDS: usize = 16;

/// Limit on the length of a function name that identifies a file without a valid module.
const LONGEST_NAME: usize = 1000;

/// Returns true if a file is a serialized `jax.export.Exported`. It has no identifier: its root
/// table has a name, two trees, and a vector of bytes that is MLIR bytecode, unless that is cut off
/// or damaged.
pub(super) fn is_jax_export(file: &File<'_>) -> io::Result<bool> {
    let Some(table) = root(file) else { return Ok(false) };
    let Some(table) = Table::read(file, table)? else { return Ok(false) };
    if !TREES.into_iter().all(|tree| table.field(tree).is_some()) {
        return Ok(false);
    }
    let Some(module) = table.reference(file, MODULE)? else { return Ok(false) };
    let mut start = [0; MAGIC.len()];
    let start = file.read(&mut start, module + 4)?;
    Ok(start == MAGIC || (table.places.len() >= FEWEST_FIELDS && has_name(file, &table)?))
}

/// Returns true if a table has the name of a function, as far as the file contains it.
fn has_name(file: &File<'_>, table: &Table) -> io::Result<bool> {
    let Some(at) = table.reference(file, NAME)? else { return Ok(false) };
    let Some(length) = number(file, at)?.map(u64::from) else { return Ok(at >= file.size) };
    let mut name = [0; LONGEST_NAME];
    let Some(name) = usize::try_from(length).ok().and_then(|length| name.get_mut(..length)) else {
        return Ok(false);
    };
    let name = file.read(name, at + 4)?;
    Ok(match std::str::from_utf8(name) {
        Ok(name) => !name.contains('\0'),
        // The file ends in the middle of a letter.
        Err(error) => error.error_len().is_none() && (name.len() as u64) < length,
    })
}

/// Returns the 32-bit number at an offset, if it is inside the file.
fn number(file: &File<'_>, at: u64) -> io::Result<Option<u32>> {
    let mut bytes = [0; 4];
    Ok(file.read(&mut bytes, at)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)))
}

/// A table, with the offsets of its fields.
struct Table {
    at: u64,
    /// The offsets of its fields relative to the table; 0 for an absent field.
    places: Vec<u16>,
}

impl Table {
    /// Limit on the fields that are read; an exported function has 27.
    const MOST_FIELDS: usize = 64;

    /// Returns the table at an offset. The offsets of its fields are stored before it, or shared
    /// with another table.
    fn read(file: &File<'_>, at: u64) -> io::Result<Option<Self>> {
        let Some(back) = number(file, at)? else { return Ok(None) };
        let places = i64::try_from(at).ok().map(|at| at - i64::from(back.cast_signed()));
        let Some(places) = places.and_then(|at| u64::try_from(at).ok()) else { return Ok(None) };
        let mut bytes = [0; 4 + 2 * Self::MOST_FIELDS];
        let bytes = file.read(&mut bytes, places)?;
        let numbers: Vec<u16> =
            bytes.as_chunks().0.iter().map(|bytes| u16::from_le_bytes(*bytes)).collect();
        let [length, _, fields @ ..] = numbers.as_slice() else { return Ok(None) };
        let count = usize::from(*length) / 2;
        if !length.is_multiple_of(2) || !(2..=2 + Self::MOST_FIELDS).contains(&count) {
            return Ok(None);
        }
        Ok(fields.get(..count - 2).map(|fields| Self { at, places: fields.to_vec() }))
    }

    /// Returns the offset of a field in the file; `None` if it is absent.
    fn field(&self, number: usize) -> Option<u64> {
        let place = self.places.get(number).copied().filter(|place| *place > 0)?;
        Some(self.at + u64::from(place))
    }

    /// Returns the offset of the item that a field refers to.
    fn reference(&self, file: &File<'_>, field: usize) -> io::Result<Option<u64>> {
        let Some(at) = self.field(field) else { return Ok(None) };
        Ok(number(file, at)?.map(|forward| at + u64::from(forward)))
    }
}
