//! Walks over the text form of a protobuf message without building it.
//!
//! Accepts what Python's `text_format.Parse` accepts, because it reads such files before
//! TensorFlow's importer does: a singular field may be given once, an unknown field is an error,
//! lists, `<>` as well as `{}`, hexadecimal and octal numbers, `,` and `;` between fields,
//! comments.
//!
//! Depends on the text format and the table of messages, and reports to the same [`Visitor`]s as
//! the wire scanner.

mod error;
mod number;
mod parser;
mod reader;
mod strings;

pub use error::ScanError;
pub use error::{TextError, TextErrorKind};

use serdes_files::ReadAt;

use crate::scan::Visitor;
use crate::schema::MessageId;

/// Scans the message whose text `source` holds.
///
/// The visitor is called by dynamic dispatch: reading the text takes longer than the calls, and a
/// parser per visitor would take longer to compile.
pub fn scan(
    source: &(impl ReadAt + ?Sized),
    message: MessageId,
    visitor: &mut dyn Visitor,
) -> Result<(), ScanError> {
    parser::Parser::new(reader::Reader::new(&source)?, message, visitor)?.run()
}

/// Like [`scan`], but accepts what Python's `text_format.Merge` accepts: a singular field may be
/// given several times, and the visitor receives each value.
pub fn merge(
    source: &(impl ReadAt + ?Sized),
    message: MessageId,
    visitor: &mut dyn Visitor,
) -> Result<(), ScanError> {
    parser::Parser::new(reader::Reader::new(&source)?, message, visitor)?.merging().run()
}
