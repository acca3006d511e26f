//! Levels, which determine the warnings that count.

use std::{collections::BTreeMap, fmt};

/// The level of a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Not shown and not counted.
    Allow,
    /// Shown, but not counted.
    #[default]
    Warn,
    /// Counted: the artifact is not acceptable.
    Deny,
}

impl Level {
    /// Returns the identifier for programs.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Warn => "warn",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.id())
    }
}

/// The levels of rules. They apply to warnings: a refusal always counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    default: Level,
    rules: BTreeMap<String, Level>,
}

impl Levels {
    /// Returns levels with which every warning counts.
    #[must_use]
    pub fn strict() -> Self {
        Self { default: Level::Deny, rules: BTreeMap::new() }
    }

    /// Sets the level of a rule; the last one for a rule wins.
    #[must_use]
    pub fn with(mut self, rule: impl Into<String>, level: Level) -> Self {
        self.rules.insert(rule.into(), level);
        self
    }

    /// Returns the level of warnings of a rule.
    #[must_use]
    pub fn of(&self, rule: &str) -> Level {
        self.rules.get(rule).copied().unwrap_or(self.default)
    }

    /// Returns true if all rules have the default level.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
