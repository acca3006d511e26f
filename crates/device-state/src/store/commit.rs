//! The commit of a written file or object, which makes it appear.

use std::{fs::File, time::Duration};

use serdes_files::Durability;

use crate::Error;

/// Makes what was written appear, whole; dropped without that, nothing of it stays.
pub trait Commit: Send {
    /// Takes the bytes to the disk as `durability` says and gives them their name; answers how long
    /// that took. The sink has been flushed and dropped before.
    ///
    /// # Errors
    /// If the store fails; nothing appears then.
    fn commit(self: Box<Self>, durability: Durability) -> Result<Duration, Error>;

    /// Returns the file behind the sink, if the sink writes at its cursor: then bytes are also
    /// written at other places of it, behind those that the sink got, and the cursor is moved
    /// behind them. `None` by default.
    fn file(&self) -> Option<&File> {
        None
    }

    /// Returns true if the bytes of the sink went to the disk past the system's cache, up to here.
    /// `false` by default.
    fn is_direct(&self) -> bool {
        false
    }
}
