//! TensorFlow's file `checkpoint`, a CheckpointState in text form: the prefixes of the checkpoints
//! of a folder, and the newest of them.
//!
//! ```no_run
//! use serdes::artifact::checkpoint_state::CheckpointState;
//!
//! let state = CheckpointState::read(&std::fs::read("training/checkpoint")?)?;
//! println!("training/{}", state.newest);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Knows what `tf.train.latest_checkpoint` of TensorFlow 2.21 makes of the file. It must never read
//! a checkpoint, nor judge one.

use std::{
    collections::HashSet,
    io,
    path::{Path, PathBuf},
};

use super::{
    patterns::{is_pattern, matching},
    schema::{CHECKPOINT_STATE, fields::checkpoint_state as fields},
    tensor_bundle::{index_path, prefix_of_data},
    text::{self, ScanError, TextError},
};
use crate::{
    files::{ReadAt, Tree, read_at::read_up_to},
    wire::scan::{Field, MessageId, Piece, Visitor},
};

/// The name that TensorFlow gives the file, unless a program asks for another one.
pub const FILE_NAME: &str = "checkpoint";

/// Bytes of the longest file that is read: some 100,000 checkpoints.
const LONGEST: u64 = 16 << 20;

/// The contents of a CheckpointState file.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CheckpointState {
    /// The prefix of the newest checkpoint, as it is written: relative to the folder of the file, or
    /// absolute. Never empty.
    pub newest: String,
    /// The prefixes of all checkpoints that are kept, the oldest first.
    pub all: Vec<String>,
    /// When each of those was saved, in seconds since 1970 (UTC); older releases write none.
    pub timestamps: Vec<f64>,
    /// When the last one was saved that is kept whatever comes after it.
    pub last_preserved: Option<f64>,
}

/// Error of a file `checkpoint` from which TensorFlow learns no newest checkpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointStateError {
    /// It is not the text form of the message.
    #[error("this is not the text form of a CheckpointState, and TensorFlow ignores it: {0}")]
    Text(#[from] TextError),
    /// It does not say which checkpoint is the newest.
    #[error("the file has no model_checkpoint_path, and TensorFlow raises ValueError")]
    NoNewest,
    /// It is longer than any real one.
    #[error("the file has {size} bytes, and at most {LONGEST} are read")]
    TooLong {
        /// Its length.
        size: u64,
    },
    /// The system could not read it.
    #[error("cannot read the file: {0}")]
    Io(#[from] io::Error),
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
    /// Reads the file as `tf.train.get_checkpoint_state` does: of a field that is given several
    /// times the last value stands.
    ///
    /// # Errors
    /// [`CheckpointStateError`] if TensorFlow finds no newest checkpoint in it, or it cannot be read.
    pub fn read(source: &dyn ReadAt) -> Result<Self, CheckpointStateError> {
        let size = source.size()?;
        if size > LONGEST {
            return Err(CheckpointStateError::TooLong { size });
        }
        let mut state = Self::default();
        text::merge(source, CHECKPOINT_STATE, &mut state)?;
        if state.newest.is_empty() {
            return Err(CheckpointStateError::NoNewest);
        }
        Ok(state)
    }
}

impl Visitor for CheckpointState {
    fn string(&mut self, _: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        let value = match field.number {
            fields::MODEL_CHECKPOINT_PATH => {
                if is.first {
                    self.newest.clear();
                }
                &mut self.newest
            }
            _ => {
                if is.first {
                    self.all.push(String::new());
                }
                let Some(value) = self.all.last_mut() else { return };
                value
            }
        };
        // The parser gives whole characters.
        value.push_str(std::str::from_utf8(piece).unwrap_or_default());
    }

    fn integer(&mut self, _: MessageId, field: &'static Field, bits: u64) {
        let seconds = f64::from_bits(bits);
        match field.number {
            fields::LAST_PRESERVED_TIMESTAMP => self.last_preserved = Some(seconds),
            _ => self.timestamps.push(seconds),
        }
    }
}

/// True if a file that begins with these bytes is a CheckpointState in text form: one of its fields
/// with its value, after comments. A value of YAML has no quotes.
pub(crate) fn begins_like_state(head: &[u8]) -> bool {
    let mut rest = head.trim_ascii_start();
    while let Some(comment) = rest.strip_prefix(b"#") {
        let end = comment.iter().position(|byte| *byte == b'\n').unwrap_or(comment.len());
        rest = comment.get(end..).unwrap_or_default().trim_ascii_start();
    }
    let value = |field: &str| {
        let value = rest.strip_prefix(field.as_bytes())?.trim_ascii_start().strip_prefix(b":")?;
        value.trim_ascii_start().first().copied()
    };
    ["model_checkpoint_path", "all_model_checkpoint_paths"]
        .into_iter()
        .any(|field| matches!(value(field), Some(b'"' | b'\'' | b'[')))
}

/// The file in a folder that says which of the checkpoints there is the newest, if there is one.
pub(crate) fn state_in(tree: &dyn Tree, folder: &Path) -> Option<PathBuf> {
    let path = folder.join(FILE_NAME);
    if !tree.has_file(&path) {
        return None;
    }
    let mut head = [0; 1024];
    let file = tree.open(&path).ok()?;
    let head = read_up_to(&file, &mut head, 0).ok()?;
    begins_like_state(head).then_some(path)
}

/// Resolves a prefix that a file in `folder` names; `None` if it leads from an address to the file
/// system.
pub(crate) fn location(tree: &dyn Tree, folder: &Path, prefix: &str) -> Option<PathBuf> {
    // What looks like an address is the name of a file to TensorFlow.
    let is_bare = folder.as_os_str().is_empty() && prefix.contains("://");
    let path = if is_bare { Path::new(".").join(prefix) } else { folder.join(prefix) };
    (tree.is_of_system(folder) || !tree.is_of_system(&path)).then_some(path)
}

/// The format of a checkpoint that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A V2 checkpoint: its index is there.
    Bundle,
    /// A V1 checkpoint: a file is there, or files that match.
    V1,
}

/// The format of the checkpoint that is at a prefix; `None` if none is.
pub(crate) fn find(tree: &dyn Tree, prefix: &Path) -> Option<Found> {
    if tree.has_file(&index_path(prefix)) {
        return Some(Found::Bundle);
    }
    let matches =
        || is_pattern(prefix) && matching(tree, prefix).is_some_and(|all| !all.is_empty());
    (tree.has_file(prefix) || matches()).then_some(Found::V1)
}

/// True if `tf.train.latest_checkpoint` finds the checkpoint at a prefix, which it takes for a
/// pattern: in a folder named `run[1]` it finds none.
pub(crate) fn is_matched(tree: &dyn Tree, prefix: &Path) -> bool {
    let is_found = |path: &Path| match is_pattern(path) {
        true => matching(tree, path).is_some_and(|found| !found.is_empty()),
        false => tree.has_file(path),
    };
    is_found(&index_path(prefix)) || is_found(prefix)
}

/// The prefixes of the V2 checkpoints in a folder, of which index and data are there, in the order of
/// their names; none of a folder that cannot be listed.
#[must_use]
pub fn prefixes_in(tree: &dyn Tree, folder: &Path) -> Vec<PathBuf> {
    let entries = tree.list(folder).unwrap_or_default();
    let with_data: HashSet<PathBuf> =
        entries.iter().filter_map(|entry| prefix_of_data(entry)).collect();
    let prefix = |entry: &PathBuf| {
        let is_index = entry.extension().is_some_and(|extension| extension == "index");
        is_index.then(|| entry.with_extension(""))
    };
    let mut prefixes: Vec<PathBuf> =
        entries.iter().filter_map(prefix).filter(|prefix| with_data.contains(prefix)).collect();
    prefixes.sort_unstable();
    prefixes
}

#[cfg(test)]
mod tests;
