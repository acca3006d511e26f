//! Errors of the text form.

use std::io;

/// An error in a text, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {kind}")]
pub struct TextError {
    /// The line, counted from 1.
    pub line: u64,
    /// The column in bytes, counted from 1.
    pub column: u64,
    /// The kind of error at that place.
    pub kind: TextErrorKind,
}

/// A violation of the text format, or of the message's description.
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
    /// Something else where a certain token must be.
    #[error("found {found} where {expected} is expected")]
    Expected {
        /// The token that was found.
        found: String,
        /// The token that was expected.
        expected: &'static str,
    },
    /// A number that the field cannot hold, or that is none.
    #[error("\"{found}\" is no value of the field \"{field}\", which is {expected}")]
    Value {
        /// The text of the value.
        found: String,
        /// The field.
        field: &'static str,
        /// The type of the field.
        expected: &'static str,
    },
    /// A string without its end, with an escape sequence that is none, or that is not UTF-8 in a
    /// text field.
    #[error("this is no string: {0}")]
    String(&'static str),
    /// An expanded `Any` whose type is not known here.
    #[error("the type \"{0}\" is not known")]
    UnknownType(String),
    /// More than 100 messages inside one another.
    #[error("more than 100 messages inside one another")]
    Depth,
}

/// Why a text could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The text is not one that a parser accepts.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The system could not read.
    #[error(transparent)]
    Io(#[from] io::Error),
}
