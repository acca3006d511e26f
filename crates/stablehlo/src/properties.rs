//! Properties of operations: attributes by number, and the dictionaries beside them.

use super::{
    bytecode::{Bytecode, Cursor},
    catalogue::{VHLO, attribute_code, builtin_code},
};

/// MLIR's own dialect.
const BUILTIN: &str = "builtin";

/// Returns the attributes in the properties of an operation; `None` if the properties are not a
/// list of numbers.
pub(super) fn attributes_of(properties: &[u8]) -> Option<Vec<u64>> {
    let mut cursor = Cursor::new(properties, 0);
    let mut attributes = Vec::new();
    while !cursor.is_empty() {
        attributes.push(cursor.varint().ok()?);
    }
    Some(attributes)
}

/// Returns true if a dictionary has one of these names as a key; `None` if it cannot be read.
pub(super) fn names_one_of(file: &Bytecode<'_>, dictionary: u64, names: &[&[u8]]) -> Option<bool> {
    let (code, mut entries) = file.attribute(dictionary, BUILTIN)?;
    (code == builtin_code::DICTIONARY).then_some(())?;
    for _ in 0..entries.varint().ok()? {
        if names.contains(&string(file, entries.varint().ok()?)?) {
            return Some(true);
        }
        entries.varint().ok()?;
    }
    Some(false)
}

/// Returns the text of a string, in either dialect.
pub(super) fn string<'a>(file: &Bytecode<'a>, attribute: u64) -> Option<&'a [u8]> {
    let of_vhlo = file.attribute(attribute, VHLO);
    let mut contents = match (of_vhlo, file.attribute(attribute, BUILTIN)) {
        (Some((attribute_code::STRING, contents)), _)
        | (_, Some((builtin_code::STRING, contents))) => contents,
        _ => return None,
    };
    let index = contents.count().ok()?;
    file.strings.get(index).copied().filter(|_| contents.is_empty())
}
