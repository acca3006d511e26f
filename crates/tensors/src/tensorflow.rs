//! Opens TensorFlow's checkpoints by prefix, index, folder or pattern.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serdes_checkpoints::{
    checkpoint_state::state_in,
    patterns::{is_pattern, matching},
    tensor_bundle::{index_path, prefix_of_data, prefix_of_index},
};
use serdes_files::{Files as _, ReadAt, Tree as _};

use super::{
    Error, Source,
    bundle::BundleSource,
    checkpoint_state,
    checkpoint_v1::V1Source,
    form::{Form, unknown},
};
use crate::storage::Storage;

type Opened = Result<Box<dyn Source>, Error>;

/// Opens the V2 checkpoint with this prefix, index or model folder; `None` if the path is none of
/// these.
pub(super) fn open_bundle(storage: &Storage, path: &Path) -> Option<Opened> {
    prefix_of(storage, path).map(|prefix| open_prefix(storage, &prefix))
}

fn prefix_of(storage: &Storage, path: &Path) -> Option<PathBuf> {
    if let Some(prefix) = prefix_of_index(path) {
        return Some(prefix);
    }
    let mut index = path.as_os_str().to_owned();
    index.push(".index");
    if storage.look(Path::new(&index)).is_ok() {
        return Some(path.to_owned());
    }
    const MESSAGES: [&str; 2] = ["saved_model.pb", "saved_model.pbtxt"];
    if !MESSAGES.iter().any(|name| storage.look(&path.join(name)).is_ok()) {
        return None;
    }
    let prefix = path.join("variables").join("variables");
    storage.look(&prefix.with_extension("index")).is_ok().then_some(prefix)
}

fn open_prefix(storage: &Storage, prefix: &Path) -> Opened {
    Ok(Box::new(BundleSource::open(storage, prefix)?))
}

/// Opens the newest checkpoint of a folder, named in its file `checkpoint`, if the path may be a
/// folder, or the files of a V1 checkpoint that match a pattern. For a data file, the error names
/// the prefix to use. `None` for any other path.
pub(super) fn open_otherwise(
    storage: &Storage,
    path: &Path,
    may_be_folder: bool,
) -> Option<Opened> {
    if let Some(prefix) = prefix_of_data(path) {
        return of_data_file(storage, path, &prefix).map(Err);
    }
    if may_be_folder && let Some(list) = state_in(storage, path) {
        let file = storage.open(&list);
        let file = file.map_err(|error| Error::io("open", Path::new(&storage.name(&list)), error));
        return Some(file.and_then(|file| checkpoint_state::open(storage, &list, &file)));
    }
    let is_v1 = is_pattern(path)
        && storage.look(path).is_err()
        && matching(storage, path).is_some_and(|files| !files.is_empty());
    is_v1.then(|| Ok(Box::new(V1Source::open(storage, path)?) as Box<dyn Source>))
}

/// Returns the error for a file that has the name of a checkpoint's data file; `None` if the file
/// holds tensors itself, or does not exist.
fn of_data_file(storage: &Storage, path: &Path, prefix: &Path) -> Option<Error> {
    let (shown, name) = (storage.name(path), storage.name(prefix));
    if storage.has_file(&index_path(prefix)) {
        let reason = format!("is a data file of a checkpoint; name the prefix of that: {name}");
        return Some(unknown(Path::new(&shown), &reason));
    }
    let file = storage.open(path).ok()?;
    if Form::of_content(&file).ok()?.is_some() {
        return None;
    }
    let reason = format!(
        "is a data file of the checkpoint {name}, whose index {name}.index is not there; copy all files of the checkpoint, and \
         name the prefix: {name}"
    );
    Some(unknown(Path::new(&shown), &reason))
}

/// Opens the newest checkpoint in the list at a path.
pub(super) fn open_list(storage: &Storage, path: &Path, file: &Arc<dyn ReadAt>) -> Opened {
    checkpoint_state::open(storage, path, file)
}

/// Opens a V1 checkpoint of one file.
pub(super) fn open_v1(source: Arc<dyn ReadAt>, path: &Path) -> Opened {
    Ok(Box::new(V1Source::of_file(source, path)?))
}
