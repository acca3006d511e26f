//! Arrays that outlive their sessions: restored from a device state at start, saved into it on
//! request and at stop.
//!
//! What is in the state stays in it. A save writes what is alive and all that the state had before;
//! an array leaves it when a client deletes it (`DeleteArray`, not the end of a handle; also an
//! array that nobody gave a name), when its session gave it to a program and what the session has
//! since is saved, or when whoever its name belongs to saves another one under it. Arrays that are
//! there neither on a device nor in open sessions are carried over from the file before, a piece at
//! a time.
//!
//! A session's array is saved as `<name>/<handle>`, where the name is what the client's
//! initialization data says under `serdes.state.name`, or `session-<number>`, a number that no
//! other session has here; or under the name that the data says for its handle
//! (`serdes.state.name.<handle>`). Sessions leave arrays behind that have such a name when they
//! end; others they take with them, except for what was saved. Names belong to who made them: to
//! the client, on a server that knows who its clients are; else to whoever gives a session the same
//! name again, once no open session has it. Who that is, the metadata of the state say.
//!
//! A client that opens a session finds what is there in the attributes of the server:
//! `serdes.state.handle.<array>` is the handle of an array (its 64 bits as a signed number),
//! `serdes.state.spec.<array>` its `ArraySpecProto`. It finds what belongs to a client that the
//! server knows only if it is that client.
//!
//! This part takes and gives arrays by their names. It must never know a session.

mod holder;
mod identity;
mod kept;
mod lock;
mod lock_file;
mod names;
mod plan;
mod restore;
mod stop;
mod store;
mod write;

#[cfg(test)]
mod tests;

pub use self::holder::StateHolder;
pub(crate) use self::{
    kept::{LiveArrays, StateOptions},
    names::{NamedArrays, Names},
    restore::Room,
    store::{Occasion, State},
};
