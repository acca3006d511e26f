//! Verdicts as objects and for people: one, or one of each release.

use serde_json::{Map, Value, json};
use serdes_check::{Outcome, Verdict, Verdicts};

use crate::{
    commands::remedies,
    failure::Failure,
    objects,
    terminal::{BAD, FAINT, GOOD, NAME, Terminal, WARN, shown},
};

/// Shows a verdict.
pub(crate) fn show(verdict: &Verdict, terminal: &mut Terminal) -> Result<(), Failure> {
    if terminal.json() {
        return terminal.object(&objects::verdict(verdict).map_err(Failure::of)?);
    }
    terminal.line(format_args!("{}: {}", title(verdict), Word(verdict.outcome())))?;
    why(verdict, "  ", terminal)
}

/// Shows the verdicts of several releases on an artifact.
pub(crate) fn show_releases(verdicts: &Verdicts, terminal: &mut Terminal) -> Result<(), Failure> {
    if terminal.json() {
        for verdict in verdicts {
            terminal.object(&objects::verdict(verdict).map_err(Failure::of)?)?;
        }
        let releases: Map<String, Value> = verdicts
            .iter()
            .filter_map(|verdict| Some((verdict.release.clone()?, json!(verdict.outcome().id()))))
            .collect();
        return terminal.object(&json!({
            "path": verdicts.path,
            "releases": releases,
            "oldest": verdicts.oldest(),
            "newest": verdicts.newest(),
        }));
    }
    let all: Vec<&Verdict> = verdicts.iter().collect();
    if let Some(first) = all.first() {
        terminal.line(title(first))?;
    }
    for alike in all.chunk_by(|one, next| is_alike(one, next)) {
        let (Some(first), Some(last)) = (alike.first(), alike.last()) else { continue };
        let name = |verdict: &Verdict| verdict.release.clone().unwrap_or_default();
        let range = match alike.len() {
            1 => name(first),
            _ => format!("{} to {}", name(first), name(last)),
        };
        terminal.line(format_args!("  {range}: {}", Word(first.outcome())))?;
        why(first, "    ", terminal)?;
    }
    Ok(())
}

/// True if two releases give the same verdict on an artifact, but for their own names.
fn is_alike(one: &Verdict, other: &Verdict) -> bool {
    let reasons = |verdict: &Verdict| -> Vec<_> {
        let reasons = verdict.reasons().iter();
        reasons.map(|one| (one.rule, one.found.clone(), one.place.clone())).collect()
    };
    let warnings = |verdict: &Verdict| -> Vec<_> {
        verdict.warnings().iter().map(|one| (one.rule, one.place.clone())).collect()
    };
    one.outcome() == other.outcome()
        && reasons(one) == reasons(other)
        && warnings(one) == warnings(other)
}

/// Prints tables of verdicts: a line per artifact, a column per release, and a table for all
/// artifacts of the same releases.
pub(crate) fn tables(all: &[Verdicts], terminal: &mut Terminal) -> Result<(), Failure> {
    let mut by_releases: Vec<(Vec<Option<&str>>, Vec<&Verdicts>)> = Vec::new();
    for verdicts in all {
        let releases: Vec<_> = verdicts.iter().map(|verdict| verdict.release.as_deref()).collect();
        match by_releases.iter_mut().find(|(known, _)| *known == releases) {
            Some((_, alike)) => alike.push(verdicts),
            None => by_releases.push((releases, vec![verdicts])),
        }
    }
    by_releases.iter().try_for_each(|(_, alike)| table(alike, terminal))
}

fn table(all: &[&Verdicts], terminal: &mut Terminal) -> Result<(), Failure> {
    let Some(first) = all.first() else { return Ok(()) };
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    let releases = first.iter().map(|verdict| verdict.release.clone().unwrap_or_default());
    table.set_header(std::iter::once(String::new()).chain(releases));
    for verdicts in all {
        let words = verdicts.iter().map(|verdict| match verdict.outcome() {
            Outcome::Acceptable => "yes",
            Outcome::Unacceptable => "no",
            Outcome::Unreadable => "?",
        });
        let path = shown(&verdicts.path).to_string();
        table.add_row(std::iter::once(path).chain(words.map(str::to_owned)));
    }
    terminal.line("")?;
    table.lines().try_for_each(|line| terminal.line(line.trim_end()))?;
    let every = all.iter().filter(|verdicts| verdicts.outcome() == Outcome::Acceptable).count();
    terminal.line(format_args!("\n{every} of {} load in each of these releases", all.len()))
}

/// A path with its kind.
fn title(verdict: &Verdict) -> String {
    let kind = verdict.kind.map(|kind| format!(" ({kind})")).unwrap_or_default();
    format!("{NAME}{}{NAME:#}{FAINT}{kind}{FAINT:#}", shown(&verdict.path))
}

/// The verdict in one word.
struct Word(Outcome);

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let style = match self.0 {
            Outcome::Acceptable => GOOD,
            Outcome::Unacceptable | Outcome::Unreadable => BAD,
        };
        write!(f, "{style}{}{style:#}", self.0)
    }
}

/// The reasons with their remedies, and the warnings, behind an indentation.
fn why(verdict: &Verdict, indent: &str, terminal: &mut Terminal) -> Result<(), Failure> {
    for reason in verdict.reasons() {
        let place = reason.place.as_ref().map(|place| format!(" (at {})", shown(place)));
        terminal.line(format_args!(
            "{indent}{BAD}reason{BAD:#}: {}: {}{}",
            reason.rule,
            shown(&reason.message),
            place.unwrap_or_default()
        ))?;
        if let Some(help) = remedies::help(reason) {
            terminal.line(format_args!("{indent}  {GOOD}help{GOOD:#}: {}", shown(&help)))?;
        }
    }
    for warning in verdict.warnings() {
        let warning = warning.to_string();
        terminal.line(format_args!("{indent}{WARN}warning{WARN:#}: {}", shown(&warning)))?;
    }
    Ok(())
}
