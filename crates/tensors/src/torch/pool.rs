//! Texts and bytes of a pickle, one after the other in large buffers.

use std::ops::Range;

use super::{budget::Budget, error::TorchError};

/// Size in bytes of a buffer for many values.
const BUFFER: usize = 64 << 10;

/// Size in bytes from which a value has its own buffer.
const LARGE: usize = BUFFER / 4;

/// Bytes of a buffer in addition to its content, in a list that doubles as it grows.
const HEAD: usize = 72;

/// A buffer that grows at its end.
pub(super) trait Buffer {
    /// A part of it.
    type Part: ?Sized;
    /// Returns an empty buffer with capacity for `bytes` bytes.
    fn with_room(bytes: usize) -> Self;
    /// Returns its length in bytes.
    fn length(&self) -> usize;
    /// Appends another part.
    fn append(&mut self, other: &Self);
    /// Returns the bytes of a range; `None` if they do not exist.
    fn part(&self, range: Range<usize>) -> Option<&Self::Part>;
}

impl Buffer for String {
    type Part = str;

    fn with_room(bytes: usize) -> Self {
        Self::with_capacity(bytes)
    }

    fn length(&self) -> usize {
        self.len()
    }

    fn append(&mut self, other: &Self) {
        self.push_str(other);
    }

    fn part(&self, range: Range<usize>) -> Option<&str> {
        self.get(range)
    }
}

impl Buffer for Vec<u8> {
    type Part = [u8];

    fn with_room(bytes: usize) -> Self {
        Self::with_capacity(bytes)
    }

    fn length(&self) -> usize {
        self.len()
    }

    fn append(&mut self, other: &Self) {
        self.extend_from_slice(other);
    }

    fn part(&self, range: Range<usize>) -> Option<&[u8]> {
        self.get(range)
    }
}

/// Place of a value: its buffer, its first byte, and its length.
pub(super) type Place = [u32; 3];

/// Values of one kind.
#[derive(Debug)]
pub(super) struct Pool<B> {
    buffers: Vec<B>,
    /// The buffer that takes small values.
    open: Option<usize>,
}

impl<B> Default for Pool<B> {
    fn default() -> Self {
        Self { buffers: Vec::new(), open: None }
    }
}

impl<B: Buffer> Pool<B> {
    /// Keeps a value.
    ///
    /// # Errors
    /// If the budget does not have enough bytes left.
    pub(super) fn add(&mut self, value: B, budget: &mut Budget) -> Result<Place, TorchError> {
        let length = value.length();
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        if length >= LARGE {
            budget.take(length + HEAD)?;
            self.buffers.push(value);
            return Ok([number(self.buffers.len() - 1), 0, number(length)]);
        }
        let is_full = |buffer: &B| buffer.length() + length > BUFFER;
        if self.open.and_then(|open| self.buffers.get(open)).is_none_or(is_full) {
            budget.take(BUFFER + HEAD)?;
            self.open = Some(self.buffers.len());
            self.buffers.push(B::with_room(BUFFER));
        }
        let open = self.open.unwrap_or_default();
        let Some(buffer) = self.buffers.get_mut(open) else { return Ok([0; 3]) };
        let begin = buffer.length();
        buffer.append(&value);
        Ok([number(open), number(begin), number(length)])
    }

    /// Returns the value at a place that [`add`](Self::add) returned.
    pub(super) fn get(&self, [buffer, begin, length]: Place) -> Option<&B::Part> {
        let begin = begin as usize;
        self.buffers.get(buffer as usize)?.part(begin..begin.checked_add(length as usize)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_values_are_given_back() {
        let (mut pool, mut budget) = (Pool::<String>::default(), Budget::of_file(0));
        let texts: Vec<String> =
            (0..40_usize).map(|number| format!("{number}").repeat(number * 700)).collect();
        let places: Vec<_> =
            texts.iter().map(|text| pool.add(text.clone(), &mut budget).unwrap()).collect();
        for (text, place) in texts.iter().zip(places) {
            assert_eq!(pool.get(place), Some(&**text));
        }
    }
}
