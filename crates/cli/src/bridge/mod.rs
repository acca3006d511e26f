//! A bridge for programs: a running Python with jaxlib that converts StableHLO for older plug-ins.
//!
//! The process gets untrusted bytes. It is separate, gets a limited time for each program, and is
//! killed when it exceeds it or sends an invalid answer; the next program starts another.

mod frames;
mod process;

pub(crate) use process::PythonBridge;
