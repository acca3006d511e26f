//! A bridge for programs: a Python with jaxlib, kept warm, that writes StableHLO for older
//! plug-ins.
//!
//! The process gets bytes of strangers. It is one of its own, gets a bounded time for each program,
//! and is ended when it takes longer or says what is no answer; the next program starts another.

mod frames;
mod process;

pub(crate) use process::PythonBridge;
