//! A framework: the versions that it was built with, and its requirements on a plug-in's version.

use serdes_abi::pjrt::Minor;

use super::{
    gate::{Gate, StableHlo},
    generated::{JAXLIB, TORCH_XLA},
    releases::Release,
};

/// The known releases, by the prefix of their names.
const FAMILIES: [(&str, &[Release]); 2] = [("jaxlib-", JAXLIB), ("torch_xla-", TORCH_XLA)];

/// A framework that loads PJRT plug-ins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Framework {
    name: String,
    minor: Minor,
    gate: Gate,
    stablehlo: Option<[StableHlo; 2]>,
}

impl Framework {
    /// Creates a framework with this name and this minor of the interface, which accepts every
    /// plug-in since [`Minor::OLDEST_SUPPORTED`].
    #[must_use]
    pub fn new(name: impl Into<String>, minor: Minor) -> Self {
        let gate = Gate::AtLeast(Minor::OLDEST_SUPPORTED);
        Self { name: name.into(), minor, gate, stablehlo: None }
    }

    /// Sets the framework's check of the plug-in's version.
    #[must_use]
    pub fn with_gate(mut self, gate: Gate) -> Self {
        self.gate = gate;
        self
    }

    /// Returns the named release: `jaxlib-0.9.1`, `torch_xla-2.9.0`. The versions of jaxlib were
    /// measured: it loaded a plug-in with a version that makes the release complain. Those of
    /// torch_xla were read in the code that makes this complaint. `pjrt-0.96` is any framework that
    /// was built with this minor, as [`Self::new`] creates it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if let Some(minor) = name.strip_prefix("pjrt-") {
            return Minor::parse(minor).map(|minor| Self::new(name, minor));
        }
        let is_it = |(prefix, releases): &(&str, &'static [Release])| {
            let number = name.strip_prefix(prefix)?;
            releases.iter().find(|release| release.number == number)
        };
        FAMILIES.iter().find_map(is_it).map(|release| Self {
            name: name.to_owned(),
            minor: Minor::new(release.minor),
            gate: release.gate,
            stablehlo: release.stablehlo,
        })
    }

    /// Returns the names of all known releases of jaxlib, oldest first.
    pub fn names() -> impl Iterator<Item = String> {
        JAXLIB.iter().map(|release| format!("jaxlib-{}", release.number))
    }

    /// Returns the names of all known releases of torch_xla, oldest first: `torch_xla-2.9.0`.
    pub fn torch_xla_names() -> impl Iterator<Item = String> {
        TORCH_XLA.iter().map(|release| format!("torch_xla-{}", release.number))
    }

    /// Returns the name of the framework's release.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the minor that the framework was built with.
    #[must_use]
    pub fn minor(&self) -> Minor {
        self.minor
    }

    /// Returns the framework's check of a plug-in's version.
    #[must_use]
    pub fn gate(&self) -> Gate {
        self.gate
    }

    /// Returns the oldest StableHLO that the framework can write, and its own version; `None` if
    /// unknown.
    pub(super) fn stablehlo(&self) -> Option<[StableHlo; 2]> {
        self.stablehlo
    }
}
