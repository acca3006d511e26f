//! `serdes abi diff`: which number of the version must move between two layouts.

use serde_json::json;
use serdes::stream_executor::abi_diff::{Bump, LayoutDocument, diff};

use crate::{
    arguments::{AbiCommand, AllowedBump},
    terminal::{BAD, FAINT, Failure, GOOD, NAME, Status, Terminal, WARN},
};

/// Compares.
pub(crate) fn run(command: &AbiCommand, terminal: &mut Terminal) -> Result<Status, Failure> {
    let AbiCommand::Diff { old, new, allow } = command;
    let read =
        |argument: &str| LayoutDocument::read(argument).map_err(|error| Failure::chain(&error));
    let found = diff(&read(old)?, &read(new)?);
    let exceeded = allow.is_some_and(|allow| found.required > bump(allow));
    let notes = found.notes();
    if terminal.json() {
        let changes: Vec<_> = found
            .changes
            .iter()
            .map(|change| {
                json!({
                    "struct": change.structure,
                    "field": change.field,
                    "change": change.change,
                    "requires": change.requires.as_str(),
                    "why": change.why,
                })
            })
            .collect();
        terminal.object(&json!({
            "required": found.required.as_str(),
            "changes": changes,
            "notes": notes,
        }))?;
    }
    let style = if exceeded { BAD } else { GOOD };
    terminal.line(format_args!("{NAME}required{NAME:#}: {style}{}{style:#}", found.required))?;
    for change in &found.changes {
        let dot = if change.field.is_empty() { "" } else { "." };
        terminal.line(format_args!(
            "  {:<6}{NAME}{}{dot}{}{NAME:#} {}: {FAINT}{}{FAINT:#}",
            change.requires.as_str(),
            change.structure,
            change.field,
            change.change,
            change.why
        ))?;
    }
    for note in &notes {
        terminal.line(format_args!("  {WARN}note{WARN:#}: {note}"))?;
    }
    Ok(if exceeded { Status::No } else { Status::Yes })
}

fn bump(allowed: AllowedBump) -> Bump {
    match allowed {
        AllowedBump::Patch => Bump::Patch,
        AllowedBump::Minor => Bump::Minor,
        AllowedBump::Major => Bump::Major,
    }
}
