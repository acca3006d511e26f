//! Conversion of elements between the layouts of files and of device states.
//!
//! Packed elements are stored least significant bit first, as in the registers of the machines that
//! read them: the first of two 4-bit elements is the low half of its byte, four 6-bit elements fill
//! three bytes.

use std::io::{self, Read};

/// Reader that unpacks elements of `bits` bits each, one per byte.
pub(super) struct Unpack<R> {
    packed: R,
    bits: u32,
    /// Number of remaining elements.
    left: u64,
    /// Bits that were read and not returned, the next element lowest.
    pending: u32,
    pending_bits: u32,
    buffer: Vec<u8>,
    position: usize,
}

impl<R: Read> Unpack<R> {
    pub(super) fn new(packed: R, bits: u32, elements: u64) -> Self {
        Self {
            packed,
            bits,
            left: elements,
            pending: 0,
            pending_bits: 0,
            buffer: Vec::new(),
            position: 0,
        }
    }

    fn next_byte(&mut self) -> io::Result<u8> {
        if self.position == self.buffer.len() {
            let bytes = (self.left * u64::from(self.bits)).div_ceil(8).min(64 << 10);
            self.buffer.resize(bytes as usize, 0);
            self.packed.read_exact(&mut self.buffer)?;
            self.position = 0;
        }
        let byte = *self.buffer.get(self.position).ok_or(io::ErrorKind::UnexpectedEof)?;
        self.position += 1;
        Ok(byte)
    }
}

impl<R: Read> Read for Unpack<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.left.min(out.len() as u64) as usize;
        for element in out.iter_mut().take(count) {
            if self.pending_bits < self.bits {
                self.pending |= u32::from(self.next_byte()?) << self.pending_bits;
                self.pending_bits += 8;
            }
            *element = (self.pending & ((1 << self.bits) - 1)) as u8;
            self.pending >>= self.bits;
            self.pending_bits -= self.bits;
            self.left -= 1;
        }
        Ok(count)
    }
}

/// Packs elements of one byte each.
#[derive(Debug, Default)]
pub(super) struct Pack {
    pending: u32,
    pending_bits: u32,
}

impl Pack {
    /// Appends the packed bytes of `elements` of `bits` bits to `packed`.
    pub(super) fn push(&mut self, elements: &[u8], bits: u32, packed: &mut Vec<u8>) {
        for element in elements {
            self.pending |= (u32::from(*element) & ((1 << bits) - 1)) << self.pending_bits;
            self.pending_bits += bits;
            if self.pending_bits >= 8 {
                packed.push(self.pending as u8);
                self.pending >>= 8;
                self.pending_bits -= 8;
            }
        }
    }
}

/// Reader that converts numbers of `width` bytes from big endian to little endian.
pub(super) struct Swap<R> {
    inner: R,
    width: usize,
    word: [u8; 8],
    /// Number of remaining bytes of `word`.
    left: usize,
}

impl<R: Read> Swap<R> {
    /// Creates a reader for a `width` of 2, 4 or 8; the parts of a complex number are separate
    /// numbers.
    pub(super) fn new(inner: R, width: usize) -> Self {
        Self { inner, width, word: [0; 8], left: 0 }
    }
}

impl<R: Read> Read for Swap<R> {
    #[expect(
        clippy::indexing_slicing,
        reason = "a reader gives no more than it is asked for, and a word is 8 bytes long"
    )]
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let whole = out.len() - out.len() % self.width;
        if self.left == 0 && whole > 0 {
            let count = self.inner.read(&mut out[..whole])?;
            let part = count % self.width;
            if part != 0 {
                self.inner.read_exact(&mut out[count..count - part + self.width])?;
            }
            let count = count.next_multiple_of(self.width);
            out[..count].chunks_exact_mut(self.width).for_each(<[u8]>::reverse);
            return Ok(count);
        }
        if self.left == 0 {
            let word = &mut self.word[..self.width];
            match self.inner.read(&mut word[..1])? {
                0 => return Ok(0),
                _ => self.inner.read_exact(&mut word[1..])?,
            }
            word.reverse();
            self.left = self.width;
        }
        let count = self.left.min(out.len());
        let from = self.width - self.left;
        out[..count].copy_from_slice(&self.word[from..from + count]);
        self.left -= count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unpack(packed: &[u8], bits: u32, elements: u64) -> Vec<u8> {
        let mut out = Vec::new();
        Unpack::new(packed, bits, elements).read_to_end(&mut out).unwrap();
        out
    }

    #[test]
    fn the_first_of_two_nibbles_is_the_low_one() {
        assert_eq!(unpack(&[0x21, 0x43], 4, 4), [1, 2, 3, 4]);
    }

    #[test]
    fn six_bit_elements_run_across_bytes() {
        assert_eq!(unpack(&[0x41, 0x30, 0x10], 6, 4), [1, 1, 3, 4]);
    }

    proptest! {
        #[test]
        fn packing_undoes_unpacking(
            bits in prop::sample::select(vec![1_u32, 2, 4, 6]),
            mut elements in prop::collection::vec(any::<u8>(), 0..200),
            split in 0_usize..200,
        ) {
            elements.truncate(elements.len() / 4 * 4);
            if bits == 1 || bits == 2 {
                elements.truncate(elements.len() / 8 * 8);
            }
            elements.iter_mut().for_each(|element| *element &= (1 << bits) - 1);
            let (mut packed, mut pack) = (Vec::new(), Pack::default());
            let (first, second) = elements.split_at(split.min(elements.len()));
            pack.push(first, bits, &mut packed);
            pack.push(second, bits, &mut packed);
            prop_assert_eq!(packed.len() * 8, elements.len() * bits as usize);
            prop_assert_eq!(unpack(&packed, bits, elements.len() as u64), elements);
        }

        #[test]
        fn swapping_reverses_every_number(
            numbers in prop::collection::vec(any::<u32>(), 0..50),
            step in 1_usize..9,
        ) {
            let big: Vec<u8> = numbers.iter().flat_map(|n| n.to_be_bytes()).collect();
            let mut swap = Swap::new(&big[..], 4);
            let mut little: Vec<u8> = Vec::new();
            loop {
                let mut part = vec![0; step];
                match swap.read(&mut part).unwrap() {
                    0 => break,
                    count => little.extend(&part[..count]),
                }
            }
            let expected: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
            prop_assert_eq!(little, expected);
        }
    }
}
