//! The release of a line: its state in the lock, and the changes that the next release may make.
//!
//! The rules are those of TensorFlow's data versioning. Within a MAJOR, data stays readable, so
//! formats, the minimum and `min_producer` move only in a major release. Within a MAJOR.MINOR the
//! patches read each other's data, so no number is added or moved in a patch. An entry of a release
//! never changes its day, its formats or its embedded versions.

pub(super) mod change;
#[cfg(all(test, feature = "parse"))]
mod tests;
mod text;

use std::collections::{BTreeMap, BTreeSet};

pub use change::ReleaseChange;
pub(super) use text::{field, parse_row};

use crate::{Date, ReleaseKind, ReleaseNumber};

/// The bounds and entries of a line in a release.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReleaseState {
    /// The release.
    pub release: ReleaseNumber,
    /// The current number of the line in the first release of the same MAJOR.MINOR.
    pub minor_from: i32,
    /// The oldest number that is read and written.
    pub minimum: i32,
    /// The oldest producer that is accepted.
    pub min_producer: i32,
    /// The banned consumers, each with the content of the data that it must not read; empty for all
    /// data.
    pub bans: BTreeSet<(i32, String)>,
    /// The entries by number.
    pub entries: BTreeMap<i32, ReleasedEntry>,
}

/// An entry of a line in a release.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReleasedEntry {
    /// The day from which builds read and write it.
    pub introduced: Date,
    /// The oldest consumer of its data.
    pub min_consumer: i32,
    /// True for a withdrawn number.
    pub withdrawn: bool,
    /// The formats that changed with it; `true` for those whose code was removed.
    pub formats: BTreeMap<String, bool>,
    /// The versions of other lines for the values that its data holds.
    pub embeds: BTreeMap<String, i32>,
}

/// A line whose release changes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LineRelease {
    /// The line.
    pub line: String,
    /// The release in the lock; `None` for the first one.
    pub previous: Option<ReleaseNumber>,
    /// The release in versions.toml.
    pub release: ReleaseNumber,
}

impl LineRelease {
    /// Returns the kind of the release; `None` for the first one, and if the number stays.
    pub fn kind(&self) -> Option<ReleaseKind> {
        self.previous.and_then(|previous| ReleaseKind::of_step(previous, self.release).ok())
    }
}

impl ReleaseState {
    /// Creates the state of a line in the first release of a minor one; `bounds` are its minimum
    /// and its min_producer.
    pub(super) fn new(
        release: ReleaseNumber,
        bounds: (i32, i32),
        bans: BTreeSet<(i32, String)>,
        entries: BTreeMap<i32, ReleasedEntry>,
    ) -> Self {
        let (minimum, min_producer) = bounds;
        let state = Self { release, minor_from: minimum, minimum, min_producer, bans, entries };
        Self { minor_from: state.current().unwrap_or(minimum), ..state }
    }

    /// Returns the newest number that is not withdrawn.
    fn current(&self) -> Option<i32> {
        let used = self.entries.iter().rfind(|(_, entry)| !entry.withdrawn);
        used.map(|(number, _)| *number)
    }

    /// Returns the state as the release after `previous`: a patch belongs to the same minor
    /// release.
    pub(super) fn after(&self, previous: Option<&Self>) -> Self {
        let patched = previous.filter(|previous| previous.release.is_of_minor_of(self.release));
        let minor_from = patched.map_or(self.minor_from, |patched| patched.minor_from);
        Self { minor_from, ..self.clone() }
    }
}
