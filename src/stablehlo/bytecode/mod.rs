//! MLIR bytecode: sections, tables and the walk over the operations.
//!
//! A reader of the container, which keeps what it does not need to understand as bytes. It must
//! never know what an operation or an attribute means.

mod cursor;
mod operations;
mod sections;
mod tables;

pub(crate) use cursor::first_number;
pub(super) use cursor::{Cursor, write_varint, write_zigzag};
pub(super) use operations::Operation;
pub(super) use sections::{Section, SectionKind, write_section};
pub(super) use tables::{Bytecode, Entry, OperationName};
