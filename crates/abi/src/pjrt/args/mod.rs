//! The argument structs of every call of the newest table, as `repr(C)` types in the newest layout.
//!
//! Each begins with its size and a pointer to extensions, which the constructor sets to the newest
//! size and to NULL; all other fields are zero. The offsets of all fields are checked against the
//! history at compile time. A pointer to a struct that has no type here is an untyped pointer.

#[macro_use]
mod define;
#[macro_use]
mod extension;
mod buffer;
mod calls;
mod client;
mod device;
mod ffi;
mod function_tables;
mod handles;
mod host_callbacks;
mod layouts;
mod program;
mod shardings;
mod structs;
mod topology;
mod transfer;

pub use self::{
    buffer::*, calls::*, client::*, device::*, extension::*, ffi::*, function_tables::*,
    handles::*, host_callbacks::*, layouts::*, program::*, shardings::*, structs::*, topology::*,
    transfer::*,
};
