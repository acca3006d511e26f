//! Queries `git`, run as a process.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use crate::failure::Failure;

/// Maximum size of a revision's listing in bytes.
const LONGEST_LISTING: u64 = 512 << 20;

/// Returns a git command that never prompts the user.
fn git(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(directory).env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null());
    command
}

fn failed(error: &std::io::Error) -> Failure {
    Failure::new(format_args!("cannot run git: {error}"))
        .with_hint("--against takes a folder where there is no git")
}

/// Runs a git command and returns its output; `None` if its status is not 0.
fn ask(directory: &Path, arguments: &[&OsStr]) -> Result<Option<Vec<u8>>, Failure> {
    let mut child = git(directory)
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(&error))?;
    let mut found = Vec::new();
    if let Some(output) = child.stdout.take() {
        output.take(LONGEST_LISTING + 1).read_to_end(&mut found).map_err(|error| failed(&error))?;
    }
    if found.len() as u64 > LONGEST_LISTING {
        let _ = child.kill();
        let _ = child.wait();
        return Err(Failure::new(
            "the revision lists more files than are compared (512 MiB of names)",
        ));
    }
    let status = child.wait().map_err(|error| failed(&error))?;
    Ok(status.success().then_some(found))
}

fn line(found: &[u8]) -> String {
    String::from_utf8_lossy(found).trim_end_matches('\n').to_owned()
}

/// A revision of a repository.
#[derive(Debug)]
pub(super) struct Revision {
    /// Root of the work tree.
    pub(super) top: PathBuf,
    /// Folder of the repository's objects.
    pub(super) objects: PathBuf,
    /// The identifier of the commit.
    pub(super) commit: String,
}

impl Revision {
    /// Finds the revision of this name in the repository of a directory; `None` if there is no such
    /// revision or repository.
    pub(super) fn named(name: &str, directory: &Path) -> Result<Option<Self>, Failure> {
        let ask_word = |words: &[&str]| {
            let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
            Ok::<_, Failure>(ask(directory, &words)?.map(|found| line(&found)))
        };
        let wanted = format!("{name}^{{commit}}");
        let commit = ["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted];
        let Some(commit) = ask_word(&commit)?.filter(|commit| !commit.is_empty()) else {
            return Ok(None);
        };
        let (Some(top), Some(common)) = (
            ask_word(&["rev-parse", "--show-toplevel"])?,
            ask_word(&["rev-parse", "--path-format=absolute", "--git-common-dir"])?,
        ) else {
            return Ok(None);
        };
        Ok(Some(Self { top: PathBuf::from(top), objects: PathBuf::from(common), commit }))
    }

    /// Lists all files of the revision; the entries are separated by NUL.
    pub(super) fn list(&self) -> Result<Vec<u8>, Failure> {
        let words = ["ls-tree", "-r", "-z", "-l", "--full-tree", &self.commit];
        let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
        ask(&self.top, &words)?.ok_or_else(|| {
            Failure::new(format_args!("git does not list the files of {}", self.commit))
        })
    }

    /// Starts a process that returns the contents of files.
    pub(super) fn reader(&self) -> Result<Blobs, Failure> {
        let mut child = git(&self.top)
            .args(["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| failed(&error))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(wanted), Some(found)) => {
                Ok(Blobs { wanted: Some(wanted), found: BufReader::new(found), child })
            }
            _ => Err(Failure::new("git has no pipes")),
        }
    }
}

/// A process that returns the contents of files.
pub(super) struct Blobs {
    wanted: Option<ChildStdin>,
    found: BufReader<ChildStdout>,
    child: Child,
}

impl Blobs {
    /// Writes the contents of a file, which has `size` bytes.
    pub(super) fn copy(
        &mut self,
        identifier: &str,
        size: u64,
        out: &mut dyn Write,
    ) -> std::io::Result<()> {
        let broken = || std::io::Error::other("git ended, or gave another object");
        let wanted = self.wanted.as_mut().ok_or_else(broken)?;
        writeln!(wanted, "{identifier}")?;
        wanted.flush()?;
        let mut header = Vec::new();
        (&mut self.found).take(256).read_until(b'\n', &mut header)?;
        if line(&header) != format!("{identifier} blob {size}") {
            return Err(broken());
        }
        if std::io::copy(&mut (&mut self.found).take(size), out)? != size {
            return Err(broken());
        }
        let mut end = [0];
        self.found.read_exact(&mut end)
    }
}

impl Drop for Blobs {
    fn drop(&mut self) {
        // The process ends with its input.
        self.wanted = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
