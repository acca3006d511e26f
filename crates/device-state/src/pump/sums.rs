//! Checksums of the chunks of a piece, computed while its bytes pass.

use serdes_files::Crc32c;

/// Computes one CRC-32C per chunk from bytes in parts of any size.
#[derive(Debug)]
pub(crate) struct ChunkSums {
    chunk_bytes: usize,
    digest: Crc32c,
    filled: usize,
    sums: Vec<u32>,
}

impl ChunkSums {
    pub(crate) fn new(chunk_bytes: u32) -> Self {
        Self {
            chunk_bytes: chunk_bytes.max(1) as usize,
            digest: Crc32c::new(),
            filled: 0,
            sums: Vec::new(),
        }
    }

    /// Adds the next bytes of the piece.
    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(self.chunk_bytes - self.filled));
            self.digest.update(now);
            self.filled += now.len();
            if self.filled == self.chunk_bytes {
                self.close();
            }
            bytes = later;
        }
    }

    fn close(&mut self) {
        self.sums.push(self.digest.take());
        self.filled = 0;
    }

    /// Returns the checksums of the piece; the last chunk may be short.
    pub(crate) fn finish(mut self) -> Vec<u32> {
        if self.filled > 0 {
            self.close();
        }
        self.sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::checksum;

    #[test]
    fn the_sizes_of_the_parts_do_not_matter() {
        let bytes: Vec<u8> = (0..1000_u32).map(|n| (n * 7) as u8).collect();
        let expected: Vec<u32> = bytes.chunks(64).map(checksum).collect();
        for step in [1, 63, 64, 65, 1000] {
            let mut sums = ChunkSums::new(64);
            bytes.chunks(step).for_each(|part| sums.update(part));
            assert_eq!(sums.finish(), expected);
        }
        assert_eq!(ChunkSums::new(64).finish(), [0; 0]);
    }
}
