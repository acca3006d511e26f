//! Rewrites or checks versions.lock.

use std::path::Path;

use serde_json::json;
use serdes_version_registry::lock::{Difference, LockError, Package};

use crate::{
    commands::nearest::nearest,
    failure::Failure,
    status::ExitStatus,
    terminal::{Terminal, harmless, json_of_path},
};

/// Rewrites the lock of the crate in a folder, or only compares.
pub(super) fn run(
    check: bool,
    directory: &Path,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let package = Package::open(directory).map_err(Failure::of)?;
    let differences = if check {
        package.unreleasable().map_err(Failure::of)?
    } else {
        package.rewrite().map_err(|error| match error {
            LockError::Differs(_) => Failure::no(error),
            error => Failure::of(error),
        })?
    };
    for difference in &differences {
        let meant = meant(difference, &package).unwrap_or_default();
        terminal.line(format_args!("{}{meant}", harmless(&difference.to_string())))?;
    }
    if !check {
        for missing in package.without_golden().map_err(Failure::of)? {
            let meant = meant(&missing, &package).unwrap_or_default();
            terminal.warning(format_args!("{}{meant}", harmless(&missing.to_string())));
        }
    }
    let path = package.lock_path();
    if terminal.json() {
        let differences: Vec<String> = differences.iter().map(ToString::to_string).collect();
        terminal.object(
            &json!({ "path": json_of_path(&path), "check": check, "differences": differences }),
        )?;
    }
    let count = differences.len();
    if check && count > 0 {
        return Err(Failure::no(format_args!(
            "{} does not hold: {}; a wire format changes only with a new entry in \
             versions.toml (then `serdes versions lock`)",
            path.display(),
            differences_of(count)
        )));
    }
    terminal.note(match (check, count) {
        (true, _) => format!("{} holds", path.display()),
        (false, 0) => format!("{} is as it was", path.display()),
        (false, count) => format!("{} is written: {}", path.display(), differences_of(count)),
    });
    Ok(ExitStatus::Success)
}

/// Returns the format that was probably meant by a format without golden bytes, if their names are
/// similar.
pub(super) fn meant(difference: &Difference, package: &Package) -> Option<String> {
    let Difference::NoGolden { line, format, .. } = difference else { return None };
    let others = package.formats(line);
    let others = others.into_iter().filter(|name| *name != format);
    nearest(format, others).map(|name| {
        format!(
            "; {name} is another format of {line}: if this is a slip for it, mend versions.toml"
        )
    })
}

/// Formats a number of formats.
pub(super) fn formats_of(count: usize) -> String {
    match count {
        1 => "1 format".to_owned(),
        count => format!("{count} formats"),
    }
}

/// Formats a number of differences.
pub(super) fn differences_of(count: usize) -> String {
    match count {
        1 => "1 difference".to_owned(),
        count => format!("{count} differences"),
    }
}
