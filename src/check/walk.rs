//! Everything below a directory, and paths that lead nowhere.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::artifact::{Artifact, CheckError, is_data_shard, is_pattern, open};
use super::{Kind, Options, Outcome, Reason, Rule, Verdict, graph, kind, plugin};

/// Directories inside one another that are walked into.
const MAXIMUM_DEPTH: usize = 64;

/// Checks the artifact at a path, or everything below a directory that is no SavedModel, in the order of names.
///
/// A pattern (`models/*.pb`) stands for everything that it matches; only where all of that are files of V1 checkpoints it is one
/// checkpoint, as TensorFlow takes it.
///
/// Never fails: what cannot be read is a verdict too. Below the directory itself, links to directories are not followed, so that the
/// walk ends, and files that nothing marks as an artifact are left out. A directory without any artifact is `not_found`.
pub fn all(path: impl AsRef<Path>, options: &Options) -> impl Iterator<Item = Verdict> {
    Walk { root: Some(path.as_ref().to_owned()), pending: Vec::new(), options }
}

/// The exit status of the command for several verdicts: the worst wins. 0 for none.
pub fn exit_status<'v>(verdicts: impl IntoIterator<Item = &'v Verdict>) -> u8 {
    verdicts.into_iter().map(Verdict::outcome).max().map_or(0, Outcome::exit_status)
}

struct Walk<'o> {
    /// The path that was given, until an artifact was found.
    root: Option<PathBuf>,
    /// What is still to be looked at, the next one last, with its depth below the path that was given.
    pending: Vec<(PathBuf, usize)>,
    options: &'o Options,
}

impl Iterator for Walk<'_> {
    type Item = Verdict;

    fn next(&mut self) -> Option<Verdict> {
        if self.pending.is_empty()
            && let Some(root) = self.root.clone()
        {
            if let Some(matches) = self.matches(&root) {
                self.pending.extend(matches.into_iter().rev().map(|path| (path, 0)));
            } else {
                match open(&root, self.options.kind) {
                    Ok(artifact) => {
                        self.root = None;
                        return Some(artifact.check(self.options));
                    }
                    Err(CheckError::Directory { .. }) => {
                        if let Err(verdict) = self.list(&root, 0) {
                            self.root = None;
                            return Some(*verdict);
                        }
                    }
                    Err(error) => {
                        self.root = None;
                        return Some(refused(&root, error.reason()));
                    }
                }
            }
        }
        while let Some((path, depth)) = self.pending.pop() {
            if let Some(verdict) = self.visit(&path, depth) {
                self.root = None;
                return Some(verdict);
            }
        }
        let root = self.root.take()?;
        let reason = Reason::new(
            Rule::NotFound,
            "there is no artifact in this directory",
            "check the path; a file of any name can be checked by naming it",
        );
        Some(refused(&root, reason))
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

    /// Looks at one entry of a directory; `None` if it is no artifact.
    fn visit(&mut self, path: &Path, depth: usize) -> Option<Verdict> {
        let metadata = fs::symlink_metadata(path).ok()?;
        if metadata.is_dir() {
            if graph::is_saved_model(path) {
                return Some(match open(path, None) {
                    Ok(artifact) => artifact.check(self.options),
                    Err(error) => refused(path, error.reason()),
                });
            }
            return self.list(path, depth).err().map(|verdict| *verdict);
        }
        // A link to a file is as good as the file; a link to a directory may lead back here.
        if !fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) || is_data_shard(path) {
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
            Ok(_) => None,
            Err(error) => Some(refused(path, error.reason())),
        }
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
                entries.sort_unstable_by(|left, right| right.cmp(left));
                self.pending.extend(entries.into_iter().map(|path| (path, depth + 1)));
                Ok(())
            }
            Err(source) => {
                let path = directory.to_string_lossy().into_owned();
                Err(Box::new(refused(directory, CheckError::Io { path, source }.reason())))
            }
        }
    }
}

/// Whether a file in a directory is an artifact: it says so, or it is named as a graph. A shared library is one if it is a plug-in.
fn is_marked(artifact: &Artifact, path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    match artifact.kind {
        Kind::GraphDef if !artifact.told => {
            name.ends_with(".pb") && name != "fingerprint.pb" && name != "keras_metadata.pb"
        }
        // A name with ".ckpt" in it is a V1 checkpoint only if its content agrees: notes and listings are named like that too.
        Kind::CheckpointV1 => kind::is_table(path),
        Kind::Plugin => plugin::is_plugin(artifact),
        _ => true,
    }
}

fn refused(path: &Path, reason: Reason) -> Verdict {
    let mut verdict = Verdict::new(path.to_string_lossy().into_owned(), None);
    verdict.refuse(reason);
    verdict
}
