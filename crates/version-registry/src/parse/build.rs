//! The build script's part: reads, validates, generates, and tells cargo.

use std::{env, fs, io, path::PathBuf, process::ExitCode};

use super::{RegistryErrors, generate, read};

/// The file that `serdes::lines!()` includes.
const GENERATED: &str = "serdes_lines.rs";

/// What a build script does with a versions.toml.
///
/// ```no_run
/// // build.rs of serdes itself; a downstream crate calls `build("versions.toml")`.
/// # use std::process::ExitCode;
/// fn main() -> ExitCode {
///     serdes_version_registry::Build::new("versions.toml").version_path("crate::version").run()
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Build {
    file: PathBuf,
    version_path: String,
}

impl Build {
    /// A build from `file`, relative to the package.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into(), version_path: "::serdes::version".to_owned() }
    }

    /// Where the generated code finds `Line`, `Entry` and the records: `::serdes::version` if not
    /// said otherwise (for a crate that renames serdes).
    #[must_use]
    pub fn version_path(mut self, path: impl Into<String>) -> Self {
        self.version_path = path.into();
        self
    }

    /// Generates into the build directory. On a broken rule the build fails, and cargo shows every
    /// error with file, row, line and entry.
    pub fn run(self) -> ExitCode {
        println!("cargo::rerun-if-changed={}", self.file.display());
        match self.generate() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                for row in error.to_string().lines() {
                    println!("cargo::error={row}");
                }
                ExitCode::FAILURE
            }
        }
    }

    fn generate(&self) -> Result<(), BuildError> {
        let declarations = read(&self.file)?;
        let directory = env::var_os("OUT_DIR").map(PathBuf::from).ok_or(BuildError::NoOutDir)?;
        let path = directory.join(GENERATED);
        fs::write(&path, generate(&declarations, &self.version_path))
            .map_err(|source| BuildError::Write { path, source })
    }
}

#[derive(Debug, thiserror::Error)]
enum BuildError {
    #[error(transparent)]
    Registry(#[from] RegistryErrors),
    #[error("OUT_DIR is not set; call this from a build script")]
    NoOutDir,
    #[error("{path}: the generated lines cannot be written: {source}")]
    Write { path: PathBuf, source: io::Error },
}

/// Reads `file` (relative to the package), fails the build on a broken rule, and generates what
/// `serdes::lines!()` includes. The whole build script of a downstream crate.
pub fn build(file: impl Into<PathBuf>) -> ExitCode {
    Build::new(file).run()
}
