//! TensorFlow's file `checkpoint` as a source: the newest checkpoint that it names.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serdes_checkpoints::checkpoint_state::{CheckpointState, Found, find, location, prefixes_in};
use serdes_files::{ReadAt, Tree as _};

use super::{Error, Source, bundle::BundleSource, checkpoint_v1::V1Source};
use crate::storage::Storage;

/// Maximum number of prefixes that a message lists.
const LISTED: usize = 10;

/// Opens the newest checkpoint named in the file at a path.
///
/// # Errors
/// If the file names none, the checkpoint is missing (the message lists the existing prefixes), or
/// it is damaged.
pub(super) fn open(
    storage: &Storage,
    path: &Path,
    file: &Arc<dyn ReadAt>,
) -> Result<Box<dyn Source>, Error> {
    let folder = path.parent().unwrap_or(path);
    let state = CheckpointState::read(&**file);
    let state = state.map_err(|error| refused(storage, path, folder, &error.to_string()))?;
    let prefix = location(storage, folder, &state.newest);
    let found = prefix.and_then(|prefix| find(storage, &prefix).map(|found| (found, prefix)));
    match found {
        Some((Found::Bundle, prefix)) => Ok(Box::new(BundleSource::open(storage, &prefix)?)),
        Some((Found::V1, prefix)) => Ok(Box::new(V1Source::open(storage, &prefix)?)),
        None => {
            let reason =
                format!("the newest checkpoint that it names, {:?}, is not there", state.newest);
            Err(refused(storage, path, folder, &reason))
        }
    }
}

fn refused(storage: &Storage, path: &Path, folder: &Path, reason: &str) -> Error {
    let prefixes = prefixes_in(storage, folder);
    let names: Vec<_> = prefixes.iter().take(LISTED).map(|prefix| storage.name(prefix)).collect();
    let advice = match prefixes.len().checked_sub(LISTED) {
        _ if prefixes.is_empty() => "name the prefix of a checkpoint".to_owned(),
        Some(more @ 1..) => format!("name a prefix: {}, or one of {more} more", names.join(", ")),
        _ => format!("name a prefix: {}", names.join(", ")),
    };
    Error::unsupported(&PathBuf::from(storage.name(path)), format!("{reason}; {advice}"))
}
