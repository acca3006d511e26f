//! The writer, which assembles a message from its last field to its first.

use bytes::Bytes;

use super::{
    packed::{self, PackedNumber},
    varint,
};

/// Writes a message from its end to its start.
///
/// Nested messages are written before the enclosing ones, so their length is known when the length
/// is written: no message is measured first, and none is built separately. Fields are therefore
/// written in descending order of their numbers.
#[derive(Debug)]
pub struct BackwardWriter {
    /// The buffer, with the message so far at its end, from `start`.
    buffer: Buffer,
    start: usize,
}

/// Most messages are short: they are assembled on the stack, and then allocated once with their
/// exact size.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "lives on the stack, for the time of one message")]
enum Buffer {
    Stack([u8; STACK]),
    Heap(Vec<u8>),
}

const STACK: usize = 256;

impl Buffer {
    #[inline]
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Stack(buffer) => buffer,
            Self::Heap(buffer) => buffer,
        }
    }
}

impl BackwardWriter {
    /// Creates a writer with an initial capacity of `capacity` bytes, which grows as needed.
    #[inline]
    pub fn with_capacity(capacity: usize) -> Self {
        if capacity <= STACK {
            Self { buffer: Buffer::Stack([0; STACK]), start: STACK }
        } else {
            Self { buffer: Buffer::Heap(vec![0; capacity]), start: capacity }
        }
    }

    /// Returns the message.
    #[inline]
    pub fn finish(self) -> Bytes {
        match self.buffer {
            Buffer::Stack(buffer) => {
                Bytes::copy_from_slice(buffer.get(self.start..).unwrap_or_default())
            }
            Buffer::Heap(buffer) => Bytes::from(buffer).split_off(self.start),
        }
    }

    /// Returns the bytes written so far.
    #[inline]
    pub fn len(&self) -> usize {
        self.buffer.as_slice().len() - self.start
    }

    /// Returns true if nothing was written so far.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `length` bytes in front of the message so far, for the caller to fill.
    #[inline]
    fn space(&mut self, length: usize) -> &mut [u8] {
        if self.start < length {
            self.grow(length);
        }
        let end = self.start;
        self.start -= length;
        let buffer = match &mut self.buffer {
            Buffer::Stack(buffer) => &mut buffer[..],
            Buffer::Heap(buffer) => buffer,
        };
        buffer.get_mut(self.start..end).unwrap_or_default()
    }

    #[cold]
    fn grow(&mut self, length: usize) {
        let written = self.len();
        let capacity = (written + length).max(64) * 2;
        let mut buffer = vec![0; capacity];
        let start = capacity - written;
        let old = self.buffer.as_slice().get(self.start..);
        if let (Some(new), Some(old)) = (buffer.get_mut(start..), old) {
            new.copy_from_slice(old);
        }
        (self.buffer, self.start) = (Buffer::Heap(buffer), start);
    }

    #[inline]
    fn varint(&mut self, bits: u64) {
        if bits < 0x80 {
            if let [byte] = self.space(1) {
                *byte = bits as u8;
            }
        } else {
            varint::put(self.space(varint::len(bits)), bits);
        }
    }

    #[inline]
    fn key(&mut self, field: u32, wire_type: u32) {
        self.varint(u64::from(field << 3 | wire_type));
    }

    /// Writes a field of bytes or a string, even if it is empty.
    #[inline]
    pub fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.raw(bytes);
        self.varint(bytes.len() as u64);
        self.key(field, 2);
    }

    /// Writes bytes that are encoded fields already.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.space(bytes.len()).copy_from_slice(bytes);
    }

    /// Writes a fixed-width number of 8 bytes, even if it is 0.
    #[inline]
    pub fn fixed64(&mut self, field: u32, bytes: [u8; 8]) {
        self.raw(&bytes);
        self.key(field, 1);
    }

    /// Writes a fixed-width number of 4 bytes, even if it is 0.
    #[inline]
    pub fn fixed32(&mut self, field: u32, bytes: [u8; 4]) {
        self.raw(&bytes);
        self.key(field, 5);
    }

    /// Writes a boolean, even if it is false.
    #[inline]
    pub fn truth(&mut self, field: u32, truth: bool) {
        self.varint(u64::from(truth));
        self.key(field, 0);
    }

    /// Writes a number, which is omitted if it is 0.
    #[inline]
    pub fn number(&mut self, field: u32, number: impl PackedNumber) {
        let bits = number.to_bits();
        if bits != 0 {
            self.varint(bits);
            self.key(field, 0);
        }
    }

    /// Writes a packed list, which is omitted if it is empty.
    pub fn packed<T: PackedNumber>(&mut self, field: u32, values: &[T]) {
        if values.is_empty() {
            return;
        }
        let before = self.len();
        packed::encode(values, self.space(T::packed_len(values)));
        self.delimit(field, before);
    }

    /// Writes a packed list of a few numbers, given from the last one.
    #[inline]
    pub fn packed_from_last(&mut self, field: u32, values: impl Iterator<Item = i64>) {
        let before = self.len();
        for value in values {
            self.varint(value.to_bits());
        }
        if self.len() != before {
            self.delimit(field, before);
        }
    }

    /// Writes a packed list of fixed-width numbers of 8 bytes, which is omitted if it is empty.
    #[inline]
    pub fn packed_fixed64(&mut self, field: u32, values: &[i64]) {
        if values.is_empty() {
            return;
        }
        let before = self.len();
        let (places, _) = self.space(8 * values.len()).as_chunks_mut::<8>();
        for (place, value) in places.iter_mut().zip(values) {
            *place = value.to_le_bytes();
        }
        self.delimit(field, before);
    }

    /// Writes a nested message that cannot fail, even if it is empty.
    #[inline]
    pub fn nested(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        let before = self.len();
        write(self);
        self.delimit(field, before);
    }

    /// Writes a message as a bytes field, which is omitted if it is empty.
    ///
    /// # Errors
    /// The error of `write`.
    #[inline]
    pub fn data<E>(
        &mut self,
        field: u32,
        write: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let before = self.len();
        write(self)?;
        if self.len() != before {
            self.delimit(field, before);
        }
        Ok(())
    }

    /// Writes a nested message, even if it is empty.
    ///
    /// # Errors
    /// The error of `write`.
    #[inline]
    pub fn message<E>(
        &mut self,
        field: u32,
        write: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let before = self.len();
        write(self)?;
        self.delimit(field, before);
        Ok(())
    }

    /// Writes the length and the key of a field in front of its content, which is everything
    /// written since `before`.
    #[inline(always)]
    fn delimit(&mut self, field: u32, before: usize) {
        self.varint((self.len() - before) as u64);
        self.key(field, 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_written_from_its_end_and_grows() {
        for capacity in [0, 1, 256, 257, 1000] {
            let mut out = BackwardWriter::with_capacity(capacity);
            out.packed_from_last(6, [300, 1].into_iter());
            out.packed(5, &[1_i32, 2, 300]);
            out.packed::<i64>(4, &[]);
            out.message::<()>(3, |out| {
                out.bytes(1, b"name");
                Ok(())
            })
            .unwrap();
            out.number(2, 0_i64);
            out.number(1, -1_i32);
            let expected = [
                &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1][..],
                b"\x1a\x06\x0a\x04name\x2a\x04\x01\x02\xac\x02\x32\x03\x01\xac\x02",
            ];
            assert_eq!(&out.finish()[..], expected.concat(), "{capacity}");
        }
    }
}
