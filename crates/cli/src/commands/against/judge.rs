//! The verdicts of all releases on the artifacts at a path.

use std::{path::Path, sync::Arc};

use serdes_check::{self as check, Verdicts};
use serdes_device_state::files::Tree;
use serdes_tensors::storage::Storage;

use crate::{
    arguments::CheckArguments,
    commands::{
        consumers::{Consumers, options},
        walk_options::{excluded, named_kind},
    },
    failure::Failure,
};

/// Returns the verdicts on each artifact at a path; none if a directory has no artifact.
pub(super) fn judge(
    path: &Path,
    arguments: &CheckArguments,
    consumers: &Consumers,
) -> Result<Vec<Verdicts>, Failure> {
    let mut options = options(arguments)?;
    let (kind, message) = named_kind(arguments.kind.as_deref())?;
    if let Some(message) = message {
        options = options.with_message(message);
    }
    let excluded = excluded(&arguments.exclude)?;
    let storage: Arc<dyn Tree> = Arc::new(Storage::anywhere());
    let mut walk =
        check::walk(path, &options).in_tree(storage).for_consumers(consumers.all.iter().cloned());
    if let Some(kind) = kind {
        walk = walk.of_kind(kind);
    }
    if let Some(excluded) = &excluded {
        walk = walk.without(|path, is_directory| excluded.matched(path, is_directory).is_ignore());
    }
    let mut found = Vec::new();
    while let Some(verdicts) = walk.next_artifact() {
        let verdicts = verdicts.map_err(Failure::of)?;
        // A directory without artifacts is not a verdict on one.
        if !walk.is_of_directory() || walk.found_any() {
            found.push(verdicts);
        }
    }
    Ok(found)
}
