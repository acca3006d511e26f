//! A framework: what it was built with, and what it demands of a plug-in before it calls it.

use serdes_abi::pjrt::Minor;

use super::{
    gate::{Gate, StableHlo},
    generated::RELEASES,
};

/// A framework that loads PJRT plug-ins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Framework {
    name: String,
    minor: Minor,
    gate: Gate,
    stablehlo: Option<[StableHlo; 2]>,
}

impl Framework {
    /// A framework of that name, built with that minor of the interface, that takes every plug-in
    /// from [`Minor::OLDEST_SUPPORTED`] on.
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

    /// The release of that name: `jaxlib-0.9.1`. What it was built with was measured, by having it
    /// load a plug-in that says a version of which the release complains. `pjrt-0.96` is any
    /// framework that was built with that minor and that [`Self::new`] gives.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if let Some(minor) = name.strip_prefix("pjrt-") {
            return Minor::parse(minor).map(|minor| Self::new(name, minor));
        }
        let number = name.strip_prefix("jaxlib-")?;
        RELEASES.iter().find(|release| release.number == number).map(|release| Self {
            name: name.to_owned(),
            minor: Minor::new(release.minor),
            gate: release.gate,
            stablehlo: Some(release.stablehlo),
        })
    }

    /// The names of all releases that are known, oldest first.
    pub fn names() -> impl Iterator<Item = String> {
        RELEASES.iter().map(|release| format!("jaxlib-{}", release.number))
    }

    /// Name of the framework's release.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The minor that it was built with.
    #[must_use]
    pub fn minor(&self) -> Minor {
        self.minor
    }

    /// Its check of a plug-in's version.
    #[must_use]
    pub fn gate(&self) -> Gate {
        self.gate
    }

    /// The oldest StableHLO that it can write, and its own; `None` if that is not known.
    pub(super) fn stablehlo(&self) -> Option<[StableHlo; 2]> {
        self.stablehlo
    }
}
