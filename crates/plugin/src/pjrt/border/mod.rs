//! The C side: every function of the table, and how handles, arguments, errors and values cross.
//!
//! What a host promises is the C API: arguments that are the call's own, handles of this plug-in
//! that are alive, memory where it says that there is some. All that does not follow from it is
//! checked.

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
