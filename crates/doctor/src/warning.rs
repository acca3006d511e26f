//! Warnings about an environment, which are not problems.

use crate::rule::WarningRule;

/// A warning for users.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Warning {
    /// The rule.
    pub rule: WarningRule,
    /// Message for users.
    pub message: String,
    /// The packages concerned.
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
