//! The checksum of tables and bundles: crc32c (CRC-32/ISCSI), stored masked.
//!
//! Masking (rotate right by 15 bits, add a constant) keeps a checksum that is itself stored among
//! checksummed bytes from being special; TensorFlow and LevelDB do it alike.

use crc_fast::{CrcAlgorithm, Digest};

const MASK_DELTA: u32 = 0xa282_ead8;

/// The masked checksum of no bytes at all, as empty tensors carry it.
pub const MASKED_EMPTY: u32 = MASK_DELTA;

/// The crc32c of `bytes`.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    low_32(crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes))
}

/// The crc32c of a sequence of parts of which the first has the checksum `first` and the second,
/// `second_len` bytes long, the checksum `second`.
#[must_use]
pub fn combine(first: u32, second: u32, second_len: u64) -> u32 {
    low_32(crc_fast::checksum_combine(
        CrcAlgorithm::Crc32Iscsi,
        first.into(),
        second.into(),
        second_len,
    ))
}

/// A crc32c as it is stored.
#[must_use]
pub fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK_DELTA)
}

/// The crc32c behind a stored one.
#[must_use]
pub fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(MASK_DELTA).rotate_left(15)
}

/// A crc32c in the making.
#[derive(Clone, Debug)]
pub struct Crc32c(Digest);

impl Crc32c {
    /// Of nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }

    /// Continues over `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of everything so far.
    #[must_use]
    pub fn value(&self) -> u32 {
        low_32(self.0.finalize())
    }
}

impl Default for Crc32c {
    fn default() -> Self {
        Self::new()
    }
}

fn low_32(crc: u64) -> u32 {
    // The library answers in 64 bits for every width; those above 32 are zero here.
    (crc & u64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_and_its_mask_are_the_standard_ones() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(mask(0xe306_9283), 0xc78a_b0e5);
        assert_eq!(unmask(0xc78a_b0e5), 0xe306_9283);
        assert_eq!(mask(crc32c(b"")), MASKED_EMPTY);
    }

    #[test]
    fn parts_combine_to_the_whole() {
        let bytes: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        for cut in [0, 1, 17, 4096, 9999, 10_000] {
            let (a, b) = bytes.split_at(cut);
            assert_eq!(
                combine(crc32c(a), crc32c(b), b.len() as u64),
                crc32c(&bytes),
                "cut at {cut}"
            );
            let mut running = Crc32c::new();
            running.update(a);
            running.update(b);
            assert_eq!(running.value(), crc32c(&bytes));
        }
    }
}
