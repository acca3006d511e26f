//! Detection of a file's format by its name or its bytes, and opening or creating by it.

use std::{
    fmt,
    io::{Read, Write},
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

#[cfg(feature = "artifact")]
use super::bundle;
#[cfg(feature = "npz")]
use super::npz;
#[cfg(feature = "torch")]
use super::torch;
use super::{
    Error, Output, Source, Target, brought, folder, npy, safetensors, sharded, state, tensorflow,
};
use crate::{
    device_state::{MAGIC, Reader, WriteOptions},
    files::{
        Durability, Files, ReadAt, Tree,
        read_at::{LONGEST_STREAM, read_up_to, spool},
    },
    storage::Storage,
};

/// Bytes at the beginning of a file by which its form is told.
const HEAD: usize = 4096;

/// A kind of file that holds tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Form {
    /// A safetensors file.
    Safetensors,
    /// NumPy's npy: one tensor.
    Npy,
    /// NumPy's npz: an archive of npy files.
    Npz,
    /// A device state.
    DeviceState,
    /// A TensorFlow V2 checkpoint: several files, named by the prefix that they share.
    TensorBundle,
    /// A file of PyTorch's `torch.save`; read, and not written.
    Torch,
    /// The index of files that hold tensors together: `NAME.safetensors.index.json`.
    ShardIndex,
    /// A TensorFlow V1 checkpoint: a file, or files by a pattern of their names; read, and not
    /// written.
    CheckpointV1,
    /// The list that TensorFlow keeps of the checkpoints in a folder, of which the newest is read.
    CheckpointState,
}

impl Form {
    const ALL: [Self; 9] = [
        Self::Safetensors,
        Self::Npy,
        Self::Npz,
        Self::DeviceState,
        Self::TensorBundle,
        Self::Torch,
        Self::ShardIndex,
        Self::CheckpointV1,
        Self::CheckpointState,
    ];

    /// `safetensors`, `npy`, `npz`, `device_state`, `tensor_bundle`, `torch`, `shard_index`,
    /// `checkpoint_v1` or `checkpoint_state`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Safetensors => "safetensors",
            Self::Npy => "npy",
            Self::Npz => "npz",
            Self::DeviceState => "device_state",
            Self::TensorBundle => "tensor_bundle",
            Self::Torch => "torch",
            Self::ShardIndex => "shard_index",
            Self::CheckpointV1 => "checkpoint_v1",
            Self::CheckpointState => "checkpoint_state",
        }
    }

    /// Format by the name of a path; a name without a known suffix is the prefix of a checkpoint,
    /// which is no file.
    fn of_name(path: &Path) -> Self {
        if sharded::is_index(path) {
            return Self::ShardIndex;
        }
        let extension =
            path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match extension.to_ascii_lowercase().as_str() {
            "safetensors" => Self::Safetensors,
            "npy" => Self::Npy,
            "npz" => Self::Npz,
            "sds" => Self::DeviceState,
            "pt" | "pth" => Self::Torch,
            _ => Self::TensorBundle,
        }
    }

    /// Format detected from bytes, if it is one of these: a checkpoint is never in one sequence of
    /// bytes.
    pub(super) fn of_content(source: &dyn ReadAt) -> std::io::Result<Option<Self>> {
        let mut head = [0; HEAD];
        let head = read_up_to(source, &mut head, 0)?;
        Ok(match head {
            head if head.starts_with(&MAGIC) => Some(Self::DeviceState),
            [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Some(Self::Npy),
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(Self::Npz),
            #[cfg(feature = "torch")]
            head if torch::is_legacy(head) => Some(Self::Torch),
            // The length of a safetensors header is below 2^27.
            [_, _, _, 0..8, 0, 0, 0, 0, ..] => Some(Self::Safetensors),
            head if sharded::begins_like_index(head) => Some(Self::ShardIndex),
            head => tensorflow::form_of(source, head)?,
        })
    }

    /// Format from name and contents, if either decides: a magic number decides, whatever the name.
    fn of_both(name: Self, content: Option<Self>) -> Option<Self> {
        match (name, content) {
            // Also a program of TorchScript is an archive, and the reader says what it is.
            (Self::Torch, Some(Self::Npz)) => Some(Self::Torch),
            // A length is no mark.
            (Self::TensorBundle, content) => content,
            (name, None | Some(Self::Safetensors)) => Some(name),
            (_, content) => content,
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Form {
    type Err = Error;

    /// The form of that name.
    ///
    /// # Errors
    /// [`Error::UnknownForm`] if there is none.
    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|form| form.as_str() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            unknown(
                Path::new(name),
                &format!("is no kind of file of tensors; expected one of {names}"),
            )
        })
    }
}

/// Opens the tensors at `path`: safetensors, npy, npz, a device state, a file of PyTorch's, the
/// index of shards, the prefix or index of a TensorFlow V2 checkpoint, a V1 checkpoint, or the folder
/// or list of TensorFlow's checkpoints, of which the newest is opened; by its name, or a file
/// without a telling name by its first bytes.
///
/// # Errors
/// If there is no such file, it is none of these, or its head is damaged.
pub fn open(path: impl AsRef<Path>) -> Result<Box<dyn Source>, Error> {
    open_in(&Storage::system(), path)
}

/// As [`open`], of a path of any storage.
///
/// # Errors
/// As [`open`].
pub fn open_in(storage: &Storage, path: impl AsRef<Path>) -> Result<Box<dyn Source>, Error> {
    let path = path.as_ref();
    // An address that says what it leads to is not asked whether it is a folder.
    let may_be = Form::of_name(path) == Form::TensorBundle
        || storage.system_path(path).is_ok_and(|system| system.is_some());
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
    let shown = PathBuf::from(storage.name(path));
    let file = storage.open(path).map_err(|error| Error::io("open", &shown, error))?;
    match told(&file, &shown, form)? {
        Form::CheckpointState => tensorflow::open_list(storage, path, &file),
        Form::ShardIndex => Ok(Box::new(sharded::ShardedSource::open(storage, path)?)),
        Form::DeviceState => {
            let reader = Reader::from_source_among(file, &shown, Arc::new(storage.clone()))?;
            Ok(Box::new(state::StateSource::new(&reader, &shown)?))
        }
        form => open_form(file, &shown, form),
    }
}

/// Opens one of the files that an index names: safetensors, or a file of PyTorch's.
///
/// # Errors
/// As [`open`]; and for every other kind.
pub(super) fn open_shard(tree: &dyn Tree, path: &Path) -> Result<Box<dyn Source>, Error> {
    let shown = PathBuf::from(tree.name(path));
    let file = tree.open(path).map_err(|error| Error::io("open", &shown, error))?;
    let name = match Form::of_name(path) {
        form @ (Form::Safetensors | Form::Torch) => form,
        _ => Form::TensorBundle,
    };
    match told(&file, &shown, name)? {
        form @ (Form::Safetensors | Form::Torch) => open_form(file, &shown, form),
        form => {
            Err(unknown(&shown, &format!("is of the kind {form}; expected safetensors or torch")))
        }
    }
}

/// Opens tensors in any source of bytes; `path` is for messages, and gives the tensor of an npy
/// file its name. They are of this `form`, or of the one that their first bytes say.
///
/// # Errors
/// As [`open`]; and for a checkpoint, which is several files.
pub fn open_at(
    source: Arc<dyn ReadAt>,
    path: impl AsRef<Path>,
    form: Option<Form>,
) -> Result<Box<dyn Source>, Error> {
    let path = path.as_ref();
    let form = match form {
        Some(form) => form,
        None => told(&source, path, Form::TensorBundle)?,
    };
    open_form(source, path, form)
}

/// Opens the tensors that come out of a stream, such as standard input, under the name `path`. What
/// is read is kept: in memory up to 64 MiB, in a temporary file without a name beyond.
///
/// # Errors
/// As [`open_at`]; [`Error::TooLong`] beyond 64 GiB; and if the stream cannot be read or the
/// temporary file not be written.
pub fn open_stream(
    stream: impl Read,
    path: impl AsRef<Path>,
    form: Option<Form>,
) -> Result<Box<dyn Source>, Error> {
    let path = path.as_ref();
    let kept = spool(stream, LONGEST_STREAM).map_err(|error| Error::io("read", path, error))?;
    open_at(kept.ok_or(Error::TooLong { limit: LONGEST_STREAM })?, path, form)
}

/// The form of a file that its name says to be of the form `name`, which is that of a checkpoint for
/// a name that says nothing.
fn told(source: &Arc<dyn ReadAt>, path: &Path, name: Form) -> Result<Form, Error> {
    let content = Form::of_content(source).map_err(|error| Error::io("read", path, error))?;
    match Form::of_both(name, content) {
        #[cfg(feature = "torch")]
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
        Form::Npz => open_npz(source, path)?,
        Form::DeviceState => {
            Box::new(state::StateSource::new(&Reader::from_source(source, path)?, path)?)
        }
        Form::TensorBundle => {
            return Err(unknown(path, "a checkpoint is several files; name their prefix"));
        }
        Form::Torch => open_torch(source, path)?,
        Form::CheckpointV1 => tensorflow::open_v1(source, path)?,
        Form::ShardIndex | Form::CheckpointState => {
            return Err(unknown(path, "it names files beside it; name it by its path"));
        }
    })
}

#[cfg(feature = "torch")]
fn open_torch(source: Arc<dyn ReadAt>, path: &Path) -> Result<Box<dyn Source>, Error> {
    Ok(Box::new(torch::TorchSource::new(source, path)?))
}

#[cfg(not(feature = "torch"))]
fn open_torch(_: Arc<dyn ReadAt>, path: &Path) -> Result<Box<dyn Source>, Error> {
    Err(unknown(path, "this build reads no files of PyTorch's; enable the feature `torch`"))
}

#[cfg(feature = "npz")]
fn open_npz(source: Arc<dyn ReadAt>, path: &Path) -> Result<Box<dyn Source>, Error> {
    Ok(Box::new(npz::NpzSource::new(source, path)?))
}

#[cfg(not(feature = "npz"))]
fn open_npz(_: Arc<dyn ReadAt>, path: &Path) -> Result<Box<dyn Source>, Error> {
    Err(unknown(path, "this build reads no npz; enable the feature `npz`"))
}

pub(super) fn unknown(path: &Path, reason: &str) -> Error {
    Error::UnknownForm { path: PathBuf::from(path), reason: reason.to_owned() }
}

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
        Form::Npz => create_npz(path, options.durability())?,
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

/// As [`create_sharded`], at a path of any storage. At an address the files are made in a temporary
/// directory, and brought there when they are finished, their index last.
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
    let set = sharded::SetElsewhere::look(storage, path)?;
    let is_taken = set.is_taken;
    let make = |path: PathBuf, options: &WriteOptions| -> Result<Box<dyn Target>, Error> {
        Ok(Box::new(sharded_target(&path, shard_bytes, options)?.taken(is_taken)))
    };
    Ok(Box::new(brought::BroughtTarget::create_set(storage, path, options, set, make)?))
}

/// As [`create`], at a path of any storage. At an address, an archive and a checkpoint are made in
/// a temporary directory, and brought there when they are finished; the index of a checkpoint is
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
        Form::Npz => Box::new(brought::BroughtTarget::create(storage, path, options, create)?),
        Form::TensorBundle
        | Form::Torch
        | Form::ShardIndex
        | Form::CheckpointV1
        | Form::CheckpointState => {
            check_ending(path)?;
            Box::new(brought::BroughtTarget::create(storage, path, options, create)?)
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

/// An error for endings of kinds that are not written.
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

/// An error if no checkpoint can have this prefix, or none should.
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

#[cfg(feature = "artifact")]
fn create_checkpoint(prefix: &Path, durability: Durability) -> Result<Box<dyn Target>, Error> {
    check_prefix(prefix)?;
    Ok(Box::new(bundle::BundleTarget::create(prefix, durability)))
}

#[cfg(not(feature = "artifact"))]
fn create_checkpoint(prefix: &Path, _: Durability) -> Result<Box<dyn Target>, Error> {
    check_prefix(prefix)?;
    Err(unknown(
        prefix,
        "this build writes no checkpoints; name the file .safetensors, .npy or .sds, or enable the feature `artifact`",
    ))
}

#[cfg(feature = "npz")]
fn create_npz(path: &Path, durability: Durability) -> Result<Box<dyn Target>, Error> {
    Ok(Box::new(npz::NpzTarget::create(path, durability)?))
}

#[cfg(not(feature = "npz"))]
fn create_npz(path: &Path, _: Durability) -> Result<Box<dyn Target>, Error> {
    Err(unknown(path, "this build writes no npz; enable the feature `npz`"))
}
