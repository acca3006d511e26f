//! What a change of layout demands of the version, by the StreamExecutor versioning strategy (seed 000).
//!
//! A layout is one of those that are built in (`tensorflow-2.14`, `rfc-257`), or is read from a C header, or from a JSON file, because an
//! API under work is not in this crate. The form of the latter, of which `crates/abi/layouts.json` is an example:
//!
//! ```json
//! {
//!   "released": {
//!     "SP_TimerFns": {
//!       "struct_size": 24,
//!       "fields": [
//!         {"name": "struct_size", "kind": "size_t", "offset": 0, "size": 8, "required": true},
//!         {"name": "ext", "kind": "void*", "offset": 8, "size": 8, "zero": "no-op"},
//!         {"name": "nanoseconds", "kind": "fn", "offset": 16, "size": 8, "zero": "meaningful"}
//!       ]
//!     }
//!   },
//!   "released_version": {"SE_MAJOR": 0, "SE_MINOR": 0, "SE_PATCH": 1}
//! }
//! ```
//!
//! * A layout is an object of structs. A file is one layout, or holds several, nested as deep as one likes: `FILE#released`,
//!   `FILE#history/2.6.5`.
//! * A struct may be `{"same_as": "SECTION"}`: as in that section of the file. It may have `struct_size` and `alignof` in bytes,
//!   `"deprecated": true` and `"replaced_by": "STRUCT"`. A struct with `values` (names and numbers) instead of fields is an enumeration.
//! * A field has `name`, `kind` (its type in C, `fn` for a function pointer), `offset` and `size` in bytes. It may have
//!   * `signature`: text that is compared (blanks do not count, nor do they in `kind`);
//!   * `"zero": "no-op"`, where the header says that 0 or NULL is a no-op: such a field can be deprecated by leaving it zero. `"meaningful"`
//!     is a field whose zero is a value, or says that something optional is not provided. What is not marked counts as meaningful, because
//!     nobody was told otherwise (seed 000, "Conventions": such fields must be marked explicitly). The mark counts that the old layout has;
//!   * `"required": true`: one side cannot do without the field, so that adding it breaks builds that do not know it;
//!   * `"deprecated": true`, and with it `"replaced_by"`: the member of the same struct, or `STRUCT.MEMBER`, that takes its place.
//! * The version of a section is its own `version`, or `SECTION_version` beside it, or `released_version` of the file, with the numbers
//!   `SE_MAJOR`, `SE_MINOR` and `SE_PATCH` (or without `SE_`).
//!
//! A header, a file whose name ends in `.h`, is laid out as compilers for LP64 do it; `FILE.h#NAME=NUMBER` sets a macro before it is read.
//! What zero means in a member is read from its comment: `NULL is no-op`, `0 is no-op`, or `[no-op]`, `[optional]`, `[value]`, `[required]`.
//! A comment that begins with "Deprecat" deprecates, and ``Use `name` `` in it names the successor. `..._SIZE` macros that name a struct and
//! its last member give struct_size, `SE_MAJOR`, `SE_MINOR` and `SE_PATCH` (or other names that end so) the version.

mod alignment;
mod compare;
mod document;
mod header;

use std::collections::HashMap;
use std::fmt;

use alignment::Alignments;
use compare::{Changes, compare, compare_alignment};
use document::Structure;
pub use document::{LayoutDocument, LayoutFileError};

/// Which number of the version must move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bump {
    /// None: nothing changed that anybody could see.
    None,
    /// PATCH: a bug fix.
    Patch,
    /// MINOR: an addition that older builds can ignore.
    Minor,
    /// MAJOR: older builds break.
    Major,
}

impl Bump {
    /// Its name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Patch => "patch",
            Self::Minor => "minor",
            Self::Major => "major",
        }
    }
}

impl fmt::Display for Bump {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The struct.
    pub structure: String,
    /// The field; empty where the change is of the whole struct.
    pub field: String,
    /// What happened: `removed`, `added`, `appended`, `inserted`, `reordered`, `renamed`, `repurposed`, `retyped`, `deprecated`,
    /// `struct_size`, `alignment`.
    pub change: &'static str,
    /// What it demands.
    pub requires: Bump,
    /// The rule behind it.
    pub why: String,
    /// What takes its place, where it is deprecated and the layout says so.
    pub replaced_by: Option<String>,
}

/// How the version moved, beside how it had to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VersionStep {
    /// One of the layouts does not say its version.
    Unknown,
    /// The number that had to move did, or a higher one.
    AsRequired,
    /// A higher number had to move.
    TooSmall,
    /// The new version is below the old one.
    Backwards,
    /// The right number moved, and one below it did not go back to 0 (Semantic Versioning 2.0.0, items 7 and 8).
    LowerNumbersKept,
}

impl VersionStep {
    /// Its name: `unknown`, `as_required`, `too_small`, `backwards` or `lower_numbers_kept`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::AsRequired => "as_required",
            Self::TooSmall => "too_small",
            Self::Backwards => "backwards",
            Self::LowerNumbersKept => "lower_numbers_kept",
        }
    }
}

/// What changed between two layouts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diff {
    /// What all changes together demand.
    pub required: Bump,
    /// The changes, in the order of the structs of the old layout, then the new ones.
    pub changes: Vec<Change>,
    /// MAJOR, MINOR and PATCH of both layouts, where the files say them.
    pub versions: (Option<[i64; 3]>, Option<[i64; 3]>),
}

impl Diff {
    /// Which number did move, if both versions are known.
    #[must_use]
    pub fn moved(&self) -> Option<Bump> {
        let (old, new) = (self.versions.0?, self.versions.1?);
        Some(if old[0] != new[0] {
            Bump::Major
        } else if old[1] != new[1] {
            Bump::Minor
        } else if old[2] != new[2] {
            Bump::Patch
        } else {
            Bump::None
        })
    }

    /// How the version moved, beside how it had to.
    #[must_use]
    pub fn version_step(&self) -> VersionStep {
        let ((Some(old), Some(new)), Some(moved)) = (self.versions, self.moved()) else {
            return VersionStep::Unknown;
        };
        if new < old {
            return VersionStep::Backwards;
        }
        if moved < self.required {
            return VersionStep::TooSmall;
        }
        let lower = match moved {
            Bump::Major => &new[1..],
            Bump::Minor => &new[2..],
            Bump::Patch | Bump::None => &[],
        };
        if lower.iter().any(|&number| number != 0) {
            VersionStep::LowerNumbersKept
        } else {
            VersionStep::AsRequired
        }
    }

    /// What a person should know besides: that the number did not move as it must, and that MAJOR 0 promises nothing.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let (old, new) = (self.versions.0.unwrap_or_default(), self.versions.1.unwrap_or_default());
        match self.version_step() {
            VersionStep::Unknown | VersionStep::AsRequired => {}
            VersionStep::Backwards => notes.push(format!(
                "the version went back from {} to {}: nobody can tell which layout is the newer one",
                numbers(old),
                numbers(new)
            )),
            VersionStep::TooSmall => {
                let moved = match self.moved() {
                    None | Some(Bump::None) => "nothing".to_owned(),
                    Some(moved) => moved.as_str().to_uppercase(),
                };
                notes.push(format!(
                    "{} must move and {moved} moved: older builds cannot tell the two layouts apart by the version",
                    self.required.as_str().to_uppercase(),
                ));
            }
            VersionStep::LowerNumbersKept => {
                let first = if new[0] == old[0] { [new[0], new[1], 0] } else { [new[0], 0, 0] };
                notes.push(format!(
                    "the version went from {} to {}: the numbers below the one that moves go to 0, so that {} comes first",
                    numbers(old),
                    numbers(new),
                    numbers(first)
                ));
            }
        }
        if self.versions.0.is_some_and(|version| version[0] == 0) && self.required > Bump::None {
            notes.push(
                "MAJOR is 0, the bake-in period: the strategy does not promise compatibility yet; the answer is what it would demand after it"
                    .to_owned(),
            );
        }
        notes
    }
}

/// A version as it is written: `1.2.3`.
fn numbers(version: [i64; 3]) -> String {
    version.map(|number| number.to_string()).join(".")
}

/// Compares two layouts.
#[must_use]
pub fn diff<'a>(old: &'a LayoutDocument, new: &'a LayoutDocument) -> Diff {
    let mut changes = Changes::default();
    let alignments = Alignments::of(new);
    let by_name = |document: &'a LayoutDocument| -> HashMap<&'a str, &'a Structure> {
        document.structs.iter().map(|structure| (structure.name.as_str(), structure)).collect()
    };
    let (known, found) = (by_name(old), by_name(new));
    for before in &old.structs {
        match found.get(before.name.as_str()) {
            Some(after) => compare(before, after, &alignments, &mut changes),
            None => changes.add(
                &before.name,
                "",
                "removed",
                Bump::Major,
                "a struct cannot be removed: older plug-ins still hand it over".to_owned(),
            ),
        }
    }
    for after in &new.structs {
        if !known.contains_key(after.name.as_str()) {
            changes.add(
                &after.name,
                "",
                "added",
                Bump::Minor,
                "a new struct is a backwards compatible addition".to_owned(),
            );
            compare_alignment(None, after, &alignments, &mut changes);
        }
    }
    let changes = changes.into_list();
    let required = changes.iter().map(|change| change.requires).max().unwrap_or(Bump::None);
    Diff { required, changes, versions: (old.version, new.version) }
}

#[cfg(test)]
mod tests;
