//! A framework: what it was built with, and what it demands of a plug-in before it calls it.

use serdes_abi::pjrt::Minor;

use super::{
    gate::{Gate, StableHlo},
    generated::{JAXLIB, TORCH_XLA},
    releases::Release,
};

/// Releases that are known, by the prefix of their names.
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
    /// Creates a framework of that name, built with that minor of the interface, that takes every
    /// plug-in from [`Minor::OLDEST_SUPPORTED`] on.
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

    /// Returns the release of that name: `jaxlib-0.9.1`, `torch_xla-2.9.0`. What a jaxlib was built
    /// with was measured, by having it load a plug-in that says a version of which the release
    /// complains; that of torch_xla was read in the code that makes this complaint. `pjrt-0.96` is
    /// any framework that was built with that minor and that [`Self::new`] gives.
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

    /// Returns the names of all releases of jaxlib that are known, oldest first.
    pub fn names() -> impl Iterator<Item = String> {
        JAXLIB.iter().map(|release| format!("jaxlib-{}", release.number))
    }

    /// Returns the names of all releases of torch_xla that are known, oldest first:
    /// `torch_xla-2.9.0`.
    pub fn torch_xla_names() -> impl Iterator<Item = String> {
        TORCH_XLA.iter().map(|release| format!("torch_xla-{}", release.number))
    }

    /// Returns the name of the framework's release.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the minor that it was built with.
    #[must_use]
    pub fn minor(&self) -> Minor {
        self.minor
    }

    /// Returns its check of a plug-in's version.
    #[must_use]
    pub fn gate(&self) -> Gate {
        self.gate
    }

    /// Returns the oldest StableHLO that it can write, and its own; `None` if that is not known.
    pub(super) fn stablehlo(&self) -> Option<[StableHlo; 2]> {
        self.stablehlo
    }
}
