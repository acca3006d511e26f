//! Facts that only the bytes of a library hold, requested through a trait: reading them takes
//! readers of machine code and tables of symbols, which this crate does not have.

use std::path::Path;

use pep440_rs::Version;

use crate::rule::Rule;

/// A reason for which a PJRT plug-in and a jaxlib do not go together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Misfit {
    /// The rule of `serdes plugin check --for`.
    pub rule: Rule,
    /// The found item.
    pub found: String,
    /// The expected item.
    pub expected: String,
    /// The sentence for people.
    pub message: String,
}

impl Misfit {
    /// Makes a reason of its rule and the sentence for people.
    pub fn new(rule: Rule, message: impl Into<String>) -> Self {
        Self { rule, found: String::new(), expected: String::new(), message: message.into() }
    }

    /// Returns the same with the found and the expected item.
    #[must_use]
    pub fn with_values(self, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { found: found.into(), expected: expected.into(), ..self }
    }
}

/// Result of the comparison of a PJRT plug-in with a release of jaxlib.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Comparison {
    /// The reasons for which they do not go together.
    pub misfits: Vec<Misfit>,
    /// The sentence for people if a version of PJRT is newer than the table of layouts.
    pub unknown_minor: Option<String>,
}

impl Comparison {
    /// Makes a result of the reasons; none if the plug-in and the release go together.
    pub fn new(misfits: impl IntoIterator<Item = Misfit>) -> Self {
        Self { misfits: misfits.into_iter().collect(), unknown_minor: None }
    }

    /// Returns the same with the sentence for people about a version that is newer than the table
    /// of layouts.
    #[must_use]
    pub fn with_unknown_minor(self, message: Option<String>) -> Self {
        Self { unknown_minor: message, ..self }
    }
}

/// Readers of plug-in libraries.
pub trait Libraries {
    /// Returns the minor of the PJRT version that a library has; `None` where it cannot be read.
    fn pjrt_minor(&self, library: &Path) -> Option<u32>;

    /// Compares a library with a release of jaxlib; `None` where either is not known.
    fn compare(&self, library: &Path, jaxlib: &Version) -> Option<Comparison>;

    /// Returns the functions that a library needs and a release of TensorFlow does not export;
    /// `None` where either is not known.
    fn missing_symbols(&self, library: &Path, tensorflow: &Version) -> Option<Vec<String>>;
}

/// No reader: only the tables of releases decide.
#[derive(Clone, Copy, Debug, Default)]
pub struct TablesOnly;

impl Libraries for TablesOnly {
    fn pjrt_minor(&self, _: &Path) -> Option<u32> {
        None
    }

    fn compare(&self, _: &Path, _: &Version) -> Option<Comparison> {
        None
    }

    fn missing_symbols(&self, _: &Path, _: &Version) -> Option<Vec<String>> {
        None
    }
}
