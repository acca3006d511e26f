//! Limit on the memory for reading a file.
//!
//! Every structure that grows with the file's contents takes from the budget before it grows, so
//! that hostile pickles need no detection.

use super::error::TorchError;

/// Bytes of memory for each byte of the file. One more byte is for short-lived values: a line of
/// text, a name.
const PER_BYTE: u64 = 7;

/// Minimum budget in bytes, for files of any length.
const LEAST: u64 = 48 << 20;

/// Remaining memory.
#[derive(Debug, Default)]
pub(super) struct Budget {
    left: u64,
}

impl Budget {
    /// Creates the budget of a file of `bytes` bytes.
    pub(super) const fn of_file(bytes: u64) -> Self {
        Self { left: bytes.saturating_mul(PER_BYTE).saturating_add(LEAST) }
    }

    /// Takes bytes before they are allocated.
    ///
    /// # Errors
    /// If fewer bytes are left.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), TorchError> {
        self.left = self.left.checked_sub(bytes as u64).ok_or_else(|| {
            TorchError::unsupported(
                "reading what its pickle describes takes far more memory than the file is long; save tensors alone, as model.state_dict()",
            )
        })?;
        Ok(())
    }

    /// Returns freed bytes.
    pub(super) fn give_back(&mut self, bytes: usize) {
        self.left = self.left.saturating_add(bytes as u64);
    }
}
