//! A piece of an array on its way.

use crate::{HostMemory, PjrtError, Transfer};

/// Arrays from this length on, in bytes, are read and written in pieces where the plug-in can: a
/// shorter one is one call, and no piece is longer than this.
pub(super) const PIECES_FROM: usize = 1 << 20;

/// A copy between an array and memory of the host, which it keeps until it is done.
#[derive(Debug)]
#[must_use = "the memory comes back from `wait`"]
pub struct ArrayTransfer(Progress);

#[derive(Debug)]
enum Progress {
    UnderWay(Transfer),
    /// The plug-in had no part in it, or was waited for.
    Done(HostMemory),
}

impl ArrayTransfer {
    pub(super) const fn under_way(transfer: Transfer) -> Self {
        Self(Progress::UnderWay(transfer))
    }

    pub(super) const fn done(memory: HostMemory) -> Self {
        Self(Progress::Done(memory))
    }

    /// Waits until it is done, and gives the memory back.
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
