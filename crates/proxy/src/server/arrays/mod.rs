//! Arrays on the devices: where the bytes of their shards are, and how they lie on the host.
//!
//! This part must never know a handle, a session or a request.

mod array;
mod device;
mod devices;
mod element;
mod memory;
mod parts;
mod pieces;
mod region;
mod served;
mod space;
mod strings;

pub use self::served::ServedDevices;
pub(crate) use self::{
    array::{Array, Shard},
    devices::{Devices, MOST_RENEWALS, attribute},
    element::{Item, STEP, contents_of, item_size, zeroed},
    memory::{Buffer, Bytes, Memory, MemoryWriter, Place},
    parts::{assemble, cover},
    pieces::{Composition, MemoryReader, Next, Pieces, overlap},
    region::Region,
    space::{Kind, MemorySpace},
    strings::{pick_strings, read_strings},
};
