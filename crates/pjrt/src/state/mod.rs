//! Arrays as bytes that are read and written in pieces, for moving the state of devices.
//!
//! A [`MemorySpace`] holds arrays, an [`Array`] knows its element type and how it can be read, an
//! [`IncomingArray`] receives its bytes. Bytes are those of the host: dense, row-major, little
//! endian, with at least one byte per element.
//!
//! This folder must never know where bytes come from or go to.

mod array;
mod incoming;
mod memory_space;
mod transfer;

pub use array::Array;
pub use incoming::IncomingArray;
pub use memory_space::MemorySpace;
pub use transfer::ArrayTransfer;
