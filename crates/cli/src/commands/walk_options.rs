//! Options of a walk: the patterns that are left out, and the kind of what is found.

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serdes::ifrt::MessageType;
use serdes_check::{self as check, Kind};

use crate::failure::Failure;

/// Matcher of the exclude patterns, as in a .gitignore at the top of the directory.
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

/// Returns the kind that `--kind` names, and of a message of IFRT its type.
pub(super) fn named_kind(
    name: Option<&str>,
) -> Result<(Option<Kind>, Option<MessageType>), Failure> {
    let Some(name) = name else { return Ok((None, None)) };
    let (kind, message) =
        check::named_kind(name).map_err(|error| Failure::new(format_args!("--kind: {error}")))?;
    Ok((Some(kind), message))
}
