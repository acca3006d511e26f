//! CRC-32C (Castagnoli, CRC-32/ISCSI), the checksum of every file format that this library writes.
//!
//! All other modules compute this checksum through the functions here.

use crc_fast::{CrcAlgorithm, Digest};

/// Returns the CRC-32C of `bytes`.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// Returns the CRC-32C of two consecutive parts: `first` is the checksum of the first part, and
/// `second` that of the second part, which is `second_len` bytes long.
#[inline]
pub fn combine(first: u32, second: u32, second_len: u64) -> u32 {
    let algorithm = CrcAlgorithm::Crc32Iscsi;
    low_32(crc_fast::checksum_combine(algorithm, first.into(), second.into(), second_len))
}

/// Computes a CRC-32C incrementally.
#[derive(Clone, Debug)]
pub struct Crc32c(Digest);

impl Default for Crc32c {
    fn default() -> Self {
        Self::new()
    }
}

impl Crc32c {
    /// Creates a checksum of zero bytes.
    #[inline]
    pub fn new() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }

    /// Adds `bytes` to the checksum.
    #[inline]
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the checksum of all bytes so far.
    #[inline]
    pub fn value(&self) -> u32 {
        low_32(self.0.finalize())
    }

    /// Returns the checksum of all bytes so far, and resets it.
    #[inline]
    pub fn take(&mut self) -> u32 {
        low_32(self.0.finalize_reset())
    }
}

fn low_32(crc: u64) -> u32 {
    // The library returns 64 bits for every width; for CRC-32 the upper 32 are zero.
    (crc & u64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_is_the_standard_one() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn parts_combine_to_the_whole() {
        let bytes: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        for cut in [0, 1, 17, 4096, 9999, 10_000] {
            let (a, b) = bytes.split_at(cut);
            let whole = crc32c(&bytes);
            assert_eq!(combine(crc32c(a), crc32c(b), b.len() as u64), whole, "cut at {cut}");
            let mut running = Crc32c::new();
            running.update(a);
            running.update(b);
            assert_eq!((running.value(), running.take(), running.take()), (whole, whole, 0));
        }
    }
}
