//! The build script's part: reads, validates, generates, and tells cargo.

use std::{env, fs, io, path::PathBuf, process::ExitCode};

use super::{Declarations, RegistryErrors, generate, read};
use crate::{Date, StaleRegistry};

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
    /// error with file, row, line and entry. An `as_of` far behind today is a warning.
    pub fn run(self) -> ExitCode {
        println!("cargo::rerun-if-changed={}", self.file.display());
        println!("cargo::rerun-if-env-changed={SOURCE_DATE_EPOCH}");
        match self.generate() {
            Ok(declarations) => {
                let epoch = env::var(SOURCE_DATE_EPOCH).ok();
                if let Some(stale) =
                    StaleRegistry::find(declarations.as_of, today(epoch.as_deref()))
                {
                    println!("cargo::warning={}: {stale}", self.file.display());
                }
                ExitCode::SUCCESS
            }
            Err(error) => {
                for row in error.to_string().lines() {
                    println!("cargo::error={row}");
                }
                ExitCode::FAILURE
            }
        }
    }

    fn generate(&self) -> Result<Declarations, BuildError> {
        let declarations = read(&self.file)?;
        let directory = env::var_os("OUT_DIR").map(PathBuf::from).ok_or(BuildError::NoOutDir)?;
        let path = directory.join(GENERATED);
        fs::write(&path, generate(&declarations, &self.version_path))
            .map_err(|source| BuildError::Write { path, source })?;
        Ok(declarations)
    }
}

/// The day of a build that is to come out the same whenever it is run, in seconds since 1970
/// (reproducible-builds.org); its value only decides about a warning.
const SOURCE_DATE_EPOCH: &str = "SOURCE_DATE_EPOCH";

/// The day of the build: `epoch` where it is set and a number of seconds, else today.
fn today(epoch: Option<&str>) -> Date {
    let seconds = epoch.and_then(|text| text.trim().parse().ok());
    seconds.and_then(Date::from_unix_seconds).unwrap_or_else(Date::today)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_day_of_a_reproducible_build_is_the_one_that_it_was_told() {
        assert_eq!(today(Some("1795305599")), Date::from_ymd(2026, 11, 21).unwrap());
        for unusable in [None, Some(""), Some("yesterday"), Some("99999999999999999999")] {
            assert!(Date::today().days_since(today(unusable)) <= 1, "{unusable:?}");
        }
    }
}
