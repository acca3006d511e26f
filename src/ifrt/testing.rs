//! Constructors that the tests of several types share.

use bytes::Bytes;

use super::Shape;
use crate::version::{AnyVersionAccessor, Ifrt, Line as _, SerDesVersion};

/// Returns the version with this number.
pub(super) fn version(number: i32) -> SerDesVersion {
    AnyVersionAccessor::get(number).unwrap()
}

/// Returns every version.
pub(super) fn versions() -> impl Iterator<Item = SerDesVersion> {
    Ifrt::ENTRIES.iter().map(|entry| version(entry.number))
}

/// Returns a shape with these dimensions.
pub(super) fn shape(dims: impl AsRef<[i64]>) -> Shape {
    Shape::new(dims).unwrap()
}

/// Returns the bytes of hexadecimal digits.
pub(super) fn hex(text: &str) -> Bytes {
    let digits: Vec<_> = text.bytes().map(|digit| (digit as char).to_digit(16).unwrap()).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}
