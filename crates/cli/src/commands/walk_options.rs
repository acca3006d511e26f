//! Options of a walk: excluded patterns, and the kind of artifacts.

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serdes::ifrt::MessageType;
use serdes_check::{self as check, Kind};

use crate::failure::Failure;

/// Creates the matcher of excluded patterns, as in a .gitignore in the directory.
pub(super) fn excluded(patterns: &[String]) -> Result<Option<Gitignore>, Failure> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let failed = |error: ignore::Error| Failure::new(format_args!("--exclude: {error}"));
    let mut builder = GitignoreBuilder::new("");
    for pattern in patterns {
        builder.add_line(None, pattern).map_err(failed)?;
    }
    builder.build().map(Some).map_err(failed)
}

/// Returns the kind of `--kind`, and the type of an IFRT message.
pub(super) fn named_kind(
    name: Option<&str>,
) -> Result<(Option<Kind>, Option<MessageType>), Failure> {
    let Some(name) = name else { return Ok((None, None)) };
    let (kind, message) =
        check::named_kind(name).map_err(|error| Failure::new(format_args!("--kind: {error}")))?;
    Ok((Some(kind), message))
}
