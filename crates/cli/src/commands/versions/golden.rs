//! Golden bytes of a crate: finds missing ones, and lets the crate's tests write them.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::json;
use serdes_version_registry::lock::{Difference, Package};

use super::lock::meant;
use crate::{
    arguments::GoldenArguments,
    failure::Failure,
    status::ExitStatus,
    terminal::{GOOD, NAME, Terminal, harmless},
};

/// Lets a crate's tests write the missing golden bytes, or only checks.
pub(super) fn run(
    arguments: &GoldenArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let package = Package::open(&arguments.directory).map_err(Failure::of)?;
    let before = package.without_golden().map_err(Failure::of)?;
    let mut missing = before.clone();
    let mut tests_passed = None;
    if !arguments.check && !before.is_empty() {
        tests_passed = Some(run_tests(arguments)?);
        missing = package.without_golden().map_err(Failure::of)?;
    }
    let written: Vec<&Difference> =
        before.iter().filter(|difference| !missing.contains(difference)).collect();
    if terminal.json() {
        terminal.object(&json!({
            "check": arguments.check,
            "written": written.iter().filter_map(|found| file(found)).collect::<Vec<_>>(),
            "missing": missing.iter().filter_map(file).collect::<Vec<_>>(),
            "tests_passed": tests_passed,
        }))?;
    }
    for file in written.iter().filter_map(|found| file(found)) {
        terminal.line(format_args!("{GOOD}written{GOOD:#} {NAME}{file}{NAME:#}"))?;
    }
    for found in &missing {
        let meant = meant(found, &package).unwrap_or_default();
        terminal.line(format_args!("{}{meant}", harmless(&found.to_string())))?;
    }
    if missing.is_empty() {
        terminal.note(if written.is_empty() {
            "every format has golden bytes"
        } else {
            "next: read what was written, then `serdes versions lock`"
        });
        return Ok(ExitStatus::Success);
    }
    let how = if arguments.check {
        "`serdes versions golden` has the tests of the crate write them"
    } else {
        "no test of the crate wrote them: one with `golden` in its name that calls \
         serdes::codec::testing::golden for the type does"
    };
    Err(Failure::no(format_args!(
        "{} without golden bytes; {how}",
        super::lock::formats_of(missing.len())
    )))
}

/// Returns the path of a missing file in the crate.
fn file(difference: &Difference) -> Option<String> {
    match difference {
        Difference::NoGolden { line, format, number, .. } => {
            Some(format!("tests/golden/{line}/{format}/v{number}.bin"))
        }
        _ => None,
    }
}

/// Runs the tests with golden bytes. Failing tests are not an error: the files that they wrote
/// count.
fn run_tests(arguments: &GoldenArguments) -> Result<bool, Failure> {
    let manifest = manifest(&arguments.directory)?;
    let cargo = std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    let mut command = Command::new(&cargo);
    command.args(["test", "--no-fail-fast", "--manifest-path"]).arg(manifest);
    if arguments.cargo.is_empty() {
        command.arg("golden");
    } else {
        command.args(&arguments.cargo);
    }
    // Standard output is reserved for results; output of cargo and the tests goes to standard
    // error.
    let output = command
        .env("SERDES_GOLDEN", "write")
        .stdin(Stdio::null())
        .stdout(io::stderr())
        .status()
        .map_err(|error| {
            Failure::new(format_args!(
                "{} cannot be run: {error}; run the tests of the crate with SERDES_GOLDEN=write yourself",
                cargo.display()
            ))
        })?;
    Ok(output.success())
}

fn manifest(directory: &Path) -> Result<PathBuf, Failure> {
    let manifest = directory.join("Cargo.toml");
    if manifest.is_file() {
        return Ok(manifest);
    }
    Err(Failure::new(format_args!(
        "{}: there is no such file; golden bytes are written by the tests of a crate",
        manifest.display()
    )))
}
