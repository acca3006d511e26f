//! Messages that do not fit into memory, read with a table of what their fields are; with the fields
//! of those that do, from `serdes-wire`.
//!
//! It must never know what a message means, a version or a device.

#[doc(hidden)]
pub mod scan;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use serdes_wire::*;
