//! Finding the `checkpoint` file of a folder, and the checkpoints that it names.

use std::path::{Path, PathBuf};

use serdes_files::{Tree, read_at::read_up_to};

use super::FILE_NAME;
use crate::{
    patterns::{is_pattern, matching},
    tensor_bundle::index_path,
};

/// Returns true if a file that begins with these bytes is a CheckpointState in text form: one of
/// its fields with its value, after comments. A value of YAML has no quotes.
#[doc(hidden)]
pub fn begins_like_state(head: &[u8]) -> bool {
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

/// Returns the file in a folder that names the newest checkpoint in it, if there is one.
pub fn state_in(tree: &dyn Tree, folder: &Path) -> Option<PathBuf> {
    let path = folder.join(FILE_NAME);
    if !tree.has_file(&path) {
        return None;
    }
    let mut head = [0; 1024];
    let file = tree.open(&path).ok()?;
    let head = read_up_to(&file, &mut head, 0).ok()?;
    begins_like_state(head).then_some(path)
}

/// Resolves a prefix that a file in `folder` names; `None` if the prefix leads from a URL to the
/// file system.
pub fn location(tree: &dyn Tree, folder: &Path, prefix: &str) -> Option<PathBuf> {
    // TensorFlow takes what looks like a URL for a file name.
    let is_bare = folder.as_os_str().is_empty() && prefix.contains("://");
    let path = if is_bare { Path::new(".").join(prefix) } else { folder.join(prefix) };
    (tree.is_of_system(folder) || !tree.is_of_system(&path)).then_some(path)
}

/// The format of a checkpoint that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A V2 checkpoint: the index exists.
    Bundle,
    /// A V1 checkpoint: a file exists, or several files match.
    V1,
}

/// Returns the format of the checkpoint at a prefix; `None` if there is none.
pub fn find(tree: &dyn Tree, prefix: &Path) -> Option<Found> {
    if tree.has_file(&index_path(prefix)) {
        return Some(Found::Bundle);
    }
    let matches =
        || is_pattern(prefix) && matching(tree, prefix).is_some_and(|all| !all.is_empty());
    (tree.has_file(prefix) || matches()).then_some(Found::V1)
}

/// Returns true if `tf.train.latest_checkpoint` finds the checkpoint at a prefix. It treats the
/// prefix as a pattern, so it finds none in a folder named `run[1]`.
#[doc(hidden)]
pub fn is_matched(tree: &dyn Tree, prefix: &Path) -> bool {
    let is_found = |path: &Path| match is_pattern(path) {
        true => matching(tree, path).is_some_and(|found| !found.is_empty()),
        false => tree.has_file(path),
    };
    is_found(&index_path(prefix)) || is_found(prefix)
}
