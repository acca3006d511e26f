//! Compiles programs of clients in separate processes: `workers` starts and calls them, `process`
//! is such a process, `frames` has the messages on its pipes.

mod frames;
mod process;
mod workers;

pub(crate) use self::{process::run, workers::CompileWorkers};
