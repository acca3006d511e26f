//! `serdes plugin`: what a library says of itself, whether the host accepts it, and how it behaves.

use std::{path::Path, time::Duration};

use serde_json::{Map, Value, json};
use serdes::stream_executor::{
    Error, LayoutChoice, Plugin, PluginOptions, Report,
    conformance::{self, Conformance, ConformanceOptions},
    elf,
};

use crate::{
    arguments::{PluginArguments, PluginCommand},
    terminal::{BAD, FAINT, Failure, GOOD, NAME, Status, Terminal, WARN},
};

/// How long a plug-in may take to open where it is only a means, far beyond what a real device needs to initialise.
const OPENING_LIMIT: Duration = Duration::from_secs(120);

/// Inspects, checks or verifies.
pub(crate) fn run(command: &PluginCommand, terminal: &mut Terminal) -> Result<Status, Failure> {
    match command {
        PluginCommand::Inspect { library } => inspect(library, terminal),
        PluginCommand::Check(arguments) => check(arguments, terminal),
        PluginCommand::Verify(arguments) => verify(arguments, terminal),
    }
}

/// Opens a plug-in by its description; a refused one is an answer, one that cannot be loaded a failure.
pub(crate) fn open(plugin: &str, layout: Option<&str>) -> Result<Plugin, Failure> {
    try_open(plugin, layout, OPENING_LIMIT).map_err(|error| failure(&error))
}

fn try_open(plugin: &str, layout: Option<&str>, limit: Duration) -> Result<Plugin, Error> {
    let layout = layout.map_or(Ok(LayoutChoice::Detect), LayoutChoice::named)?;
    PluginOptions::new().layout(layout).time_limit(limit).open(plugin)
}

/// An error of the host with the exit status that it means.
pub(crate) fn failure(error: &Error) -> Failure {
    if is_answer(error) { Failure::no(error) } else { Failure::chain(error) }
}

/// Whether the error says that the plug-in is refused.
pub(crate) fn is_answer(error: &Error) -> bool {
    matches!(error, Error::Refused(_) | Error::NotAPlugin { .. } | Error::AlreadyRegistered { .. })
}

fn check(arguments: &PluginArguments, terminal: &mut Terminal) -> Result<Status, Failure> {
    let plugin = &arguments.plugin;
    let limit = Duration::from_secs(arguments.time_limit);
    match try_open(plugin, arguments.layout.as_deref(), limit) {
        Ok(opened) => report(plugin, opened.report(), &[], terminal),
        Err(Error::Refused(found)) => report(plugin, &found, &[], terminal),
        Err(error @ (Error::NotAPlugin { .. } | Error::AlreadyRegistered { .. })) => {
            report(plugin, &Report::default(), &[error.to_string()], terminal)
        }
        Err(error) => Err(failure(&error)),
    }
}

/// Prints a report; `refusals` are reasons that came before any registration.
fn report(
    plugin: &str,
    report: &Report,
    refusals: &[String],
    terminal: &mut Terminal,
) -> Result<Status, Failure> {
    let accepted = report.accepted() && refusals.is_empty();
    let reasons: Vec<String> =
        refusals.iter().cloned().chain(report.reasons.iter().map(ToString::to_string)).collect();
    if terminal.json() {
        let sizes: Map<String, Value> = report
            .struct_sizes
            .iter()
            .map(|(name, size)| ((*name).to_owned(), json!(size)))
            .collect();
        terminal.object(&json!({
            "path": plugin,
            "accepted": accepted,
            "layout": report.layout,
            "version": report.version,
            "platform": report.platform,
            "type": report.device_type,
            "devices": report.devices,
            "struct_sizes": sizes,
            "missing_required": report.missing_required,
            "missing_optional": report.missing_optional,
            "reasons": reasons,
            "warnings": report.warnings,
        }))?;
    }
    let verdict =
        if accepted { format!("{GOOD}accepted{GOOD:#}") } else { format!("{BAD}refused{BAD:#}") };
    terminal.line(format_args!("{NAME}{plugin}{NAME:#}: {verdict}"))?;
    let unknown = || "unknown".to_owned();
    if refusals.is_empty() {
        let rows = [
            ("layout", report.layout.map_or_else(unknown, str::to_owned)),
            ("platform", report.platform.clone().unwrap_or_else(unknown)),
            ("type", report.device_type.clone().unwrap_or_else(unknown)),
            ("devices", report.devices.map_or_else(unknown, |count| count.to_string())),
        ];
        for (label, value) in rows {
            terminal.line(format_args!("  {label:<10}{value}"))?;
        }
        for (structure, size) in &report.struct_sizes {
            terminal.line(format_args!("  {FAINT}{structure} says {size} bytes{FAINT:#}"))?;
        }
    }
    for function in &report.missing_optional {
        terminal.line(format_args!("  {FAINT}without {function}{FAINT:#}"))?;
    }
    for warning in &report.warnings {
        terminal.line(format_args!("  {WARN}warning{WARN:#}: {warning}"))?;
    }
    for reason in &reasons {
        terminal.line(format_args!("  {BAD}reason{BAD:#}: {reason}"))?;
    }
    Ok(if accepted { Status::Yes } else { Status::No })
}

fn verify(arguments: &PluginArguments, terminal: &mut Terminal) -> Result<Status, Failure> {
    let limit = Duration::from_secs(arguments.time_limit);
    let plugin = try_open(&arguments.plugin, arguments.layout.as_deref(), limit)
        .map_err(|error| failure(&error))?;
    // The suite goes on where an outcome cannot be printed; the first such error is kept.
    let mut printed = Ok(());
    let outcomes =
        conformance::verify(&plugin, ConformanceOptions { time_limit: limit }, |outcome| {
            let shown = if terminal.json() {
                terminal.object(&json!({
                    "behaviour": outcome.behaviour,
                    "result": outcome.result.as_str(),
                    "detail": outcome.detail,
                }))
            } else {
                let style = match outcome.result {
                    Conformance::Pass => GOOD,
                    Conformance::Fail => BAD,
                    Conformance::Unsupported => WARN,
                };
                terminal.line(format_args!(
                    "{style}{:<11}{style:#} {:<40} {FAINT}{}{FAINT:#}",
                    outcome.result.as_str(),
                    outcome.behaviour,
                    outcome.detail
                ))
            };
            if printed.is_ok() {
                printed = shown;
            }
        });
    printed?;
    let count = |result| outcomes.iter().filter(|outcome| outcome.result == result).count();
    let failed = count(Conformance::Fail);
    terminal.line(format_args!(
        "\n{} passed, {failed} failed, {} unsupported",
        count(Conformance::Pass),
        count(Conformance::Unsupported)
    ))?;
    Ok(if failed == 0 { Status::Yes } else { Status::No })
}

fn inspect(library: &Path, terminal: &mut Terminal) -> Result<Status, Failure> {
    let found = elf::inspect(library).map_err(|error| failure(&error))?;
    if terminal.json() {
        terminal.object(&json!({
            "path": library,
            "architecture": found.architecture,
            "exports": found.exports,
            "undefined": found.undefined,
            "served": found.served,
            "unserved": found.unserved,
            "needed": found.needed,
        }))?;
    }
    terminal.line(format_args!(
        "{NAME}{}{NAME:#}: {}{}",
        library.display(),
        found.architecture,
        if found.shared { ", a shared library" } else { ", no shared library" }
    ))?;
    terminal.line(if found.is_plugin() {
        format!("  {GOOD}exports SE_InitPlugin{GOOD:#}: a device plug-in")
    } else {
        format!("  {WARN}does not export SE_InitPlugin{WARN:#}: no device plug-in")
    })?;
    let shown: Vec<&String> = found.exports.iter().filter(|name| !name.starts_with("_Z")).collect();
    list("exports", &shown, terminal)?;
    list("needed", &found.needed.iter().collect::<Vec<_>>(), terminal)?;
    list("served by this host", &found.served.iter().collect::<Vec<_>>(), terminal)?;
    list("not served by this host", &found.unserved.iter().collect::<Vec<_>>(), terminal)?;
    terminal.line(format_args!("  {} undefined symbols in all", found.undefined.len()))?;
    Ok(Status::Yes)
}

/// At most this many names of a list are printed for people; `--json` has them all.
const SHOWN: usize = 20;

fn list(label: &str, names: &[&String], terminal: &mut Terminal) -> Result<(), Failure> {
    if names.is_empty() {
        return Ok(());
    }
    terminal.line(format_args!("  {label}:"))?;
    for name in names.iter().take(SHOWN) {
        terminal.line(format_args!("    {name}"))?;
    }
    if names.len() > SHOWN {
        terminal.line(format_args!("    and {} more", names.len() - SHOWN))?;
    }
    Ok(())
}
