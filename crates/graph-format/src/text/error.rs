//! Errors of the text form.

use std::io;

/// An error in a text, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {kind}")]
pub struct TextError {
    /// The line, counted from 1.
    pub line: u64,
    /// The column in bytes, counted from 1.
    pub column: u64,
    /// The kind of error at that position.
    pub kind: TextErrorKind,
}

/// A violation of the text format, or of the message's schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextErrorKind {
    /// Bytes that are not UTF-8.
    #[error("the text is not UTF-8")]
    Encoding,
    /// A field that the message does not have.
    #[error("{message} has no field \"{field}\"")]
    UnknownField {
        /// The full name of the message.
        message: &'static str,
        /// The name of the field.
        field: String,
    },
    /// A singular field given twice.
    #[error("the field \"{field}\" of {message} is given a second time")]
    Twice {
        /// The full name of the message.
        message: &'static str,
        /// The field.
        field: &'static str,
    },
    /// Two members of one oneof.
    #[error("the field \"{field}\" of {message} excludes another one that is given before it")]
    Oneof {
        /// The full name of the message.
        message: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A token other than the required one.
    #[error("found {found} where {expected} is expected")]
    Expected {
        /// The token that was found.
        found: String,
        /// The token that was expected.
        expected: &'static str,
    },
    /// A value that is malformed, or that the field cannot hold.
    #[error("\"{found}\" is no value of the field \"{field}\", which is {expected}")]
    Value {
        /// The text of the value.
        found: String,
        /// The field.
        field: &'static str,
        /// The type of the field.
        expected: &'static str,
    },
    /// A string that has no end, has an invalid escape sequence, or is not UTF-8 in a text field.
    #[error("this is no string: {0}")]
    String(&'static str),
    /// An expanded `Any` whose type is not known here.
    #[error("the type \"{0}\" is not known")]
    UnknownType(String),
    /// More than 100 nested messages.
    #[error("more than 100 messages inside one another")]
    Depth,
}

/// The reason why a text could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The text violates the format.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The system could not read the source.
    #[error(transparent)]
    Io(#[from] io::Error),
}
