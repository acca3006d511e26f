//! Why a list of operations is none.
//!
//! Knows the words. It must never know how a list is read.

use std::io;

use serdes_abi::ErrorKind;
use serdes_graph_format::scan::WireError;
use serdes_wire::Malformed;

use crate::DefinitionError;

/// A list of operations that is none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// It begins as JSON does and is none.
    #[error(
        "the list of operations is no JSON: {0}; write an object an operation, or a name a line"
    )]
    Json(String),
    /// An entry is no operation.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// A line is no name.
    #[error(
        "line {line} of the list of operations is {found:?}; expected the name of one operation"
    )]
    Name {
        /// The line, from 1 on.
        line: usize,
        /// The found text, cut at 80 characters.
        found: String,
    },
    /// A serialized `OpList` is none.
    #[error("the serialized list of operations is none: {0}; write it again")]
    Serialized(#[from] Malformed),
    /// A SavedModel is none.
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
        /// Bytes of the lists.
        found: u64,
        /// Most bytes that are read.
        limit: u64,
    },
    /// The system could not read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// There is no operation in it.
    #[error(
        "the list names no operation; write an object an operation as lists of releases have it, or a name a line"
    )]
    Empty,
}

impl ListError {
    /// Returns the kind of the error, by the action that it calls for.
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
