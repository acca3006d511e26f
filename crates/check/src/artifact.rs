//! Opens artifacts, and dispatches to the reader of their kind.
//!
//! Depends on which reader each kind has, but not on the readers' findings.

use std::{
    fmt,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use serdes_checkpoints::{patterns::is_pattern, tensor_bundle::prefix_of_data};
use serdes_files::{EntryKind, FileSystem, ReadAt, Tree};
use serdes_tensors::is_distributed;

use super::{
    Cancelled, CheckError, Consumer, Findings, Inspection, Kind, Options, Reason, Verdict,
    Verdicts, checkpoint_state, checkpoint_v1,
    detect::{Detected, detect, is_table},
    device_state,
    each::{Each, check_beside_graphs},
    graph, ifrt, jax,
    opened::{Bytes, CheckpointFiles, Opened, with_suffix},
    orbax, other_kind, plugin, saved_model, shards,
    spool::spool,
    tensor_bundle, tensors,
};

/// An artifact of a known kind.
#[derive(Clone)]
pub struct Artifact {
    label: String,
    /// True if the name or the content identifies the kind. Otherwise an artifact counts as a
    /// graph.
    is_told: bool,
    opened: Opened,
}

impl fmt::Debug for Artifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Artifact")
            .field("path", &self.label)
            .field("kind", &self.kind())
            .finish_non_exhaustive()
    }
}

/// Opens the artifact at a path: a file, a SavedModel directory, the prefix of a checkpoint, or the
/// pattern of a V1 checkpoint.
///
/// # Errors
/// [`CheckError`], if nothing exists there, it is a directory without a SavedModel, or the system
/// cannot read it.
pub fn path(path: impl AsRef<Path>) -> Result<Artifact, CheckError> {
    open(&system(), path.as_ref(), None)
}

/// Opens the artifact at a path as one of a given kind, overriding detection.
///
/// # Errors
/// As [`path`].
pub fn path_of_kind(path: impl AsRef<Path>, kind: Option<Kind>) -> Result<Artifact, CheckError> {
    open(&system(), path.as_ref(), kind)
}

/// Opens the artifact at a path of any tree of files: object storage, or a custom tree.
///
/// # Errors
/// As [`path`].
pub fn path_in(
    tree: Arc<dyn Tree>,
    path: impl AsRef<Path>,
    kind: Option<Kind>,
) -> Result<Artifact, CheckError> {
    open(&tree, path.as_ref(), kind)
}

/// Returns the file system.
pub(super) fn system() -> Arc<dyn Tree> {
    Arc::new(FileSystem)
}

/// Creates an artifact in memory; its kind is detected from its content.
#[must_use]
pub fn bytes(bytes: Vec<u8>) -> Artifact {
    let source: Arc<dyn ReadAt> = Arc::new(bytes);
    // Reading memory cannot fail.
    let detected = detect(&source, None).unwrap_or(Detected::Unmarked);
    of_bytes(Bytes { source, label: "-".to_owned(), path: None, tree: system() }, detected, None)
}

/// Creates an artifact from a stream, such as standard input; it is kept in memory up to 64 MiB,
/// and in a temporary file beyond. Reading stops early if the start shows that the artifact is of a
/// kind that is not judged, or that no parser accepts it.
///
/// # Errors
/// [`CheckError::Io`] if the stream cannot be read or the temporary file not written;
/// [`CheckError::TooLong`] for a graph beyond 2 GiB, which no protobuf message can have, and for
/// anything else beyond 64 GiB.
pub fn reader(input: impl Read, kind: Option<Kind>) -> Result<Artifact, CheckError> {
    let label = "-".to_owned();
    let source = spool(input, &label, None, kind)?;
    let detected =
        detect(&source, None).map_err(|source| CheckError::Io { path: label.clone(), source })?;
    Ok(of_bytes(Bytes { source, label, path: None, tree: system() }, detected, kind))
}

fn of_bytes(bytes: Bytes, detected: Detected, kind: Option<Kind>) -> Artifact {
    Artifact {
        label: bytes.label.clone(),
        is_told: detected != Detected::Unmarked || kind.is_some(),
        opened: Opened::of_bytes(kind.unwrap_or(detected.kind()), bytes),
    }
}

/// Opens a path, as the given kind if there is one.
pub(super) fn open(
    tree: &Arc<dyn Tree>,
    path: &Path,
    kind: Option<Kind>,
) -> Result<Artifact, CheckError> {
    let label = tree.name(path);
    let failed = |source: io::Error| CheckError::of_system(label.clone(), source);
    let told = |opened| Artifact { label: label.clone(), is_told: true, opened };
    let entry = tree.look(path);
    if matches!(entry, Ok(EntryKind::Directory)) {
        let kind = kind.or_else(|| kind_of_directory(&**tree, path));
        let opened = kind.and_then(|kind| Opened::of_directory(kind, tree, path));
        return opened.map(told).ok_or(CheckError::Directory { path: label });
    }
    if let Some(prefix) = prefix_of_bundle(&**tree, path, kind)
        && let Some(bundle) = Opened::of_files(Kind::TensorBundle, tree, &prefix)
    {
        return Ok(told(bundle));
    }
    let entry = match entry {
        Ok(entry) => entry,
        Err(error) => {
            let is_absent = error.kind() == io::ErrorKind::NotFound;
            let kind = kind.unwrap_or(Kind::CheckpointV1);
            return match Opened::of_files(kind, tree, path) {
                Some(opened) if is_absent && is_pattern(path) => Ok(told(opened)),
                _ => Err(failed(error)),
            };
        }
    };
    let source = if entry == EntryKind::File {
        tree.open(path).map_err(failed)?
    } else {
        // A pipe cannot be read at any position, and has no length.
        spool(File::open(path).map_err(failed)?, &label, Some(path), kind)?
    };
    let detected = detect(&source, Some(path)).map_err(failed)?;
    // A data file whose index is missing, unless it has other content.
    if kind.is_none()
        && !matches!(detected, Detected::ByContent(_))
        && let Some(prefix) = prefix_of_data(path)
        && let Some(opened) = Opened::of_files(Kind::TensorBundle, tree, &prefix)
    {
        return Ok(Artifact { label, is_told: true, opened });
    }
    let bytes = Bytes { source, label, path: Some(path.to_owned()), tree: Arc::clone(tree) };
    Ok(of_bytes(bytes, detected, kind))
}

/// Returns the kind of a directory, by its contents.
pub(super) fn kind_of_directory(tree: &dyn Tree, directory: &Path) -> Option<Kind> {
    if saved_model::is_saved_model(tree, directory) {
        Some(Kind::SavedModel)
    } else if is_distributed(tree, directory) {
        Some(Kind::TorchDistributed)
    } else {
        orbax::is_orbax(tree, directory).then_some(Kind::Orbax)
    }
}

/// Returns the prefix of the V2 checkpoint that a path names: the path itself, or the prefix of a
/// data file, if the index exists.
fn prefix_of_bundle(tree: &dyn Tree, path: &Path, kind: Option<Kind>) -> Option<PathBuf> {
    let has_index = |prefix: &Path| tree.has_file(&with_suffix(prefix, ".index"));
    if matches!(kind, None | Some(Kind::TensorBundle)) && has_index(path) {
        return Some(path.to_owned());
    }
    if kind.is_some() {
        return None;
    }
    prefix_of_data(path).filter(|prefix| has_index(prefix))
}

impl Artifact {
    /// Returns the path as it was given; `-` for a stream and for bytes in memory.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.label
    }

    /// Returns the kind of the artifact.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.opened.kind()
    }

    /// Checks whether this consumer may load the artifact, with defaults for all other options.
    #[must_use]
    pub fn for_consumer(&self, consumer: &Consumer) -> Verdict {
        self.judge(&Each::one(consumer), &Options::default()).first
    }

    /// Checks whether each of these consumers may load the artifact, with defaults for all other
    /// options. A file of graphs is read once for all of them, unless one finds it malformed.
    ///
    /// Only the releases of TensorFlow and jaxlib that load this kind of artifact are used. If
    /// there are none among the consumers, the newest release is used.
    ///
    /// ```
    /// use serdes_check::{self as check, Consumer};
    ///
    /// // One node "a" with op "Conv", which TensorFlow has from 2.14 on, and no attributes.
    /// let graph = b"\x0a\x09\x0a\x01a\x12\x04Conv".to_vec();
    /// let verdicts = check::bytes(graph).for_consumers(&Consumer::releases("all")?);
    /// for verdict in &verdicts {
    ///     println!("{:?}: {}", verdict.release, verdict.outcome());
    /// }
    /// println!("loads from {:?} to {:?}", verdicts.oldest(), verdicts.newest());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn for_consumers(&self, consumers: &[Consumer]) -> Verdicts {
        let verdicts = match Each::for_kind(self.kind(), consumers) {
            Some(consumers) => self.judge(&consumers, &Options::default()).into_vec(),
            None => Vec::new(),
        };
        Verdicts::new(self.label.clone(), verdicts)
    }

    /// Checks whether the consumer of the options may load the artifact.
    ///
    /// # Errors
    /// [`Cancelled`], if the monitor of the options stopped the work: there is then no verdict.
    pub fn check(&self, options: &Options) -> Result<Verdict, Cancelled> {
        self.check_each(&Each::one(options.consumer()), options).map(|each| each.first)
    }

    /// Checks whether each of these consumers may load the artifact; the consumer of the options is
    /// ignored.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_for(
        &self,
        consumers: &[Consumer],
        options: &Options,
    ) -> Result<Verdicts, Cancelled> {
        let verdicts = match Each::for_kind(self.kind(), consumers) {
            Some(consumers) => self.check_each(&consumers, options)?.into_vec(),
            None => Vec::new(),
        };
        Ok(Verdicts::new(self.label.clone(), verdicts))
    }

    pub(super) fn check_each(
        &self,
        consumers: &Each<&Consumer>,
        options: &Options,
    ) -> Result<Each<Verdict>, Cancelled> {
        let verdicts = self.judge(consumers, options);
        if options.monitor().is_cancelled() {
            return Err(Cancelled { path: self.label.clone() });
        }
        Ok(verdicts)
    }

    /// Returns the verdicts, which are incomplete if the monitor of the options stopped the work.
    fn judge(&self, consumers: &Each<&Consumer>, options: &Options) -> Each<Verdict> {
        let completed = consumers.map(|consumer| options.completed(consumer));
        let findings = self.findings(&completed.each_ref(), options);
        let verdict = |(consumer, findings)| {
            let path = self.label.clone();
            Verdict::new(path, self.kind(), consumer, findings, options.is_strict())
        };
        completed.each_ref().zip(findings).map_into(verdict)
    }

    fn findings(&self, consumers: &Each<&Consumer>, options: &Options) -> Each<Findings> {
        let beside_graphs =
            |check: &dyn Fn(&Options) -> Findings| check_beside_graphs(consumers, options, check);
        match &self.opened {
            Opened::Graph(file, kind) => graph::check(file, *kind, consumers, options),
            Opened::SavedModel(model) => saved_model::check(model, consumers, options),
            Opened::Bundle(files) => beside_graphs(&|options| tensor_bundle::check(files, options)),
            Opened::CheckpointState(file, follows) => {
                beside_graphs(&|options| checkpoint_state::check(file, *follows, options))
            }
            Opened::CheckpointV1(files) => {
                beside_graphs(&|options| checkpoint_v1::check(files, options))
            }
            Opened::DeviceState(file) => {
                beside_graphs(&|options| device_state::check(file, options))
            }
            Opened::Ifrt(file) => beside_graphs(&|options| ifrt::check(file, options)),
            Opened::Plugin(file) => beside_graphs(&|_| plugin::check(file)),
            Opened::Tensors(file, form) => {
                beside_graphs(&|options| tensors::check(file, *form, options))
            }
            Opened::TensorFolder(files) => {
                beside_graphs(&|options| tensors::check_folder(files, options))
            }
            Opened::Jax(file, form) => jax::check(file, *form, consumers, options),
            Opened::Shards(index) => beside_graphs(&|options| shards::check(index, options)),
            Opened::Recognised(kind, file) => {
                beside_graphs(&|options| match (kind, options.message()) {
                    (Kind::IfrtMessage, Some(named)) => ifrt::check_message(file, named, options),
                    _ => other_kind::check(*kind, file),
                })
            }
            Opened::RecognisedDirectory(kind, directory) => {
                beside_graphs(&|_| other_kind::check_directory(*kind, directory))
            }
        }
    }

    /// Describes the contents of the artifact.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub fn inspect(&self) -> Result<Inspection, Box<Reason>> {
        let nothing = Inspection::new(self.label.clone(), self.kind());
        match &self.opened {
            Opened::Graph(file, kind) => graph::inspect(file, *kind, nothing),
            Opened::SavedModel(model) => saved_model::inspect(model, nothing),
            Opened::Bundle(files) => tensor_bundle::inspect(files, nothing),
            Opened::CheckpointState(file, _) => checkpoint_state::inspect(file, nothing),
            Opened::CheckpointV1(files) => checkpoint_v1::inspect(files, nothing),
            Opened::DeviceState(file) => device_state::inspect(file, nothing),
            Opened::Ifrt(file) => ifrt::inspect(file, nothing),
            Opened::Plugin(file) => plugin::inspect(file, nothing),
            Opened::Tensors(file, form) => tensors::inspect(file, *form, nothing),
            Opened::TensorFolder(files) => tensors::inspect_folder(files, nothing),
            Opened::Jax(file, form) => jax::inspect(file, *form, nothing),
            Opened::Shards(index) => shards::inspect(index, nothing),
            Opened::Recognised(Kind::Torch, file) => {
                Ok(tensors::inspect_torch(file, other_kind::inspect(Kind::Torch, file, nothing)))
            }
            Opened::Recognised(kind, file) => Ok(other_kind::inspect(*kind, file, nothing)),
            Opened::RecognisedDirectory(..) => Ok(nothing),
        }
    }

    /// Marks the artifact as one of several in a directory: another that it names may have its own
    /// verdict.
    pub(super) fn among_others(mut self) -> Self {
        if let Opened::CheckpointState(_, follows) = &mut self.opened {
            *follows = false;
        }
        self
    }

    /// Returns true if a file in a directory is an artifact: by its content, or by its name, as
    /// `is_named` tells. A shared library counts if it is a plug-in.
    pub(super) fn is_marked(&self, is_named: impl FnOnce() -> bool) -> bool {
        match &self.opened {
            Opened::Graph(..) if !self.is_told => is_named(),
            // A name with ".ckpt" in it is a V1 checkpoint only if its content agrees.
            Opened::CheckpointV1(CheckpointFiles::One(file)) => is_table(&*file.source),
            Opened::Plugin(file) => plugin::is_plugin(file),
            opened => opened.kind().is_judged() || is_named(),
        }
    }
}
