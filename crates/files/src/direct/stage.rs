//! Aligned memory for direct I/O of bytes that are not aligned themselves.

#![expect(
    clippy::indexing_slicing,
    reason = "the memory is a stage and a block long, and no more than a stage is filled"
)]

/// Size of a stage in bytes.
pub(super) const STAGE_BYTES: usize = 1 << 20;

/// A buffer whose whole blocks are aligned.
#[derive(Default)]
pub(super) struct Stage {
    pub(super) memory: Vec<u8>,
    /// Offset of the first aligned block in the memory.
    begin: usize,
    pub(super) filled: usize,
}

impl Stage {
    pub(super) fn new(block: usize) -> Self {
        let memory = vec![0_u8; STAGE_BYTES + block];
        let address = memory.as_ptr().addr();
        Self { begin: address.next_multiple_of(block) - address, memory, filled: 0 }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.memory[self.begin..self.begin + self.filled]
    }

    /// Returns the whole aligned memory, for a caller that fills it itself.
    pub(super) fn memory_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.begin..self.begin + STAGE_BYTES]
    }

    pub(super) fn is_full(&self) -> bool {
        self.filled == STAGE_BYTES
    }

    /// Copies as many of the bytes as fit, and returns their number.
    pub(super) fn fill(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(STAGE_BYTES - self.filled);
        let begin = self.begin + self.filled;
        self.memory[begin..begin + count].copy_from_slice(&bytes[..count]);
        self.filled += count;
        count
    }

    pub(super) fn drop_first(&mut self, count: usize) {
        let end = self.begin + self.filled;
        self.memory.copy_within(self.begin + count..end, self.begin);
        self.filled -= count;
    }
}
