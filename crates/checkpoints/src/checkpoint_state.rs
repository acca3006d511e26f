//! TensorFlow's file `checkpoint`, a CheckpointState in text form: the prefixes of the checkpoints
//! in a folder, and which one is the newest.
//!
//! ```no_run
//! use serdes_checkpoints::checkpoint_state::CheckpointState;
//!
//! let state = CheckpointState::read(&std::fs::read("training/checkpoint")?)?;
//! println!("training/{}", state.newest);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Interprets the file as `tf.train.latest_checkpoint` of TensorFlow 2.21 does. Does not depend on
//! the checkpoints or on verdicts.

mod search;

use std::{
    collections::HashSet,
    io,
    path::{Path, PathBuf},
};

use serdes_files::{ReadAt, Tree};
use serdes_graph_format::{
    scan::{Field, MessageId, Piece, Visitor},
    schema::{CHECKPOINT_STATE, fields::checkpoint_state as fields},
    text::{self, ScanError, TextError},
};

pub use self::search::{Found, begins_like_state, find, is_matched, location, state_in};
use super::{
    ErrorKind,
    tensor_bundle::{prefix_of_data, prefix_of_index},
};

/// The name that TensorFlow gives the file, unless a program asks for another one.
pub const FILE_NAME: &str = "checkpoint";

/// Limit on the length of a file, in bytes: enough for some 100,000 checkpoints.
const LONGEST: u64 = 16 << 20;

/// The contents of a CheckpointState file.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CheckpointState {
    /// The prefix of the newest checkpoint, as the file has it: relative to the folder of the file,
    /// or absolute. Never empty.
    pub newest: String,
    /// The prefixes of all checkpoints that are kept, oldest first.
    pub all: Vec<String>,
    /// The time at which each checkpoint in `all` was saved, in seconds since 1970 (UTC); empty if
    /// written by an older release.
    pub timestamps: Vec<f64>,
    /// The time at which the last checkpoint was saved that is preserved indefinitely.
    pub last_preserved: Option<f64>,
}

/// The error of a `checkpoint` file in which TensorFlow finds no newest checkpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointStateError {
    /// The file is not the text form of the message.
    #[error("this is not the text form of a CheckpointState, and TensorFlow ignores it: {0}")]
    Text(#[from] TextError),
    /// The file does not name the newest checkpoint.
    #[error("the file has no model_checkpoint_path, and TensorFlow raises ValueError")]
    NoNewest,
    /// The file is longer than any real one.
    #[error("the file has {size} bytes, and at most {LONGEST} are read")]
    TooLong {
        /// Length of the file in bytes.
        size: u64,
    },
    /// The system could not read the file.
    #[error("cannot read the file: {0}")]
    Io(#[from] io::Error),
}

impl CheckpointStateError {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Text(_) | Self::NoNewest => ErrorKind::Corrupt,
            Self::TooLong { .. } => ErrorKind::Limit,
            Self::Io(error) => ErrorKind::of_io(error),
        }
    }
}

impl From<ScanError> for CheckpointStateError {
    fn from(error: ScanError) -> Self {
        match error {
            ScanError::Text(error) => Self::Text(error),
            ScanError::Io(error) => Self::Io(error),
        }
    }
}

impl CheckpointState {
    /// Reads the file as `tf.train.get_checkpoint_state` does: if a field is given several times,
    /// the last value counts.
    ///
    /// # Errors
    /// [`CheckpointStateError`] if TensorFlow finds no newest checkpoint in it, or it cannot be read.
    pub fn read(source: &dyn ReadAt) -> Result<Self, CheckpointStateError> {
        let size = source.size()?;
        if size > LONGEST {
            return Err(CheckpointStateError::TooLong { size });
        }
        let mut collected = Collected::default();
        text::merge(source, CHECKPOINT_STATE, &mut collected)?;
        let Collected(state) = collected;
        if state.newest.is_empty() {
            return Err(CheckpointStateError::NoNewest);
        }
        Ok(state)
    }
}

/// The fields of the message found so far.
#[derive(Default)]
struct Collected(CheckpointState);

impl Visitor for Collected {
    fn string(&mut self, _: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        let value = match field.number {
            fields::MODEL_CHECKPOINT_PATH => {
                if is.first {
                    self.0.newest.clear();
                }
                &mut self.0.newest
            }
            _ => {
                if is.first {
                    self.0.all.push(String::new());
                }
                let Some(value) = self.0.all.last_mut() else { return };
                value
            }
        };
        // The parser gives whole characters.
        value.push_str(std::str::from_utf8(piece).unwrap_or_default());
    }

    fn integer(&mut self, _: MessageId, field: &'static Field, bits: u64) {
        let seconds = f64::from_bits(bits);
        match field.number {
            fields::LAST_PRESERVED_TIMESTAMP => self.0.last_preserved = Some(seconds),
            _ => self.0.timestamps.push(seconds),
        }
    }
}

/// Returns the prefixes of the V2 checkpoints in a folder that have an index and data, sorted by
/// name; empty if the folder cannot be listed.
#[must_use]
pub fn prefixes_in(tree: &dyn Tree, folder: &Path) -> Vec<PathBuf> {
    let entries = tree.list(folder).unwrap_or_default();
    let with_data: HashSet<PathBuf> =
        entries.iter().filter_map(|entry| prefix_of_data(entry)).collect();
    let prefixes = entries.iter().filter_map(|entry| prefix_of_index(entry));
    let mut prefixes: Vec<PathBuf> = prefixes.filter(|prefix| with_data.contains(prefix)).collect();
    prefixes.sort_unstable();
    prefixes
}

#[cfg(test)]
mod tests;
