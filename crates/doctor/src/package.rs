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
    /// The SHA-256 of the content, in URL-safe base 64.
    pub sha256: Option<String>,
}

/// A package that is installed or locked.
#[derive(Clone, Debug)]
#[non_exhaustive]
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
    /// The declared requirements; `None` if no file lists them, as in a lock.
    pub(crate) requires: Option<Vec<Requirement>>,
    /// The extras that the package declares.
    pub(crate) extras: Vec<ExtraName>,
    /// The Pythons that the package declares to run on.
    pub requires_python: Option<VersionSpecifiers>,
    /// The tags of the wheel that was installed, such as `cp312-cp312-manylinux_2_27_x86_64`.
    pub tags: Vec<String>,
    /// The oldest jaxlib that this jax takes, by its version file.
    pub minimum_jaxlib: Option<Version>,
    /// The folder of packages that it lies in.
    pub site: Option<PathBuf>,
    /// The folder of its module, where one is known by name.
    pub module: Option<PathBuf>,
    /// The file that tells its version when it is imported.
    pub version_file: Option<PathBuf>,
    /// Files that the package owns. Of judged packages only.
    pub files: Vec<RecordedFile>,
    /// The files among these that are missing.
    pub missing: Vec<String>,
    /// The files among these whose size or content differs.
    pub changed: Vec<String>,
    /// The program that installed it, by its own word.
    pub installer: Option<String>,
}

impl Package {
    /// Returns a package of which only name and version are known.
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

    /// Returns the version without its local part, which comparisons leave out.
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
