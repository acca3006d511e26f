//! Descriptions of the contents of artifacts, for people and programs.

use std::collections::BTreeMap;

use super::{Kind, ModelSummary, StateSummary, Versions, jax_summary::JaxSummary};

/// A version that is recorded inside an artifact, below the artifact's own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct NestedVersion {
    /// The place in the artifact at which it is recorded.
    #[cfg_attr(feature = "serde", serde(rename = "where"))]
    pub place: String,
    /// The number; `None` if no number is recorded, or one that this build does not know.
    #[cfg_attr(feature = "serde", serde(rename = "type"))]
    pub type_name: String,
    /// The number; `None` if it records none, or none that this build knows.
    pub recorded: Option<i64>,
}

impl NestedVersion {
    /// Creates a version recorded at a place.
    pub fn new(
        place: impl Into<String>,
        type_name: impl Into<String>,
        recorded: Option<i64>,
    ) -> Self {
        Self { place: place.into(), type_name: type_name.into(), recorded }
    }
}

/// A tensor of a checkpoint or a device state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TensorSummary {
    /// Its name.
    pub name: String,
    /// The element type: IFRT's name, or TensorFlow's where IFRT has none.
    pub dtype: String,
    /// Number of elements in each dimension; `None` if unknown.
    pub shape: Option<Vec<i64>>,
    /// Number of bytes of its elements; `None` if unknown.
    pub bytes: Option<u64>,
    /// The index of its sharding among those of a device state; `None` for other kinds.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub sharding: Option<u64>,
    /// The number of its pieces in a device state or a checkpoint of torch.distributed; `None` for
    /// other kinds.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub pieces: Option<u64>,
}

impl TensorSummary {
    /// Creates a summary of a tensor.
    pub fn new(
        name: impl Into<String>,
        dtype: impl Into<String>,
        shape: Option<Vec<i64>>,
        bytes: Option<u64>,
    ) -> Self {
        let (name, dtype) = (name.into(), dtype.into());
        Self { name, dtype, shape, bytes, sharding: None, pieces: None }
    }
}

/// A checkpoint that TensorFlow's file `checkpoint` lists.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CheckpointSummary {
    /// Its prefix as in the file.
    pub prefix: String,
    /// The kind of the checkpoint at the prefix; `None` if there is none, if it was not looked up,
    /// and for a stream.
    pub kind: Option<Kind>,
    /// The time at which it was saved, in seconds since 1970 (UTC), in decimal; `None` if not
    /// recorded.
    pub timestamp: Option<String>,
}

/// The contents of TensorFlow's file `checkpoint`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CheckpointList {
    /// The prefix of the newest checkpoint as in the file.
    pub newest: String,
    /// The kind of the newest checkpoint; `None` as in a [`CheckpointSummary`].
    pub newest_kind: Option<Kind>,
    /// All listed checkpoints, oldest first.
    pub checkpoints: Vec<CheckpointSummary>,
    /// The time at which the last checkpoint was saved that is preserved indefinitely, in seconds
    /// since 1970 (UTC), in decimal.
    pub last_preserved: Option<String>,
}

/// A description of an artifact's contents.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Inspection {
    /// The path as it was given.
    pub path: String,
    /// The kind.
    pub kind: Kind,
    /// The versions of the artifact itself.
    pub versions: Option<Versions>,
    /// Versions that are recorded inside the artifact.
    pub nested: Vec<NestedVersion>,
    /// Its tensors, by name.
    pub tensors: Vec<TensorSummary>,
    /// Number of operations of each type, including those in functions.
    pub operations: BTreeMap<String, u64>,
    /// Number of data files of a checkpoint.
    pub shards: Option<u64>,
    /// Number of functions of a graph.
    pub functions: Option<u64>,
    /// The date of a GraphDef version, `YYYY-MM-DD`.
    pub date: Option<String>,
    /// The TensorFlow release that has exactly this GraphDef version.
    pub release: Option<String>,
    /// True if the loaded meta graph was saved without the attributes that have default values;
    /// `None` for anything but a meta graph or a SavedModel.
    pub stripped_default_attrs: Option<bool>,
    /// Number of operations that the loaded meta graph lists as used; `None` as above.
    pub stripped_op_list: Option<u64>,
    /// The devices and specs of a device state; `None` for other kinds.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub state: Option<StateSummary>,
    /// The contents of TensorFlow's file `checkpoint`; `None` for other kinds.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub checkpoints: Option<CheckpointList>,
    /// The contents of a file of `jax.export` or a StableHLO portable artifact; `None` for other
    /// kinds.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub jax: Option<JaxSummary>,
    /// Signatures, assets and fingerprint of a SavedModel; `None` for other kinds.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub model: Option<ModelSummary>,
    /// Further details by name: the tags of meta graphs, the release that wrote it.
    pub details: BTreeMap<String, String>,
}

impl Inspection {
    pub(crate) fn new(path: String, kind: Kind) -> Self {
        Self {
            path,
            kind,
            versions: None,
            nested: Vec::new(),
            tensors: Vec::new(),
            operations: BTreeMap::new(),
            shards: None,
            functions: None,
            date: None,
            release: None,
            stripped_default_attrs: None,
            stripped_op_list: None,
            state: None,
            checkpoints: None,
            jax: None,
            model: None,
            details: BTreeMap::new(),
        }
    }
}
