//! Opened artifacts: their kind, and the location of their bytes.
//!
//! Used by the code that opens artifacts and by the code that judges them. Does not depend on any
//! reader.

use serdes_files::{ReadAt, Tree, read_at::read_arriving};
use serdes_tensors as tensor_io;
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{Kind, Reason, Remedy, rule::messages};

/// A file, or bytes in memory.
#[derive(Clone)]
pub(super) struct Bytes {
    pub(super) source: Arc<dyn ReadAt>,
    /// The path as it was given; `-` for memory and streams.
    pub(super) label: String,
    /// The path, if the bytes are those of a file.
    pub(super) path: Option<PathBuf>,
    /// The tree with the folder of the file and the files that belong to it.
    pub(super) tree: Arc<dyn Tree>,
}

/// Files identified by a shared path in a tree.
#[derive(Clone)]
pub(super) struct Located {
    pub(super) tree: Arc<dyn Tree>,
    pub(super) path: PathBuf,
}

impl Bytes {
    /// Returns the name of the file; empty for memory and streams.
    pub(super) fn file_name(&self) -> String {
        let name = self.path.as_deref().and_then(Path::file_name);
        name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Returns all bytes, which must be at most `longest`.
    ///
    /// # Errors
    /// The reason for a verdict if there are more bytes, or they cannot be read.
    pub(super) fn whole(&self, longest: u64) -> Result<Vec<u8>, Box<Reason>> {
        let failed = |error: io::Error| {
            let message = messages::cannot_read_file(error);
            Box::new(Reason::from(message).with_remedy(Remedy::MakeReadable))
        };
        let size = self.source.size().map_err(failed)?;
        if size > longest {
            let message = messages::value_is_too_long(size, longest);
            return Err(Reason::from(message).with_remedy(Remedy::CheckOrigin).into());
        }
        read_arriving(&*self.source, 0, size).map_err(failed)
    }
}

/// The messages with graphs that are a single file, other than a SavedModel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GraphKind {
    GraphDef,
    GraphDefText,
    MetaGraph,
}

/// A SavedModel.
#[derive(Clone)]
pub(super) enum ModelFiles {
    /// The directory of the model.
    Directory(Located),
    /// Only its message: `saved_model.pb`.
    Message(Bytes),
}

/// The files of a checkpoint.
#[derive(Clone)]
pub(super) enum CheckpointFiles {
    /// All files with a prefix, or that match a pattern.
    Named(Located),
    /// A single file: the index of a V2 checkpoint, or a shard of a V1 checkpoint.
    One(Bytes),
}

/// An artifact of a kind, with the input of the reader for that kind.
#[derive(Clone)]
pub(super) enum Opened {
    Graph(Bytes, GraphKind),
    SavedModel(ModelFiles),
    Bundle(CheckpointFiles),
    CheckpointV1(CheckpointFiles),
    /// The list of a folder's checkpoints, and true if the newest checkpoint is checked as well.
    CheckpointState(Bytes, bool),
    DeviceState(Bytes),
    Ifrt(Bytes),
    Plugin(Bytes),
    Tensors(Bytes, TensorForm),
    /// A file that a jaxlib loads.
    Jax(Bytes, serdes_jax_artifacts::Kind),
    /// An index of a set of files that together hold tensors.
    Shards(Bytes),
    /// A folder of files that together hold tensors.
    TensorFolder(Located),
    /// A file of a recognised kind that is not judged.
    Recognised(Kind, Bytes),
    /// A directory of a recognised kind that is not judged.
    RecognisedDirectory(Kind, Located),
}

/// The forms of files of plain tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TensorForm {
    Safetensors,
    Npy,
    Npz,
}

impl From<TensorForm> for tensor_io::Form {
    fn from(form: TensorForm) -> Self {
        match form {
            TensorForm::Safetensors => Self::Safetensors,
            TensorForm::Npy => Self::Npy,
            TensorForm::Npz => Self::Npz,
        }
    }
}

impl Opened {
    /// Creates an artifact of this kind from bytes.
    pub(super) fn of_bytes(kind: Kind, bytes: Bytes) -> Self {
        match kind {
            Kind::GraphDef => Self::Graph(bytes, GraphKind::GraphDef),
            Kind::GraphDefText => Self::Graph(bytes, GraphKind::GraphDefText),
            Kind::MetaGraph => Self::Graph(bytes, GraphKind::MetaGraph),
            Kind::SavedModel => Self::SavedModel(ModelFiles::Message(bytes)),
            Kind::TensorBundle => Self::Bundle(CheckpointFiles::One(bytes)),
            Kind::CheckpointV1 => Self::CheckpointV1(CheckpointFiles::One(bytes)),
            Kind::CheckpointState => Self::CheckpointState(bytes, true),
            Kind::DeviceState => Self::DeviceState(bytes),
            Kind::IfrtSerialized => Self::Ifrt(bytes),
            Kind::Plugin => Self::Plugin(bytes),
            Kind::Safetensors => Self::Tensors(bytes, TensorForm::Safetensors),
            Kind::Npy => Self::Tensors(bytes, TensorForm::Npy),
            Kind::Npz => Self::Tensors(bytes, TensorForm::Npz),
            Kind::ShardIndex => Self::Shards(bytes),
            Kind::StableHlo => Self::Jax(bytes, serdes_jax_artifacts::Kind::StableHlo),
            Kind::JaxExport => Self::Jax(bytes, serdes_jax_artifacts::Kind::JaxExport),
            // A folder, not a single file.
            Kind::TorchDistributed
            | Kind::IfrtMessage
            | Kind::Orbax
            | Kind::Onnx
            | Kind::Hdf5
            | Kind::Keras
            | Kind::Tflite
            | Kind::Torch
            | Kind::Gguf
            | Kind::Flax
            | Kind::Zip
            | Kind::Gzip
            | Kind::Html
            | Kind::Json
            | Kind::Text
            | Kind::Fingerprint
            | Kind::Other => Self::Recognised(kind, bytes),
        }
    }

    /// Creates an artifact of this kind from the files with a prefix or that match a pattern;
    /// `None` for a kind that is not stored in this way.
    pub(super) fn of_files(kind: Kind, tree: &Arc<dyn Tree>, path: &Path) -> Option<Self> {
        let files =
            CheckpointFiles::Named(Located { tree: Arc::clone(tree), path: path.to_owned() });
        match kind {
            Kind::TensorBundle => Some(Self::Bundle(files)),
            Kind::CheckpointV1 => Some(Self::CheckpointV1(files)),
            _ => None,
        }
    }

    /// Creates an artifact of this kind from a directory; `None` for a kind that is not stored in
    /// this way.
    pub(super) fn of_directory(kind: Kind, tree: &Arc<dyn Tree>, path: &Path) -> Option<Self> {
        let located = || Located { tree: Arc::clone(tree), path: path.to_owned() };
        match kind {
            Kind::SavedModel => Some(Self::SavedModel(ModelFiles::Directory(located()))),
            Kind::TorchDistributed => Some(Self::TensorFolder(located())),
            Kind::Orbax => Some(Self::RecognisedDirectory(kind, located())),
            _ => None,
        }
    }

    /// Returns its kind.
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Graph(_, GraphKind::GraphDef) => Kind::GraphDef,
            Self::Graph(_, GraphKind::GraphDefText) => Kind::GraphDefText,
            Self::Graph(_, GraphKind::MetaGraph) => Kind::MetaGraph,
            Self::SavedModel(_) => Kind::SavedModel,
            Self::Bundle(_) => Kind::TensorBundle,
            Self::CheckpointV1(_) => Kind::CheckpointV1,
            Self::CheckpointState(..) => Kind::CheckpointState,
            Self::DeviceState(_) => Kind::DeviceState,
            Self::Ifrt(_) => Kind::IfrtSerialized,
            Self::Plugin(_) => Kind::Plugin,
            Self::Tensors(_, TensorForm::Safetensors) => Kind::Safetensors,
            Self::Tensors(_, TensorForm::Npy) => Kind::Npy,
            Self::Tensors(_, TensorForm::Npz) => Kind::Npz,
            Self::TensorFolder(_) => Kind::TorchDistributed,
            Self::Shards(_) => Kind::ShardIndex,
            Self::Jax(_, serdes_jax_artifacts::Kind::StableHlo) => Kind::StableHlo,
            Self::Jax(..) => Kind::JaxExport,
            Self::Recognised(kind, _) | Self::RecognisedDirectory(kind, _) => *kind,
        }
    }
}

/// Returns a path with a suffix appended to its name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
