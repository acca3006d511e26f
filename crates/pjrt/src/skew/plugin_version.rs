//! Facts about a plug-in that a framework is to load.

use serdes_abi::pjrt::Minor;

/// The rule by which a plug-in checks the struct size that a caller declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SizeRule {
    /// Its own size or more, as upstream's plug-ins do.
    #[default]
    AtLeast,
    /// Exactly its own size.
    Equal,
    /// The shortest size of all builds since this minor, or more: for plug-ins that declare it,
    /// such as those of this project's SDK.
    Since(Minor),
}

/// A plug-in's version, and other facts that decide about its fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginVersion {
    minor: Minor,
    size_rule: SizeRule,
    absent: Vec<String>,
    stablehlo: Option<[[u32; 3]; 2]>,
}

impl PluginVersion {
    /// Creates the version of a plug-in with this minor of the interface.
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

    /// Marks functions (`PJRT_Plugin_Attributes`) as missing although its minor should have them:
    /// they are NULL, or return UNIMPLEMENTED.
    #[must_use]
    pub fn without(mut self, functions: impl IntoIterator<Item: Into<String>>) -> Self {
        self.absent.extend(functions.into_iter().map(Into::into));
        self
    }

    /// Sets the oldest and the newest version of StableHLO that it reads, as in its attributes
    /// `stablehlo_minimum_version` and `stablehlo_current_version`: major, minor, patch.
    #[must_use]
    pub fn with_stablehlo(mut self, minimum: [u32; 3], current: [u32; 3]) -> Self {
        self.stablehlo = Some([minimum, current]);
        self
    }

    /// Returns the minor.
    #[must_use]
    pub fn minor(&self) -> Minor {
        self.minor
    }

    /// Returns the rule for sizes.
    #[must_use]
    pub fn size_rule(&self) -> SizeRule {
        self.size_rule
    }

    /// Returns true if the function is known to be missing.
    pub(super) fn lacks(&self, function: &str) -> bool {
        self.absent.iter().any(|absent| absent == function)
    }

    /// Returns the oldest and the newest StableHLO that it reads.
    pub(super) fn stablehlo(&self) -> Option<[[u32; 3]; 2]> {
        self.stablehlo
    }
}
