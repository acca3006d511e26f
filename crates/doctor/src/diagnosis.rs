//! The diagnosis of one environment.

use std::{collections::BTreeSet, fmt};

use pep440_rs::{Version, VersionSpecifiers};

use crate::{
    environment::Environment,
    rule::Rule,
    warning::{Unknown, Warning},
};

/// The verdict on an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No problem was found.
    Fits,
    /// Packages are incompatible.
    DoesNotFit,
    /// No problem was found, and a component could not be judged.
    Unknown,
}

impl Verdict {
    /// Returns the verdict's name in JSON.
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
    /// The installed version.
    pub from: Option<Version>,
    /// The version to install.
    pub to: Target,
}

/// A set of changes that solves a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remedy {
    /// The packages to change; empty if changing packages does not help.
    pub changes: Vec<Change>,
    /// The command that makes the changes, for the tool of the environment.
    pub command: Option<String>,
    /// The remedy as text.
    pub text: String,
}

/// An incompatibility.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Problem {
    /// The rule.
    pub rule: Rule,
    /// The packages concerned.
    pub packages: Vec<String>,
    /// The found item.
    pub found: String,
    /// The expected item.
    pub expected: String,
    /// Message in one line, with both versions.
    pub message: String,
    /// The error or effect that a user of the unchanged environment sees.
    pub symptom: Option<String>,
    /// The file that shows the problem.
    pub location: Option<String>,
    /// Checked remedies, the one with the fewest changes first.
    pub remedies: Vec<Remedy>,
    /// Sets of changes to check as remedies.
    pub(crate) candidates: Vec<Vec<Change>>,
    /// Text of the remedy if changing packages does not help.
    pub(crate) words: Option<String>,
}

impl Problem {
    /// Returns the rule and the packages, which identify a problem.
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
    /// The version used for the diagnosis.
    pub version: Version,
    /// The version in the metadata.
    pub metadata_version: Option<Version>,
    /// The folder.
    pub path: Option<String>,
    /// The source of the information: `metadata`, `entry_point`, `module` or `lock`.
    pub found_by: &'static str,
    /// The PJRT minor, if it is known.
    pub pjrt_minor: Option<u32>,
    /// The library of a plug-in.
    pub library: Option<String>,
}

/// The diagnosis of one environment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The environment.
    pub environment: Environment,
    /// The components that were judged, by name.
    pub components: Vec<Component>,
    /// Incompatibilities of the packages.
    pub problems: Vec<Problem>,
    /// Warnings, which are not incompatibilities.
    pub warnings: Vec<Warning>,
    /// Packages and rules that could not be judged.
    pub unknown: Vec<Unknown>,
    /// True if warnings count as problems.
    pub strict: bool,
}

impl Diagnosis {
    /// Returns the verdict.
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
