//! Steps through a message of any size without building it, on bytes that arrive window by window.
//!
//! The [`Scanner`] checks what TensorFlow's own parser checks (see [`Dialect`](serdes_wire::Dialect)),
//! and needs neither the whole file nor memory for what it reads. Values that the visitor does not
//! ask for (tensor contents, unknown fields) are stepped over and not even read.
//!
//! Knows the wire format and the messages of a [`Schema`]. It must never know what a message means:
//! that is the business of a [`Visitor`].

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
