//! Fields of messages, written by hand, for the tests of readers.

use super::varint;

/// A field with a length: a message or a text.
pub(crate) fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 8);
    varint::push(&mut out, u64::from(number) << 3 | 2);
    varint::push(&mut out, content.len() as u64);
    out.extend_from_slice(content);
    out
}
