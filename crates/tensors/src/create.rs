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

/// Begins a file of tensors at `path`, of the kind that its name says: `.safetensors`, `.npy`,
/// `.npz`, `.sds`, anything else the prefix of a TensorFlow V2 checkpoint, unless its ending is
/// that of a kind that is not written. `options` say how a device state is written.
///
/// # Errors
/// If no file can be made there.
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

/// Begins safetensors files of at most `shard_bytes` bytes of tensors each (a larger tensor has one
/// for itself), and their index: for `model.safetensors` these are
/// `model-00001-of-00003.safetensors` and so on, and `model.safetensors.index.json`. What fits one
/// file is one file, without an index.
///
/// They appear at the end, the index last. Where a set is there already, the new files have names
/// that no other file has (`model-1f2e3d4c-00001-of-00003.safetensors`), so that at every moment the
/// index names all files of one set; the old ones go afterwards.
///
/// # Errors
/// [`Error::UnknownForm`] if the path does not end in `.safetensors`, or no file can be made there.
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

/// Like [`create_sharded`], at a path of any storage. At an address the files are made in a
/// temporary directory, and brought there when they are finished, their index last.
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
    // Before the store is asked for anything.
    sharded_target(path, shard_bytes, options)?;
    let set = sharded::RemoteSet::look(storage, path)?;
    let is_taken = set.is_taken;
    let make = |path: PathBuf, options: &WriteOptions| -> Result<Box<dyn Target>, Error> {
        Ok(Box::new(sharded_target(&path, shard_bytes, options)?.taken(is_taken)))
    };
    Ok(Box::new(staged_upload::StagedTarget::create_set(storage, path, options, set, make)?))
}

/// Like [`create`], at a path of any storage. At an address, an archive and a checkpoint are made
/// in a temporary directory, and brought there when they are finished; the index of a checkpoint is
/// the last.
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

/// Begins tensors of this kind that go into a stream, such as standard output, front to back. A
/// stream is not taken back: where the work fails, it ends early.
///
/// # Errors
/// [`Error::UnknownForm`] for kinds that are several files or are not written front to back:
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

/// Endings of files that people keep tensors in and that are not written. A checkpoint of such a
/// name is hardly ever meant.
const NOT_WRITTEN: [&str; 13] = [
    ".pt", ".pth", ".bin", ".h5", ".hdf5", ".keras", ".onnx", ".pb", ".tflite", ".gguf",
    ".msgpack", ".zip", ".json",
];

/// Returns an error for endings of kinds that are not written.
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

/// Returns an error if no checkpoint can have this prefix, or none should.
fn check_prefix(prefix: &Path) -> Result<(), Error> {
    check_ending(prefix)?;
    let text = prefix.to_string_lossy();
    // The last part of `a/` and `a/.` is `a` to the system's parser of paths.
    let is_folder = text.ends_with(std::path::is_separator)
        || text.ends_with("/.")
        || prefix.file_name().is_none()
        || prefix.is_dir();
    if is_folder {
        let reason = "is a folder; the prefix of a checkpoint ends in a name, as in folder/ckpt-1";
        return Err(unknown(prefix, reason));
    }
    // What is meant is hardly `/dev/null.index`.
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
