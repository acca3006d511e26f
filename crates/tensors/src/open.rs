//! Opens files of tensors by their format.

use std::{
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use serdes_device_state::Reader;
use serdes_files::{
    Files as _, ReadAt, Tree,
    read_at::{LONGEST_STREAM, spool},
};

use super::{
    Error, Source, folder,
    form::{Form, unknown},
    npy, npz, safetensors, sharded, state, tensorflow, torch,
};
use crate::storage::Storage;

/// Opens the tensors at `path`: safetensors, npy, npz, a device state, a PyTorch file, the index of
/// shards, the prefix or index of a TensorFlow V2 checkpoint, a V1 checkpoint, or the folder or
/// list of TensorFlow's checkpoints, of which the newest is opened. The format is detected from the
/// name, or else from the first bytes.
///
/// # Errors
/// If there is no such file, its format is unknown, or its header is damaged.
pub fn open(path: impl AsRef<Path>) -> Result<Box<dyn Source>, Error> {
    open_in(&Storage::system(), path)
}

/// Like [`open`], for a path of any storage.
///
/// # Errors
/// As [`open`].
pub fn open_in(storage: &Storage, path: impl AsRef<Path>) -> Result<Box<dyn Source>, Error> {
    let path = path.as_ref();
    let shown = PathBuf::from(storage.name(path));
    let system =
        storage.system_path(path).map_err(|error| Error::io("open", &shown, error))?.is_some();
    // An address with a known extension needs no request to check for a folder.
    let may_be = Form::of_name(path) == Form::TensorBundle || system;
    if let Some(folder) = folder::of_distributed(storage, path, may_be) {
        return folder::open_folder(Arc::new(storage.clone()), &folder);
    }
    let form = Form::of_name(path);
    if form == Form::TensorBundle
        && let Some(opened) = tensorflow::open_bundle(storage, path)
    {
        return opened;
    }
    if let Some(opened) = tensorflow::open_otherwise(storage, path, may_be) {
        return opened;
    }
    let file = storage.open(path).map_err(|error| Error::io("open", &shown, error))?;
    match form_of_file(&file, &shown, form)? {
        Form::CheckpointState => tensorflow::open_list(storage, path, &file),
        Form::ShardIndex => Ok(Box::new(sharded::ShardedSource::open(storage, path)?)),
        Form::DeviceState => {
            let reader = Reader::from_source_among(file, &shown, Arc::new(storage.clone()))?;
            Ok(Box::new(state::StateSource::new(&reader, &shown)?))
        }
        form => open_form(file, &shown, form),
    }
}

/// Opens one of the files that an index names: safetensors or a PyTorch file.
///
/// # Errors
/// As [`open`]; an error for every other format.
pub(super) fn open_shard(tree: &dyn Tree, path: &Path) -> Result<Box<dyn Source>, Error> {
    let shown = PathBuf::from(tree.name(path));
    let file = tree.open(path).map_err(|error| Error::io("open", &shown, error))?;
    let name = match Form::of_name(path) {
        form @ (Form::Safetensors | Form::Torch) => form,
        _ => Form::TensorBundle,
    };
    match form_of_file(&file, &shown, name)? {
        form @ (Form::Safetensors | Form::Torch) => open_form(file, &shown, form),
        form => {
            Err(unknown(&shown, &format!("is of the kind {form}; expected safetensors or torch")))
        }
    }
}

/// Opens tensors in any source of bytes; `path` is for messages, and names the tensor of an npy
/// file. They have this `form`, or else the one detected from the first bytes.
///
/// # Errors
/// As [`open`]; an error for a checkpoint, which is several files.
pub fn open_at(
    source: Arc<dyn ReadAt>,
    path: impl AsRef<Path>,
    form: Option<Form>,
) -> Result<Box<dyn Source>, Error> {
    let path = path.as_ref();
    let form = match form {
        Some(form) => form,
        None => form_of_file(&source, path, Form::TensorBundle)?,
    };
    open_form(source, path, form)
}

/// Opens the tensors in a stream, such as standard input, under the name `path`. The bytes are
/// kept: up to 64 MiB in memory, more in a temporary file without a name.
///
/// # Errors
/// As [`open_at`]; [`Error::TooLong`] beyond 64 GiB; if the stream cannot be read or the temporary
/// file cannot be written.
pub fn open_stream(
    stream: impl Read,
    path: impl AsRef<Path>,
    form: Option<Form>,
) -> Result<Box<dyn Source>, Error> {
    let path = path.as_ref();
    let kept = spool(stream, LONGEST_STREAM).map_err(|error| Error::io("read", path, error))?;
    open_at(kept.ok_or(Error::TooLong { limit: LONGEST_STREAM })?, path, form)
}

/// Returns the format of a file from its content and `name`, the format of its name: a checkpoint
/// if the name has no known extension.
///
/// # Errors
/// An error of the system, or an error for an unknown format.
fn form_of_file(source: &Arc<dyn ReadAt>, path: &Path, name: Form) -> Result<Form, Error> {
    let content = Form::of_content(source).map_err(|error| Error::io("read", path, error))?;
    match Form::of_both(name, content) {
        Some(Form::Npz) if torch::is_archive(source, path) => Ok(Form::Torch),
        Some(form) => Ok(form),
        None => Err(unknown(
            path,
            "is no safetensors file, index of shards, checkpoint prefix, npy, npz, device state or file of torch.save",
        )),
    }
}

fn open_form(source: Arc<dyn ReadAt>, path: &Path, form: Form) -> Result<Box<dyn Source>, Error> {
    Ok(match form {
        Form::Safetensors => Box::new(safetensors::SafetensorsSource::new(source, path)?),
        Form::Npy => Box::new(npy::NpySource::named(source, path)?),
        Form::Npz => npz::open(source, path)?,
        Form::DeviceState => {
            Box::new(state::StateSource::new(&Reader::from_source(source, path)?, path)?)
        }
        Form::TensorBundle => {
            return Err(unknown(path, "a checkpoint is several files; name their prefix"));
        }
        Form::Torch => torch::open(source, path)?,
        Form::CheckpointV1 => tensorflow::open_v1(source, path)?,
        Form::ShardIndex | Form::CheckpointState => {
            return Err(unknown(path, "it names files beside it; name it by its path"));
        }
    })
}
