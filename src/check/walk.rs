//! Everything below a directory, and paths that lead nowhere.
//!
//! Knows which files belong to an artifact, which are artifacts themselves, and which are neither: those it counts, so that whoever
//! asks about a directory learns what nobody looked at.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::artifact::{
    Artifact, CheckError, Place, is_orbax, is_pattern, open, shard_prefix, with_suffix,
};
use super::detect::{self, is_table, of_judged};
use super::{Kind, Options, Outcome, Reason, Rule, Verdict, graph, plugin};

/// Directories inside one another that are walked into.
const MAXIMUM_DEPTH: usize = 64;

/// Paths of skipped files that are kept; the others are only counted.
const LISTED: usize = 100;

/// Checks the artifact at a path, or everything below a directory that is no artifact itself, in the order of names.
///
/// A pattern (`models/*.pb`) stands for everything that it matches; only where all of that are files of V1 checkpoints it is one
/// checkpoint, as TensorFlow takes it.
///
/// Never fails: what cannot be read is a verdict too. Below the directory itself, links to directories are not followed, so that the
/// walk ends, and nothing but files is opened, so that it does not wait for a pipe. Files of no kind that is judged get no verdict and
/// are [counted](Walk::skipped), unless their name is one of a judged kind. A directory without any artifact is `not_found`.
pub fn walk(path: impl AsRef<Path>, options: &Options) -> Walk<'_> {
    Walk {
        root: path.as_ref().to_owned(),
        stage: Stage::Begin,
        pending: Vec::new(),
        directory: false,
        ended: false,
        skipped: Skipped::default(),
        options,
    }
}

/// The verdicts of [`walk`].
pub fn all(path: impl AsRef<Path>, options: &Options) -> impl Iterator<Item = Verdict> {
    walk(path, options)
}

/// The exit status of the command for several verdicts: the worst wins. 0 for none.
pub fn exit_status<'v>(verdicts: impl IntoIterator<Item = &'v Verdict>) -> u8 {
    verdicts.into_iter().map(Verdict::outcome).max().map_or(0, Outcome::exit_status)
}

/// What a walk passed over because it is of no kind that is judged: files, links to directories, pipes, checkpoints of others.
///
/// Neither what is excluded is in it, nor what belongs to an artifact: its shards, assets and parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// How many there were.
    pub count: u64,
    /// The first hundred of them.
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

/// How far a walk has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing was looked at.
    Begin,
    /// No artifact was found yet.
    Nothing,
    /// There was an artifact.
    Found,
}

/// The verdicts on everything at a path, one after another; see [`walk`].
#[derive(Debug)]
pub struct Walk<'o> {
    root: PathBuf,
    stage: Stage,
    /// What is still to be looked at, the next one last, with its depth below the path that was given.
    pending: Vec<(PathBuf, usize)>,
    directory: bool,
    /// Whether it was said that there is nothing.
    ended: bool,
    skipped: Skipped,
    options: &'o Options,
}

impl Walk<'_> {
    /// Whether a directory was walked into: the path was no artifact of its own.
    #[must_use]
    pub fn is_of_directory(&self) -> bool {
        self.directory
    }

    /// What was passed over so far.
    #[must_use]
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Whether an artifact was found so far. If not, the only verdict says `not_found`.
    #[must_use]
    pub fn found_any(&self) -> bool {
        self.stage == Stage::Found
    }

    fn begin(&mut self) -> Option<Verdict> {
        self.stage = Stage::Nothing;
        let root = self.root.clone();
        if let Some(matches) = self.matches(&root) {
            self.pending.extend(matches.into_iter().rev().map(|path| (path, 0)));
            return None;
        }
        let verdict = match open(&root, self.options.kind) {
            Ok(artifact) => artifact.check(self.options),
            Err(CheckError::Directory { .. }) => match self.list(&root, 0) {
                Ok(()) => return None,
                Err(verdict) => *verdict,
            },
            Err(error) => refused(&root, error.reason()),
        };
        Some(verdict)
    }
}

impl Iterator for Walk<'_> {
    type Item = Verdict;

    fn next(&mut self) -> Option<Verdict> {
        if self.stage == Stage::Begin
            && let Some(verdict) = self.begin()
        {
            self.stage = Stage::Found;
            return Some(verdict);
        }
        while let Some((path, depth)) = self.pending.pop() {
            if let Some(verdict) = self.visit(&path, depth) {
                self.stage = Stage::Found;
                return Some(verdict);
            }
        }
        if self.stage == Stage::Nothing && !std::mem::replace(&mut self.ended, true) {
            let reason = Reason::new(
                Rule::NotFound,
                "there is no artifact in this directory",
                "check the path; a file of any name can be checked by naming it",
            );
            return Some(refused(&self.root, reason));
        }
        None
    }
}

impl Walk<'_> {
    /// What a pattern matches, if every match is an artifact of its own.
    fn matches(&self, pattern: &Path) -> Option<Vec<PathBuf>> {
        let one_checkpoint =
            matches!(self.options.kind, Some(Kind::CheckpointV1 | Kind::TensorBundle));
        if one_checkpoint || !is_pattern(pattern) || pattern.exists() {
            return None;
        }
        let matches: Vec<_> = glob::glob(pattern.to_str()?).ok()?.flatten().collect();
        let is_v1 = |path: &PathBuf| {
            open(path, None).is_ok_and(|artifact| artifact.kind == Kind::CheckpointV1)
        };
        if matches.iter().all(is_v1) { None } else { Some(matches) }
    }

    /// Looks at one entry of a directory; `None` if it gets no verdict.
    fn visit(&mut self, path: &Path, depth: usize) -> Option<Verdict> {
        let entry = match fs::symlink_metadata(path) {
            Ok(entry) => entry,
            // It was taken away since the directory was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(source) => return Some(unreadable(path, source)),
        };
        if self.is_excluded(path, entry.is_dir()) {
            return None;
        }
        if entry.is_dir() {
            return self.visit_directory(path, depth);
        }
        // A link to a file is as good as the file; a link to a directory may lead back here.
        match fs::metadata(path) {
            Ok(target) if target.is_file() => self.visit_file(path),
            Err(source) if is_named_as_artifact(path) => Some(unreadable(path, source)),
            _ => {
                self.skipped.add(path.to_owned());
                None
            }
        }
    }

    fn visit_directory(&mut self, path: &Path, depth: usize) -> Option<Verdict> {
        if graph::is_saved_model(path) {
            return Some(match open(path, None) {
                Ok(artifact) => artifact.check(self.options),
                Err(error) => refused(path, error.reason()),
            });
        }
        if is_orbax(path) {
            self.skipped.add(path.to_owned());
            return None;
        }
        if is_parts_of_a_state(path) {
            return None;
        }
        self.list(path, depth).err().map(|verdict| *verdict)
    }

    fn visit_file(&mut self, path: &Path) -> Option<Verdict> {
        if belongs_to_a_checkpoint(path) {
            return None;
        }
        match open(path, None) {
            Ok(artifact) if is_marked(&artifact, path) => {
                let artifact = match self.options.kind {
                    Some(kind) => Artifact { kind, ..artifact },
                    None => artifact,
                };
                Some(artifact.check(self.options))
            }
            Ok(_) => {
                self.skipped.add(path.to_owned());
                None
            }
            Err(error) => Some(refused(path, error.reason())),
        }
    }

    fn is_excluded(&self, path: &Path, is_directory: bool) -> bool {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        self.options.excludes(below, is_directory)
    }

    fn list(&mut self, directory: &Path, depth: usize) -> Result<(), Box<Verdict>> {
        if depth == MAXIMUM_DEPTH {
            let reason = Reason::new(
                Rule::Unsupported,
                format!("more than {MAXIMUM_DEPTH} directories inside one another"),
                "check what is below on its own",
            );
            return Err(Box::new(refused(directory, reason)));
        }
        let entries: io::Result<Vec<PathBuf>> = fs::read_dir(directory)
            .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
        match entries {
            Ok(mut entries) => {
                self.directory = true;
                entries.sort_unstable_by(|left, right| right.cmp(left));
                self.pending.extend(entries.into_iter().map(|path| (path, depth + 1)));
                Ok(())
            }
            Err(source) => Err(Box::new(unreadable(directory, source))),
        }
    }
}

/// Whether a file is a shard of a checkpoint whose index is there, or the list that TensorFlow keeps beside its checkpoints.
fn belongs_to_a_checkpoint(path: &Path) -> bool {
    if let Some(prefix) = shard_prefix(path) {
        return with_suffix(&prefix, ".index").is_file();
    }
    if path.file_name() != Some(OsStr::new("checkpoint")) {
        return false;
    }
    let start = || -> io::Result<bool> {
        let mut start = [0; 22];
        let file = fs::File::open(path)?;
        Ok(detect::read_up_to(&file, &mut start, 0)? == b"model_checkpoint_path:")
    };
    start().unwrap_or(false)
}

/// Whether a directory holds the parts of the state beside it: `x.sds.parts` of `x.sds`.
fn is_parts_of_a_state(directory: &Path) -> bool {
    directory.extension().is_some_and(|extension| extension == "parts")
        && open(&directory.with_extension(""), None)
            .is_ok_and(|artifact| artifact.kind == Kind::DeviceState)
}

/// Whether a name is one of a kind that is judged, so that something else under it is worth a verdict: a page that was saved in place
/// of a model must not be passed over.
fn is_named_as_artifact(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    match of_judged(&name) {
        // Notes and listings are named like that too.
        Some(Kind::CheckpointV1) => false,
        Some(_) => true,
        None => name.ends_with(".pb") && name != "fingerprint.pb" && name != "keras_metadata.pb",
    }
}

/// Whether a file in a directory is an artifact: it says so, or it is named as one. A shared library is one if it is a plug-in.
fn is_marked(artifact: &Artifact, path: &Path) -> bool {
    match artifact.kind {
        Kind::GraphDef if !artifact.told => is_named_as_artifact(path),
        // A name with ".ckpt" in it is a V1 checkpoint only if its content agrees.
        Kind::CheckpointV1 => match &artifact.place {
            Place::Source(source) => is_table(source),
            _ => true,
        },
        Kind::Plugin => plugin::is_plugin(artifact),
        kind => kind.is_judged() || is_named_as_artifact(path),
    }
}

fn unreadable(path: &Path, source: io::Error) -> Verdict {
    let label = path.to_string_lossy().into_owned();
    let error = match source.kind() {
        io::ErrorKind::NotFound => CheckError::NotFound { path: label },
        _ => CheckError::Io { path: label, source },
    };
    refused(path, error.reason())
}

fn refused(path: &Path, reason: Reason) -> Verdict {
    let mut verdict = Verdict::new(path.to_string_lossy().into_owned(), None);
    verdict.refuse(reason);
    verdict
}
