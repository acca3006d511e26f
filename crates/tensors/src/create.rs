//! Creation of files of tensors by their format.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use serdes_device_state::WriteOptions;
use serdes_files::{Durability, Tree as _};

use super::{
    Error, Output, Target, bundle,
    form::{Form, unknown},
    npy, npz, safetensors, sharded, staged_upload, state,
};
use crate::storage::Storage;

/// Creates a file of tensors at `path` in the format of its extension: `.safetensors`, `.npy`,
/// `.npz`, `.sds`; any other path is the prefix of a TensorFlow V2 checkpoint, unless its extension
/// belongs to a format that is not written. `options` apply to device states.
///
/// # Errors
/// If no file can be created there.
pub fn create(path: impl AsRef<Path>, options: &WriteOptions) -> Result<Box<dyn Target>, Error> {
    let path = path.as_ref();
    Ok(match Form::of_name(path) {
        Form::Safetensors => Box::new(safetensors::SafetensorsTarget::new(Output::create(
            path,
            options.durability(),
        )?)),
        Form::Npy => Box::new(npy::NpyTarget::new(Output::create(path, options.durability())?)),
        Form::Npz => npz::create(path, options.durability())?,
        Form::DeviceState => Box::new(state::StateTarget::create(path, options)),
        Form::TensorBundle => create_checkpoint(path, options.durability())?,
        Form::Torch | Form::ShardIndex | Form::CheckpointV1 | Form::CheckpointState => {
            check_prefix(path)?;
            return Err(unknown(path, "files of this kind are not written"));
        }
    })
}

/// Creates safetensors files of at most `shard_bytes` bytes of tensors each (a larger tensor has
/// its own file), and their index: for `model.safetensors` these are
/// `model-00001-of-00003.safetensors` and so on, and `model.safetensors.index.json`. If all tensors
/// fit in one file, there is one file and no index.
///
/// They appear at the end, the index last. If there is a set already, the new files have unique
/// names (`model-1f2e3d4c-00001-of-00003.safetensors`), so that the index names all files of one
/// set at any time; the old ones are then removed.
///
/// # Errors
/// [`Error::UnknownForm`] if the path does not end in `.safetensors`, or no file can be created
/// there.
pub fn create_sharded(
    path: impl AsRef<Path>,
    shard_bytes: u64,
    options: &WriteOptions,
) -> Result<Box<dyn Target>, Error> {
    Ok(Box::new(sharded_target(path.as_ref(), shard_bytes, options)?))
}

fn sharded_target(
    path: &Path,
    shard_bytes: u64,
    options: &WriteOptions,
) -> Result<sharded::ShardedTarget, Error> {
    if Form::of_name(path) != Form::Safetensors {
        return Err(unknown(
            path,
            "only safetensors are written as shards; name a .safetensors file",
        ));
    }
    Ok(sharded::ShardedTarget::new(path, shard_bytes, options.durability()))
}

/// Like [`create_sharded`], at a path of any storage. For an address the files are created in a
/// temporary directory, and uploaded when they are finished, the index last.
///
/// # Errors
/// As [`create_sharded`].
pub fn create_sharded_in(
    storage: &Storage,
    path: impl AsRef<Path>,
    shard_bytes: u64,
    options: &WriteOptions,
) -> Result<Box<dyn Target>, Error> {
    let path = path.as_ref();
    let shown = PathBuf::from(storage.name(path));
    let system = storage.system_path(path).map_err(|error| Error::io("create", &shown, error))?;
    if let Some(path) = system {
        return create_sharded(path, shard_bytes, options);
    }
    // Check the path before any request to the store.
    sharded_target(path, shard_bytes, options)?;
    let set = sharded::RemoteSet::look(storage, path)?;
    let is_taken = set.is_taken;
    let make = |path: PathBuf, options: &WriteOptions| -> Result<Box<dyn Target>, Error> {
        Ok(Box::new(sharded_target(&path, shard_bytes, options)?.taken(is_taken)))
    };
    Ok(Box::new(staged_upload::StagedTarget::create_set(storage, path, options, set, make)?))
}

/// Like [`create`], at a path of any storage. For an address, an archive or a checkpoint is created
/// in a temporary directory, and uploaded when it is finished; the index of a checkpoint is the
/// last file.
///
/// # Errors
/// As [`create`].
pub fn create_in(
    storage: &Storage,
    path: impl AsRef<Path>,
    options: &WriteOptions,
) -> Result<Box<dyn Target>, Error> {
    let (path, durability) = (path.as_ref(), options.durability());
    let shown = PathBuf::from(storage.name(path));
    let system = storage.system_path(path).map_err(|error| Error::io("create", &shown, error))?;
    if let Some(path) = system {
        return create(path, options);
    }
    let put = || -> Result<Output, Error> {
        Ok(Output::pending(storage.put(path, durability)?, shown.clone(), durability))
    };
    Ok(match Form::of_name(path) {
        Form::DeviceState => Box::new(state::StateTarget::at(storage, path, options)),
        Form::Safetensors => Box::new(safetensors::SafetensorsTarget::new(put()?)),
        Form::Npy => Box::new(npy::NpyTarget::new(put()?)),
        Form::Npz => Box::new(staged_upload::StagedTarget::create(storage, path, options, create)?),
        Form::TensorBundle
        | Form::Torch
        | Form::ShardIndex
        | Form::CheckpointV1
        | Form::CheckpointState => {
            check_ending(path)?;
            Box::new(staged_upload::StagedTarget::create(storage, path, options, create)?)
        }
    })
}

/// Writes tensors of a format to a stream, such as standard output, sequentially. Written bytes
/// cannot be taken back: on failure the stream ends early.
///
/// # Errors
/// [`Error::UnknownForm`] for formats of several files or that are not written sequentially:
/// checkpoints and npz.
pub fn create_stream(
    stream: impl Write + Send + 'static,
    form: Form,
    options: &WriteOptions,
) -> Result<Box<dyn Target>, Error> {
    let stream = Box::new(stream);
    Ok(match form {
        Form::Safetensors => Box::new(safetensors::SafetensorsTarget::new(Output::stream(stream))),
        Form::Npy => Box::new(npy::NpyTarget::new(Output::stream(stream))),
        Form::DeviceState => Box::new(state::StateTarget::stream(stream, options)),
        Form::Npz
        | Form::TensorBundle
        | Form::Torch
        | Form::ShardIndex
        | Form::CheckpointV1
        | Form::CheckpointState => {
            let reason = "is not written into a stream; safetensors, npy and device_state are";
            return Err(unknown(Path::new(form.as_str()), reason));
        }
    })
}

/// Extensions of tensor files that are not written. They are hardly ever meant as the prefix of a
/// checkpoint.
const NOT_WRITTEN: [&str; 13] = [
    ".pt", ".pth", ".bin", ".h5", ".hdf5", ".keras", ".onnx", ".pb", ".tflite", ".gguf",
    ".msgpack", ".zip", ".json",
];

/// Returns an error for extensions of formats that are not written.
fn check_ending(prefix: &Path) -> Result<(), Error> {
    let text = prefix.to_string_lossy();
    let lower = text.to_ascii_lowercase();
    if let Some(ending) = NOT_WRITTEN.iter().find(|ending| lower.ends_with(**ending)) {
        let reason = format!(
            "files of the kind {ending} are not written; expected a name in .safetensors, .npy, .npz or .sds, or the prefix of a \
             checkpoint"
        );
        return Err(unknown(prefix, &reason));
    }
    Ok(())
}

/// Returns an error for a prefix that a checkpoint cannot or should not have.
fn check_prefix(prefix: &Path) -> Result<(), Error> {
    check_ending(prefix)?;
    let text = prefix.to_string_lossy();
    // For the system's path parser, the last component of `a/` and `a/.` is `a`.
    let is_folder = text.ends_with(std::path::is_separator)
        || text.ends_with("/.")
        || prefix.file_name().is_none()
        || prefix.is_dir();
    if is_folder {
        let reason = "is a folder; the prefix of a checkpoint ends in a name, as in folder/ckpt-1";
        return Err(unknown(prefix, reason));
    }
    // A name such as `/dev/null.index` is hardly intended.
    if std::fs::metadata(prefix).is_ok_and(|found| !found.is_file()) {
        let reason = "is a device or a pipe and no prefix of a checkpoint; name a file";
        return Err(unknown(prefix, reason));
    }
    Ok(())
}

fn create_checkpoint(prefix: &Path, durability: Durability) -> Result<Box<dyn Target>, Error> {
    check_prefix(prefix)?;
    Ok(Box::new(bundle::BundleTarget::create(prefix, durability)))
}
