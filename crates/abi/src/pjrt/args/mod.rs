//! The structs of every call of the newest table, as `repr(C)` types in the newest layout.
//!
//! Each begins with its size and a pointer to extensions, which the constructor sets to the newest
//! size and to NULL; everything else is zero. That every field lies where the history says is
//! checked when this crate is compiled. A pointer to a struct that has no type here is a pointer to
//! nothing in particular.

#[macro_use]
mod define;
mod buffer;
mod calls;
mod client;
mod device;
mod handles;
mod layouts;
mod program;
mod structs;
mod topology;
mod transfer;

pub use self::{
    buffer::*, calls::*, client::*, device::*, handles::*, layouts::*, program::*, structs::*,
    topology::*, transfer::*,
};
