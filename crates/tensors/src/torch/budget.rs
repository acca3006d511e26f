//! The limit on the memory that reading a file may take.
//!
//! Every structure that grows with what a file says takes from the budget before it grows, so that
//! no pickle has to be recognised as a hostile one.

use super::error::TorchError;

/// Bytes of memory for each byte of the file. One byte more is for what is held for a moment: a
/// line of text, a name.
const PER_BYTE: u64 = 7;

/// Bytes of memory whatever the length of the file.
const LEAST: u64 = 48 << 20;

/// The memory that is left.
#[derive(Debug, Default)]
pub(super) struct Budget {
    left: u64,
}

impl Budget {
    /// Budget of a file of `bytes` bytes.
    pub(super) const fn of_file(bytes: u64) -> Self {
        Self { left: bytes.saturating_mul(PER_BYTE).saturating_add(LEAST) }
    }

    /// Takes bytes before they are allocated.
    ///
    /// # Errors
    /// If fewer are left.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), TorchError> {
        self.left = self.left.checked_sub(bytes as u64).ok_or_else(|| {
            TorchError::unsupported(
                "reading what its pickle describes takes far more memory than the file is long; save tensors alone, as model.state_dict()",
            )
        })?;
        Ok(())
    }

    /// Gives bytes back that were freed.
    pub(super) fn give_back(&mut self, bytes: usize) {
        self.left = self.left.saturating_add(bytes as u64);
    }
}
