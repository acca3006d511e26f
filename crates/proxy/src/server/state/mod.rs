//! Arrays that outlive their sessions: restored from a device state at start, saved into it on
//! request and at stop.
//!
//! Arrays in the state stay in it. A save writes the live arrays and all that the state had before.
//! An array leaves the state when a client deletes it (`DeleteArray`, not the end of a handle; also
//! an array without a name), when its session gave it to a program and the session's later arrays
//! are saved, or when the owner of its name saves another one under it. Arrays that are neither on
//! a device nor in open sessions are copied from the previous file, a piece at a time.
//!
//! A session's array is saved as `<name>/<handle>`, where the name is the value of
//! `serdes.state.name` in the client's initialization data, or `session-<number>` with a number
//! that is unique here; or under the name that the data give for its handle
//! (`serdes.state.name.<handle>`). Arrays with such a name outlive their session; others end with
//! it, unless they were saved. Names belong to their creator: to the client, on a server that
//! authenticates clients; else to any session with the same name, once no open session has it. The
//! metadata of the state record the owners.
//!
//! A client may also store arrays while its session is open (`replace`): they replace all arrays of
//! the state below a name, at once.
//!
//! A client that opens a session finds the arrays in the attributes of the server:
//! `serdes.state.handle.<array>` is the handle of an array (its 64 bits as a signed number),
//! `serdes.state.spec.<array>` its `ArraySpecProto`. Arrays of an authenticated client are visible
//! to that client only.
//!
//! Stores and returns arrays by name. Does not depend on sessions.

mod header_limit;
mod holder;
mod identity;
mod kept;
mod kept_array;
mod kept_arrays;
mod lock;
mod lock_file;
mod names;
mod plan;
mod replace;
mod restore;
mod stop;
mod store;
mod write;

#[cfg(test)]
mod tests;

pub use self::holder::StateHolder;
pub(crate) use self::{
    header_limit::most_name_bytes,
    kept::{LiveArrays, StateOptions},
    kept_array::NameReservation,
    names::{NamedArrays, Names, Owner},
    replace::Replacing,
    restore::RestoreBudget,
    store::{Occasion, State},
};
