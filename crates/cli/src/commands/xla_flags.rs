//! Process-wide settings of XLA: a plug-in reads them from `XLA_FLAGS` when it is loaded, and
//! compile options do not change them.
//!
//! Devices that run one program wait for one another to exchange data. If some of them never
//! arrive, XLA ends the process after a time limit (a minute on a CPU), and the arrays of all
//! clients are lost. This module raises the limit for a server.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read},
    path::Path,
};

use memchr::memmem;

/// The variable that XLA reads.
pub(crate) const VARIABLE: &str = "XLA_FLAGS";
/// Flag for the time limit, in seconds, after which a CPU plug-in whose devices wait for one
/// another ends the process.
const TIME_LIMIT: &str = "xla_cpu_collective_call_terminate_timeout_seconds";
/// Largest value of the flag: some 68 years.
const NO_LIMIT: i32 = i32::MAX;
/// Bytes of a library that are read at a time.
const BLOCK: usize = 1 << 20;

/// Returns the value of `XLA_FLAGS` for a server of the plug-in `library`, or `None` if it keeps
/// its `current` value.
///
/// XLA ends a process whose `XLA_FLAGS` have an unknown flag, so none is added for a library that
/// does not contain its name. Flags in a file, and flags that set the limit themselves, are kept.
pub(crate) fn for_server(library: &Path, current: Option<&OsStr>) -> Option<OsString> {
    let current = current.unwrap_or_default();
    let text = current.to_string_lossy();
    let is_file = text.trim_start().chars().next().is_some_and(|first| first != '-');
    if is_file || text.contains(TIME_LIMIT) || !contains(library, TIME_LIMIT).unwrap_or(false) {
        return None;
    }
    let mut flags = current.to_owned();
    if !flags.is_empty() {
        flags.push(" ");
    }
    flags.push(format!("--{TIME_LIMIT}={NO_LIMIT}"));
    Some(flags)
}

/// Returns `true` if the file contains `word`.
fn contains(file: &Path, word: &str) -> io::Result<bool> {
    let finder = memmem::Finder::new(word);
    let mut file = File::open(file)?;
    // The end of the previous block stays at the front: the word may begin in it.
    let mut bytes = Vec::with_capacity(BLOCK + word.len());
    loop {
        let read = file.by_ref().take(BLOCK as u64).read_to_end(&mut bytes)?;
        if finder.find(&bytes).is_some() {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
        let searched = bytes.len().saturating_sub(word.len());
        bytes.drain(..searched);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(contents: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), contents).unwrap();
        file
    }

    #[test]
    fn a_server_waits_for_ever_where_its_plug_in_knows_the_limit() {
        // A flag that crosses two blocks.
        let mut contents = vec![0; BLOCK - 5];
        contents.extend_from_slice(TIME_LIMIT.as_bytes());
        let knows = library(&contents);
        let flag = format!("--{TIME_LIMIT}={NO_LIMIT}");
        assert_eq!(for_server(knows.path(), None), Some(flag.clone().into()));
        let set = OsStr::new("--xla_cpu_enable_fast_math=false");
        let both = format!("--xla_cpu_enable_fast_math=false {flag}");
        assert_eq!(for_server(knows.path(), Some(set)), Some(both.into()));
    }

    #[test]
    fn flags_of_the_operator_and_of_other_plug_ins_stay() {
        let knows = library(TIME_LIMIT.as_bytes());
        let own = format!("--{TIME_LIMIT}=90");
        for set in [own.as_str(), "/etc/xla/flags", "flags.txt"] {
            assert_eq!(for_server(knows.path(), Some(OsStr::new(set))), None, "{set}");
        }
        let other = library(&[b'x'; BLOCK + 3]);
        assert_eq!(for_server(other.path(), None), None);
        assert_eq!(for_server(Path::new("/nowhere/lib.so"), None), None);
    }
}
