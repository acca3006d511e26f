//! Properties of operations: attributes by their numbers.

use super::bytecode::Cursor;

/// The attributes of which the properties of an operation consist; `None` if they are no list of
/// numbers.
pub(super) fn attributes_of(properties: &[u8]) -> Option<Vec<u64>> {
    let mut cursor = Cursor::new(properties, 0);
    let mut attributes = Vec::new();
    while !cursor.is_empty() {
        attributes.push(cursor.varint().ok()?);
    }
    Some(attributes)
}
