//! One package of an environment.

use std::path::PathBuf;

use pep440_rs::{Version, VersionSpecifiers};
use pep508_rs::{ExtraName, Requirement};

/// A package that is installed or locked.
#[derive(Clone, Debug)]
pub struct Package {
    /// The name in the normal form of PEP 503.
    pub name: String,
    /// The version that decides: that of the version file where there is one, else that of the
    /// metadata.
    pub version: Version,
    /// The version that the metadata gives.
    pub metadata_version: Option<Version>,
    /// The folder of the metadata, or of the module where there is no metadata.
    pub path: Option<PathBuf>,
    /// What the package declares to require; `None` where no file says it, as in a lock.
    pub requires: Option<Vec<Requirement>>,
    /// The extras that the package declares.
    pub extras: Vec<ExtraName>,
    /// The Pythons that the package declares to run on.
    pub requires_python: Option<VersionSpecifiers>,
    /// The tags of the wheel that was installed, such as `cp312-cp312-manylinux_2_27_x86_64`.
    pub tags: Vec<String>,
    /// The oldest jaxlib that this jax takes, by its version file.
    pub minimum_jaxlib: Option<Version>,
    /// Files that the package owns, relative to its folder of packages, with sizes in bytes where
    /// the record gives them. Of judged packages only.
    pub files: Vec<(String, Option<u64>)>,
    /// Those of them that are not there.
    pub missing: Vec<String>,
    /// Those of them of which the size differs.
    pub changed: Vec<String>,
    /// The program that installed it, by its own word.
    pub installer: Option<String>,
}

impl Package {
    /// A package of which only name and version are known.
    pub(crate) fn named(name: String, version: Version) -> Self {
        Self {
            name,
            version,
            metadata_version: None,
            path: None,
            requires: None,
            extras: Vec::new(),
            requires_python: None,
            tags: Vec::new(),
            minimum_jaxlib: None,
            files: Vec::new(),
            missing: Vec::new(),
            changed: Vec::new(),
            installer: None,
        }
    }

    /// The version without its local part, which comparisons leave out.
    pub(crate) fn public(&self) -> Version {
        self.version.clone().without_local()
    }

    /// MAJOR and MINOR of the version.
    pub(crate) fn minor(&self) -> (u64, u64) {
        minor(&self.version)
    }
}

/// MAJOR and MINOR of a version.
pub(crate) fn minor(version: &Version) -> (u64, u64) {
    let number = |at: usize| version.release().get(at).copied().unwrap_or_default();
    (number(0), number(1))
}
