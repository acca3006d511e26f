//! The C side: every function of the table, and the conversion of handles, arguments, errors and
//! values.
//!
//! A host promises to follow the C API: arguments are exclusive to the call, handles are live and
//! of this plug-in, and memory exists where the host says so. Everything else is checked.

#[macro_use]
mod calls;
mod arguments;
mod arrays;
mod clients;
mod devices;
mod error_functions;
mod errors;
mod events;
mod function_tables;
mod handles;
mod layouts;
mod pointers;
mod programs;
mod refusals;
mod table;
mod topologies;
mod transfers;
mod values;

pub(super) use function_tables::MemoryHead;
pub(super) use pointers::Handles;
pub use table::ApiTable;
pub(super) use values::NamedValues;

#[cfg(test)]
mod tests;
