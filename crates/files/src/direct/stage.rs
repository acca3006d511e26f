//! Memory that direct I/O takes, for bytes that lie badly.

#![expect(
    clippy::indexing_slicing,
    reason = "the memory is a stage and a block long, and no more than a stage is filled"
)]

/// Bytes of a stage: what is gathered where memory cannot be written or read into as it lies.
pub(super) const STAGE_BYTES: usize = 1 << 20;

/// Memory of which whole blocks are aligned.
#[derive(Default)]
pub(super) struct Stage {
    pub(super) memory: Vec<u8>,
    /// Offset of the first block in the memory.
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

    /// Returns the whole memory, for a caller that fills it itself.
    pub(super) fn memory_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.begin..self.begin + STAGE_BYTES]
    }

    pub(super) fn is_full(&self) -> bool {
        self.filled == STAGE_BYTES
    }

    /// Takes as many bytes as there is room for.
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
