//! Protobuf bytes without generated messages: the crate `serdes-wire`.
//!
//! The module knows numbers, fields and bytes. It does not depend on messages, versions or devices.

pub(crate) use serdes_wire::*;
