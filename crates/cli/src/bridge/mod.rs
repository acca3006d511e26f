//! A bridge for programs: a Python with jaxlib, kept warm, that writes StableHLO for older
//! plug-ins.
//!
//! The process gets untrusted bytes. It is one of its own, gets a bounded time for each program,
//! and is ended when it takes longer or gives a malformed answer; the next program starts another.

mod frames;
mod process;

pub(crate) use process::PythonBridge;
