//! Errors of V1 checkpoints, with the status that TensorFlow gives for each.

use std::{io, path::PathBuf};

use serdes_version_registry::Rejection;
use serdes_wire::Malformed;

use crate::{
    ErrorKind, StatusCode, kind_of_rejection,
    slice::{SliceError, TensorSlice},
    table::{TableDefect, TableError},
    tensor_bundle::ShapeError,
};

/// The reason why a V1 checkpoint cannot be opened, or one of its tensors not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointV1Error {
    /// No file has that name or matches that pattern.
    #[error(
        "no file matches {pattern:?}: a checkpoint is named by the path of its file, or by a pattern that matches all of its files"
    )]
    NoFiles {
        /// The path or pattern.
        pattern: String,
    },
    /// The path is not a valid pattern.
    #[error("{pattern:?} is no pattern of paths ({reason})")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The reason why the pattern is not valid.
        reason: String,
    },
    /// A file is not a table, or is a damaged one.
    #[error("{}: {source}; if it is a checkpoint of the newer format, name it by its prefix", path.display())]
    Table {
        /// Path of the file.
        path: PathBuf,
        /// The error of the table.
        source: TableError,
    },
    /// A file has no header.
    #[error("{}: the list of tensors is missing: the file was written wrongly, or its first block is damaged{}", path.display(), in_brackets(source.as_ref()))]
    NoHeader {
        /// Path of the file.
        path: PathBuf,
        /// The error of the block that should hold the header, if there is one.
        source: Option<TableError>,
    },
    /// The header of a file, which lists its tensors, does not parse.
    #[error("{}: the list of tensors does not parse ({source}): the file was written wrongly; write the checkpoint again", path.display())]
    Header {
        /// Path of the file.
        path: PathBuf,
        /// The error of the message.
        source: Malformed,
    },
    /// The versions in a file do not allow this consumer to read it.
    #[error("{}: {source}", path.display())]
    Version {
        /// Path of the file.
        path: PathBuf,
        /// The condition that failed.
        source: Rejection,
    },
    /// A tensor has an impossible shape.
    #[error(
        "tensor {name:?} has no possible shape ({source}): the file was written wrongly; write the checkpoint again"
    )]
    Shape {
        /// The name.
        name: String,
        /// The error of the shape.
        source: ShapeError,
    },
    /// A slice is malformed.
    #[error("a slice of tensor {name:?} makes no sense: {source}")]
    Slice {
        /// The name.
        name: String,
        /// The error of the slice.
        source: SliceError,
    },
    /// The files disagree about a tensor.
    #[error(
        "tensor {name:?} is {found} in one file and {expected} in another: the files do not belong together"
    )]
    Conflict {
        /// The name.
        name: String,
        /// Type and shape in the later file.
        found: String,
        /// Type and shape in the earlier file.
        expected: String,
    },
    /// Two slices of a tensor overlap.
    #[error(
        "slices of tensor {name:?} overlap: the files do not belong together, or were written wrongly"
    )]
    Overlap {
        /// The name.
        name: String,
    },
    /// No tensor has that name.
    #[error("there is no tensor {name:?} in the checkpoint")]
    TensorNotFound {
        /// The name that was asked for.
        name: String,
    },
    /// The slices do not cover the tensor.
    #[error(
        "the {slices} slices of tensor {name:?} hold {covered} of its {needed} elements: a file of the checkpoint is missing"
    )]
    SlicesMissing {
        /// The name.
        name: String,
        /// Number of slices.
        slices: usize,
        /// Elements that the slices cover.
        covered: u64,
        /// Elements of the tensor.
        needed: u64,
    },
    /// The values of a slice are missing or do not match the header.
    #[error("the values of slice {slice} of tensor {name:?} cannot be read: {reason}")]
    SliceData {
        /// The name.
        name: String,
        /// The slice.
        slice: TensorSlice,
        /// The reason why its values cannot be read.
        reason: String,
    },
    /// The tensor has a type that the format does not support.
    #[error("tensor {name:?} is {found}: {reason}")]
    Unsupported {
        /// The name.
        name: String,
        /// Its type.
        found: String,
        /// The reason why it is not supported.
        reason: &'static str,
    },
    /// A defect of a table that can still be read.
    #[error("{}: {defect}", path.display())]
    TableDefect {
        /// Path of the file.
        path: PathBuf,
        /// The defect of the table.
        defect: TableDefect,
    },
    /// The header of a file has no versions.
    #[error("{}: the list of tensors has no versions, and counts as version 0", path.display())]
    NoVersions {
        /// Path of the file.
        path: PathBuf,
    },
    /// The system could not read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// Formats a cause in brackets after a message; empty if there is no cause.
fn in_brackets(cause: Option<&TableError>) -> String {
    cause.map(|cause| format!(" ({cause})")).unwrap_or_default()
}

impl CheckpointV1Error {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoFiles { .. } | Self::TensorNotFound { .. } | Self::SlicesMissing { .. } => {
                ErrorKind::NotFound
            }
            Self::Pattern { .. } => ErrorKind::InvalidInput,
            Self::Table { source, .. } => source.kind(),
            Self::Version { source, .. } => kind_of_rejection(source),
            Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::Io { source, .. } => ErrorKind::of_io(source),
            Self::NoHeader { .. }
            | Self::Header { .. }
            | Self::Shape { .. }
            | Self::Slice { .. }
            | Self::Conflict { .. }
            | Self::Overlap { .. }
            | Self::SliceData { .. }
            | Self::TableDefect { .. }
            | Self::NoVersions { .. } => ErrorKind::Corrupt,
        }
    }

    /// Returns the status code that TensorFlow gives for the same files.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::NoFiles { .. } | Self::TensorNotFound { .. } => StatusCode::NotFound,
            Self::Table { source, .. } => source.status(),
            Self::NoHeader { .. }
            | Self::Header { .. }
            | Self::Conflict { .. }
            | Self::Overlap { .. } => StatusCode::Internal,
            Self::Version { .. }
            | Self::Pattern { .. }
            | Self::Shape { .. }
            | Self::SlicesMissing { .. }
            | Self::SliceData { .. } => StatusCode::InvalidArgument,
            Self::Slice { source, .. } => source.status(),
            Self::Unsupported { .. } => StatusCode::Unimplemented,
            Self::TableDefect { .. } | Self::NoVersions { .. } => StatusCode::DataLoss,
            Self::Io { source, .. } => StatusCode::of_io(source),
        }
    }
}
