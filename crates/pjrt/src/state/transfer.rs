//! The copy of a piece of an array.

use crate::{HostMemory, PjrtError, Transfer};

/// Arrays of at least this length, in bytes, are read and written in pieces if the plug-in supports
/// it; a shorter one takes one call. No piece is longer than this.
pub(super) const PIECES_FROM: usize = 1 << 20;

/// A copy between an array and host memory, which it keeps until it is done.
#[derive(Debug)]
#[must_use = "the memory comes back from `wait`"]
pub struct ArrayTransfer(Progress);

#[derive(Debug)]
enum Progress {
    UnderWay(Transfer),
    /// The copy was done without the plug-in, or was waited for.
    Done(HostMemory),
}

impl ArrayTransfer {
    pub(super) const fn under_way(transfer: Transfer) -> Self {
        Self(Progress::UnderWay(transfer))
    }

    pub(super) const fn done(memory: HostMemory) -> Self {
        Self(Progress::Done(memory))
    }

    /// Waits until the copy is done, and returns the memory.
    ///
    /// # Errors
    /// [`PjrtError::Status`] if it failed.
    pub fn wait(self) -> Result<HostMemory, PjrtError> {
        match self.0 {
            Progress::UnderWay(transfer) => transfer.wait(),
            Progress::Done(memory) => Ok(memory),
        }
    }
}
