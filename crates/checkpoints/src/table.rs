//! The sorted table of strings (SSTable) that both of TensorFlow's checkpoint formats are stored
//! in: reading, writing, checking.
//!
//! Layout: data blocks, a metaindex block that is always empty, an index block, a footer of 48
//! bytes. A block holds entries with shared key prefixes, restart points, and a trailer with its
//! compression and its masked crc32c. The rules were taken from the behaviour of TensorFlow 2.21.
//!
//! Keys and values are bytes here. Does not depend on their meaning (bundle, V1 checkpoint).
//!
//! A reader holds the index block and one data block at a time. Defects in parts that TensorFlow
//! does not look at (the metaindex block, padding, order of the keys, bytes between the blocks) do
//! not fail an open here either; [`Table::verify_blocks`] reports them.
//!
//! Public for tools that inspect or repair the index of a checkpoint: a bundle gives access to
//! tensors only, so keys that it does not understand are visible only here.

mod block;
mod format;
mod reader;
mod writer;

#[cfg(test)]
mod tests;

use std::io;

pub use format::{BlockHandle, MAGIC};
pub use reader::{Cursor, Table, TableDefect};
pub use writer::{TableOptions, TableWriter};

use crate::{ErrorKind, StatusCode};

/// The reason why a table, or one of its blocks, cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The file is shorter than a footer.
    #[error(
        "the file has {len} bytes and a table has at least 48: it is cut off or is no table; take it from a whole copy"
    )]
    TooShort {
        /// Length of the file in bytes.
        len: u64,
    },
    /// The last eight bytes are not the magic number of a table.
    #[error(
        "the file ends in the magic number {found:#018x} and a table in 0xdb4775248b80fb57: it is cut off, has bytes added, or is no table"
    )]
    BadMagic {
        /// The last eight bytes of the file, as a number.
        found: u64,
    },
    /// A block handle in the footer cannot be decoded.
    #[error(
        "the footer's handle of the {which} block does not decode: the footer is damaged; take the file from a whole copy"
    )]
    BadFooterHandle {
        /// `metaindex` or `index`.
        which: &'static str,
    },
    /// A block handle in the index cannot be decoded.
    #[error(
        "entry {entry} of the index block holds no block handle: the file was written wrongly; write it again"
    )]
    BadIndexHandle {
        /// The entry of the index, counted from 0.
        entry: u64,
    },
    /// A block lies beyond the end of the file.
    #[error(
        "a block of {size} bytes is expected at offset {offset}, and the file has {len} bytes: it is cut off or its handle is damaged"
    )]
    OutOfRange {
        /// The start of the block, in bytes from the start of the file.
        offset: u64,
        /// Its size without the trailer, in bytes.
        size: u64,
        /// Length of the file in bytes.
        len: u64,
    },
    /// The checksum of a block does not match.
    #[error(
        "the block at offset {offset} has crc32c {computed:#010x} and {stored:#010x} is stored: its bytes changed after it was written; take the file from a whole copy"
    )]
    BlockChecksum {
        /// The start of the block, in bytes from the start of the file.
        offset: u64,
        /// The checksum that the trailer holds, unmasked.
        stored: u32,
        /// The checksum of the bytes that were read.
        computed: u32,
    },
    /// A block has an unknown compression type.
    #[error(
        "the block at offset {offset} has type {found}, and 0 (plain) and 1 (snappy) are known"
    )]
    BlockType {
        /// The start of the block, in bytes from the start of the file.
        offset: u64,
        /// The type byte.
        found: u8,
    },
    /// A block is marked as compressed and cannot be decompressed.
    #[error(
        "the block at offset {offset} does not decompress as snappy ({reason}): it was written wrongly; write it again"
    )]
    BlockCompression {
        /// The start of the block, in bytes from the start of the file.
        offset: u64,
        /// The reason why it cannot be decompressed.
        reason: String,
    },
    /// A block whose checksum matches has malformed contents.
    #[error(
        "the block at offset {offset} is malformed ({reason}): it was written wrongly; write it again"
    )]
    BlockContents {
        /// The start of the block, in bytes from the start of the file.
        offset: u64,
        /// The defect of the block.
        reason: &'static str,
    },
    /// Following the index would read far more than the file holds, because blocks overlap.
    #[error(
        "the index leads to more than {limit} bytes of blocks in a file of {len} bytes: its blocks overlap, and it is not read further"
    )]
    Overlapping {
        /// Limit on the bytes that are read.
        limit: u64,
        /// Length of the file in bytes.
        len: u64,
    },
    /// The system could not read or write.
    #[error("the file cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A writer was given a key that is not above the one before.
    #[error(
        "key {key:?} is not above {previous:?}, the one before it: add keys in ascending order of their bytes"
    )]
    KeyOrder {
        /// The key that was to be added, lossily decoded.
        key: String,
        /// The key before it, lossily decoded.
        previous: String,
    },
    /// A writer was given a key or a value that no block can hold.
    #[error("an entry of {len} bytes was to be added, and an entry holds less than 4 GiB")]
    EntryTooLarge {
        /// Length of the key or value in bytes.
        len: usize,
    },
}

impl TableError {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Overlapping { .. } => ErrorKind::Limit,
            Self::Io(error) => ErrorKind::of_io(error),
            Self::KeyOrder { .. } | Self::EntryTooLarge { .. } => ErrorKind::InvalidInput,
            _ => ErrorKind::Corrupt,
        }
    }

    /// Returns the status code that TensorFlow gives for the same file.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::TooShort { .. }
            | Self::BadMagic { .. }
            | Self::BadFooterHandle { .. }
            | Self::BadIndexHandle { .. }
            | Self::BlockChecksum { .. }
            | Self::BlockType { .. }
            | Self::BlockCompression { .. }
            | Self::BlockContents { .. } => StatusCode::DataLoss,
            Self::OutOfRange { .. } => StatusCode::OutOfRange,
            Self::Overlapping { .. } => StatusCode::ResourceExhausted,
            Self::Io(error) => StatusCode::of_io(error),
            Self::KeyOrder { .. } | Self::EntryTooLarge { .. } => StatusCode::InvalidArgument,
        }
    }
}
