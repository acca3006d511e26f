//! Errors for paths without readable tensors: they name the kind of artifact, and the path to use
//! instead.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use serdes_check::{self as check, Kind};
use serdes_checkpoints::{
    checkpoint_state::prefixes_in,
    tensor_bundle::{index_path, prefix_of_data},
};
use serdes_device_state::files::{EntryKind, ReadAt, Tree};
use serdes_tensors::storage::Storage;

use crate::{
    failure::Failure,
    startup::INPUT,
    terminal::{Terminal, shown, shown_path},
};

/// Adds the kind of artifact to a failure of opening tensors, if it has no readable tensors.
pub(crate) fn explained(failure: Failure, storage: &Storage, path: &Path) -> Failure {
    let kind = kind(storage, path);
    if matches!(storage.look(path), Ok(EntryKind::Directory)) && kind.is_none() {
        return of_directory(failure, storage, path);
    }
    match kind {
        Some(kind) => of_kind(failure, kind, storage, path),
        None => failure,
    }
}

/// Returns the error for standard input without readable tensors; `None` if it may have some.
pub(crate) fn explained_input(
    failure: Failure,
    storage: &Storage,
    input: &Arc<dyn ReadAt>,
) -> Failure {
    match kind_of_input(input) {
        Some(kind) => of_kind(failure, kind, storage, Path::new(INPUT)),
        None => failure,
    }
}

fn of_kind(failure: Failure, kind: Kind, storage: &Storage, path: &Path) -> Failure {
    if !holds_words(kind) {
        return refused(kind, storage, path).unwrap_or(failure);
    }
    match advice(kind, storage, path) {
        Some(advice) => failure.with_hint(format_args!("it is {}: {advice}", kind.words())),
        None => failure,
    }
}

/// Returns the error for an artifact without readable tensors; `None` if it may have some.
pub(crate) fn foreign(storage: &Storage, path: &Path) -> Option<Failure> {
    refused(kind(storage, path)?, storage, path)
}

/// Returns the error for standard input without readable tensors; `None` if it may have some.
pub(crate) fn foreign_input(storage: &Storage, input: &Arc<dyn ReadAt>) -> Option<Failure> {
    refused(kind_of_input(input)?, storage, Path::new(INPUT))
}

fn refused(kind: Kind, storage: &Storage, path: &Path) -> Option<Failure> {
    if holds_tensors(kind) {
        return None;
    }
    let advice = advice(kind, storage, path)?;
    let name = storage.name(path);
    let failure = format_args!("{name} is {}, out of which no tensors are read", kind.words());
    Some(Failure::new(failure).with_hint(advice))
}

/// Adds the kind of artifact to a failure of opening a state, if it is not a state.
pub(crate) fn no_state(failure: Failure, storage: &Storage, path: &Path) -> Failure {
    let Some(kind) = kind(storage, path).filter(|kind| *kind != Kind::DeviceState) else {
        return failure;
    };
    let name = storage.name(path);
    if matches!(kind, Kind::GraphDef) {
        return failure;
    }
    let failure = Failure::new(format_args!(
        "{name} is {}, and only device states are restored",
        kind.words()
    ));
    let source = match artifact_of_data(storage, path) {
        Some(prefix) => prefix,
        None if holds_tensors(kind) || is_model(kind, storage, path) => path.to_owned(),
        None => {
            return match advice(kind, storage, path) {
                Some(advice) => failure.with_hint(advice),
                None => failure,
            };
        }
    };
    let source = storage.name(&source);
    failure.with_hint(format_args!("`serdes convert {source} STATE.sds` makes one of it"))
}

/// Notes the checkpoint prefix of a file that was given instead.
pub(crate) fn note_of_data(storage: &dyn Tree, path: &Path, terminal: &mut Terminal) {
    if let Some(prefix) = prefix_of_data(path).filter(|_| storage.has_file(path)) {
        terminal.note(format_args!(
            "{} is a data file of a checkpoint; its prefix is {}",
            shown(&storage.name(path)),
            shown(&storage.name(&prefix))
        ));
    }
}

/// Detects the kind of artifact at a path; `None` for a pipe or a device: opening it would block.
fn kind(storage: &Storage, path: &Path) -> Option<Kind> {
    if matches!(storage.look(path), Ok(EntryKind::Other)) {
        return None;
    }
    let tree: Arc<dyn Tree> = Arc::new(storage.clone());
    check::path_in(tree, path, None).ok().map(|artifact| artifact.kind())
}

/// Detects the kind of artifact in standard input, from its first bytes if they suffice.
fn kind_of_input(input: &Arc<dyn ReadAt>) -> Option<Kind> {
    let stream = FromStart { source: Arc::clone(input), position: 0 };
    check::reader(stream, None).ok().map(|artifact| artifact.kind())
}

/// Sequential reader of a random-access source.
struct FromStart {
    source: Arc<dyn ReadAt>,
    position: u64,
}

impl Read for FromStart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.source.size()?.saturating_sub(self.position);
        if rest == 0 {
            return Ok(0);
        }
        let count = self.source.read_at(buffer, self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

/// Returns true if artifacts of a kind have readable tensors.
fn holds_tensors(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Safetensors
            | Kind::Npy
            | Kind::Npz
            | Kind::DeviceState
            | Kind::Torch
            | Kind::TorchDistributed
            | Kind::ShardIndex
            | Kind::TensorBundle
            | Kind::CheckpointV1
            | Kind::CheckpointState
    )
}

/// Returns true if a path is the folder of a SavedModel with readable variables.
fn is_model(kind: Kind, storage: &Storage, path: &Path) -> bool {
    kind == Kind::SavedModel && matches!(storage.look(path), Ok(EntryKind::Directory))
}

/// Returns true if a kind is text, which may be named by mistake.
fn holds_words(kind: Kind) -> bool {
    matches!(kind, Kind::Html | Kind::Json | Kind::Text | Kind::Other)
}

/// Returns the advice for a kind without readable tensors; `None` for the others.
fn advice(kind: Kind, storage: &Storage, path: &Path) -> Option<String> {
    Some(match kind {
        Kind::GraphDef => return None,
        kind if holds_tensors(kind) => return None,
        Kind::SavedModel => {
            let folder = match path.extension() {
                Some(_) => path.parent().unwrap_or(path),
                None => path,
            };
            let variables = folder.join("variables").join("variables");
            format!("its variables are a checkpoint: name {}", variables.display())
        }
        Kind::MetaGraph => match artifact_of_data(storage, path) {
            Some(prefix) => {
                format!("name the prefix of the checkpoint beside it: {}", prefix.display())
            }
            None => "name the prefix of the checkpoint beside it".to_owned(),
        },
        Kind::Orbax => format!(
            "its arrays are read through tensorstore, from Python: `pip install 'serdes-ml[orbax]'`, then `python -c 'import \
             serdes_ml; serdes_ml.convert({:?}, \"STATE.sds\")'`",
            storage.name(path)
        ),
        Kind::Flax => {
            "read it with flax.serialization.msgpack_restore, and save its arrays as safetensors"
                .to_owned()
        }
        Kind::Html => {
            "look at the page, which may ask to log in; then fetch the file itself".to_owned()
        }
        Kind::Json | Kind::Text | Kind::Other => {
            "check that it is the file that was meant, and fetch that".to_owned()
        }
        Kind::Zip | Kind::Gzip => "unpack it, and name what is in it".to_owned(),
        Kind::Plugin => "`serdes plugin inspect` says what it exports".to_owned(),
        Kind::IfrtSerialized => {
            "it describes arrays and holds none; `serdes inspect` shows it".to_owned()
        }
        _ => "save its tensors as safetensors or npz with the program that it was made for"
            .to_owned(),
    })
}

/// Returns the checkpoint prefix of a file by its name: a data file, or the meta graph beside an
/// index.
fn artifact_of_data(storage: &Storage, path: &Path) -> Option<PathBuf> {
    prefix_of_data(path).or_else(|| {
        let prefix =
            path.extension().is_some_and(|is| is == "meta").then(|| path.with_extension(""))?;
        (storage.has_file(&index_path(&prefix)) || storage.has_file(&prefix)).then_some(prefix)
    })
}

/// Adds to a failure the paths to use in a directory: the index of shards, or the prefixes of
/// checkpoints.
fn of_directory(failure: Failure, storage: &Storage, directory: &Path) -> Failure {
    let Ok(mut entries) = storage.list(directory) else { return failure };
    entries.sort();
    let is_index = |path: &&PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        name.is_some_and(|name| name.contains(".index.") && name.ends_with(".json"))
    };
    if let Some(index) = entries.iter().find(is_index) {
        return failure.with_hint(format_args!("name the index in it: {}", index.display()));
    }
    let is_step = |path: &&PathBuf| storage.has_file(&path.join("_CHECKPOINT_METADATA"));
    let steps: Vec<_> = entries.iter().filter(is_step).map(|one| shown_path(one)).collect();
    if !steps.is_empty() {
        return failure.with_hint(format_args!(
            "name one of Orbax's checkpoints in it: {}",
            steps.join(", ")
        ));
    }
    let prefixes = prefixes_in(storage, directory);
    match prefixes.as_slice() {
        [] => failure.with_hint("name a file in it, or the prefix of a checkpoint"),
        [prefix] => failure
            .with_hint(format_args!("name the prefix of its checkpoint: {}", prefix.display())),
        [first, .., last] => failure.with_hint(format_args!(
            "name the prefix of one of its {} checkpoints: {} to {}",
            prefixes.len(),
            first.display(),
            last.display()
        )),
    }
}
