//! Arrays on the devices: the memory of their shards, and their layout on the host.
//!
//! Does not depend on handles, sessions or requests.

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
