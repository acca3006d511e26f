//! The packages that a lock names.

use std::{collections::BTreeMap, str::FromStr as _};

use pep440_rs::Version;

use crate::{environment::Tool, names::normal};

/// What a lock says: names with one version, or several where there are forks.
#[derive(Debug, Default)]
pub(super) struct Locked {
    pub(super) versions: BTreeMap<String, Vec<Version>>,
    pub(super) python: Option<Version>,
    pub(super) tool: Option<Tool>,
}

impl Locked {
    /// Adds a package; what is no name or no version is left out.
    pub(super) fn add(&mut self, name: &str, version: &str) {
        let (Some(name), Ok(version)) = (normal(name), Version::from_str(version.trim())) else {
            return;
        };
        let versions = self.versions.entry(name).or_default();
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
}
