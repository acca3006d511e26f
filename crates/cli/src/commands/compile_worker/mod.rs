//! Compiling programs of clients in processes of their own: `workers` starts them and asks them,
//! `process` is such a process, `frames` is what goes over its pipes.

mod frames;
mod process;
mod workers;

pub(crate) use self::{process::run, workers::CompileWorkers};
