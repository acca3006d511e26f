//! Option values of these commands, and the name of the file.

use serdes::version::{Date, ReleaseNumber};

use crate::failure::Failure;

/// Name of the file with the version lines of a crate.
pub(super) const FILE: &str = "versions.toml";

/// Parses the day of an option.
pub(super) fn day(option: &str, text: &str) -> Result<Date, Failure> {
    text.parse::<Date>().map_err(|error| Failure::new(format_args!("{option} {text}: {error}")))
}

/// Parses the release of `--release`, if it is given.
pub(super) fn release(text: Option<&str>) -> Result<Option<ReleaseNumber>, Failure> {
    let Some(text) = text else { return Ok(None) };
    match text.parse::<ReleaseNumber>() {
        Ok(release) => Ok(Some(release)),
        Err(error) => Err(Failure::new(format_args!("--release {text}: {error}"))),
    }
}
