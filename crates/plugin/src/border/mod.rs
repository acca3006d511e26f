//! The functions that a host calls through the C API, and the state behind its handles.
//!
//! Foreign code calls every function here with raw pointers. Each function finds the state behind
//! the handle, runs the author's code so that no panic escapes, and reports the result in the way
//! that the C API defines for it. The only global state is one table of status functions, for calls
//! that come without a usable handle.
//!
//! Structs belong to the host, and may be shorter than ours: fields are read and written one by one
//! through raw pointers. No reference to a whole struct of the host is made, except for
//! `SP_DeviceMemoryBase`, which has one size in all layouts.

mod allocators;
mod execution;
mod host_struct;
mod memory;
mod platform;
mod register;
mod state;
#[cfg(test)]
mod tests;

pub use register::register;
