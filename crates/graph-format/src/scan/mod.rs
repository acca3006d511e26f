//! Walks over a message of any size without building it, on bytes that arrive window by window.
//!
//! The [`Scanner`] checks what TensorFlow's own parser checks (see
//! [`Dialect`](serdes_wire::Dialect)), without holding the whole file or its values in memory.
//! Values that the visitor does not ask for (tensor contents, unknown fields) are skipped without
//! being read.
//!
//! Depends on the wire format and the messages of a [`Schema`] only; a [`Visitor`] interprets the
//! messages.

mod error;
mod long;
mod near;
mod scanner;
mod schema;
mod source;
mod visitor;
mod window;

pub use error::{WireError, WireErrorKind};
pub use scanner::{Progress, Scanner, WHOLE_STRING, is_ascii};
pub use schema::{Encoding, Field, Kind, Label, MessageId, MessageType, Schema};
pub use source::{ScanError, scan};
pub use visitor::{Piece, Step, Visitor};

#[cfg(test)]
mod tests;
