//! Walks over everything below a directory, and reports paths without an artifact.
//!
//! Decides which files belong to an artifact, which are artifacts themselves, and which are
//! neither: these are counted, so that the caller learns which files of a directory were not
//! checked.

use std::{
    collections::HashSet,
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serdes_checkpoints::{
    patterns::{is_pattern, matching},
    tensor_bundle::prefix_of_data,
};
use serdes_files::{EntryKind, Tree};
use serdes_tensors as tensor_io;

use super::{
    Artifact, Cancelled, CheckError, Consumer, Kind, Options, Reason, Remedy, Verdict, Verdicts,
    artifact::{kind_of_directory, open, system},
    detect::of_judged,
    each::Each,
    opened::with_suffix,
    rule::messages,
};

/// Limit on the depth of nested directories.
const MAXIMUM_DEPTH: usize = 64;

/// Limit on the paths of skipped files that are kept; further ones are only counted.
const LISTED: usize = 100;

/// Checks the artifact at a path, or, if the path is a directory that is not an artifact itself,
/// everything below it in the order of names.
///
/// A pattern (`models/*.pb`) stands for everything that it matches; only if all matches are files
/// of V1 checkpoints is it one checkpoint, as in TensorFlow.
///
/// A file that cannot be read gets a verdict too; the only error is [`Cancelled`], which ends the
/// walk. Below the directory itself, links to directories are not followed, so that the walk ends,
/// and only files are opened, so that it does not wait for a pipe. Files of kinds that are not
/// judged get no verdict and are [counted](Walk::skipped), unless their name is that of a judged
/// kind. A directory without any artifact is `not_found`.
pub fn walk(path: impl AsRef<Path>, options: &Options) -> Walk<'_> {
    Walk {
        root: path.as_ref().to_owned(),
        tree: system(),
        stage: Stage::Begin,
        pending: Vec::new(),
        covered: HashSet::new(),
        directory: false,
        skipped: Skipped::default(),
        kind: None,
        excluded: Excluded(None),
        consumers: Vec::new(),
        given: Vec::new().into_iter(),
        options,
    }
}

/// Returns the verdicts of [`walk`].
pub fn all(
    path: impl AsRef<Path>,
    options: &Options,
) -> impl Iterator<Item = Result<Verdict, Cancelled>> {
    walk(path, options)
}

/// Files that a walk skipped because their kind is not judged: files, links to directories, pipes,
/// checkpoints of other libraries.
///
/// Excludes files that were left out by the caller, and files that belong to an artifact: its
/// shards, assets and parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// Number of skipped files.
    pub count: u64,
    /// The first hundred of their paths.
    pub paths: Vec<PathBuf>,
}

impl Skipped {
    fn add(&mut self, path: PathBuf) {
        self.count += 1;
        if self.paths.len() < LISTED {
            self.paths.push(path);
        }
    }
}

/// The error for a path at which a walk found nothing that it can open.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unopened {
    /// The path.
    pub path: String,
    /// The reason.
    pub reason: Box<Reason>,
}

/// The progress of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing was visited yet.
    Begin,
    /// No artifact was found yet.
    Nothing,
    /// An artifact was found.
    Found,
    /// The walk has ended: without an artifact, which was reported, or because the work was
    /// stopped.
    Ended,
}

/// Returns true if a path below a walked directory is left out; the second argument tells if the
/// path is a directory.
type Excludes<'o> = dyn Fn(&Path, bool) -> bool + 'o;

struct Excluded<'o>(Option<Box<Excludes<'o>>>);

impl fmt::Debug for Excluded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Excluded" } else { "Nothing" })
    }
}

/// Iterator over the verdicts on everything at a path; see [`walk`].
#[derive(Debug)]
pub struct Walk<'o> {
    root: PathBuf,
    /// The tree that contains the path.
    tree: Arc<dyn Tree>,
    stage: Stage,
    /// The paths still to be visited, the next one last, each with its depth below the given path.
    pending: Vec<(PathBuf, usize)>,
    /// Files that an index beside them names: they are checked with it.
    covered: HashSet<PathBuf>,
    directory: bool,
    skipped: Skipped,
    kind: Option<Kind>,
    excluded: Excluded<'o>,
    /// The consumers to judge for; if empty, the consumer of the options.
    consumers: Vec<Consumer>,
    /// Verdicts on the last artifact that was found, some of which the iterator has returned.
    given: std::vec::IntoIter<Verdict>,
    options: &'o Options,
}

impl<'o> Walk<'o> {
    /// Treats every file as one of this kind, overriding detection.
    #[must_use]
    pub fn of_kind(self, kind: Kind) -> Self {
        Self { kind: Some(kind), ..self }
    }

    /// Sets the tree of files of the path: object storage, or a custom tree.
    #[must_use]
    pub fn in_tree(self, tree: Arc<dyn Tree>) -> Self {
        Self { tree, ..self }
    }

    /// Leaves out the paths for which `excluded` returns true; they are neither checked nor counted
    /// as skipped. It is called with the path of each entry below the walked directory, and with
    /// true for a directory, which the walk then does not enter.
    #[must_use]
    pub fn without(self, excluded: impl Fn(&Path, bool) -> bool + 'o) -> Self {
        Self { excluded: Excluded(Some(Box::new(excluded))), ..self }
    }

    /// Sets the consumers, which replace the consumer of the options; each artifact gets a verdict
    /// for each. Without consumers, the one of the options is used.
    #[must_use]
    pub fn for_consumers(self, consumers: impl IntoIterator<Item = Consumer>) -> Self {
        Self { consumers: consumers.into_iter().collect(), ..self }
    }

    /// Returns the verdicts on the next artifact, one for each consumer; [`Iterator`] returns them
    /// one by one.
    pub fn next_artifact(&mut self) -> Option<Result<Verdicts, Cancelled>> {
        let verdicts = match self.next_opened()? {
            Ok(artifact) => artifact.check_for(self.consumers(), self.options),
            Err(Unopened { path, reason }) => Ok(self.refused(&path, &reason)),
        };
        if verdicts.is_err() {
            self.stage = Stage::Ended;
        }
        Some(verdicts)
    }

    /// Returns the next artifact without a verdict, for callers that inspect it.
    ///
    /// # Errors
    /// [`Unopened`] for a path at which there is nothing that can be read; the walk continues after
    /// it.
    ///
    /// ```no_run
    /// use serdes_check::{self as check, Options};
    ///
    /// let options = Options::default();
    /// let mut walk = check::walk("models", &options);
    /// while let Some(artifact) = walk.next_opened() {
    ///     match artifact {
    ///         Ok(artifact) => println!("{}: {}", artifact.path(), artifact.kind()),
    ///         Err(unopened) => println!("{}: {}", unopened.path, unopened.reason.message),
    ///     }
    /// }
    /// ```
    pub fn next_opened(&mut self) -> Option<Result<Artifact, Unopened>> {
        if self.stage == Stage::Ended {
            return None;
        }
        if let Some(found) = self.find() {
            self.stage = Stage::Found;
            return Some(found);
        }
        if self.stage != Stage::Nothing {
            return None;
        }
        self.stage = Stage::Ended;
        let reason = Reason::from(messages::no_artifact_in_directory());
        let reason = reason.with_remedy(Remedy::CheckPathOrNameFile);
        Some(Err(self.unopened(&self.root, reason)))
    }

    /// Returns true if a directory was walked into, because the path was not an artifact itself.
    #[must_use]
    pub fn is_of_directory(&self) -> bool {
        self.directory
    }

    /// Returns the files that were skipped so far.
    #[must_use]
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Returns true if an artifact was found so far. If not, the only verdict is `not_found`.
    #[must_use]
    pub fn found_any(&self) -> bool {
        self.stage == Stage::Found
    }

    fn begin(&mut self) -> Option<Result<Artifact, Unopened>> {
        self.stage = Stage::Nothing;
        let root = self.root.clone();
        if let Some(matches) = self.matches(&root) {
            self.pending.extend(matches.into_iter().rev().map(|path| (path, 0)));
            return None;
        }
        Some(match open(&self.tree, &root, self.kind) {
            Ok(artifact) => Ok(artifact),
            Err(CheckError::Directory { .. }) => match self.list(&root, 0) {
                Ok(()) => return None,
                Err(reason) => Err(self.unopened(&root, *reason)),
            },
            Err(error) => Err(self.unopened(&root, error.reason())),
        })
    }

    /// Returns the next artifact, or the next path without one.
    fn find(&mut self) -> Option<Result<Artifact, Unopened>> {
        if self.stage == Stage::Begin
            && let Some(found) = self.begin()
        {
            return Some(found);
        }
        while let Some((path, depth)) = self.pending.pop() {
            if let Some(found) = self.visit(&path, depth) {
                return Some(found);
            }
        }
        None
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<Verdict, Cancelled>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(verdict) = self.given.next() {
                return Some(Ok(verdict));
            }
            match self.next_artifact()? {
                Ok(verdicts) => self.given = verdicts.into_iter(),
                Err(cancelled) => return Some(Err(cancelled)),
            }
        }
    }
}

impl Walk<'_> {
    /// Returns the files that a pattern matches, if every match is an artifact of its own.
    fn matches(&self, pattern: &Path) -> Option<Vec<PathBuf>> {
        let one_checkpoint = matches!(self.kind, Some(Kind::CheckpointV1 | Kind::TensorBundle));
        if one_checkpoint || !is_pattern(pattern) || self.tree.look(pattern).is_ok() {
            return None;
        }
        let matches = matching(&*self.tree, pattern)?;
        let is_v1 = |path: &PathBuf| {
            open(&self.tree, path, None).is_ok_and(|artifact| artifact.kind() == Kind::CheckpointV1)
        };
        if matches.iter().all(is_v1) { None } else { Some(matches) }
    }

    /// Visits one entry of a directory; returns `None` if it is not an artifact.
    fn visit(&mut self, path: &Path, depth: usize) -> Option<Result<Artifact, Unopened>> {
        let entry = match self.tree.look_at_entry(path) {
            Ok(entry) => entry,
            // It was removed after the directory was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(source) => return Some(Err(self.unopened(path, self.unreadable(path, source)))),
        };
        let is_directory = entry == EntryKind::Directory;
        if self.is_excluded(path, is_directory) {
            return None;
        }
        if is_directory {
            return self.visit_directory(path, depth);
        }
        // A link to a file counts as the file; a link to a directory may lead back here.
        match self.tree.look(path) {
            Ok(EntryKind::File) => self.visit_file(path),
            Err(source) if is_named_as_artifact(path) => {
                Some(Err(self.unopened(path, self.unreadable(path, source))))
            }
            _ => {
                self.skipped.add(path.to_owned());
                None
            }
        }
    }

    fn visit_directory(&mut self, path: &Path, depth: usize) -> Option<Result<Artifact, Unopened>> {
        match kind_of_directory(&*self.tree, path) {
            Some(kind) if kind.is_judged() => return Some(self.open_as(path, None)),
            Some(_) => {
                self.skipped.add(path.to_owned());
                return None;
            }
            None if is_parts_of_a_state(&self.tree, path) => return None,
            None => {}
        }
        self.list(path, depth).err().map(|reason| Err(self.unopened(path, *reason)))
    }

    fn visit_file(&mut self, path: &Path) -> Option<Result<Artifact, Unopened>> {
        if self.covered.remove(path) {
            return None;
        }
        let prefix = prefix_of_data(path);
        let is_data = prefix.is_some();
        if prefix.is_some_and(|prefix| self.tree.has_file(&with_suffix(&prefix, ".index"))) {
            return None;
        }
        match open(&self.tree, path, None) {
            Ok(artifact) if !artifact.is_marked(|| is_named_as_artifact(path)) => {
                self.skipped.add(path.to_owned());
                None
            }
            // Files of other data may be named like data files of a checkpoint.
            Ok(artifact) if is_data && artifact.kind() == Kind::TensorBundle => {
                self.skipped.add(path.to_owned());
                None
            }
            Ok(artifact) if self.kind.is_none() => Some(Ok(artifact.among_others())),
            Ok(_) => Some(self.open_as(path, self.kind)),
            Err(error) => Some(Err(self.unopened(path, error.reason()))),
        }
    }

    fn open_as(&self, path: &Path, kind: Option<Kind>) -> Result<Artifact, Unopened> {
        open(&self.tree, path, kind).map_err(|error| self.unopened(path, error.reason()))
    }

    fn unopened(&self, path: &Path, reason: Reason) -> Unopened {
        Unopened { path: self.tree.name(path), reason: Box::new(reason) }
    }

    fn consumers(&self) -> &[Consumer] {
        match self.consumers.as_slice() {
            [] => std::slice::from_ref(self.options.consumer()),
            consumers => consumers,
        }
    }

    /// Returns the verdicts for every consumer of TensorFlow on a path without an artifact.
    fn refused(&self, path: &str, reason: &Reason) -> Verdicts {
        let path = path.to_owned();
        let verdict = |consumer| Verdict::without_artifact(path.clone(), consumer, reason.clone());
        let consumers = Each::for_kind(Kind::GraphDef, self.consumers());
        let verdicts = consumers.map_or_else(Vec::new, |each| each.map_into(verdict).into_vec());
        Verdicts::new(path.clone(), verdicts)
    }

    fn is_excluded(&self, path: &Path, is_directory: bool) -> bool {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        self.excluded.0.as_ref().is_some_and(|excluded| excluded(below, is_directory))
    }

    fn list(&mut self, directory: &Path, depth: usize) -> Result<(), Box<Reason>> {
        if depth == MAXIMUM_DEPTH {
            let reason = Reason::from(messages::too_many_directories(MAXIMUM_DEPTH));
            return Err(reason.with_remedy(Remedy::CheckBelow).into());
        }
        let entries = self.tree.list(directory);
        let mut entries = entries.map_err(|source| self.unreadable(directory, source))?;
        self.directory = true;
        self.cover(&entries);
        entries.sort_unstable_by(|left, right| right.cmp(left));
        self.pending.extend(entries.into_iter().map(|path| (path, depth + 1)));
        Ok(())
    }

    /// Records the files that are named by an index among the entries of a directory.
    fn cover(&mut self, entries: &[PathBuf]) {
        if self.kind.is_some() {
            return;
        }
        for index in entries.iter().filter(|entry| tensor_io::is_index(entry)) {
            if !self.is_excluded(index, false) {
                self.covered.extend(tensor_io::files_of_index(&*self.tree, index));
            }
        }
    }

    fn unreadable(&self, path: &Path, source: io::Error) -> Reason {
        CheckError::of_system(self.tree.name(path), source).reason()
    }
}

/// Returns true if a directory holds the parts of the state beside it: `x.sds.parts` for `x.sds`.
fn is_parts_of_a_state(tree: &Arc<dyn Tree>, directory: &Path) -> bool {
    directory.extension().is_some_and(|extension| extension == "parts")
        && open(tree, &directory.with_extension(""), None)
            .is_ok_and(|artifact| artifact.kind() == Kind::DeviceState)
}

/// Returns true if a name is that of a judged kind, so that other contents get a verdict: a page
/// that was saved in place of a model must not be skipped.
fn is_named_as_artifact(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    match of_judged(&name) {
        // Notes and listings have such names too.
        Some(Kind::CheckpointV1) => false,
        Some(_) => true,
        None => name.ends_with(".pb") && name != "fingerprint.pb" && name != "keras_metadata.pb",
    }
}
