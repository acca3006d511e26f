//! The commit of a written file or object, which makes it appear.

use std::{fs::File, time::Duration};

use serdes_files::Durability;

use crate::Error;

/// Makes the written bytes appear completely; if it is dropped instead, nothing is left.
pub trait Commit: Send {
    /// Syncs the bytes with the requested durability and gives them their name; returns how long
    /// that took. The sink was flushed and dropped before.
    ///
    /// # Errors
    /// If the store fails; nothing appears then.
    fn commit(self: Box<Self>, durability: Durability) -> Result<Duration, Error>;

    /// Returns the file of the sink, if the sink writes at its cursor: then bytes are also written
    /// at other positions, after those of the sink, and the cursor is moved after them. `None` by
    /// default.
    fn file(&self) -> Option<&File> {
        None
    }

    /// Returns true if the bytes of the sink were written past the system's cache so far. `false`
    /// by default.
    fn is_direct(&self) -> bool {
        false
    }
}
