//! The interface to the C API: the library, its table of functions, calls with arguments of the
//! size that the plug-in was built with, and checked results.
//!
//! No result of a plug-in is used unchecked: counts and lengths are bounded, and required pointers
//! are compared with NULL. The module does not depend on the purpose of a call.

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
