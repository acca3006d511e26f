//! An artifact that was opened: its kind is known, and nothing else yet.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::detect::{Told, detect};
use super::spool::spool;
use super::{
    Consumer, Inspection, Kind, Options, Reason, Rule, Verdict, checkpoint_v1, device_state, graph,
    ifrt, other_kind, plugin, tensor_bundle, tensors,
};
use crate::artifact::ReadAt;

/// Why nothing can be said about a path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// There is nothing.
    #[error("{path} does not exist; check the path")]
    NotFound {
        /// The path.
        path: String,
    },
    /// A directory without a SavedModel: [`all`](super::all) walks over it.
    #[error("{path} is a directory and holds no SavedModel; check what is in it one by one")]
    Directory {
        /// The path.
        path: String,
    },
    /// The system could not read it.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The path.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// More bytes came from a stream than are kept.
    #[error("{path} gave more than {limit} bytes; save it to a file and check that")]
    TooLong {
        /// Where the bytes came from.
        path: String,
        /// The most that are kept.
        limit: u64,
    },
}

impl CheckError {
    /// The error as a reason.
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::NotFound { .. } => Reason::new(Rule::NotFound, self.to_string(), ""),
            Self::Directory { .. } | Self::TooLong { .. } => {
                Reason::new(Rule::Unsupported, self.to_string(), "")
            }
            Self::Io { .. } => Reason::new(
                Rule::Unsupported,
                self.to_string(),
                "make the file readable, and check that the disk is sound",
            ),
        }
    }
}

/// Where the bytes of an artifact are.
#[derive(Clone)]
pub(super) enum Place {
    /// In one file, or in memory.
    Source(Arc<dyn ReadAt>),
    /// In files that share a prefix or a pattern: a checkpoint.
    Prefix(PathBuf),
    /// In a directory: a SavedModel.
    Directory(PathBuf),
}

/// An artifact of a known kind.
#[derive(Clone)]
pub struct Artifact {
    pub(super) label: String,
    pub(super) path: Option<PathBuf>,
    pub(super) kind: Kind,
    /// Whether name or content says that it is of this kind; a graph is what nothing tells.
    pub(super) told: bool,
    pub(super) place: Place,
}

impl std::fmt::Debug for Artifact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Artifact")
            .field("path", &self.label)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// Opens the artifact at a path: a file, a SavedModel directory, the prefix of a checkpoint, or the pattern of a V1 checkpoint.
///
/// # Errors
/// [`CheckError`], if there is nothing, a directory that is no SavedModel, or the system cannot read it.
pub fn path(path: impl AsRef<Path>) -> Result<Artifact, CheckError> {
    open(path.as_ref(), None)
}

/// Opens the artifact at a path as one of a kind, where the caller knows better than name and content say.
///
/// # Errors
/// As [`path`].
pub fn path_of_kind(path: impl AsRef<Path>, kind: Option<Kind>) -> Result<Artifact, CheckError> {
    open(path.as_ref(), kind)
}

/// An artifact in memory; its kind is told from its content.
#[must_use]
pub fn bytes(bytes: Vec<u8>) -> Artifact {
    let source: Arc<dyn ReadAt> = Arc::new(bytes);
    // Memory can always be read.
    let told = detect(&source, None).unwrap_or(Told::Nothing);
    of_source("-".to_owned(), None, told, source, None)
}

/// An artifact from a stream, such as standard input; kept in memory up to 64 MiB, and in a temporary file beyond. The stream is not
/// read further than it takes to tell that it holds something of a kind that is not judged, or what no parser takes.
///
/// # Errors
/// [`CheckError::Io`] if the stream cannot be read or the temporary file not written; [`CheckError::TooLong`] for a graph beyond 2 GiB,
/// which no protobuf message can have, and for anything else beyond 64 GiB.
pub fn reader(input: impl Read, kind: Option<Kind>) -> Result<Artifact, CheckError> {
    let label = "-".to_owned();
    let source = spool(input, &label, None, kind)?;
    let told =
        detect(&source, None).map_err(|source| CheckError::Io { path: label.clone(), source })?;
    Ok(of_source(label, None, told, source, kind))
}

fn of_source(
    label: String,
    path: Option<PathBuf>,
    told: Told,
    source: Arc<dyn ReadAt>,
    kind: Option<Kind>,
) -> Artifact {
    Artifact {
        label,
        path,
        kind: kind.unwrap_or(told.kind()),
        told: told != Told::Nothing || kind.is_some(),
        place: Place::Source(source),
    }
}

/// Opens a path, as a kind that the caller names if they do.
pub(super) fn open(path: &Path, kind: Option<Kind>) -> Result<Artifact, CheckError> {
    let label = path.to_string_lossy().into_owned();
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => CheckError::NotFound { path: label.clone() },
        _ => CheckError::Io { path: label.clone(), source },
    };
    let at = |kind: Kind, place: Place| Artifact {
        label: label.clone(),
        path: Some(path.to_owned()),
        kind,
        told: true,
        place,
    };
    let metadata = std::fs::metadata(path);
    if metadata.as_ref().is_ok_and(std::fs::Metadata::is_dir) {
        let directory = || Place::Directory(path.to_owned());
        match kind {
            None if graph::is_saved_model(path) => return Ok(at(Kind::SavedModel, directory())),
            None if is_orbax(path) => return Ok(at(Kind::Orbax, directory())),
            Some(kind @ (Kind::SavedModel | Kind::Orbax)) => return Ok(at(kind, directory())),
            _ => {}
        }
        return Err(CheckError::Directory { path: label });
    }
    if matches!(kind, None | Some(Kind::TensorBundle)) && with_suffix(path, ".index").is_file() {
        return Ok(at(Kind::TensorBundle, Place::Prefix(path.to_owned())));
    }
    if kind.is_none()
        && let Some(prefix) = shard_prefix(path)
        && with_suffix(&prefix, ".index").is_file()
    {
        return Ok(at(Kind::TensorBundle, Place::Prefix(prefix)));
    }
    let metadata = match metadata {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_pattern(path) => {
            return Ok(at(kind.unwrap_or(Kind::CheckpointV1), Place::Prefix(path.to_owned())));
        }
        Err(error) => return Err(failed(error)),
    };
    let file = File::open(path).map_err(failed)?;
    // A pipe has no ends to look at, and no length.
    let source: Arc<dyn ReadAt> =
        if metadata.is_file() { Arc::new(file) } else { spool(file, &label, Some(path), kind)? };
    let told = detect(&source, Some(path)).map_err(failed)?;
    Ok(of_source(label.clone(), Some(path.to_owned()), told, source, kind))
}

/// Whether a directory is a checkpoint of Orbax: it describes itself, or its tree beside the database of its arrays.
pub(super) fn is_orbax(directory: &Path) -> bool {
    let has = |name: &str| directory.join(name).exists();
    has("_CHECKPOINT_METADATA")
        || (has("_METADATA")
            && ["manifest.ocdbt", "_sharding", "array_metadatas", "ocdbt.process_0", "d"]
                .into_iter()
                .any(has))
}

/// The prefix of the checkpoint that a data shard belongs to: `ckpt` of `ckpt.data-00000-of-00002`.
pub(super) fn shard_prefix(path: &Path) -> Option<PathBuf> {
    let text = path.to_str()?;
    let (prefix, numbers) = text.rsplit_once(".data-")?;
    let (shard, shards) = numbers.split_once("-of-")?;
    let is_number = |text: &str| text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(shard) && is_number(shards)).then(|| PathBuf::from(prefix))
}

/// A path with something added to the end of its name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Whether a path is a pattern of names, as the shards of a V1 checkpoint are given.
pub(super) fn is_pattern(path: &Path) -> bool {
    path.as_os_str().to_string_lossy().contains(['*', '?', '['])
}

impl Artifact {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether this consumer may load it; the other options have their defaults.
    #[must_use]
    pub fn for_consumer(&self, consumer: &Consumer) -> Verdict {
        self.check(&Options::for_consumer(consumer.clone()))
    }

    /// Whether it may be loaded. [`Options::kind`] has no effect any more.
    #[must_use]
    pub fn check(&self, options: &Options) -> Verdict {
        let mut verdict = Verdict::new(self.label.clone(), Some(self.kind));
        verdict.consumer = self
            .kind
            .line()
            .and_then(|line| options.consumer.line(line))
            .map(|consumer| (&consumer).into());
        match self.kind {
            Kind::SavedModel | Kind::MetaGraph | Kind::GraphDefText | Kind::GraphDef => {
                graph::check(self, options, &mut verdict);
            }
            Kind::TensorBundle => tensor_bundle::check(self, options, &mut verdict),
            Kind::CheckpointV1 => checkpoint_v1::check(self, options, &mut verdict),
            Kind::Plugin => plugin::check(self, options, &mut verdict),
            Kind::IfrtSerialized => ifrt::check(self, options, &mut verdict),
            Kind::DeviceState => device_state::check(self, options, &mut verdict),
            Kind::Safetensors | Kind::Npy | Kind::Npz => {
                tensors::check(self, options, &mut verdict);
            }
            _ => other_kind::check(self, &mut verdict),
        }
        if options.strict {
            verdict.strict();
        }
        verdict
    }

    /// What is in it.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub fn inspect(&self) -> Result<Inspection, Box<Reason>> {
        match self.kind {
            Kind::SavedModel | Kind::MetaGraph | Kind::GraphDefText | Kind::GraphDef => {
                graph::inspect(self)
            }
            Kind::TensorBundle => tensor_bundle::inspect(self),
            Kind::CheckpointV1 => checkpoint_v1::inspect(self),
            Kind::Plugin => plugin::inspect(self),
            Kind::IfrtSerialized => ifrt::inspect(self),
            Kind::DeviceState => device_state::inspect(self),
            Kind::Safetensors | Kind::Npy | Kind::Npz => tensors::inspect(self),
            _ => Ok(other_kind::inspect(self)),
        }
    }
}
