//! Protobuf bytes without generated messages: for what these are too slow for, would lose, or
//! cannot hold in memory.
//!
//! Fields, numbers and the writer are the crate `serdes-wire`. `scan` reads messages that do not fit
//! into memory, with a table of what their fields are.
//!
//! Knows numbers, fields and bytes. It must never know what a message means, a version or a device.

#[cfg(feature = "artifact")]
pub(crate) mod scan;
#[cfg(all(test, feature = "artifact"))]
pub(crate) mod testing;

#[cfg(feature = "artifact")]
pub use serdes_wire::Malformed;
pub(crate) use serdes_wire::*;
