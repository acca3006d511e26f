//! What the options of these commands name: a day, and beside the folder the file that is in it.

use serdes::version::Date;

use crate::failure::Failure;

/// The file with the lines of a crate.
pub(super) const FILE: &str = "versions.toml";

/// The day that an option names.
pub(super) fn day(option: &str, text: &str) -> Result<Date, Failure> {
    text.parse::<Date>().map_err(|error| Failure::new(format_args!("{option} {text}: {error}")))
}
