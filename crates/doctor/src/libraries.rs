//! Facts from the bytes of libraries, accessed through a trait: this crate lacks the readers of
//! machine code and symbol tables.

use std::path::Path;

use pep440_rs::Version;

use crate::rule::Rule;

/// A reason why a PJRT plug-in and a jaxlib are incompatible.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Misfit {
    /// The rule of `serdes plugin check --for`.
    pub rule: Rule,
    /// The found item.
    pub found: String,
    /// The expected item.
    pub expected: String,
    /// Message for users.
    pub message: String,
}

impl Misfit {
    /// Creates a reason from its rule and message.
    pub fn new(rule: Rule, message: impl Into<String>) -> Self {
        Self { rule, found: String::new(), expected: String::new(), message: message.into() }
    }

    /// Sets the found and the expected item.
    #[must_use]
    pub fn with_values(self, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { found: found.into(), expected: expected.into(), ..self }
    }
}

/// Result of the comparison of a PJRT plug-in with a release of jaxlib.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Comparison {
    /// The reasons for the incompatibility.
    pub misfits: Vec<Misfit>,
    /// Message if a PJRT version is newer than the table of layouts.
    pub unknown_minor: Option<String>,
}

impl Comparison {
    /// Creates a result from the reasons; empty if the plug-in and the release are compatible.
    pub fn new(misfits: impl IntoIterator<Item = Misfit>) -> Self {
        Self { misfits: misfits.into_iter().collect(), unknown_minor: None }
    }

    /// Sets the message about a version that is newer than the table of layouts.
    #[must_use]
    pub fn with_unknown_minor(self, message: Option<String>) -> Self {
        Self { unknown_minor: message, ..self }
    }
}

/// Reader of plug-in libraries.
pub trait Libraries {
    /// Returns the minor of a library's PJRT version; `None` if it cannot be read.
    fn pjrt_minor(&self, library: &Path) -> Option<u32>;

    /// Compares a library with a release of jaxlib; `None` if either is unknown.
    fn compare(&self, library: &Path, jaxlib: &Version) -> Option<Comparison>;

    /// Returns the functions that a library requires and a release of TensorFlow does not export;
    /// `None` if either is unknown.
    fn missing_symbols(&self, library: &Path, tensorflow: &Version) -> Option<Vec<String>>;
}

/// A reader that reads nothing: only the tables of releases decide.
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
