//! Protobuf bytes without generated messages: the crate `serdes-wire`.
//!
//! Knows numbers, fields and bytes. It must never know what a message means, a version or a device.

pub(crate) use serdes_wire::*;
