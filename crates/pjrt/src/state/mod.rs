//! Arrays as bytes that are read and written in pieces, for moving the state of devices.
//!
//! A [`MemorySpace`] holds arrays, an [`Array`] can be read, and an [`IncomingArray`] receives its
//! bytes. Bytes are those of the host: dense, row-major, little endian, with at least one byte per
//! element.
//!
//! The module does not depend on the source or the destination of the bytes.

mod array;
mod incoming;
mod memory_space;
mod transfer;

pub use array::Array;
pub use incoming::IncomingArray;
pub use memory_space::MemorySpace;
pub use transfer::ArrayTransfer;
