//! `serdes abi diff`: the part of the version that must change between two layouts.

use serde_json::{Value, json};
use serdes_stream_executor::abi_diff::{
    Bump, Change, Deprecation, Diff, LayoutDocument, VersionStep, diff,
};

use crate::{
    arguments::{AbiCommand, AllowedBump},
    failure::Failure,
    status::ExitStatus,
    terminal::{BAD, FAINT, GOOD, NAME, Terminal, WARN, harmless, shown},
};

/// Runs the command.
pub(crate) fn run(command: &AbiCommand, terminal: &mut Terminal) -> Result<ExitStatus, Failure> {
    let AbiCommand::Diff { old, new, allow, require_moved } = command;
    let read = |argument: &str| LayoutDocument::read(argument).map_err(Failure::of);
    let found = diff(&read(old)?, &read(new)?);
    let exceeded = allow.is_some_and(|allow| found.required > bump(allow));
    let step = found.version_step();
    if *require_moved && step == VersionStep::Unknown {
        let (which, layout) = if found.versions.0.is_none() { ("OLD", old) } else { ("NEW", new) };
        return Err(Failure::new(format_args!(
            "{which} ({layout}) does not say its version, so that the step cannot be judged; write a `version` with SE_MAJOR, SE_MINOR and SE_PATCH into it"
        )));
    }
    let wrong_step = *require_moved && step != VersionStep::AsRequired;
    if terminal.json() {
        terminal.object(&object(&found))?;
    }
    let style = if exceeded { BAD } else { GOOD };
    terminal.line(format_args!("{NAME}required{NAME:#}: {style}{}{style:#}", found.required))?;
    if let ((Some(old), Some(new)), Some(moved)) = (found.versions, found.moved()) {
        let style = if wrong_step { BAD } else { FAINT };
        terminal.line(format_args!(
            "{NAME}moved{NAME:#}: {style}{moved}{style:#} {FAINT}({} to {}){FAINT:#}",
            version(old),
            version(new)
        ))?;
    }
    for change in &found.changes {
        let dot = if change.field.is_empty() { "" } else { "." };
        terminal.line(format_args!(
            "  {:<6}{NAME}{}{dot}{}{NAME:#} {}: {FAINT}{}{FAINT:#}",
            change.requires.as_str(),
            shown(&change.structure),
            if change.field.is_empty() { String::new() } else { shown(&change.field).to_string() },
            label(change),
            harmless(&change.why)
        ))?;
    }
    for note in found.notes() {
        terminal.line(format_args!("  {WARN}note{WARN:#}: {}", harmless(&note)))?;
    }
    Ok(if exceeded || wrong_step { ExitStatus::Negative } else { ExitStatus::Success })
}

/// Returns the description of a change for the text output.
fn label(change: &Change) -> &'static str {
    match change.deprecation {
        Some(Deprecation::Announced) => "will be deprecated",
        _ => change.change,
    }
}

fn object(found: &Diff) -> Value {
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
                "replaced_by": change.replaced_by,
                "deprecation": change.deprecation.map(Deprecation::as_str),
            })
        })
        .collect();
    json!({
        "required": found.required.as_str(),
        "changes": changes,
        "notes": found.notes(),
        "old_version": found.versions.0.map(version),
        "new_version": found.versions.1.map(version),
        "moved": found.moved().map(Bump::as_str),
        "version_step": found.version_step().as_str(),
    })
}

fn version(numbers: [i64; 3]) -> String {
    numbers.map(|number| number.to_string()).join(".")
}

fn bump(allowed: AllowedBump) -> Bump {
    match allowed {
        AllowedBump::Patch => Bump::Patch,
        AllowedBump::Minor => Bump::Minor,
        AllowedBump::Major => Bump::Major,
    }
}
