//! One package of an environment.

use std::path::PathBuf;

use pep440_rs::{Version, VersionSpecifiers};
use pep508_rs::{ExtraName, Requirement};

/// A file in the record of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedFile {
    /// The path, relative to the folder of packages.
    pub path: String,
    /// The size in bytes.
    pub size: Option<u64>,
    /// SHA-256 of the contents, in URL-safe base 64.
    pub sha256: Option<String>,
}

/// An installed or locked package.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Package {
    /// The name in the normal form of PEP 503.
    pub name: String,
    /// The effective version: from the version file if there is one, or else from the metadata.
    pub version: Version,
    /// The version in the metadata.
    pub metadata_version: Option<Version>,
    /// The folder of the metadata, or of the module where there is no metadata.
    pub path: Option<PathBuf>,
    /// The declared requirements; `None` if no file lists them, as in a lock.
    pub(crate) requires: Option<Vec<Requirement>>,
    /// The extras that the package declares.
    pub(crate) extras: Vec<ExtraName>,
    /// The Python versions that the package declares.
    pub requires_python: Option<VersionSpecifiers>,
    /// The tags of the installed wheel, such as `cp312-cp312-manylinux_2_27_x86_64`.
    pub tags: Vec<String>,
    /// The oldest jaxlib for this jax, from its version file.
    pub minimum_jaxlib: Option<Version>,
    /// The folder of packages with this package.
    pub site: Option<PathBuf>,
    /// The folder of its module, if known.
    pub module: Option<PathBuf>,
    /// The file with its version at import.
    pub version_file: Option<PathBuf>,
    /// Files that the package owns; only for judged packages.
    pub files: Vec<RecordedFile>,
    /// The files among these that are missing.
    pub missing: Vec<String>,
    /// The files among these whose size or content differs.
    pub changed: Vec<String>,
    /// The program that installed it, as recorded in its metadata.
    pub installer: Option<String>,
}

impl Package {
    /// Creates a package from its name and version.
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
            site: None,
            module: None,
            version_file: None,
            files: Vec::new(),
            missing: Vec::new(),
            changed: Vec::new(),
            installer: None,
        }
    }

    /// Returns the version without its local part, which comparisons ignore.
    pub(crate) fn public(&self) -> Version {
        self.version.clone().without_local()
    }

    /// Returns MAJOR and MINOR of the version.
    pub(crate) fn minor(&self) -> (u64, u64) {
        minor(&self.version)
    }
}

/// Returns MAJOR and MINOR of a version.
pub(crate) fn minor(version: &Version) -> (u64, u64) {
    let number = |at: usize| version.release().get(at).copied().unwrap_or_default();
    (number(0), number(1))
}
