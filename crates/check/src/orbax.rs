//! Checkpoints of Orbax, which are directories: detection, and unfinished ones.

use std::path::Path;

use serdes_files::{Tree, read_at::read_up_to};

/// The part of a directory's name while its checkpoint is unfinished.
const UNFINISHED: &str = ".orbax-checkpoint-tmp";

/// The file with the metadata of a checkpoint.
const OF_ITSELF: &str = "_CHECKPOINT_METADATA";

/// Limit on the bytes of that file that are read.
const LONGEST: usize = 1 << 16;

/// Returns true if a directory is a checkpoint of Orbax, finished or not: it has a metadata file,
/// or a tree beside a database of arrays, or the name of a checkpoint being written.
pub(super) fn is_orbax(tree: &dyn Tree, directory: &Path) -> bool {
    let has = |name: &str| tree.look(&directory.join(name)).is_ok();
    has(OF_ITSELF)
        || (has("_METADATA")
            && ["manifest.ocdbt", "_sharding", "array_metadatas", "ocdbt.process_0", "d"]
                .into_iter()
                .any(has))
        || has("ocdbt.process_0")
        || has_aggregate(tree, directory)
        || is_named_unfinished(directory)
}

/// Returns true if a directory has the file in which Orbax before 0.5 and flax keep a tree: a map
/// of msgpack with the name of TensorFlow's list of checkpoints.
fn has_aggregate(tree: &dyn Tree, directory: &Path) -> bool {
    let Ok(file) = tree.open(&directory.join("checkpoint")) else { return false };
    let mut first = [0; 1];
    let first = read_up_to(&file, &mut first, 0).unwrap_or_default();
    matches!(first, [0x80..=0x8f | 0xde | 0xdf])
}

/// Returns the reason why a checkpoint is unfinished, as far as it is known; `None` for a finished
/// one.
pub(super) fn unfinished(tree: &dyn Tree, directory: &Path) -> Option<&'static str> {
    let has = |name: &str| tree.look(&directory.join(name)).is_ok();
    if is_named_unfinished(directory) {
        Some("its folder has the name of one that is being written")
    } else if !has(OF_ITSELF) && !has("_METADATA") {
        Some("neither _CHECKPOINT_METADATA nor _METADATA is there")
    } else if is_not_committed(tree, directory) {
        Some("its _CHECKPOINT_METADATA has no time of a commit")
    } else if !tree.is_of_system(directory) && !has("commit_success.txt") {
        Some("commit_success.txt, which is written last to object storage, is not there")
    } else {
        None
    }
}

fn is_named_unfinished(directory: &Path) -> bool {
    directory.file_name().is_some_and(|name| name.to_string_lossy().contains(UNFINISHED))
}

/// Returns true if a checkpoint records its start but not its end.
fn is_not_committed(tree: &dyn Tree, directory: &Path) -> bool {
    let Ok(file) = tree.open(&directory.join(OF_ITSELF)) else { return false };
    let mut bytes = vec![0; LONGEST];
    let Ok(text) = read_up_to(&file, &mut bytes, 0) else { return false };
    let Ok(object) = serde_json::from_slice::<serde_json::Value>(text) else { return false };
    object.get("commit_timestamp_nsecs").is_some_and(serde_json::Value::is_null)
}
