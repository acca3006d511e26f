//! Flatbuffers read as by Python's package: lazily, without verifying the buffer first.
//!
//! The crate `flatbuffers` verifies a whole buffer first, or is unsafe. A verdict covers exactly
//! what `jax.export.deserialize` reads, in its order, and the errors that it meets. Offsets behave
//! as in Python: a negative one counts from the end, and a string that extends past the end is cut
//! off there.

use std::cell::Cell;

/// The reason why reading a file fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// A number extends past the end of the file.
    PastEnd { at: i64 },
    /// A required field is absent.
    Absent,
    /// A string that is not UTF-8.
    NotText { at: i64 },
    /// The references lead to more data than a file of this size can hold.
    TooMuch,
}

/// A file, with a budget of work: a valid file refers to each of its parts once.
#[derive(Debug)]
pub(crate) struct Buffer<'a> {
    bytes: &'a [u8],
    work: Cell<usize>,
}

impl<'a> Buffer<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let work = bytes.len().saturating_mul(4).saturating_add(4096);
        Self { bytes, work: Cell::new(work) }
    }

    pub(crate) fn root(&self) -> Result<Table<'_, 'a>, ReadError> {
        let at = i64::from(self.u32(0)?);
        Ok(Table { buffer: self, at })
    }

    fn spend(&self, work: usize) -> Result<(), ReadError> {
        let left = self.work.get().checked_sub(work).ok_or(ReadError::TooMuch)?;
        self.work.set(left);
        Ok(())
    }

    /// Returns the bytes of a number; a negative offset counts from the end.
    fn number<const N: usize>(&self, at: i64) -> Result<[u8; N], ReadError> {
        self.spend(1)?;
        let length = i64::try_from(self.bytes.len()).unwrap_or(i64::MAX);
        let from = if at < 0 { at.saturating_add(length) } else { at };
        let from = usize::try_from(from).map_err(|_| ReadError::PastEnd { at })?;
        let rest = self.bytes.get(from..).and_then(|rest| rest.first_chunk());
        rest.copied().ok_or(ReadError::PastEnd { at })
    }

    fn u16(&self, at: i64) -> Result<u16, ReadError> {
        self.number(at).map(u16::from_le_bytes)
    }

    fn u32(&self, at: i64) -> Result<u32, ReadError> {
        self.number(at).map(u32::from_le_bytes)
    }

    /// Returns the target of an offset.
    fn indirect(&self, at: i64) -> Result<i64, ReadError> {
        Ok(at.saturating_add(i64::from(self.u32(at)?)))
    }

    /// Returns a string, cut off at the end of the file.
    fn string(&self, at: i64) -> Result<&'a str, ReadError> {
        let at = self.indirect(at)?;
        let length = self.u32(at)? as usize;
        // Never negative, because offsets are not.
        let start = usize::try_from(at.saturating_add(4)).unwrap_or(usize::MAX);
        let start = start.min(self.bytes.len());
        let end = start.saturating_add(length).min(self.bytes.len());
        let bytes = self.bytes.get(start..end).unwrap_or_default();
        self.spend(bytes.len())?;
        std::str::from_utf8(bytes).map_err(|_| ReadError::NotText { at })
    }
}

/// A table of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table<'b, 'a> {
    buffer: &'b Buffer<'a>,
    at: i64,
}

/// A vector of a table: the start of its elements, and their number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vector<'b, 'a> {
    buffer: &'b Buffer<'a>,
    at: i64,
    length: u32,
}

impl<'b, 'a> Table<'b, 'a> {
    /// Returns the offset of a field; `None` if it is absent.
    fn field(&self, number: u16) -> Result<Option<i64>, ReadError> {
        let back = self.buffer.number(self.at).map(i32::from_le_bytes)?;
        let places = self.at.saturating_sub(i64::from(back));
        let place = i64::from(number).saturating_mul(2).saturating_add(4);
        if place >= i64::from(self.buffer.u16(places)?) {
            return Ok(None);
        }
        let offset = self.buffer.u16(places.saturating_add(place))?;
        Ok((offset != 0).then(|| self.at.saturating_add(i64::from(offset))))
    }

    /// Counts the bytes kept of a table as work, so that tables that share bytes cannot exhaust
    /// memory.
    pub(crate) fn keep(&self, bytes: usize) -> Result<(), ReadError> {
        self.buffer.spend(bytes)
    }

    pub(crate) fn i8(&self, number: u16) -> Result<i8, ReadError> {
        let Some(at) = self.field(number)? else { return Ok(0) };
        self.buffer.number(at).map(i8::from_le_bytes)
    }

    pub(crate) fn u16(&self, number: u16) -> Result<u16, ReadError> {
        self.field(number)?.map_or(Ok(0), |at| self.buffer.u16(at))
    }

    pub(crate) fn i16(&self, number: u16) -> Result<i16, ReadError> {
        let Some(at) = self.field(number)? else { return Ok(0) };
        self.buffer.number(at).map(i16::from_le_bytes)
    }

    pub(crate) fn u32(&self, number: u16) -> Result<u32, ReadError> {
        self.field(number)?.map_or(Ok(0), |at| self.buffer.u32(at))
    }

    /// Returns a table; `None` if it is absent.
    pub(crate) fn table(&self, number: u16) -> Result<Option<Self>, ReadError> {
        let Some(at) = self.field(number)? else { return Ok(None) };
        Ok(Some(Self { buffer: self.buffer, at: self.buffer.indirect(at)? }))
    }

    /// Returns a required table.
    pub(crate) fn needed_table(&self, number: u16) -> Result<Self, ReadError> {
        self.table(number)?.ok_or(ReadError::Absent)
    }

    /// Returns a string; `None` if it is absent.
    pub(crate) fn string(&self, number: u16) -> Result<Option<&'a str>, ReadError> {
        self.field(number)?.map(|at| self.buffer.string(at)).transpose()
    }

    /// Returns a required string.
    pub(crate) fn needed_string(&self, number: u16) -> Result<&'a str, ReadError> {
        self.string(number)?.ok_or(ReadError::Absent)
    }

    /// Returns a vector, empty if it is absent.
    pub(crate) fn vector(&self, number: u16) -> Result<Vector<'b, 'a>, ReadError> {
        let buffer = self.buffer;
        let Some(at) = self.field(number)? else { return Ok(Vector { buffer, at: 0, length: 0 }) };
        let at = buffer.indirect(at)?;
        Ok(Vector { buffer, at: at.saturating_add(4), length: buffer.u32(at)? })
    }

    /// Returns true if the field has a vector.
    pub(crate) fn vector_is_there(&self, number: u16) -> Result<bool, ReadError> {
        self.field(number).map(|field| field.is_some())
    }

    /// Returns the bytes of a vector of numbers of `width` bytes, which must be complete.
    pub(crate) fn needed_numbers(&self, number: u16, width: usize) -> Result<&'a [u8], ReadError> {
        if self.field(number)?.is_none() {
            return Err(ReadError::Absent);
        }
        let vector = self.vector(number)?;
        let past_end = ReadError::PastEnd { at: vector.at };
        let start = usize::try_from(vector.at).map_err(|_| past_end)?;
        let end = (vector.length as usize).checked_mul(width);
        let end = end.and_then(|length| start.checked_add(length)).ok_or(past_end)?;
        self.buffer.bytes.get(start..end).ok_or(past_end)
    }
}

impl<'b, 'a> Vector<'b, 'a> {
    pub(crate) fn len(&self) -> u32 {
        self.length
    }

    /// Returns the number of elements that can be read if each takes `bytes` bytes of the file.
    pub(crate) fn room(&self, bytes: usize) -> usize {
        (self.length as usize).min(self.buffer.bytes.len().checked_div(bytes).unwrap_or_default())
    }

    fn place(&self, index: u32, width: i64) -> i64 {
        self.at.saturating_add(i64::from(index).saturating_mul(width))
    }

    pub(crate) fn table(&self, index: u32) -> Result<Table<'b, 'a>, ReadError> {
        let at = self.buffer.indirect(self.place(index, 4))?;
        Ok(Table { buffer: self.buffer, at })
    }

    pub(crate) fn string(&self, index: u32) -> Result<&'a str, ReadError> {
        self.buffer.string(self.place(index, 4))
    }

    pub(crate) fn u32(&self, index: u32) -> Result<u32, ReadError> {
        self.buffer.u32(self.place(index, 4))
    }

    pub(crate) fn i8(&self, index: u32) -> Result<i8, ReadError> {
        self.buffer.number(self.place(index, 1)).map(i8::from_le_bytes)
    }

    /// Returns all strings, in order.
    pub(crate) fn strings(&self) -> Result<Vec<&'a str>, ReadError> {
        let mut strings = Vec::with_capacity(self.room(4));
        for index in 0..self.length {
            strings.push(self.string(index)?);
        }
        Ok(strings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_before_the_beginning_count_from_the_end() {
        // A root at 4, and its fields 8 bytes before that: at -4, so four bytes before the end.
        let bytes = [4, 0, 0, 0, 8, 0, 0, 0, 7, 1, 6, 0, 4, 0];
        let buffer = Buffer::new(&bytes);
        let root = buffer.root().unwrap();
        assert_eq!(root.u16(0), Ok(0x0107));
        assert_eq!(root.u16(1), Ok(0));
    }

    #[test]
    fn strings_are_cut_off_at_the_end() {
        // A table at 8 with one field, at 12: an offset of 4 to a string of 200 bytes.
        let bytes = [8, 0, 0, 0, 6, 0, 4, 0, 4, 0, 0, 0, 4, 0, 0, 0, 200, 0, 0, 0, b'a', b'b'];
        let buffer = Buffer::new(&bytes);
        let root = buffer.root().unwrap();
        assert_eq!(root.string(0), Ok(Some("ab")));
        assert_eq!(root.needed_numbers(0, 1), Err(ReadError::PastEnd { at: 20 }));
    }

    #[test]
    fn work_is_bounded_by_the_size_of_the_file() {
        let bytes = [0; 16];
        let buffer = Buffer::new(&bytes);
        let reads = (0..10_000).map_while(|_| buffer.u32(0).ok()).count();
        assert_eq!(reads, 4096 + 64);
        assert_eq!(buffer.u32(0), Err(ReadError::TooMuch));
    }
}
