//! Reads MLIR bytecode without MLIR: its sections, its tables, and the operations in the order of
//! the file.
//!
//! [`Sections::read`] finds the sections, [`Tables::read`] the strings, dialects, names of
//! operations, attributes, types and properties, and [`Walk::run`] calls a function with each
//! [`Operation`]. The caller interprets attributes and types by implementing [`References`].
//! [`vhlo`] has the names of operations and types in StableHLO's dialect.
//!
//! ```
//! use serdes_mlir_bytecode::{Cursor, Damage, MAGIC, Sections, Tables};
//!
//! /// The names of the dialects in a file of MLIR bytecode.
//! fn dialects(file: &[u8]) -> Result<Vec<&[u8]>, Damage> {
//!     let mut cursor = Cursor::new(file, 0);
//!     if cursor.bytes(MAGIC.len())? != MAGIC {
//!         return cursor.damage("MLIR bytecode");
//!     }
//!     let version = cursor.varint()?;
//!     while cursor.byte()? != 0 {} // the name of the producer
//!     let tables = Tables::read(&Sections::read(cursor, version)?, version)?;
//!     Ok((0..tables.dialects.len()).map(|dialect| tables.dialect(dialect)).collect())
//! }
//!
//! let damage = dialects(b"ML\xEFR\x0DStableHLO_v1.0.0\0").unwrap_err();
//! assert_eq!(damage.at, 22);
//! ```
//!
//! Files are untrusted: time and memory are linear in their size, nothing recurses, and no bytes
//! make the crate panic. The crate does not depend on releases or on the use of the result.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::get_unwrap,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

mod cursor;
mod references;
mod sections;
mod tables;
pub mod vhlo;
mod walk;

pub use cursor::{Cursor, Damage, Result, first_number, write_varint, write_zigzag};
pub use references::{Nesting, References, Stop, UnknownCode, Wanted};
pub use sections::{Section, SectionKind, Sections, write_section};
pub use tables::{Entries, Entry, OperationName, Tables};
pub use walk::{Operation, Walk};

/// The first bytes of MLIR bytecode.
pub const MAGIC: &[u8] = b"ML\xEFR";
