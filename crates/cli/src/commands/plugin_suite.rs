//! `serdes plugin verify`: the conformance suites, a behaviour at a time, in processes that a
//! plug-in may end.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};
use serdes::{
    pjrt::{self, PjrtError},
    stream_executor::conformance::{self, Conformance, ConformanceOptions, Outcome},
};

use super::{plugin_opening, plugin_process};
use crate::{
    arguments::{PluginArguments, VerifyArguments},
    failure::Failure,
    plugin_argument::PluginArgument,
    status::Status,
    terminal::{BAD, FAINT, GOOD, NAME, Terminal, WARN, harmless},
};

/// The behaviours of both suites, and what each demands.
pub(crate) fn demands() -> impl Iterator<Item = (&'static str, &'static str)> {
    conformance::demands().chain(pjrt::conformance::demands())
}

/// Tries the suite of the plug-in's kind, or lists it.
pub(crate) fn run(arguments: &VerifyArguments, terminal: &mut Terminal) -> Result<Status, Failure> {
    let VerifyArguments { plugin: arguments, list } = arguments;
    // Without a library behind it this is the name of the suite.
    let is_suite = *list && arguments.plugin == "pjrt:";
    let subject = match PluginArgument::parse(&arguments.plugin) {
        _ if is_suite => PluginArgument::Pjrt { path: PathBuf::new(), options: Vec::new() },
        subject => subject?,
    };
    let demands: Vec<_> = match subject {
        PluginArgument::StreamExecutor(_) => conformance::demands().collect(),
        PluginArgument::Pjrt { .. } => pjrt::conformance::demands().collect(),
    };
    if *list {
        demands.into_iter().try_for_each(|behaviour| demand(behaviour, terminal))?;
        return Ok(Status::Yes);
    }
    if !plugin_opening::is_in_this_process(arguments, terminal) {
        let names: Vec<&str> = demands.into_iter().map(|(name, _)| name).collect();
        return supervise(&names, arguments, terminal);
    }
    match subject {
        PluginArgument::StreamExecutor(_) => verify(arguments, terminal),
        PluginArgument::Pjrt { path, options } => verify_pjrt(&path, &options, arguments, terminal),
    }
}

/// Runs all behaviours; after one that ends its process, continues in a new one.
fn supervise(
    names: &[&str],
    arguments: &PluginArguments,
    terminal: &mut Terminal,
) -> Result<Status, Failure> {
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
                    Some(name) if tally.tried == 0 => (*name, ", or before it"),
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

/// Outcomes of the behaviours so far.
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

fn verify(arguments: &PluginArguments, terminal: &mut Terminal) -> Result<Status, Failure> {
    let limit = Duration::from_secs(arguments.time_limit);
    let layout = arguments.layout.as_deref();
    let opened = plugin_opening::try_open(&arguments.plugin, layout, limit)
        .map_err(plugin_opening::failure)?;
    // The suite goes on where an outcome cannot be printed; the first such error is kept.
    let mut printed = Ok(());
    let mut tally = Tally::default();
    conformance::verify(&opened, suite_options(arguments), |found| {
        let shown = tally.count(found.behaviour, found.result, &found.detail, terminal);
        if printed.is_ok() {
            printed = shown;
        }
    });
    printed?;
    terminal.unloading();
    plugin_opening::close(opened, limit).map_err(plugin_opening::failure)?;
    tally.end(terminal)
}

fn suite_options(arguments: &PluginArguments) -> ConformanceOptions {
    ConformanceOptions::new()
        .with_time_limit(Duration::from_secs(arguments.time_limit))
        .with_skip(arguments.supervised.unwrap_or_default())
}

fn verify_pjrt(
    path: &Path,
    options: &[(String, pjrt::Value)],
    arguments: &PluginArguments,
    terminal: &mut Terminal,
) -> Result<Status, Failure> {
    let mut printed = Ok(());
    let mut tally = Tally::default();
    let mut count = |found: &Outcome| {
        let shown = tally.count(found.behaviour, found.result, &found.detail, terminal);
        if printed.is_ok() {
            printed = shown;
        }
    };
    pjrt::conformance::verify(path, options, suite_options(arguments), &mut count).map_err(
        |error| match error {
            error @ PjrtError::NotAPlugin { .. } => Failure::no(error),
            error => Failure::of(error),
        },
    )?;
    printed?;
    terminal.unloading();
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
    let detail = harmless(&detail.replace('\n', " "));
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
