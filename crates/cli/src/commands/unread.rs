//! Errors about paths that a command reads no tensors from: the kind of artifact, and what to name
//! in its place.

use std::{path::Path, sync::Arc};

use serdes::{
    check::{self, Kind},
    files::{EntryKind, Tree},
    storage::Storage,
};

use crate::failure::Failure;

/// The failure of opening tensors at a path, with the kind of artifact that is there, if it is one
/// that the readers of tensors were not made for.
pub(crate) fn explained(failure: Failure, storage: &Storage, path: &Path) -> Failure {
    if matches!(storage.look(path), Ok(EntryKind::Directory)) && kind(storage, path).is_none() {
        return of_directory(failure, storage, path);
    }
    foreign(storage, path).unwrap_or(failure)
}

/// Error about an artifact that holds no tensors that are read; `None` where it may.
pub(crate) fn foreign(storage: &Storage, path: &Path) -> Option<Failure> {
    let kind = kind(storage, path)?;
    let advice = advice(kind, path)?;
    let name = storage.name(path);
    let failure = format_args!("{name} is {}, out of which no tensors are read", kind.words());
    Some(Failure::new(failure).with_hint(advice))
}

/// The failure of opening a state at a path, with the kind of artifact that is there, if it is
/// another.
pub(crate) fn no_state(failure: Failure, storage: &Storage, path: &Path) -> Failure {
    let Some(kind) = kind(storage, path).filter(|kind| *kind != Kind::DeviceState) else {
        return failure;
    };
    let name = storage.name(path);
    if matches!(kind, Kind::GraphDef | Kind::Other) {
        return failure;
    }
    let failure = Failure::new(format_args!(
        "{name} is {}, and only device states are restored",
        kind.words()
    ));
    match advice(kind, path) {
        Some(advice) => failure.with_hint(advice),
        None => {
            failure.with_hint(format_args!("`serdes convert {name} STATE.sds` makes one of it"))
        }
    }
}

/// The kind of artifact at a path. A pipe or a device has none: opening it would wait for a writer.
fn kind(storage: &Storage, path: &Path) -> Option<Kind> {
    if matches!(storage.look(path), Ok(EntryKind::Other)) {
        return None;
    }
    let tree: Arc<dyn Tree> = Arc::new(storage.clone());
    check::path_in(tree, path, None).ok().map(|artifact| artifact.kind())
}

/// Advice for a kind that holds no tensors that are read; `None` for the others.
fn advice(kind: Kind, path: &Path) -> Option<String> {
    let folder = match path.extension() {
        Some(_) => path.parent().unwrap_or(path),
        None => path,
    };
    Some(match kind {
        Kind::Safetensors
        | Kind::Npy
        | Kind::Npz
        | Kind::DeviceState
        | Kind::Torch
        | Kind::ShardIndex => return None,
        Kind::TensorBundle => match prefix_of_data(path) {
            Some(prefix) => format!("name the prefix of the checkpoint: {prefix}"),
            None => return None,
        },
        Kind::SavedModel => {
            let variables = folder.join("variables").join("variables");
            format!("its variables are a checkpoint: name {}", variables.display())
        }
        Kind::MetaGraph => "name the prefix of the checkpoint beside it".to_owned(),
        Kind::CheckpointV1 => {
            "`serdes inspect` lists its tensors; save it with TensorFlow as a V2 checkpoint"
                .to_owned()
        }
        Kind::Orbax => "serdes_ml.convert reads it, from Python".to_owned(),
        Kind::Flax => {
            "read it with flax.serialization.msgpack_restore, and save its arrays as safetensors"
                .to_owned()
        }
        Kind::GraphDef | Kind::Text | Kind::Json | Kind::Html | Kind::Other => return None,
        Kind::Zip | Kind::Gzip => "unpack it, and name what is in it".to_owned(),
        _ => "save its tensors as safetensors or npz with the program that it was made for"
            .to_owned(),
    })
}

/// The prefix of the checkpoint of which a path names a file of data.
fn prefix_of_data(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    text.rsplit_once(".data-").map(|(prefix, _)| prefix.to_owned())
}

/// The failure with the index of shards in a directory, if there is one.
fn of_directory(failure: Failure, storage: &Storage, directory: &Path) -> Failure {
    let Ok(mut entries) = storage.list(directory) else { return failure };
    entries.sort();
    let is_index = |path: &&std::path::PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        name.is_some_and(|name| name.contains(".index.") && name.ends_with(".json"))
    };
    match entries.iter().find(is_index) {
        Some(index) => failure.with_hint(format_args!("name the index in it: {}", index.display())),
        None => failure.with_hint("name a file in it, or the prefix of a checkpoint"),
    }
}
