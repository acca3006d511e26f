//! Arrays as bytes that come and go in pieces: what whoever moves the state of devices needs.
//!
//! A [`MemorySpace`] is where arrays lie, an [`Array`] is one of which it is known what it is made
//! of and how it can be read, an [`IncomingArray`] one whose bytes are on their way. Bytes are
//! those of the host: dense, row-major, little endian, a byte at least an element.
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
