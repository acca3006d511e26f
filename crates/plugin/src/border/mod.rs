//! The border to C: the functions that a host calls, and the state behind its handles.
//!
//! Every function here is called by foreign code with raw pointers. Each one finds the state behind
//! the handle, runs the author's code so that no panic leaves it, and answers in the way that the C
//! API has for that function. No state is global but one table of status functions, for calls that
//! come without a usable handle.
//!
//! Structs belong to the host, and may be shorter than ours: fields are read and written one by one
//! through raw pointers, and no reference to a whole struct of the host's is made, except for
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
