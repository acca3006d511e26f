//! Settings of XLA that hold for a process: a plug-in reads them out of `XLA_FLAGS` of the
//! environment when it is loaded, and no option of a compilation changes them.
//!
//! Devices that run one program wait for one another where they exchange data. A program in which
//! they do not all come to that place waits for ever, and XLA ends the process then: after a minute
//! on a CPU, with the arrays of all clients in it. A server is told to wait instead.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read},
    path::Path,
};

use memchr::memmem;

/// The variable that XLA reads.
pub(crate) const VARIABLE: &str = "XLA_FLAGS";
/// The flag with the time, in seconds, that devices of a CPU plug-in wait for one another before
/// the process is ended.
const TIME_LIMIT: &str = "xla_cpu_collective_call_terminate_timeout_seconds";
/// As long as there is a number for.
const ENDLESS: i32 = i32::MAX;
/// Bytes of a library that are looked at together.
const PART: usize = 1 << 20;

/// Returns the variable's value for a server of the plug-in in this file, where it is another than `set`,
/// which it has here.
///
/// XLA ends a process whose `XLA_FLAGS` name what it does not know, so that nothing is added for a
/// library without the name in it; nor where the flags are in a file, or say it themselves.
pub(crate) fn for_server(library: &Path, set: Option<&OsStr>) -> Option<OsString> {
    let set = set.unwrap_or_default();
    let text = set.to_string_lossy();
    let is_file = text.trim_start().chars().next().is_some_and(|first| first != '-');
    if is_file || text.contains(TIME_LIMIT) || !has(library, TIME_LIMIT).unwrap_or(false) {
        return None;
    }
    let mut flags = set.to_owned();
    if !flags.is_empty() {
        flags.push(" ");
    }
    flags.push(format!("--{TIME_LIMIT}={ENDLESS}"));
    Some(flags)
}

/// Tells whether the file has the word anywhere.
fn has(file: &Path, word: &str) -> io::Result<bool> {
    let finder = memmem::Finder::new(word);
    let mut file = File::open(file)?;
    // What was read before stays as far as a word may have begun in it.
    let mut bytes = Vec::with_capacity(PART + word.len());
    loop {
        let read = file.by_ref().take(PART as u64).read_to_end(&mut bytes)?;
        if finder.find(&bytes).is_some() {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
        let passed = bytes.len().saturating_sub(word.len());
        bytes.drain(..passed);
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
        // Across two parts.
        let mut contents = vec![0; PART - 5];
        contents.extend_from_slice(TIME_LIMIT.as_bytes());
        let knows = library(&contents);
        let flag = format!("--{TIME_LIMIT}={ENDLESS}");
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
        let other = library(&[b'x'; PART + 3]);
        assert_eq!(for_server(other.path(), None), None);
        assert_eq!(for_server(Path::new("/nowhere/lib.so"), None), None);
    }
}
