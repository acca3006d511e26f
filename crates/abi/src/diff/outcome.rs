//! The result of a comparison: the changes, the version bump that they require, and the bump that
//! was made.

use std::fmt;

/// The part of the version number that must be increased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bump {
    /// None: there is no visible change.
    None,
    /// PATCH: a bug fix.
    Patch,
    /// MINOR: an addition that older builds can ignore.
    Minor,
    /// MAJOR: older builds break.
    Major,
}

impl Bump {
    /// Returns the name in lower case.
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

/// The state of the deprecation of a member or a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Deprecation {
    /// The item will be deprecated: it keeps working, beside its successor, until a later release.
    Announced,
    /// The item is deprecated: writers of the struct leave it zero, and readers ignore it.
    ByZero,
}

impl Deprecation {
    /// Returns the name: `announced` or `by_zero`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Announced => "announced",
            Self::ByZero => "by_zero",
        }
    }
}

/// One change between two layouts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The struct.
    pub structure: String,
    /// The field; empty if the change affects the whole struct.
    pub field: String,
    /// The kind of the change: `removed`, `added`, `appended`, `inserted`, `reordered`, `renamed`,
    /// `repurposed`, `retyped`, `deprecated`, `restored`, `struct_size`, `alignment`.
    pub change: &'static str,
    /// The version bump that the change requires.
    pub requires: Bump,
    /// The rule that requires it.
    pub why: String,
    /// The successor, if the change is a deprecation and the layout names one.
    pub replaced_by: Option<String>,
    /// The state of the deprecation, if the change is one.
    pub deprecation: Option<Deprecation>,
}

/// The version bump that was made, compared with the required one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VersionStep {
    /// One of the layouts has no version.
    Unknown,
    /// The required number was increased, or a higher one.
    AsRequired,
    /// A higher number should have been increased.
    TooSmall,
    /// The new version is below the old one.
    Backwards,
    /// The right number was increased, but a lower one was not reset to 0 (Semantic Versioning
    /// 2.0.0, items 7 and 8).
    LowerNumbersKept,
}

impl VersionStep {
    /// Returns the name: `unknown`, `as_required`, `too_small`, `backwards` or
    /// `lower_numbers_kept`.
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

/// The changes between two layouts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diff {
    /// The version bump that all changes together require.
    pub required: Bump,
    /// The changes, in the order of the structs of the old layout, then the new ones.
    pub changes: Vec<Change>,
    /// MAJOR, MINOR and PATCH of both layouts, if the files have them.
    pub versions: (Option<[i64; 3]>, Option<[i64; 3]>),
    /// Remarks on the layouts and their comparison that do not affect the version.
    pub remarks: Vec<String>,
}

impl Diff {
    /// Returns the version bump that was made, if both versions are known.
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

    /// Returns the bump that was made, compared with the required one.
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

    /// Returns further notes for people: that the version was not increased as required, that MAJOR
    /// 0 promises nothing, and the [`remarks`](Self::remarks).
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let (old, new) = (self.versions.0.unwrap_or_default(), self.versions.1.unwrap_or_default());
        match self.version_step() {
            VersionStep::Unknown | VersionStep::AsRequired => {}
            VersionStep::Backwards => notes.push(format!(
                "the version went back from {} to {}: which layout is the newer one is unknown",
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
        notes.extend(self.remarks.iter().cloned());
        notes
    }
}

/// Formats a version as `1.2.3`.
fn numbers(version: [i64; 3]) -> String {
    version.map(|number| number.to_string()).join(".")
}
