//! Generates the lines of versions from versions.toml; a broken rule fails the build.

use std::process::ExitCode;

use serdes_version_registry::Build;

fn main() -> ExitCode {
    Build::new("versions.toml").version_path("crate::version").run()
}
