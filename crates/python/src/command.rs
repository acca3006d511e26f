//! The command `serdes`, in a process that Python started.

use std::ffi::OsString;

use pyo3::prelude::*;
use serdes_cli::Invocation;

/// Runs the command to its end and answers its exit status; `program` starts a process that calls
/// this again.
#[pyfunction]
pub(crate) fn command(py: Python<'_>, program: Vec<OsString>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| serdes_cli::run(Invocation::new(program, arguments)))
}
