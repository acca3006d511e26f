//! The part of a file that is in memory.

/// The bytes of a file from a certain position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window<'w> {
    bytes: &'w [u8],
    start: u64,
}

impl<'w> Window<'w> {
    #[inline]
    pub(super) const fn new(bytes: &'w [u8], start: u64) -> Self {
        Self { bytes, start }
    }

    /// Returns the position after the last byte.
    #[inline]
    pub(super) const fn end(self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }

    #[inline]
    fn offset(self, position: u64) -> usize {
        usize::try_from(position.saturating_sub(self.start)).unwrap_or(usize::MAX)
    }

    /// Returns the bytes from position `from` to position `to`; empty if the window does not hold
    /// them.
    #[inline]
    pub(super) fn part(self, from: u64, to: u64) -> &'w [u8] {
        self.bytes.get(self.offset(from)..self.offset(to)).unwrap_or_default()
    }
}
