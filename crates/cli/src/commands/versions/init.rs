//! Creates the first versions.toml of a crate.

use serde_json::json;
use serdes::version::Date;
use serdes_version_registry::edit::{EditError, FirstLine};

use super::options::{FILE, day, release};
use crate::{
    arguments::InitVersionsArguments,
    failure::Failure,
    status::ExitStatus,
    terminal::{GOOD, NAME, Terminal, json_of_path, shown},
};

/// Creates the file, and prints the next steps.
pub(super) fn run(
    arguments: &InitVersionsArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let path = arguments.directory.join(FILE);
    let introduced = arguments.introduced.as_deref();
    let introduced =
        introduced.map(|text| day("--introduced", text)).transpose()?.unwrap_or_else(Date::today);
    let release = release(arguments.release.as_deref())?;
    let mut first = FirstLine::new(&arguments.line, &arguments.format, introduced);
    if let Some(release) = release {
        first = first.with_release(release);
    }
    first.write(&path).map_err(|error| match error {
        EditError::Exists { .. } => Failure::no(error),
        error => Failure::of(error),
    })?;
    let next = next(&arguments.format, &first.rust_type());
    if terminal.json() {
        terminal.object(&json!({
            "path": json_of_path(&path),
            "line": arguments.line,
            "type": first.rust_type(),
            "number": 0,
            "introduced": introduced.to_string(),
            "formats": [arguments.format],
            "release": release.map(|release| release.to_string()),
            "next": next,
        }))?;
    }
    terminal.line(format_args!(
        "{GOOD}made{GOOD:#} {} with the line {NAME}{}{NAME:#}",
        path.display(),
        shown(&arguments.line)
    ))?;
    terminal.line("next:")?;
    for step in &next {
        terminal.line(format_args!("  {step}"))?;
    }
    Ok(ExitStatus::Success)
}

/// Returns the remaining steps for the author.
fn next(format: &str, line: &str) -> Vec<String> {
    vec![
        "Cargo.toml: `serdes` and `prost` under [dependencies], `serdes-version-registry` under \
         [build-dependencies]; under [dev-dependencies] `serdes` with the feature `testing` and \
         `serdes-version-registry` with the feature `lock`"
            .to_owned(),
        "build.rs: fn main() -> std::process::ExitCode { serdes_version_registry::build(\"versions.toml\") }".to_owned(),
        "src/lib.rs: serdes::lines!();".to_owned(),
        format!(
            "ToProto<{line}> and FromProto for {format}, with `const FORMATS: Formats<{line}> = Formats::of(\"{format}\")`"
        ),
        format!(
            "a test with `golden` in its name that calls serdes::codec::testing::golden::<{line}, {format}>, and one of \
             serdes_version_registry::lock::Package::check"
        ),
        "`serdes versions golden`, then `serdes versions lock`; commit versions.toml, versions.lock and tests/golden".to_owned(),
    ]
}
