//! Errors of bundles, with the status that TensorFlow gives for each.

use std::{io, path::PathBuf};

use serdes_version_registry::Rejection;
use serdes_wire::Malformed;

use super::messages::ShapeError;
use crate::{
    ErrorKind, StatusCode, kind_of_rejection,
    slice::{SliceError, TensorSlice},
    table::{TableDefect, TableError},
};

/// The reason why a bundle cannot be opened or written, or one of its tensors not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// There is no index file.
    #[error("{} does not exist: a checkpoint is named by its prefix, the path of its index without \".index\"", path.display())]
    IndexMissing {
        /// The path that was tried.
        path: PathBuf,
    },
    /// The index is not a table, or is a damaged one.
    #[error("{}: {source}", path.display())]
    Index {
        /// Path of the index.
        path: PathBuf,
        /// The error of the table.
        source: TableError,
    },
    /// The block that should hold the header cannot be read.
    #[error("{}: the header cannot be reached: {source}", path.display())]
    HeaderBlock {
        /// Path of the index.
        path: PathBuf,
        /// The error of the block.
        source: TableError,
    },
    /// The table has no entries.
    #[error("{}: the index is empty, and the least it holds is a header: write the checkpoint again", path.display())]
    NoHeader {
        /// Path of the index.
        path: PathBuf,
    },
    /// The header is not a BundleHeaderProto.
    #[error("{}: the header does not parse ({source}): the index was written wrongly; write the checkpoint again", path.display())]
    Header {
        /// Path of the index.
        path: PathBuf,
        /// The error of the message.
        source: Malformed,
    },
    /// The versions in the header do not allow this consumer to read the bundle.
    #[error("{}: {source}", path.display())]
    Version {
        /// Path of the index.
        path: PathBuf,
        /// The condition that failed.
        source: Rejection,
    },
    /// No tensor has that name.
    #[error("there is no tensor {name:?} in the index, or a search does not find it")]
    TensorNotFound {
        /// The name that was asked for, or a description of the piece.
        name: String,
    },
    /// The index cannot be searched for a tensor.
    #[error("tensor {name:?} cannot be looked up: {source}")]
    Lookup {
        /// The name.
        name: String,
        /// The error of the table.
        source: TableError,
    },
    /// An entry is not a BundleEntryProto.
    #[error(
        "the entry of tensor {name:?} does not parse ({source}): the index was written wrongly; write the checkpoint again"
    )]
    Entry {
        /// The name.
        name: String,
        /// The error of the message.
        source: Malformed,
    },
    /// An entry has an impossible shape.
    #[error(
        "tensor {name:?} has no possible shape ({source}): the index was written wrongly; write the checkpoint again"
    )]
    Shape {
        /// The name.
        name: String,
        /// The error of the shape.
        source: ShapeError,
    },
    /// An entry has an unknown element type.
    #[error(
        "tensor {name:?} has {found}, which is no type of TensorFlow 2.21: a newer release may have written it; read it with that one"
    )]
    DataType {
        /// The name.
        name: String,
        /// The number, described.
        found: String,
    },
    /// The caller wants another type than the tensor has.
    #[error("tensor {name:?} is {found}, and {expected} was asked for")]
    DataTypeMismatch {
        /// The name.
        name: String,
        /// The type in the checkpoint.
        found: String,
        /// The type that was asked for.
        expected: String,
    },
    /// The tensor is of a type that cannot be read this way.
    #[error("tensor {name:?} is {found}: {reason}")]
    Unsupported {
        /// The name.
        name: String,
        /// Its type.
        found: String,
        /// The reason why it is not supported.
        reason: &'static str,
    },
    /// The size in an entry does not match its tensor.
    #[error(
        "tensor {name:?} is stored in {stored} bytes, and its type and shape need {expected}: the index was written wrongly; write the checkpoint again"
    )]
    EntrySize {
        /// The name.
        name: String,
        /// Number of bytes according to the entry.
        stored: i64,
        /// Bytes that the type and shape need; for strings the smallest number possible.
        expected: u64,
    },
    /// A tensor has a negative offset.
    #[error(
        "tensor {name:?} is said to start at byte {offset} of its file: the index was written wrongly; write the checkpoint again"
    )]
    EntryOffset {
        /// The name.
        name: String,
        /// The offset in the entry.
        offset: i64,
    },
    /// A data file does not exist.
    #[error("tensor {name:?} is in {}, which does not exist: copy all files of the checkpoint", path.display())]
    ShardMissing {
        /// The name.
        name: String,
        /// The expected file.
        path: PathBuf,
    },
    /// A data file ends before the tensor does.
    #[error("tensor {name:?} needs bytes {offset}..{end} of {}, which has {len}: the file is cut off; take it from a whole copy", path.display())]
    ShardShort {
        /// The name.
        name: String,
        /// The data file.
        path: PathBuf,
        /// First byte that is needed.
        offset: u64,
        /// The byte after the last that is needed.
        end: u64,
        /// Bytes that the file has.
        len: u64,
    },
    /// The checksum of a tensor's bytes does not match.
    #[error(
        "tensor {name:?} has crc32c {computed:#010x} and {stored:#010x} is stored (shard {shard}, {size} bytes at {offset}): its bytes changed after they were written; take the file from a whole copy"
    )]
    TensorChecksum {
        /// The name.
        name: String,
        /// The data file, by number.
        shard: i32,
        /// The start of the tensor, in bytes.
        offset: i64,
        /// Its stored size in bytes.
        size: i64,
        /// The checksum in the index, unmasked.
        stored: u32,
        /// The checksum of the bytes that were read.
        computed: u32,
    },
    /// The checksum of the string lengths of a tensor does not match.
    #[error(
        "the string lengths of tensor {name:?} have crc32c {computed:#010x} and {stored:#010x} is stored: they changed after they were written, or the shape is not theirs; take the files from a whole copy"
    )]
    StringLengthChecksum {
        /// The name.
        name: String,
        /// The checksum in the data file, unmasked.
        stored: u32,
        /// The checksum of the lengths that were read.
        computed: u32,
    },
    /// The strings or variants of a tensor do not fit into the size of its entry.
    #[error(
        "the elements of tensor {name:?} are longer than the {size} bytes that its entry gives them: the files do not belong together or changed"
    )]
    StringLengths {
        /// The name.
        name: String,
        /// Number of bytes according to the entry.
        size: i64,
    },
    /// A length is not a varint of at most ten bytes.
    #[error(
        "a length in tensor {name:?} does not decode: the data file changed after it was written; take it from a whole copy"
    )]
    StringLength {
        /// The name.
        name: String,
    },
    /// A slice is malformed.
    #[error("a slice of tensor {name:?} makes no sense: {source}")]
    Slice {
        /// The name.
        name: String,
        /// The error of the slice.
        source: SliceError,
    },
    /// The pieces of a partitioned tensor do not cover it.
    #[error(
        "the {pieces} pieces of tensor {name:?} do not cover {wanted}: {covered} of {needed} elements are there; save all partitions again"
    )]
    SlicesMissing {
        /// The name.
        name: String,
        /// The slice that was requested.
        wanted: TensorSlice,
        /// Number of pieces.
        pieces: usize,
        /// Elements that the pieces cover.
        covered: u64,
        /// Number of elements requested.
        needed: u64,
    },
    /// Two pieces of a partitioned tensor overlap.
    #[error(
        "the pieces of tensor {name:?} overlap: the index was written wrongly; save all partitions again"
    )]
    SlicesOverlap {
        /// The name.
        name: String,
    },
    /// A piece of a partitioned tensor does not have the shape or type that its place requires.
    #[error(
        "piece {slice} of tensor {name:?} is {found}, and its place needs {expected}: the index was written wrongly; save all partitions again"
    )]
    PieceMismatch {
        /// The name.
        name: String,
        /// The slice of the piece.
        slice: TensorSlice,
        /// Type and shape of the piece.
        found: String,
        /// Type and shape that its place requires.
        expected: String,
    },
    /// Reading every tensor would read far more than the files hold, because tensors overlap.
    #[error(
        "the tensors together have {bytes} bytes and the data files {len}: they overlap, and the rest is not read"
    )]
    Overlapping {
        /// Bytes of all tensors.
        bytes: u64,
        /// Bytes of all data files.
        len: u64,
    },
    /// A defect of the table that does not keep it from being read.
    #[error("{}: {defect}", path.display())]
    TableDefect {
        /// Path of the index.
        path: PathBuf,
        /// The defect of the table.
        defect: TableDefect,
    },
    /// The names in the index take more memory than an index of its size should need.
    #[error(
        "the names in the index take more than {limit} bytes, far more than the index itself: it is not read further"
    )]
    TooManyNames {
        /// The limit in bytes.
        limit: u64,
    },
    /// TensorFlow cannot join the pieces of a tensor of this type; this crate can.
    #[error(
        "tensor {name:?} is {found} and stored in {pieces} pieces: TensorFlow 2.21 restores each of them alone, but does not join pieces of that type"
    )]
    NotJoined {
        /// The name.
        name: String,
        /// Its type.
        found: String,
        /// Number of pieces.
        pieces: usize,
    },
    /// The header is missing, and the entry of a tensor was read as the header.
    #[error("{}: there is no header; TensorFlow takes the entry of {name:?} for it, so that this tensor is not listed; write the checkpoint again", path.display())]
    HeaderMissing {
        /// Path of the index.
        path: PathBuf,
        /// The first tensor.
        name: String,
    },
    /// The header has no versions.
    #[error("{}: the header has no versions, and counts as version 0", path.display())]
    NoVersions {
        /// Path of the index.
        path: PathBuf,
    },
    /// A piece that no tensor refers to.
    #[error("the index holds a piece {key:?} that no tensor refers to")]
    OrphanPiece {
        /// The key, escaped.
        key: String,
    },
    /// The system could not read or write.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A writer was given a tensor that a bundle cannot hold.
    #[error("tensor {name:?} cannot be written: {reason}")]
    Unwritable {
        /// The name.
        name: String,
        /// The reason.
        reason: String,
    },
}

impl BundleError {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::IndexMissing { .. }
            | Self::TensorNotFound { .. }
            | Self::ShardMissing { .. }
            | Self::SlicesMissing { .. } => ErrorKind::NotFound,
            Self::Index { source, .. }
            | Self::HeaderBlock { source, .. }
            | Self::Lookup { source, .. } => source.kind(),
            Self::Version { source, .. } => kind_of_rejection(source),
            // No known release has the type: a newer one may.
            Self::DataType { .. } => ErrorKind::TooNew,
            Self::DataTypeMismatch { .. } | Self::Unwritable { .. } => ErrorKind::InvalidInput,
            Self::Unsupported { .. } | Self::NotJoined { .. } => ErrorKind::Unsupported,
            Self::Overlapping { .. } | Self::TooManyNames { .. } => ErrorKind::Limit,
            Self::Io { source, .. } => ErrorKind::of_io(source),
            Self::NoHeader { .. }
            | Self::Header { .. }
            | Self::Entry { .. }
            | Self::Shape { .. }
            | Self::EntrySize { .. }
            | Self::EntryOffset { .. }
            | Self::ShardShort { .. }
            | Self::TensorChecksum { .. }
            | Self::StringLengthChecksum { .. }
            | Self::StringLengths { .. }
            | Self::StringLength { .. }
            | Self::Slice { .. }
            | Self::SlicesOverlap { .. }
            | Self::PieceMismatch { .. }
            | Self::TableDefect { .. }
            | Self::HeaderMissing { .. }
            | Self::NoVersions { .. }
            | Self::OrphanPiece { .. } => ErrorKind::Corrupt,
        }
    }

    /// Returns the status code that TensorFlow gives for the same files.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::IndexMissing { .. }
            | Self::TensorNotFound { .. }
            | Self::Lookup { .. }
            | Self::ShardMissing { .. } => StatusCode::NotFound,
            Self::Index { source, .. } | Self::HeaderBlock { source, .. } => source.status(),
            Self::NoHeader { .. } | Self::SlicesOverlap { .. } => StatusCode::Internal,
            Self::Header { .. }
            | Self::Entry { .. }
            | Self::Shape { .. }
            | Self::EntrySize { .. }
            | Self::TensorChecksum { .. }
            | Self::StringLengthChecksum { .. }
            | Self::StringLengths { .. }
            | Self::PieceMismatch { .. }
            | Self::TableDefect { .. }
            | Self::HeaderMissing { .. }
            | Self::NoVersions { .. }
            | Self::OrphanPiece { .. } => StatusCode::DataLoss,
            Self::Version { .. }
            | Self::DataType { .. }
            | Self::DataTypeMismatch { .. }
            | Self::EntryOffset { .. }
            | Self::SlicesMissing { .. }
            | Self::NotJoined { .. }
            | Self::Unwritable { .. } => StatusCode::InvalidArgument,
            Self::Unsupported { .. } => StatusCode::Unimplemented,
            Self::ShardShort { .. } | Self::StringLength { .. } => StatusCode::OutOfRange,
            Self::Slice { source, .. } => source.status(),
            Self::Overlapping { .. } | Self::TooManyNames { .. } => StatusCode::ResourceExhausted,
            Self::Io { source, .. } => StatusCode::of_io(source),
        }
    }
}

impl From<BundleError> for io::Error {
    /// Converts the error for readers behind [`io::Read`]: the kind follows the status, and the
    /// error is the source.
    fn from(error: BundleError) -> Self {
        let kind = match error.status() {
            StatusCode::NotFound => io::ErrorKind::NotFound,
            StatusCode::OutOfRange => io::ErrorKind::UnexpectedEof,
            StatusCode::Unimplemented => io::ErrorKind::Unsupported,
            StatusCode::InvalidArgument => io::ErrorKind::InvalidInput,
            _ => io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}
