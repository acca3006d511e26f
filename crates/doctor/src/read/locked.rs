//! The packages of a lock.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr as _,
};

use pep440_rs::{Version, VersionSpecifiers};
use pep508_rs::{MarkerEnvironment, MarkerTree};

use super::choices::Choice;
use crate::{environment::Tool, names::normal};

/// Maximum length of a marker: longer ones are ignored.
const MARKER_LIMIT: usize = 600;
/// Maximum number of versions of one package.
const VERSIONS: usize = 256;
/// Maximum number of markers of one package.
const MARKERS: usize = 64;

/// A version of a package, with the environments that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pin {
    pub(super) version: Version,
    /// One of them has to hold; an empty list always holds.
    markers: Vec<MarkerTree>,
}

impl Pin {
    /// Returns true if the version is for every environment.
    pub(super) fn is_for_all(&self) -> bool {
        self.markers.is_empty()
    }

    /// Returns true if the version is for an environment.
    pub(super) fn is_for(&self, environment: &MarkerEnvironment) -> bool {
        self.markers.is_empty()
            || self.markers.iter().any(|marker| marker.evaluate(environment, &[]))
    }
}

/// The contents of a lock: names with one version, or several if there are forks.
#[derive(Clone, Debug, Default)]
pub(super) struct Locked {
    pub(super) versions: BTreeMap<String, Vec<Pin>>,
    /// Names without a known version.
    pub(super) open: BTreeSet<String>,
    /// The Python, if the lock is for one only.
    pub(super) python: Option<Version>,
    /// The possible installations of the lock, if there are several.
    pub(super) choices: Vec<Choice>,
    /// True if the file may list less than is installed.
    pub(super) may_be_partial: bool,
    /// True if jaxlib is a conda build for CUDA, which contains the plug-in.
    pub(super) jaxlib_holds_plugin: bool,
    /// The Python versions of the lock.
    pub(super) requires_python: Option<VersionSpecifiers>,
    pub(super) tool: Option<Tool>,
}

impl Locked {
    /// Adds a package; invalid names and versions are skipped.
    pub(super) fn add(&mut self, name: &str, version: &str, markers: Vec<MarkerTree>) {
        let (Some(name), Ok(version)) = (normal(name), Version::from_str(version.trim())) else {
            return;
        };
        let versions = self.versions.entry(name).or_default();
        let is_full = versions.len() == VERSIONS;
        match versions.iter_mut().find(|known| known.version == version) {
            Some(known) if markers.is_empty() => known.markers.clear(),
            Some(known) if !known.markers.is_empty() => known.markers.extend(markers),
            Some(_) => {}
            None if is_full => {}
            None => versions.push(Pin { version, markers }),
        }
    }

    /// Adds a name without a version.
    pub(super) fn add_open(&mut self, name: &str) {
        self.open.extend(normal(name));
    }

    /// Returns the packages of one installation.
    pub(super) fn only(&self, choice: &Choice) -> Self {
        let mut wanted: BTreeMap<&str, Vec<Version>> = BTreeMap::new();
        for (name, version) in choice {
            wanted.entry(name).or_default().extend(Version::from_str(version.trim()));
        }
        let mut locked = Self { choices: Vec::new(), ..self.clone() };
        locked.versions.retain(|name, pins| {
            let versions = wanted.get(name.as_str()).map(Vec::as_slice).unwrap_or_default();
            pins.retain(|pin| versions.contains(&pin.version));
            !pins.is_empty()
        });
        locked
    }

    /// Adds the contents of another lock.
    pub(super) fn extend(&mut self, other: Self) {
        for (name, pins) in other.versions {
            let known = self.versions.entry(name).or_default();
            for pin in pins {
                if !known.contains(&pin) {
                    known.push(pin);
                }
            }
        }
        self.open.extend(other.open);
    }
}

/// Parses markers; those that are too long or damaged are skipped.
pub(super) fn markers<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<MarkerTree> {
    texts
        .into_iter()
        .take(MARKERS)
        .filter(|text| text.len() <= MARKER_LIMIT)
        .filter_map(|text| MarkerTree::from_str(text).ok())
        .collect()
}
