//! Protobuf bytes without generated messages: for what these are too slow for, would lose, or
//! cannot hold in memory.
//!
//! - `fields`: one cursor over the fields of a message in memory; `dialect` says what each parser
//!   takes.
//! - `scan`: the same for messages that do not fit into memory, with a table of what their fields
//!   are.
//! - `backward`: the writer.
//! - `packed`: lists of numbers, many at a time; `varint`: one number.
//!
//! Knows numbers, fields and bytes. It must never know what a message means, a version or a device.

mod backward;
mod dialect;
#[cfg_attr(not(feature = "artifact"), expect(unreachable_pub, reason = "an error of `artifact`"))]
mod fields;
pub(crate) mod packed;
#[cfg(feature = "artifact")]
pub(crate) mod scan;
#[cfg(all(test, feature = "artifact"))]
pub(crate) mod testing;
pub(crate) mod varint;

pub(crate) use backward::BackwardWriter;
pub(crate) use dialect::{Dialect, MAXIMUM_DEPTH};
#[cfg(feature = "artifact")]
pub(crate) use fields::Field;
#[cfg(feature = "artifact")]
pub use fields::Malformed;
#[cfg(not(feature = "artifact"))]
pub(crate) use fields::Malformed;
pub(crate) use fields::{FieldValue, WireReader, check_fields};
