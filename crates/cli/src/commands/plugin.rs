//! `serdes plugin`: inspects a library, checks that the host accepts it, and tests its behaviour.

use std::{path::Path, time::Duration};

use serde_json::{Map, Value, json};
use serdes_stream_executor::{Error, Report, elf};

use super::{
    pjrt_check, plugin_folder, plugin_inspect,
    plugin_opening::{close, failure, is_embedded, is_in_this_process, try_open},
    plugin_process, plugin_suite,
};
use crate::{
    arguments::{CheckPluginArguments, PluginArguments, PluginCommand},
    failure::Failure,
    plugin_argument::PluginArgument,
    status::ExitStatus,
    terminal::{BAD, FAINT, GOOD, NAME, Terminal, WARN, harmless, shown},
};

/// Runs a command of `plugin`.
pub(crate) fn run(command: &PluginCommand, terminal: &mut Terminal) -> Result<ExitStatus, Failure> {
    match command {
        PluginCommand::Inspect { library, tensorflow } => {
            plugin_inspect::run(library, tensorflow.as_deref(), terminal)
        }
        PluginCommand::Check(arguments) => check_kind(arguments, terminal),
        PluginCommand::Verify(arguments) => plugin_suite::run(arguments, terminal),
    }
}

/// Checks a plug-in of either kind.
fn check_kind(
    arguments: &CheckPluginArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let CheckPluginArguments { plugin, frameworks } = arguments;
    match PluginArgument::parse(&plugin.plugin)? {
        PluginArgument::Pjrt { path, options } => {
            pjrt_check::run(&path, options, arguments, terminal)
        }
        PluginArgument::StreamExecutor(name) if !frameworks.is_empty() => {
            if !is_embedded(&name) {
                // If the library is missing, report that.
                elf::inspect(&name).map_err(Failure::of)?;
            }
            Err(Failure::new(format_args!(
                "{} is no PJRT plug-in: no framework can be asked about it",
                plugin.plugin
            )))
        }
        PluginArgument::StreamExecutor(_) if is_in_this_process(plugin, terminal) => {
            check(plugin, terminal)
        }
        PluginArgument::StreamExecutor(_) => supervise_check(plugin, terminal),
    }
}

fn supervise_check(
    arguments: &PluginArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let mut options = terminal.options();
    if terminal.json() {
        options.push("--json");
    }
    let ended = plugin_process::run("check", arguments, 0, &options, |line| terminal.raw(line))?;
    ended.end.or_else(|how| {
        let reason = format!(
            "{how} while it was loaded, registered or unloaded; run it with --in-process in a debugger"
        );
        report(&arguments.plugin, &Report::default(), &[reason], terminal)
    })
}

fn check(arguments: &PluginArguments, terminal: &mut Terminal) -> Result<ExitStatus, Failure> {
    let plugin = &arguments.plugin;
    let limit = Duration::from_secs(arguments.time_limit);
    if Path::new(plugin).is_dir() {
        return plugin_folder::check(arguments, limit, terminal);
    }
    match try_open(plugin, arguments.layout.as_deref(), limit) {
        Ok(opened) => {
            let found = opened.report().clone();
            close(opened, limit).map_err(failure)?;
            report(plugin, &found, &[], terminal)
        }
        Err(Error::Refused(found)) => report(plugin, &found, &[], terminal),
        Err(error @ (Error::NotAPlugin { .. } | Error::AlreadyRegistered { .. })) => {
            report(plugin, &Report::default(), &[error.to_string()], terminal)
        }
        Err(error) => Err(failure(error)),
    }
}

/// Returns a report as a JSON object.
fn report_object(plugin: &str, report: &Report, accepted: bool, reasons: &[String]) -> Value {
    let sizes = report.struct_sizes.iter();
    let sizes: Map<String, Value> =
        sizes.map(|(name, size)| ((*name).to_owned(), json!(size))).collect();
    json!({
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
    })
}

/// Prints a report; `refusals` are reasons from before the registration.
fn report(
    plugin: &str,
    report: &Report,
    refusals: &[String],
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let accepted = report.accepted() && refusals.is_empty();
    let reasons: Vec<String> =
        refusals.iter().cloned().chain(report.reasons.iter().map(ToString::to_string)).collect();
    if terminal.json() {
        terminal.object(&report_object(plugin, report, accepted, &reasons))?;
    }
    let verdict =
        if accepted { format!("{GOOD}accepted{GOOD:#}") } else { format!("{BAD}refused{BAD:#}") };
    terminal.line(format_args!("{NAME}{}{NAME:#}: {verdict}", shown(plugin)))?;
    let unknown = || "unknown".to_owned();
    if refusals.is_empty() {
        let rows = [
            ("layout", report.layout.map_or_else(unknown, str::to_owned)),
            ("platform", report.platform.clone().unwrap_or_else(unknown)),
            ("type", report.device_type.clone().unwrap_or_else(unknown)),
            ("devices", report.devices.map_or_else(unknown, |count| count.to_string())),
        ];
        for (label, value) in rows {
            terminal.line(format_args!("  {label:<10}{}", shown(&value)))?;
        }
        for (structure, size) in &report.struct_sizes {
            terminal.line(format_args!("  {FAINT}{structure} says {size} bytes{FAINT:#}"))?;
        }
    }
    for function in &report.missing_optional {
        terminal.line(format_args!("  {FAINT}without {function}{FAINT:#}"))?;
    }
    for warning in &report.warnings {
        terminal.line(format_args!("  {WARN}warning{WARN:#}: {}", harmless(warning)))?;
    }
    for reason in &reasons {
        terminal.line(format_args!("  {BAD}reason{BAD:#}: {}", harmless(reason)))?;
    }
    if report.layout_may_be_named {
        terminal.line(format_args!("  {FAINT}--layout NAME names the layout{FAINT:#}"))?;
    }
    Ok(if accepted { ExitStatus::Success } else { ExitStatus::Negative })
}
