//! The answer about one environment.

use std::{collections::BTreeSet, fmt};

use pep440_rs::{Version, VersionSpecifiers};

use crate::{
    environment::Environment,
    rule::Rule,
    warning::{Unknown, Warning},
};

/// The answer as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No problem was found.
    Fits,
    /// Something does not fit.
    DoesNotFit,
    /// No problem was found, and a component could not be judged.
    Unknown,
}

impl Verdict {
    /// Returns the word, as the JSON object has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::DoesNotFit => "does_not_fit",
            Self::Unknown => "unknown",
        }
    }
}

/// The change that a remedy makes to a package.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// This version.
    Version(Version),
    /// Any version that satisfies the specifier.
    Specifiers(VersionSpecifiers),
    /// No version: the package is removed.
    Removed,
}

/// The change of one package.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The package, by its normal name.
    pub package: String,
    /// The version that is there.
    pub from: Option<Version>,
    /// The version that is wanted.
    pub to: Target,
}

/// A way to make a problem go away.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remedy {
    /// The packages that change; empty where no package heals the problem.
    pub changes: Vec<Change>,
    /// The command that makes the changes, for the tool of the environment.
    pub command: Option<String>,
    /// The remedy in words.
    pub text: String,
}

/// Something that does not fit.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Problem {
    /// The rule.
    pub rule: Rule,
    /// The packages that it is about.
    pub packages: Vec<String>,
    /// The found item.
    pub found: String,
    /// The expected item.
    pub expected: String,
    /// The sentence for people: one line, with both versions.
    pub message: String,
    /// The error or effect that a user of the unchanged environment sees.
    pub symptom: Option<String>,
    /// The file that shows it.
    pub location: Option<String>,
    /// Checked remedies, the one with the fewest changes first.
    pub remedies: Vec<Remedy>,
    /// Sets of changes that may heal it, before they are checked.
    pub(crate) candidates: Vec<Vec<Change>>,
    /// The remedy in words where no package heals it.
    pub(crate) words: Option<String>,
}

impl Problem {
    /// Returns the rule and the packages: two problems of the same key are one.
    pub(crate) fn key(&self) -> (Rule, BTreeSet<String>) {
        (self.rule, self.packages.iter().cloned().collect())
    }
}

/// A component that was judged.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Component {
    /// The package, by its normal name.
    pub name: String,
    /// The version that decides.
    pub version: Version,
    /// The version by the metadata.
    pub metadata_version: Option<Version>,
    /// The folder.
    pub path: Option<String>,
    /// The source of the information: `metadata`, `entry_point`, `module` or `lock`.
    pub found_by: &'static str,
    /// The minor of PJRT, where it is known.
    pub pjrt_minor: Option<u32>,
    /// The library of a plug-in.
    pub library: Option<String>,
}

/// The answer about one environment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The environment.
    pub environment: Environment,
    /// The components that were judged, by name.
    pub components: Vec<Component>,
    /// Incompatibilities of the packages.
    pub problems: Vec<Problem>,
    /// Warnings, which are no incompatibilities.
    pub warnings: Vec<Warning>,
    /// Packages and rules that could not be judged.
    pub unknown: Vec<Unknown>,
    /// Tells whether warnings count as problems.
    pub strict: bool,
}

impl Diagnosis {
    /// Returns the answer as a word.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if !self.problems.is_empty() || (self.strict && !self.warnings.is_empty()) {
            Verdict::DoesNotFit
        } else if self.unknown.is_empty() {
            Verdict::Fits
        } else {
            Verdict::Unknown
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(f, "{version}"),
            Self::Specifiers(specifiers) => {
                let parts: Vec<String> =
                    specifiers.iter().map(|one| one.to_string().replace(' ', "")).collect();
                f.write_str(&parts.join(","))
            }
            Self::Removed => f.write_str("none"),
        }
    }
}
