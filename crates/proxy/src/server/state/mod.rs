//! Arrays that outlive their sessions: restored from a device state at start, saved into it on
//! request and at stop.
//!
//! Arrays in the state stay in it. A save writes the living arrays and all that the state had
//! before. An array leaves the state when a client deletes it (`DeleteArray`, not the end of a
//! handle; also an array without a name), when its session gave it to a program and the session's
//! later arrays are saved, or when the owner of its name saves another one under it. Arrays that
//! are there neither on a device nor in open sessions are copied from the file before, a piece at a
//! time.
//!
//! A session's array is saved as `<name>/<handle>`, where the name is the value of
//! `serdes.state.name` in the client's initialization data, or `session-<number>`, a number that no
//! other session has here; or under the name that the data gives for its handle
//! (`serdes.state.name.<handle>`). Arrays with such a name outlive their session; others end with
//! it, except for those that were saved. Names belong to their creator: to the client, on a server
//! that authenticates clients; else to any session that is given the same name again, once no open
//! session has it. The metadata of the state have the owners.
//!
//! A client may also keep arrays while its session is open (`replace`): they take the place of all
//! that the state has below a name, at once.
//!
//! A client that opens a session finds what is there in the attributes of the server:
//! `serdes.state.handle.<array>` is the handle of an array (its 64 bits as a signed number),
//! `serdes.state.spec.<array>` its `ArraySpecProto`. It finds what belongs to a client that the
//! server knows only if it is that client.
//!
//! This part takes and gives arrays by their names. It must never know a session.

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
