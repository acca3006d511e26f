//! Programs on the devices of a PJRT client: compiled, described to a client, run.
//!
//! `module` reads what only the compiled module says; `compile` makes a [`Program`] of what a client
//! has sent, `describe` says of it what a client asks, `launch` runs it. This part must never know a
//! handle, a session or a request.

mod compile;
mod describe;
mod launch;
mod module;
mod program;
mod readable;

pub(crate) use self::{
    compile::{Source, compile},
    launch::{Argument, Launch, Launched, Running},
    program::Program,
};
