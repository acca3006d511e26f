//! Adds an entry to a line, and advances the registry's day with a release.

use std::path::Path;

use serde_json::{Value, json};
use serdes::version::Date;
use serdes_version_registry::{
    Declarations,
    edit::{EditError, Edited, NewEntry, add_entry, move_as_of, read_text},
    lock::{Difference, LineRelease, Package},
};

use super::{
    lock::differences_of,
    options::{FILE, day, release as release_of},
};
use crate::{
    arguments::{AddVersionArguments, ReleaseVersionsArguments},
    commands::nearest::nearest,
    failure::Failure,
    status::ExitStatus,
    terminal::{GOOD, NAME, Terminal, json_of_path},
};

/// Adds an entry.
pub(super) fn add(
    arguments: &AddVersionArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let path = arguments.directory.join(FILE);
    let file = path.display().to_string();
    let text = read_text(&path).map_err(failure)?;
    let introduced = arguments.introduced.as_deref();
    let introduced =
        introduced.map(|text| day("--introduced", text)).transpose()?.unwrap_or_else(Date::today);
    let entry = entry(arguments, introduced)?;
    let edited = add_entry(&file, &text, &entry).map_err(failure)?;
    let new = new_formats(&edited, &arguments.line, &arguments.formats);
    if !arguments.new_names {
        check_names(&edited, &arguments.line, &new)?;
    }
    check_releases(&edited, &arguments.directory)?;
    if !arguments.dry_run {
        edited.write(&path).map_err(failure)?;
    }
    let number = edited.number().unwrap_or_default();
    let golden: Vec<String> = arguments
        .formats
        .iter()
        .map(|format| format!("tests/golden/{}/{format}/v{number}.bin", arguments.line))
        .collect();
    if terminal.json() {
        terminal.object(&json!({
            "path": json_of_path(&path),
            "written": !arguments.dry_run,
            "line": arguments.line,
            "number": number,
            "introduced": introduced.to_string(),
            "formats": arguments.formats,
            "new_formats": new,
            "as_of": edited.declarations().as_of.to_string(),
            "previous_as_of": edited.as_of_before().to_string(),
            "selections": selections(&edited),
            "golden": golden,
        }))?;
    }
    let done = if arguments.dry_run { "would add" } else { "added" };
    terminal.line(format_args!(
        "{GOOD}{done}{GOOD:#} {NAME}{} {number}{NAME:#}, introduced {introduced}, to {file}",
        arguments.line
    ))?;
    say_selections(&edited, terminal)?;
    for format in &new {
        terminal.note(format_args!(
            "{format} is a format that {} did not have before; if that is a slip, take the entry out again",
            arguments.line
        ));
    }
    terminal.note(next(arguments, number, &golden));
    Ok(ExitStatus::Success)
}

fn entry(arguments: &AddVersionArguments, introduced: Date) -> Result<NewEntry, Failure> {
    let mut entry = NewEntry::new(&arguments.line, introduced).with_formats(&arguments.formats);
    if let Some(summary) = &arguments.summary {
        entry = entry.with_summary(summary);
    }
    if let Some(number) = arguments.number {
        entry = entry.with_number(number);
    }
    if let Some(release) = &arguments.released_in {
        entry = entry.with_released_in(release);
    }
    if let Some(source) = &arguments.date_source {
        entry = entry.with_date_source(source);
    }
    if let Some(consumer) = arguments.min_consumer {
        entry = entry.with_min_consumer(consumer);
    }
    if let Some(release) = release_of(arguments.release.as_deref())? {
        entry = entry.with_release(release);
    }
    Ok(entry)
}

/// Refuses an entry that does not fit the next release of its line.
fn check_releases(edited: &Edited, directory: &Path) -> Result<(), Failure> {
    let package = Package::of_declarations(directory, edited.declarations());
    let broken = package.broken_releases().map_err(Failure::of)?;
    if broken.is_empty() {
        return Ok(());
    }
    let broken: Vec<String> = broken.iter().map(ToString::to_string).collect();
    Err(Failure::no(format_args!("nothing is written:\n{}", broken.join("\n")))
        .with_hint("`--release` moves the release of the line with the entry"))
}

/// Returns formats that no earlier entry of the line has: new types, or misspellings.
fn new_formats(edited: &Edited, line: &str, formats: &[String]) -> Vec<String> {
    let entries = edited.declarations().line(line).map(|line| line.entries.as_slice());
    let earlier = entries.and_then(|entries| entries.split_last()).map(|(_, earlier)| earlier);
    let known = |format: &&String| {
        !earlier.is_some_and(|earlier| earlier.iter().any(|entry| entry.formats.contains(format)))
    };
    formats.iter().filter(known).cloned().collect()
}

/// Refuses a new format whose name is similar to an existing one, unless the author confirms it.
fn check_names(edited: &Edited, line: &str, new: &[String]) -> Result<(), Failure> {
    let entries = edited.declarations().line(line).map(|line| line.entries.as_slice());
    let formats = entries.into_iter().flatten().flat_map(|entry| &entry.formats);
    let known: Vec<&str> =
        formats.map(String::as_str).filter(|name| !new.iter().any(|new| new == name)).collect();
    for format in new {
        if let Some(meant) = nearest(format, known.iter().copied()) {
            return Err(Failure::no(format_args!(
                "nothing is written: {format} is a format that {line} did not have before, and nearly \
                 {meant}, which it has"
            ))
            .with_hint("name that one, or say --new-names if it is another"));
        }
    }
    Ok(())
}

/// Returns the remaining steps for the author.
fn next(arguments: &AddVersionArguments, number: i32, golden: &[String]) -> String {
    if golden.is_empty() {
        return "next: nothing; the entry names no formats".to_owned();
    }
    format!(
        "next: write and read version {number} of {}, beside the old ones; add {} (`serdes versions golden`); \
         then `serdes versions lock`",
        arguments.formats.join(", "),
        golden.join(", "),
    )
}

/// Advances the registry's day and freezes new formats.
pub(super) fn release(
    arguments: &ReleaseVersionsArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let path = arguments.directory.join(FILE);
    let file = path.display().to_string();
    let text = read_text(&path).map_err(failure)?;
    let date = arguments.date.as_deref().map(|text| day("--date", text)).transpose()?;
    let date = date.unwrap_or_else(Date::today);
    let edited = move_as_of(&file, &text, date).map_err(failure)?;
    let differences = freezable(&arguments.directory)?;
    let package = package(&arguments.directory)?;
    let releases = package.moved_releases().map_err(Failure::of)?;
    if !arguments.dry_run {
        if !differences.is_empty() || !releases.is_empty() {
            package.rewrite_released().map_err(Failure::of)?;
        }
        if edited.is_change() {
            edited.write(&path).map_err(failure)?;
        }
    }
    let days_ahead = date.days_since(Date::today());
    if days_ahead > 1 {
        terminal.warning(format_args!(
            "{date} is {days_ahead} days ahead: until then versions count as older than they are"
        ));
    }
    if terminal.json() {
        terminal.object(&json!({
            "path": json_of_path(&path),
            "written": !arguments.dry_run,
            "as_of": edited.declarations().as_of.to_string(),
            "previous_as_of": edited.as_of_before().to_string(),
            "selections": selections(&edited),
            "frozen": differences.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "releases": releases.iter().map(release_object).collect::<Vec<_>>(),
        }))?;
    }
    let done = if arguments.dry_run { "would set" } else { "set" };
    terminal.line(format_args!(
        "{GOOD}{done}{GOOD:#} as_of of {file} from {} to {NAME}{date}{NAME:#}",
        edited.as_of_before()
    ))?;
    say_releases(&releases, terminal)?;
    say_selections(&edited, terminal)?;
    for young in young(edited.declarations()) {
        terminal.note(young);
    }
    if !differences.is_empty() {
        terminal.note(format_args!("versions.lock: {} frozen", differences_of(differences.len())));
    }
    Ok(ExitStatus::Success)
}

fn release_object(release: &LineRelease) -> Value {
    json!({
        "line": release.line,
        "before": release.previous.map(|release| release.to_string()),
        "after": release.release.to_string(),
        "kind": release.kind().map(|kind| kind.to_string()),
    })
}

fn say_releases(releases: &[LineRelease], terminal: &mut Terminal) -> Result<(), Failure> {
    for moved in releases {
        let LineRelease { line, previous, release, .. } = moved;
        let after = match previous.zip(moved.kind()) {
            None => "the first in the lock".to_owned(),
            Some((previous, kind)) => format!("a {kind} release after {previous}"),
        };
        terminal.line(format_args!("  {line}: release {release}, {after}"))?;
    }
    Ok(())
}

/// Returns the selections for older builds that are younger than these builds.
fn young(declarations: &Declarations) -> Vec<String> {
    let lines = declarations.lines.iter();
    lines
        .filter_map(|line| {
            let selected = line.week_4_old(declarations.as_of)?;
            selected.is_younger_than_asked().then(|| {
                format!(
                    "{} {} is all that there is for older builds, and {} days old, not {}: builds from \
                     before {} cannot read it",
                    line.name,
                    selected.number,
                    selected.age_days,
                    selected.asked_days,
                    selected.introduced
                )
            })
        })
        .collect()
}

/// Returns the formats of a crate that are not frozen yet; any other difference from its lock is a
/// failure.
fn freezable(directory: &Path) -> Result<Vec<Difference>, Failure> {
    let differences = package(directory)?.unreleasable().map_err(Failure::of)?;
    let (additions, others): (Vec<_>, Vec<_>) =
        differences.into_iter().partition(Difference::is_addition);
    if others.is_empty() {
        return Ok(additions);
    }
    let others: Vec<String> = others.iter().map(ToString::to_string).collect();
    Err(Failure::no(format_args!(
        "nothing is written, since what is out would change, or is not frozen:\n{}",
        others.join("\n")
    )))
}

fn package(directory: &Path) -> Result<Package, Failure> {
    Package::open(directory).map_err(Failure::of)
}

fn selections(edited: &Edited) -> Vec<Value> {
    let changes = edited.selections();
    let object = |change: &serdes_version_registry::edit::SelectionChange| {
        json!({
            "line": change.line,
            "selector": change.selector,
            "before": change.before,
            "after": change.after,
        })
    };
    changes.iter().map(object).collect()
}

fn say_selections(edited: &Edited, terminal: &mut Terminal) -> Result<(), Failure> {
    let number = |number: Option<i32>| number.map_or("none".to_owned(), |found| found.to_string());
    for change in edited.selections() {
        terminal.line(format_args!(
            "  {}: {} was {}, is {}",
            change.line,
            change.selector,
            number(change.before),
            number(change.after)
        ))?;
    }
    Ok(())
}

/// Converts an error: a step that a rule refuses is an answer, anything else a failure.
fn failure(error: EditError) -> Failure {
    match error {
        EditError::Refused(_) | EditError::AsOfGoesBack { .. } => Failure::no(error),
        error => Failure::of(error),
    }
}
