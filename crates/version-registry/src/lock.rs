//! The freeze of wire formats: `versions.lock` and its comparison with the present package.
//!
//! A released format never changes: builds in the field read and write it. The lock holds a
//! fingerprint of everything that shows a format: each file of golden bytes, and the descriptor of
//! each message. A test compares them; `serdes versions lock` writes the file.
//!
//! # What is frozen
//!
//! - **Golden bytes**: every file below `tests/golden/` except `.md` pages, by its path, which
//!   names the line, format and number: `tests/golden/LINE/FORMAT/v2.bin` (also `v2/case.bin`,
//!   `v2-case.bin`). Golden bytes are kept forever: a missing or different file is an error.
//! - **Descriptors**: every message and enum in `proto/descriptors.binpb` (a FileDescriptorSet)
//!   whose package is listed under `packages` of a line. It is frozen at the line's current number:
//!   it may only change together with a new entry, and that entry names it among its `formats` (the
//!   name of the message, with or without `Proto` at its end).
//! - **Completeness**: a format has golden bytes for each entry that names it, unless its code is
//!   gone ([`Package::without_golden`]).
//! - **Releases**: the lock has the bounds and entries of a line with a `release`, at its last
//!   release. The kind of the next one (patch, minor, major) follows from the step between the two
//!   numbers, and decides which changes are allowed ([`ReleaseChange::needs`]).
//!
//! # In a crate with lines of its own
//!
//! A test of such lines, where `serdes::lines!()` has defined `REGISTRY`:
//!
//! ```no_run
//! # use serdes_version_registry::{lock::Package, Registry, Date};
//! # static REGISTRY: Registry = Registry::new(Date::from_ymd(2026, 1, 1).unwrap(), &[], &[], &[]);
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! Package::of_registry(".", &REGISTRY).check()?;
//! # Ok(())
//! # }
//! ```
//!
//! The fingerprint is CRC-64/NVME and the length: it detects accidents, not forgery.

mod difference;
mod line_formats;
mod package;
mod release;
mod releases;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt};

use crc_fast::{CrcAlgorithm, checksum};

pub use difference::{Difference, Differences};
pub use line_formats::LineFormats;
pub use package::{LockError, Package};
pub use release::{LineRelease, ReleaseChange, ReleaseState, ReleasedEntry};

/// The subject of a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Item {
    /// The descriptor of a message or enum, at a number of its line.
    Descriptor {
        /// The line.
        line: String,
        /// The full name of the message.
        message: String,
        /// The number of the line that was current.
        number: i32,
    },
    /// A file of golden bytes, by its path below `tests/golden`, with `/` as separator.
    Golden {
        /// The path.
        path: String,
    },
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Descriptor { line, message, number } => {
                write!(f, "message {message} of {line} version {number}")
            }
            Self::Golden { path } => match golden_version(path) {
                Some((line, format, number)) => {
                    write!(f, "{format} of {line} version {number} (tests/golden/{path})")
                }
                None => write!(f, "tests/golden/{path}"),
            },
        }
    }
}

/// Returns the line, format and number in the path of a golden file.
fn golden_version(path: &str) -> Option<(&str, &str, i32)> {
    let mut parts = path.split('/');
    let (line, format) = (parts.next()?, parts.next()?);
    let number = parts.find_map(|part| {
        let digits = part.strip_prefix('v')?;
        let end = digits.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
        let (digits, rest) = digits.split_at(end);
        let ends = rest.is_empty() || rest.starts_with(['.', '-', '_']);
        ends.then(|| digits.parse().ok()).flatten()
    })?;
    Some((line, format, number))
}

/// The fingerprint of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    crc64: u64,
    bytes: u64,
}

impl Fingerprint {
    /// Returns the fingerprint of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self { crc64: checksum(CrcAlgorithm::Crc64Nvme, bytes), bytes: bytes.len() as u64 }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x} {}", self.crc64, self.bytes)
    }
}

/// The error of a text that is not a versions.lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{row}: {problem}; restore the file from version control")]
#[non_exhaustive]
pub struct ParseLockError {
    /// The name of the file, as given.
    pub file: String,
    /// The row, counted from 1.
    pub row: usize,
    /// The problem with the row.
    pub problem: &'static str,
}

/// Fingerprints of formats, in the order of their items, and the last release of each line that
/// declares one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    items: BTreeMap<Item, Fingerprint>,
    releases: BTreeMap<String, ReleaseState>,
}

const HEADER: &str = "\
# Fingerprints of frozen wire formats (CRC-64/NVME and length): a row that changes is a format that
# changes. Written by `serdes versions lock`; see docs/evolving.md. Not to be edited.
";

/// The comment above the rows of releases, if there are any.
const RELEASES: &str = "\
# Lines at their last release (`serdes versions release`): line, release, first number of its minor
# release, minimum, min_producer, bans; then each entry with its day, min_consumer and formats.
";

impl Lock {
    /// Creates a lock without items.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces an item.
    pub fn insert(&mut self, item: Item, bytes: &[u8]) {
        self.items.insert(item, Fingerprint::of(bytes));
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns `true` if there is no item and no release.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.releases.is_empty()
    }

    /// Returns the items with their fingerprints.
    pub fn iter(&self) -> impl Iterator<Item = (&Item, Fingerprint)> {
        self.items.iter().map(|(item, fingerprint)| (item, *fingerprint))
    }

    /// Parses the text of a versions.lock; `file` is the name for errors.
    pub fn parse(file: &str, text: &str) -> Result<Self, ParseLockError> {
        let (mut items, mut releases) = (BTreeMap::new(), BTreeMap::new());
        for (at, row) in text.lines().enumerate() {
            if row.is_empty() || row.starts_with('#') {
                continue;
            }
            let wrong = |problem| ParseLockError { file: file.to_owned(), row: at + 1, problem };
            if release::parse_row(row, &mut releases).map_err(wrong)? {
                continue;
            }
            let (item, fingerprint) = parse_row(row).map_err(wrong)?;
            if items.insert(item, fingerprint).is_some() {
                return Err(wrong("the item stands there twice"));
            }
        }
        Ok(Self { items, releases })
    }

    /// Returns the text of a versions.lock: the same items always give the same text.
    pub fn render(&self) -> String {
        let mut text = HEADER.to_owned();
        for (item, fingerprint) in &self.items {
            let row = match item {
                Item::Descriptor { line, message, number } => {
                    format!("descriptor\t{line}\t{message}\t{number}\t{fingerprint}\n")
                }
                Item::Golden { path } => format!("golden\t{path}\t{fingerprint}\n"),
            };
            text.push_str(&row);
        }
        if !self.releases.is_empty() {
            text.push_str(RELEASES);
        }
        for (line, state) in &self.releases {
            state.render(line, &mut text);
        }
        text
    }
}

fn parse_row(row: &str) -> Result<(Item, Fingerprint), &'static str> {
    let fields: Vec<&str> = row.split('\t').collect();
    let (item, fingerprint) = match fields[..] {
        ["golden", path, fingerprint] => (Item::Golden { path: path.to_owned() }, fingerprint),
        ["descriptor", line, message, number, fingerprint] => {
            let number = number.parse().map_err(|_| "the number is no version number")?;
            let (line, message) = (line.to_owned(), message.to_owned());
            (Item::Descriptor { line, message, number }, fingerprint)
        }
        _ => return Err("none of the rows `golden`, `descriptor`, `release` and `released`"),
    };
    let (crc64, bytes) = fingerprint.split_once(' ').ok_or("the length is missing")?;
    let crc64 = u64::from_str_radix(crc64, 16).map_err(|_| "the checksum is no hex number")?;
    let bytes = bytes.parse().map_err(|_| "the length is no number")?;
    Ok((item, Fingerprint { crc64, bytes }))
}
