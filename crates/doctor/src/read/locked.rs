//! The packages that a lock names.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr as _,
};

use pep440_rs::{Version, VersionSpecifiers};
use pep508_rs::{MarkerEnvironment, MarkerTree};

use super::choices::Choice;
use crate::{environment::Tool, names::normal};

/// A marker that is longer is not read: the lock is then judged as if it had none.
const MARKER_LIMIT: usize = 600;
/// Versions of one package.
const VERSIONS: usize = 256;
/// Markers of one package.
const MARKERS: usize = 64;

/// A version of a package, and the environments that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pin {
    pub(super) version: Version,
    /// One of them has to hold; none at all always does.
    markers: Vec<MarkerTree>,
}

impl Pin {
    /// Tells whether the version is for every environment.
    pub(super) fn is_for_all(&self) -> bool {
        self.markers.is_empty()
    }

    /// Tells whether the version is for an environment.
    pub(super) fn is_for(&self, environment: &MarkerEnvironment) -> bool {
        self.markers.is_empty()
            || self.markers.iter().any(|marker| marker.evaluate(environment, &[]))
    }
}

/// The content of a lock: names with one version, or several where there are forks.
#[derive(Clone, Debug, Default)]
pub(super) struct Locked {
    pub(super) versions: BTreeMap<String, Vec<Pin>>,
    /// Names without a version that is known.
    pub(super) open: BTreeSet<String>,
    /// The Python, where the lock is for one alone.
    pub(super) python: Option<Version>,
    /// The installations that the lock is for, where it is for several.
    pub(super) choices: Vec<Choice>,
    /// Tells whether the file may list less than is installed.
    pub(super) may_be_partial: bool,
    /// Tells whether jaxlib is a build of conda's for CUDA, which holds the plug-in.
    pub(super) jaxlib_holds_plugin: bool,
    /// The Pythons that the lock is for.
    pub(super) requires_python: Option<VersionSpecifiers>,
    pub(super) tool: Option<Tool>,
}

impl Locked {
    /// Adds a package; what is no name or no version is left out.
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

    /// Adds a name of which the version is not said.
    pub(super) fn add_open(&mut self, name: &str) {
        self.open.extend(normal(name));
    }

    /// Returns the lock of one installation.
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

    /// Takes over what another lock says.
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

/// Returns the markers of texts; those that are too long or damaged are left out.
pub(super) fn markers<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<MarkerTree> {
    texts
        .into_iter()
        .take(MARKERS)
        .filter(|text| text.len() <= MARKER_LIMIT)
        .filter_map(|text| MarkerTree::from_str(text).ok())
        .collect()
}
