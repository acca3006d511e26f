//! `serdes versions`: every line with its entries and their flags on a day.

use std::path::Path;

use comfy_table::{Table, presets::NOTHING};
use serde_json::json;
use serdes::version::{Date, EntryStatus, registry};
use serdes_version_registry::lock::{LockError, Package};

use crate::{
    arguments::{VersionsArguments, VersionsCommand},
    terminal::{FAINT, Failure, NAME, Status, Terminal},
};

/// Lists the lines, or rewrites or checks the lock.
pub(crate) fn run(
    arguments: &VersionsArguments,
    terminal: &mut Terminal,
) -> Result<Status, Failure> {
    match &arguments.command {
        Some(VersionsCommand::Lock { check, directory }) => lock(*check, directory, terminal),
        None => list(arguments.as_of.as_deref(), terminal),
    }
}

fn list(as_of: Option<&str>, terminal: &mut Terminal) -> Result<Status, Failure> {
    let day = match as_of {
        Some(text) => text
            .parse::<Date>()
            .map_err(|error| Failure::new(format_args!("--as-of {text}: {error}")))?,
        None => registry().as_of,
    };
    for line in registry().lines {
        terminal
            .line(format_args!("{NAME}{}{NAME:#}  {FAINT}{}{FAINT:#}", line.name, line.summary))?;
        let mut table = Table::new();
        table.load_preset(NOTHING);
        for entry in line.on(day) {
            if terminal.json() {
                terminal.object(&object(&entry))?;
            } else {
                table.add_row(row(&entry));
            }
        }
        terminal.line(format_args!("{table}\n"))?;
    }
    terminal.line(format_args!("{FAINT}as of {day}{FAINT:#}"))?;
    Ok(Status::Yes)
}

fn row(entry: &EntryStatus) -> Vec<String> {
    let flags: Vec<&str> = [
        (entry.current, "current"),
        (entry.week_4_old, "week_4_old"),
        (entry.minimum, "minimum"),
        (entry.withdrawn, "withdrawn"),
    ]
    .into_iter()
    .filter_map(|(set, name)| set.then_some(name))
    .collect();
    let age = match entry.age_days {
        1 => "1 day".to_owned(),
        days if days < 0 => format!("in {} days", -days),
        days => format!("{days} days"),
    };
    vec![
        entry.number.to_string(),
        entry.introduced.to_string(),
        age,
        flags.join(" "),
        entry.summary.to_owned(),
    ]
}

fn object(entry: &EntryStatus) -> serde_json::Value {
    json!({
        "line": entry.line,
        "number": entry.number,
        "introduced": entry.introduced.to_string(),
        "summary": entry.summary,
        "formats": entry.formats,
        "age_days": entry.age_days,
        "current": entry.current,
        "week_4_old": entry.week_4_old,
        "minimum": entry.minimum,
        "withdrawn": entry.withdrawn,
    })
}

fn lock(check: bool, directory: &Path, terminal: &mut Terminal) -> Result<Status, Failure> {
    let package = Package::open(directory).map_err(|error| Failure::chain(&error))?;
    let differences = if check {
        package.differences().map_err(|error| Failure::chain(&error))?
    } else {
        package.rewrite().map_err(|error| match error {
            LockError::Differs(_) => Failure::no(error),
            error => Failure::chain(&error),
        })?
    };
    for difference in &differences {
        terminal.line(difference)?;
    }
    let path = package.lock_path();
    if terminal.json() {
        let differences: Vec<String> = differences.iter().map(ToString::to_string).collect();
        terminal.object(&json!({ "path": path, "check": check, "differences": differences }))?;
    }
    let count = differences.len();
    if check && count > 0 {
        return Err(Failure::no(format_args!(
            "{} does not hold: {count} differences; a wire format changes only with a new entry in \
             versions.toml (then `serdes versions lock`)",
            path.display()
        )));
    }
    terminal.note(match (check, count) {
        (true, _) => format!("{} holds", path.display()),
        (false, 0) => format!("{} is as it was", path.display()),
        (false, count) => format!("{} is written: {count} differences", path.display()),
    });
    Ok(Status::Yes)
}
