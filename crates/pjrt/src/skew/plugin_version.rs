//! Facts about a plug-in that a framework is to load.

use serdes_abi::pjrt::Minor;

/// Rule by which a plug-in checks the struct size that a caller declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SizeRule {
    /// Its own size or more, as upstream's plug-ins do.
    #[default]
    AtLeast,
    /// Exactly its own size.
    Equal,
    /// The shortest size of all builds since that minor, or more: so do plug-ins that say so, such
    /// as those of this project's SDK.
    Since(Minor),
}

/// A plug-in's version, and what else is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginVersion {
    minor: Minor,
    size_rule: SizeRule,
    absent: Vec<String>,
    stablehlo: Option<[[u32; 3]; 2]>,
}

impl PluginVersion {
    /// Creates a plug-in of that minor of the interface.
    #[must_use]
    pub fn new(minor: Minor) -> Self {
        Self { minor, size_rule: SizeRule::AtLeast, absent: Vec::new(), stablehlo: None }
    }

    /// Sets the rule by which the plug-in checks sizes.
    #[must_use]
    pub fn with_size_rule(mut self, rule: SizeRule) -> Self {
        self.size_rule = rule;
        self
    }

    /// Marks functions as missing (`PJRT_Plugin_Attributes`) that its minor should have: they are
    /// NULL, or answer that they are not implemented.
    #[must_use]
    pub fn without(mut self, functions: impl IntoIterator<Item: Into<String>>) -> Self {
        self.absent.extend(functions.into_iter().map(Into::into));
        self
    }

    /// Sets the oldest version of StableHLO that it reads and the newest one, as in its attributes
    /// `stablehlo_minimum_version` and `stablehlo_current_version`: major, minor, patch.
    #[must_use]
    pub fn with_stablehlo(mut self, minimum: [u32; 3], current: [u32; 3]) -> Self {
        self.stablehlo = Some([minimum, current]);
        self
    }

    /// Returns its minor.
    #[must_use]
    pub fn minor(&self) -> Minor {
        self.minor
    }

    /// Returns its rule for sizes.
    #[must_use]
    pub fn size_rule(&self) -> SizeRule {
        self.size_rule
    }

    /// Returns true if the function is known to be missing.
    pub(super) fn lacks(&self, function: &str) -> bool {
        self.absent.iter().any(|absent| absent == function)
    }

    /// Returns the oldest StableHLO that it reads, and the newest.
    pub(super) fn stablehlo(&self) -> Option<[[u32; 3]; 2]> {
        self.stablehlo
    }
}
