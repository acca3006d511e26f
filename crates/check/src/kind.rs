//! The kinds of artifacts: their names, and which of them are judged.
//!
//! [`detect`](super::detect) detects them from bytes and names.

use std::{fmt, str::FromStr};

use serdes::{ErrorKind, ifrt::MessageType};

use super::consumer::ArtifactLine;

/// A kind of artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// A SavedModel: a directory with `saved_model.pb`, or that file.
    SavedModel,
    /// A V2 checkpoint: an index and its data shards.
    TensorBundle,
    /// A V1 checkpoint: one or more tables.
    CheckpointV1,
    /// The list of a folder's checkpoints that TensorFlow keeps (`checkpoint`).
    CheckpointState,
    /// A device state.
    DeviceState,
    /// A shared library, which may be a plug-in.
    Plugin,
    /// A MetaGraphDef, as written beside a checkpoint.
    MetaGraph,
    /// A GraphDef in text form.
    GraphDefText,
    /// A message of IFRT's SerDes.
    IfrtSerialized,
    /// A bare message of IFRT, without its type name. Its bytes do not identify the message, so it
    /// is judged only if the caller does ([`Options::with_message`](super::Options::with_message)).
    IfrtMessage,
    /// A GraphDef.
    GraphDef,
    /// A checkpoint of torch.distributed: a folder with `.metadata` and `.distcp` files.
    TorchDistributed,
    /// Tensors in a safetensors file.
    Safetensors,
    /// A NumPy array (`.npy`).
    Npy,
    /// A zip archive of NumPy arrays (`.npz`).
    Npz,
    /// The index of a set of files that together hold tensors (`model.safetensors.index.json`).
    ShardIndex,
    /// A portable artifact of StableHLO: MLIR bytecode whose producer is `StableHLO_vX.Y.Z`.
    StableHlo,
    /// A serialized `jax.export.Exported`.
    JaxExport,
    /// A checkpoint of Orbax, a directory. Not judged yet.
    Orbax,
    /// An ONNX model. Not judged.
    Onnx,
    /// An HDF5 file, as Keras 2 and many others write. Not judged.
    Hdf5,
    /// A Keras 3 model (`.keras`). Not judged.
    Keras,
    /// A TensorFlow Lite model. Not judged.
    Tflite,
    /// A file of PyTorch's `torch.save`, TorchScript or torch.export. Not judged.
    Torch,
    /// A GGUF file of weights. Not judged.
    Gguf,
    /// Arrays in msgpack, as `flax.serialization` writes them. Not judged.
    Flax,
    /// Any other zip archive. Not judged.
    Zip,
    /// Data compressed with gzip. Not judged.
    Gzip,
    /// An HTML page: often a login page that was saved in place of a model. Not judged.
    Html,
    /// A JSON text. Not judged.
    Json,
    /// Any other text. Not judged.
    Text,
    /// The fingerprint of a SavedModel (`fingerprint.pb`). Not judged.
    Fingerprint,
    /// Another well-known format, such as an image. Not judged.
    Other,
}

/// Returns the ids of all kinds, for messages.
fn ids() -> String {
    let ids: Vec<&str> = Kind::ALL.iter().map(|kind| kind.id()).collect();
    ids.join(", ")
}

/// The error for a name that no kind has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no kind \"{found}\"; the kinds are {}, and of a message of IFRT the name of its type, such as ArraySpec",
    ids()
)]
pub struct UnknownKind {
    /// The text found, cut to 60 characters.
    pub found: String,
}

impl UnknownKind {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::NotFound
    }
}

impl Kind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[
        Self::SavedModel,
        Self::TensorBundle,
        Self::CheckpointV1,
        Self::CheckpointState,
        Self::DeviceState,
        Self::Plugin,
        Self::MetaGraph,
        Self::GraphDefText,
        Self::IfrtSerialized,
        Self::IfrtMessage,
        Self::GraphDef,
        Self::TorchDistributed,
        Self::Safetensors,
        Self::Npy,
        Self::Npz,
        Self::ShardIndex,
        Self::StableHlo,
        Self::JaxExport,
        Self::Orbax,
        Self::Onnx,
        Self::Hdf5,
        Self::Keras,
        Self::Tflite,
        Self::Torch,
        Self::Gguf,
        Self::Flax,
        Self::Zip,
        Self::Gzip,
        Self::Html,
        Self::Json,
        Self::Text,
        Self::Fingerprint,
        Self::Other,
    ];

    /// Returns the id of the kind, for programs.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::SavedModel => "saved_model",
            Self::TensorBundle => "tensor_bundle",
            Self::CheckpointV1 => "checkpoint_v1",
            Self::CheckpointState => "checkpoint_state",
            Self::DeviceState => "device_state",
            Self::Plugin => "plugin",
            Self::MetaGraph => "meta_graph",
            Self::GraphDefText => "graph_def_text",
            Self::IfrtSerialized => "ifrt_serialized",
            Self::IfrtMessage => "ifrt_message",
            Self::GraphDef => "graph_def",
            Self::TorchDistributed => "torch_distributed",
            Self::Safetensors => "safetensors",
            Self::Npy => "npy",
            Self::Npz => "npz",
            Self::ShardIndex => "shard_index",
            Self::StableHlo => "stablehlo",
            Self::JaxExport => "jax_export",
            Self::Orbax => "orbax",
            Self::Onnx => "onnx",
            Self::Hdf5 => "hdf5",
            Self::Keras => "keras",
            Self::Tflite => "tflite",
            Self::Torch => "torch",
            Self::Gguf => "gguf",
            Self::Flax => "flax",
            Self::Zip => "zip",
            Self::Gzip => "gzip",
            Self::Html => "html",
            Self::Json => "json",
            Self::Text => "text",
            Self::Fingerprint => "fingerprint",
            Self::Other => "other",
        }
    }

    /// Returns the name of the kind in messages, with its article: `a safetensors file`.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::SavedModel => "a SavedModel",
            Self::TensorBundle => "a V2 checkpoint",
            Self::CheckpointV1 => "a V1 checkpoint",
            Self::CheckpointState => "a list of TensorFlow's checkpoints",
            Self::DeviceState => "a device state",
            Self::Plugin => "a shared library",
            Self::MetaGraph => "a MetaGraphDef",
            Self::GraphDefText => "a GraphDef in text form",
            Self::IfrtSerialized => "a serialized value of IFRT",
            Self::IfrtMessage => "a message of IFRT without its type name",
            Self::GraphDef => "a GraphDef",
            Self::TorchDistributed => "a checkpoint of torch.distributed",
            Self::Safetensors => "a safetensors file",
            Self::Npy => "an array of NumPy's",
            Self::Npz => "an archive of NumPy's arrays",
            Self::ShardIndex => "an index of files of tensors",
            Self::StableHlo => "a StableHLO artifact",
            Self::JaxExport => "a function that jax.export serialized",
            Self::Orbax => "a checkpoint of Orbax",
            Self::Onnx => "an ONNX model",
            Self::Hdf5 => "an HDF5 file",
            Self::Keras => "a Keras model",
            Self::Tflite => "a TensorFlow Lite model",
            Self::Torch => "a file of PyTorch's",
            Self::Gguf => "a GGUF file",
            Self::Flax => "a msgpack file of flax",
            Self::Zip => "a zip archive",
            Self::Gzip => "a file that gzip compressed",
            Self::Html => "an HTML page",
            Self::Json => "a JSON text",
            Self::Text => "a text",
            Self::Fingerprint => "the fingerprint of a SavedModel",
            Self::Other => "a file of another well-known format",
        }
    }

    /// Returns the line whose numbers decide whether a consumer accepts the kind, if there is
    /// exactly one.
    #[must_use]
    pub const fn line(self) -> Option<ArtifactLine> {
        match self {
            Self::SavedModel | Self::MetaGraph | Self::GraphDefText | Self::GraphDef => {
                Some(ArtifactLine::GraphDef)
            }
            Self::TensorBundle => Some(ArtifactLine::TensorBundle),
            Self::CheckpointV1 => Some(ArtifactLine::Checkpoint),
            Self::DeviceState => Some(ArtifactLine::DeviceState),
            Self::IfrtSerialized | Self::IfrtMessage => Some(ArtifactLine::Ifrt),
            _ => None,
        }
    }

    /// Returns true if artifacts of this kind get a verdict; an intact artifact of any other kind
    /// is unreadable, by the rule [`OtherKind`](super::Rule::OtherKind).
    #[must_use]
    pub const fn is_judged(self) -> bool {
        match self {
            Self::SavedModel
            | Self::TensorBundle
            | Self::CheckpointV1
            | Self::CheckpointState
            | Self::DeviceState
            | Self::Plugin
            | Self::MetaGraph
            | Self::GraphDefText
            | Self::IfrtSerialized
            | Self::GraphDef
            | Self::TorchDistributed
            | Self::Safetensors
            | Self::Npy
            | Self::Npz
            | Self::ShardIndex
            | Self::StableHlo
            | Self::JaxExport => true,
            Self::IfrtMessage
            | Self::Orbax
            | Self::Onnx
            | Self::Hdf5
            | Self::Keras
            | Self::Tflite
            | Self::Torch
            | Self::Gguf
            | Self::Flax
            | Self::Zip
            | Self::Gzip
            | Self::Html
            | Self::Json
            | Self::Text
            | Self::Fingerprint
            | Self::Other => false,
        }
    }
}

impl Kind {
    /// Returns the kind of a file that a jaxlib loads; `None` for kinds that TensorFlow or this
    /// library loads.
    pub(super) const fn of_jax(self) -> Option<serdes_jax_artifacts::Kind> {
        match self {
            Self::StableHlo => Some(serdes_jax_artifacts::Kind::StableHlo),
            Self::JaxExport => Some(serdes_jax_artifacts::Kind::JaxExport),
            _ => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        Self::ALL
            .iter()
            .copied()
            .find(|kind| kind.id() == text)
            .ok_or_else(|| UnknownKind { found: text.chars().take(60).collect() })
    }
}

/// Parses a kind, or the type of a bare message of IFRT: `graph_def`, `ArraySpec`.
///
/// ```
/// use serdes_check::{Kind, named_kind};
/// use serdes::ifrt::MessageType;
///
/// assert_eq!(named_kind("graph_def")?, (Kind::GraphDef, None));
/// assert_eq!(named_kind("ArraySpec")?, (Kind::IfrtMessage, Some(MessageType::ArraySpec)));
/// # Ok::<(), serdes_check::UnknownKind>(())
/// ```
///
/// # Errors
/// [`UnknownKind`] if the text is neither.
pub fn named_kind(text: &str) -> Result<(Kind, Option<MessageType>), UnknownKind> {
    match MessageType::named(text) {
        Some(message) => Ok((Kind::IfrtMessage, Some(message))),
        None => text.parse().map(|kind| (kind, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name() {
        for &kind in Kind::ALL {
            assert_eq!(kind.id().parse(), Ok(kind));
        }
        assert!("nothing".parse::<Kind>().unwrap_err().to_string().contains("saved_model"));
    }

    #[test]
    fn a_kind_whose_numbers_decide_is_one_that_is_judged() {
        for &kind in Kind::ALL {
            // For a bare message the caller names the type.
            let is_judged = kind.is_judged() || kind == Kind::IfrtMessage;
            assert!(is_judged || kind.line().is_none(), "{kind}");
        }
    }
}
