//! `serdes plugin`: what a library says of itself, whether the host accepts it, and how it behaves.

use std::{path::Path, time::Duration};

use serde_json::{Map, Value, json};
use serdes::stream_executor::{
    Error, LayoutChoice, Plugin, PluginOptions, Report,
    conformance::{self, Conformance, ConformanceOptions},
    elf, with_time_limit,
};

use super::plugin_process;
use crate::{
    arguments::{PluginArguments, PluginCommand, VerifyArguments},
    failure::Failure,
    terminal::{BAD, FAINT, GOOD, NAME, Status, Terminal, WARN},
};

/// How long a plug-in may take to open where it is only a means, far beyond what a real device
/// needs to initialise.
pub(crate) const OPENING_LIMIT: Duration = Duration::from_secs(120);

/// Inspects, checks or verifies.
pub(crate) fn run(command: &PluginCommand, terminal: &mut Terminal) -> Result<Status, Failure> {
    match command {
        PluginCommand::Inspect { library } => inspect(library, terminal),
        PluginCommand::Check(arguments) => {
            if is_in_this_process(arguments, terminal) {
                check(arguments, terminal)
            } else {
                supervise_check(arguments, terminal)
            }
        }
        PluginCommand::Verify(VerifyArguments { list: true, .. }) => {
            conformance::demands().try_for_each(|behaviour| demand(behaviour, terminal))?;
            Ok(Status::Yes)
        }
        PluginCommand::Verify(VerifyArguments { plugin: arguments, .. }) => {
            if is_in_this_process(arguments, terminal) {
                verify(arguments, terminal)
            } else {
                supervise_verify(arguments, terminal)
            }
        }
    }
}

/// Whether this process loads the plug-in: because it is the one made for that, because it was
/// asked to, or because nothing is loaded.
fn is_in_this_process(arguments: &PluginArguments, terminal: &mut Terminal) -> bool {
    if arguments.supervised.is_some() {
        terminal.be_supervised();
        end_with_parent();
        return true;
    }
    arguments.in_process || is_embedded(&arguments.plugin)
}

/// Whether the description is that of the embedded plug-in, which is no foreign code.
pub(crate) fn is_embedded(plugin: &str) -> bool {
    plugin == "host" || plugin.starts_with("host:")
}

/// Ends this process when the one that reads its results does.
fn end_with_parent() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, set_parent_process_death_signal};
        // Without it this process ends when its work does.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }
}

fn supervise_check(
    arguments: &PluginArguments,
    terminal: &mut Terminal,
) -> Result<Status, Failure> {
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

/// Tries all behaviours: those behind one that ended its process in the next process.
fn supervise_verify(
    arguments: &PluginArguments,
    terminal: &mut Terminal,
) -> Result<Status, Failure> {
    let names: Vec<&str> = conformance::behaviours().collect();
    let mut options = terminal.options();
    options.push("--json");
    let mut tally = Tally::default();
    loop {
        let before = tally.tried;
        let ended = plugin_process::run("verify", arguments, before, &options, |line| {
            tally.add(line, terminal)
        })?;
        match ended.end {
            Ok(status) if tally.tried == 0 => return Ok(status),
            Ok(Status::Failed) => return Ok(Status::Failed),
            Ok(_) => break,
            Err(how) => {
                let hint = "run it with --in-process in a debugger";
                let next = names.get(tally.tried).filter(|_| !ended.complete);
                let (behaviour, when) = match next {
                    // It is loaded for the behaviours that are left, too.
                    Some(_) if tally.tried == 0 => ("registration", ", or before it"),
                    Some(name) => (*name, ""),
                    None => ("unload", ""),
                };
                tally.count(
                    behaviour,
                    Conformance::Fail,
                    &format!("{how} in this behaviour{when}; {hint}"),
                    terminal,
                )?;
                // One that cannot be loaded and registered will not be the next time.
                if next.is_none() || tally.tried == 1 || tally.tried == names.len() {
                    break;
                }
            }
        }
    }
    tally.end(terminal)
}

/// What became of the behaviours so far.
#[derive(Default)]
struct Tally {
    tried: usize,
    passed: usize,
    failed: usize,
}

impl Tally {
    /// Takes a line that a process printed: an outcome, or, in front of its end, why there is none.
    fn add(&mut self, line: &[u8], terminal: &mut Terminal) -> Result<(), Failure> {
        let value: Value = serde_json::from_slice(line).map_err(Failure::of)?;
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        let result = [Conformance::Pass, Conformance::Fail, Conformance::Unsupported]
            .into_iter()
            .find(|result| result.as_str() == text("result"));
        match result {
            Some(result) => self.count(text("behaviour"), result, text("detail"), terminal),
            // People have read it on standard error.
            None if terminal.json() => terminal.object(&value),
            None => Ok(()),
        }
    }

    /// Counts and prints an outcome.
    fn count(
        &mut self,
        behaviour: &str,
        result: Conformance,
        detail: &str,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        self.tried += 1;
        self.passed += usize::from(result == Conformance::Pass);
        self.failed += usize::from(result == Conformance::Fail);
        outcome(behaviour, result, detail, terminal)
    }

    fn end(&self, terminal: &mut Terminal) -> Result<Status, Failure> {
        terminal.line(format_args!(
            "\n{} passed, {} failed, {} unsupported",
            self.passed,
            self.failed,
            self.tried - self.passed - self.failed
        ))?;
        Ok(if self.failed == 0 { Status::Yes } else { Status::No })
    }
}

/// Opens a plug-in by its description; a refused one is an answer, one that cannot be loaded a
/// failure.
pub(crate) fn open(plugin: &str, layout: Option<&str>) -> Result<Plugin, Failure> {
    try_open(plugin, layout, OPENING_LIMIT).map_err(failure)
}

fn try_open(plugin: &str, layout: Option<&str>, limit: Duration) -> Result<Plugin, Error> {
    let layout = layout.map_or(Ok(LayoutChoice::Detect), LayoutChoice::named)?;
    PluginOptions::new().with_layout(layout).with_time_limit(limit).open(plugin)
}

/// An error of the host with the exit status that it means.
pub(crate) fn failure(error: Error) -> Failure {
    let may_be_named = matches!(&error, Error::Refused(report) if report.layout_may_be_named);
    let failure = if is_answer(&error) { Failure::no(error) } else { Failure::of(error) };
    if may_be_named { failure.with_hint("--layout NAME names the layout") } else { failure }
}

/// Whether the error says that the plug-in is refused.
pub(crate) fn is_answer(error: &Error) -> bool {
    matches!(error, Error::Refused(_) | Error::NotAPlugin { .. } | Error::AlreadyRegistered { .. })
}

fn check(arguments: &PluginArguments, terminal: &mut Terminal) -> Result<Status, Failure> {
    let plugin = &arguments.plugin;
    let limit = Duration::from_secs(arguments.time_limit);
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

/// Unloads a plug-in, whose own functions may not return.
fn close(plugin: Plugin, limit: Duration) -> Result<(), Error> {
    with_time_limit(limit, move || drop(plugin))
}

/// A report as an object.
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
        terminal.object(&report_object(plugin, report, accepted, &reasons))?;
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
    if report.layout_may_be_named {
        terminal.line(format_args!("  {FAINT}--layout NAME names the layout{FAINT:#}"))?;
    }
    Ok(if accepted { Status::Yes } else { Status::No })
}

fn verify(arguments: &PluginArguments, terminal: &mut Terminal) -> Result<Status, Failure> {
    let limit = Duration::from_secs(arguments.time_limit);
    let plugin =
        try_open(&arguments.plugin, arguments.layout.as_deref(), limit).map_err(failure)?;
    // The suite goes on where an outcome cannot be printed; the first such error is kept.
    let mut printed = Ok(());
    let mut tally = Tally::default();
    let options = ConformanceOptions::new()
        .with_time_limit(limit)
        .with_skip(arguments.supervised.unwrap_or_default());
    conformance::verify(&plugin, options, |found| {
        let shown = tally.count(found.behaviour, found.result, &found.detail, terminal);
        if printed.is_ok() {
            printed = shown;
        }
    });
    printed?;
    terminal.unloading();
    close(plugin, limit).map_err(failure)?;
    tally.end(terminal)
}

/// Prints what a behaviour demands of a plug-in.
pub(crate) fn demand(
    (behaviour, demand): (&str, &str),
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    if terminal.json() {
        return terminal.object(&json!({ "behaviour": behaviour, "demand": demand }));
    }
    terminal.line(format_args!("{NAME}{behaviour:<28}{NAME:#}{demand}"))
}

/// Prints what became of a behaviour.
fn outcome(
    behaviour: &str,
    result: Conformance,
    detail: &str,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    if terminal.json() {
        return terminal.object(&json!({
            "behaviour": behaviour,
            "result": result.as_str(),
            "detail": detail,
        }));
    }
    // A line a behaviour, whatever a plug-in's message has in it.
    let detail = detail.replace('\n', " ");
    let style = match result {
        Conformance::Pass => GOOD,
        Conformance::Fail => BAD,
        Conformance::Unsupported => WARN,
    };
    terminal.line(format_args!(
        "{style}{:<11}{style:#} {behaviour:<40} {FAINT}{detail}{FAINT:#}",
        result.as_str()
    ))
}

fn inspect(library: &Path, terminal: &mut Terminal) -> Result<Status, Failure> {
    let found = elf::inspect(library).map_err(failure)?;
    if terminal.json() {
        terminal.object(&json!({
            "path": library,
            "api": found.api().map(elf::Api::as_str),
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
    terminal.line(match found.api() {
        Some(elf::Api::StreamExecutor) => {
            format!("  {GOOD}exports SE_InitPlugin{GOOD:#}: a device plug-in")
        }
        Some(elf::Api::Pjrt) => {
            format!("  {WARN}exports GetPjrtApi{WARN:#}: a plug-in of the PJRT interface")
        }
        None => format!("  {WARN}does not export SE_InitPlugin{WARN:#}: no device plug-in"),
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
