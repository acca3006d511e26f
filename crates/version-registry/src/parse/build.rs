//! The build script's part: parses, validates, generates, and reports to cargo.

use std::{env, fs, io, path::PathBuf, process::ExitCode};

use super::{Declarations, RegistryErrors, generate, read};
use crate::{Date, StaleRegistry};

/// The file that `serdes::lines!()` includes.
const GENERATED: &str = "serdes_lines.rs";

/// The build script of a crate with a versions.toml.
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
    /// Creates a build from `file`, relative to the package.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into(), version_path: "::serdes::version".to_owned() }
    }

    /// Sets the path of `Line`, `Entry` and the records in the generated code; `::serdes::version`
    /// by default. Needed by a crate that renames serdes.
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
        let epoch = env::var(SOURCE_DATE_EPOCH).ok();
        let directory = env::var_os("OUT_DIR").map(PathBuf::from);
        let (rows, code) = match self.outcome(directory, today(epoch.as_deref())) {
            Ok(warnings) => (warnings, ExitCode::SUCCESS),
            Err(errors) => (errors, ExitCode::FAILURE),
        };
        for row in rows {
            println!("{row}");
        }
        code
    }

    /// Generates into a directory; returns the lines to print for cargo, of a successful or a
    /// failed build.
    fn outcome(&self, directory: Option<PathBuf>, today: Date) -> Result<Vec<String>, Vec<String>> {
        match self.generate(directory) {
            Ok(declarations) => {
                let stale = StaleRegistry::find(declarations.as_of, today);
                let file = self.file.display();
                Ok(stale.iter().map(|stale| format!("cargo::warning={file}: {stale}")).collect())
            }
            Err(error) => {
                let rows = error.to_string();
                Err(rows.lines().map(|row| format!("cargo::error={row}")).collect())
            }
        }
    }

    fn generate(&self, directory: Option<PathBuf>) -> Result<Declarations, BuildError> {
        let declarations = read(&self.file)?;
        let path = directory.ok_or(BuildError::NoOutDir)?.join(GENERATED);
        fs::write(&path, generate(&declarations, &self.version_path))
            .map_err(|source| BuildError::Write { path, source })?;
        Ok(declarations)
    }
}

/// The variable with the day of a reproducible build, in seconds since 1970
/// (reproducible-builds.org); its value only decides about a warning.
const SOURCE_DATE_EPOCH: &str = "SOURCE_DATE_EPOCH";

/// Returns the day of the build: `epoch` if it is set and a number of seconds, else today.
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

/// Parses `file` (relative to the package), fails the build on a broken rule, and generates the
/// file that `serdes::lines!()` includes. This is the whole build script of a downstream crate.
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

    #[test]
    fn registry_behind_today_is_a_warning_that_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("versions.toml");
        let line = "[[line]]\nname = \"a\"\ntype = \"A\"\ntitle = \"a\"\nsummary = \"a\"\nminimum = 0\n\
                    [[line.entry]]\nnumber = 0\nintroduced = 2026-11-20\nsummary = \"a\"\n";
        fs::write(&file, format!("as_of = 2026-11-20\n{line}")).unwrap();
        let build = Build::new(&file);
        let on = |day: &str| {
            let told = build.outcome(Some(folder.path().to_owned()), day.parse().unwrap());
            (told, fs::read_to_string(folder.path().join(GENERATED)).unwrap())
        };
        let (told, generated) = on("2026-12-18");
        assert_eq!(told, Ok(Vec::new()));
        let (told, later) = on("2026-12-19");
        let told = told.unwrap();
        assert_eq!((told.len(), &later), (1, &generated));
        assert!(told[0].starts_with("cargo::warning=") && told[0].contains("29 days behind"));

        fs::write(&file, format!("as_of = 2026-11-19\n{line}")).unwrap();
        let told = build.outcome(Some(folder.path().to_owned()), "2027-01-01".parse().unwrap());
        let told = told.unwrap_err();
        assert!(told[0].starts_with("cargo::error=") && told[0].contains("2026-11-20"), "{told:?}");
        assert!(build.outcome(None, Date::today()).is_err());
    }
}
