//! The border to the C API: the library, the table of its functions, calls with arguments of the
//! size that the plug-in was built with, and checked answers.
//!
//! Nothing that a plug-in gives is used unchecked: counts and lengths are bounded, pointers that
//! must not be NULL are compared with it. This folder must never know what a call is for.

mod answers;
mod callbacks;
mod calls;
mod chunk;
mod extensions;
mod host_callbacks;
mod library;
mod payloads;
mod table;

pub(crate) use self::{answers::text, library::open};
pub(super) use self::{
    answers::{LONGEST_BYTES, bytes, handles, list, owned_bytes, pointer},
    callbacks::call_when_ready,
    chunk::Chunk,
    host_callbacks::{Handler, Registration, received, sent},
    library::symbol,
    table::{Handed, Table},
};
pub use self::{extensions::Extension, payloads::ErrorPayload};
