//! Notes about an environment that are no problems.

use crate::rule::WarningRule;

/// Something that a user may want to know.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Warning {
    /// The rule.
    pub rule: WarningRule,
    /// The sentence for people.
    pub message: String,
    /// The packages that it is about.
    pub packages: Vec<String>,
}

/// A component that could not be judged.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Unknown {
    /// The package.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The reason.
    pub why: String,
}
