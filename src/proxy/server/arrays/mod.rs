//! Arrays on the devices: where the bytes of their shards are, and how they lie on the host.
//!
//! This part must never know a handle, a session or a request.

mod array;
mod devices;
mod element;
mod memory;
mod parts;
mod pieces;
mod region;
mod strings;

pub(crate) use self::{
    array::{Array, Shard},
    devices::{Devices, ServedDevice, attribute},
    element::{Item, contents_of, item_size, zeroed},
    memory::{Buffer, Kind, Memory, MemorySpace, MemoryWriter, Place},
    parts::{assemble, cover},
    pieces::{Composition, MemoryReader, Next, Pieces, STEP, overlap},
    region::Region,
    strings::{pick_strings, read_strings},
};
