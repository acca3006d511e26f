//! Errors of lists of operations.
//!
//! Does not depend on the parsers.

use std::io;

use serdes_abi::ErrorKind;
use serdes_graph_format::scan::WireError;
use serdes_wire::Malformed;

use crate::DefinitionError;

/// The error of a list of operations that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// The list begins like JSON, but is not valid JSON.
    #[error(
        "the list of operations is no JSON: {0}; write an object an operation, or a name a line"
    )]
    Json(String),
    /// An entry is not an operation.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// A line is not a name.
    #[error(
        "line {line} of the list of operations is {found:?}; expected the name of one operation"
    )]
    Name {
        /// The line, counted from 1.
        line: usize,
        /// The found text, cut at 80 characters.
        found: String,
    },
    /// The bytes are not a serialized `OpList`.
    #[error("the serialized list of operations is none: {0}; write it again")]
    Serialized(#[from] Malformed),
    /// The bytes are not a SavedModel.
    #[error("the SavedModel cannot be read: {0}; export the model again")]
    SavedModel(WireError),
    /// A SavedModel has no `stripped_op_list`.
    #[error(
        "the SavedModel does not list its operations; take one that TensorFlow exported, or write an object an operation"
    )]
    NotListed,
    /// The lists of a SavedModel are too long.
    #[error("the SavedModel's lists of operations have {found} bytes; expected at most {limit}")]
    Oversized {
        /// Length of the lists in bytes.
        found: u64,
        /// Largest length that is read, in bytes.
        limit: u64,
    },
    /// The system could not read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The list has no operation.
    #[error(
        "the list names no operation; write an object an operation as lists of releases have it, or a name a line"
    )]
    Empty,
}

impl ListError {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Json(_) | Self::Name { .. } | Self::NotListed | Self::Empty => {
                ErrorKind::InvalidInput
            }
            Self::Definition(error) => error.kind(),
            Self::Serialized(_) | Self::SavedModel(_) => ErrorKind::Corrupt,
            Self::Oversized { .. } => ErrorKind::Limit,
            Self::Io(error) => ErrorKind::of_io(error),
        }
    }
}
