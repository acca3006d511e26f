//! Steps through the text form of a protobuf message without building it.
//!
//! Takes what Python's `text_format.Parse` takes, because that is what reads such files in front of
//! TensorFlow's importer: a singular field may be given once, an unknown field is an error, lists,
//! `<>` as well as `{}`, hexadecimal and octal numbers, `,` and `;` between fields, comments.
//!
//! Knows the text format and the table of messages, and tells the same [`Visitor`]s as the wire
//! scanner does.

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

/// Walks over the message whose text `source` holds.
///
/// The visitor is called through a table: a text costs more to read than the calls do, and a
/// parser for each visitor more to compile.
pub fn scan(
    source: &(impl ReadAt + ?Sized),
    message: MessageId,
    visitor: &mut dyn Visitor,
) -> Result<(), ScanError> {
    parser::Parser::new(reader::Reader::new(&source)?, message, visitor)?.run()
}

/// Like [`scan`], and takes what Python's `text_format.Merge` takes: a singular field may be given
/// several times, and the visitor hears of each value.
pub fn merge(
    source: &(impl ReadAt + ?Sized),
    message: MessageId,
    visitor: &mut dyn Visitor,
) -> Result<(), ScanError> {
    parser::Parser::new(reader::Reader::new(&source)?, message, visitor)?.merging().run()
}
