//! `serdes plugin verify`: runs the conformance suites one behaviour at a time, in processes that a
//! plug-in may crash.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use serdes_pjrt::PjrtError;
use serdes_stream_executor::conformance::{self, Conformance, ConformanceOptions, Outcome};

use super::{
    plugin_behaviours::list,
    plugin_opening, plugin_process,
    plugin_report::Outputs,
    plugin_selection::{self, KnownFailures},
    plugin_tally::Tally,
};
use crate::{
    arguments::{PluginArguments, VerifyArguments},
    failure::Failure,
    plugin_argument::PluginArgument,
    status::ExitStatus,
    terminal::Terminal,
};

/// Runs the suite for the plug-in's kind, or lists it.
pub(crate) fn run(
    arguments: &VerifyArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let plugin = &arguments.plugin;
    // Without a library this is the name of the suite.
    let is_suite = arguments.list && plugin.plugin == "pjrt:";
    let subject = match PluginArgument::parse(&plugin.plugin) {
        _ if is_suite => PluginArgument::Pjrt { path: PathBuf::new(), options: Vec::new() },
        subject => subject?,
    };
    let demands: Vec<_> = match subject {
        PluginArgument::StreamExecutor(_) => conformance::demands().collect(),
        PluginArgument::Pjrt { .. } => serdes_pjrt::conformance::demands().collect(),
    };
    let names: Vec<&str> = demands.iter().map(|(name, _)| *name).collect();
    let mut left_out = plugin_selection::left_out(&names, arguments)?;
    left_out.extend(arguments.without.iter().cloned());
    if arguments.list {
        let listed =
            demands.into_iter().filter(|(name, _)| !left_out.iter().any(|one| one == name));
        for (name, demand) in listed {
            list(name, demand, terminal)?;
        }
        return Ok(ExitStatus::Success);
    }
    let known = KnownFailures::read(arguments.known_failures.as_deref(), &names)?;
    let outputs = Outputs::of(arguments, terminal)?;
    let mut tally = Tally::new(arguments.level, known, outputs.prints());
    let ended = if plugin_opening::is_in_this_process(plugin, terminal) {
        match subject {
            PluginArgument::StreamExecutor(_) => verify(plugin, &left_out, &mut tally, terminal)?,
            PluginArgument::Pjrt { path, options } => {
                verify_pjrt(&path, &options, (plugin, &left_out), &mut tally, terminal)?;
            }
        }
        None
    } else {
        let tried = names.into_iter().filter(|name| !left_out.iter().any(|one| one == name));
        supervise(&tried.collect::<Vec<_>>(), &left_out, plugin, &mut tally, terminal)?
    };
    if let Some(status) = ended {
        return Ok(status);
    }
    outputs.write(&plugin.plugin, &tally, terminal)?;
    tally.end(terminal)
}

/// Runs all behaviours; after one that ends its process, continues in a new one. Returns the
/// status, if there is one without outcomes.
fn supervise(
    names: &[&str],
    left_out: &[String],
    arguments: &PluginArguments,
    tally: &mut Tally,
    terminal: &mut Terminal,
) -> Result<Option<ExitStatus>, Failure> {
    let without = left_out.join(",");
    let mut options = terminal.options();
    options.push("--json");
    if !left_out.is_empty() {
        options.extend(["--without", &without]);
    }
    loop {
        let before = tally.tried().len();
        let ended = plugin_process::run("verify", arguments, before, &options, |line| {
            tally.add(line, terminal)
        })?;
        let tried = tally.tried().len();
        match ended.end {
            Ok(status) if tried == 0 => return Ok(Some(status)),
            Ok(ExitStatus::Error) => return Ok(Some(ExitStatus::Error)),
            Ok(_) => return Ok(None),
            Err(how) => {
                let hint = "run it with --in-process in a debugger";
                let next = names.get(tried).filter(|_| !ended.complete);
                let (behaviour, when) = match next {
                    // The plug-in is loaded for the remaining behaviours, too.
                    Some(name) if tried == 0 => (*name, ", or before it"),
                    Some(name) => (*name, ""),
                    None => ("unload", ""),
                };
                tally.count(
                    behaviour,
                    Conformance::Fail,
                    &format!("{how} in this behaviour{when}; {hint}"),
                    terminal,
                )?;
                // A plug-in that cannot be loaded and registered will fail again.
                if next.is_none() || tried == 0 || tried + 1 == names.len() {
                    return Ok(None);
                }
            }
        }
    }
}

fn verify(
    arguments: &PluginArguments,
    left_out: &[String],
    tally: &mut Tally,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let limit = Duration::from_secs(arguments.time_limit);
    let layout = arguments.layout.as_deref();
    let opened = plugin_opening::try_open(&arguments.plugin, layout, limit)
        .map_err(plugin_opening::failure)?;
    // If an outcome cannot be printed, the suite continues; the first such error is returned.
    let mut printed = Ok(());
    conformance::verify(&opened, suite_options(arguments, left_out), |found| {
        let shown = tally.count(found.behaviour, found.result, &found.detail, terminal);
        if printed.is_ok() {
            printed = shown;
        }
    });
    printed?;
    terminal.unloading();
    plugin_opening::close(opened, limit).map_err(plugin_opening::failure)
}

fn suite_options(arguments: &PluginArguments, left_out: &[String]) -> ConformanceOptions {
    ConformanceOptions::new()
        .with_time_limit(Duration::from_secs(arguments.time_limit))
        .with_skip(arguments.supervised.unwrap_or_default())
        .without(left_out)
}

fn verify_pjrt(
    path: &Path,
    options: &[(String, serdes_pjrt::Value)],
    (arguments, left_out): (&PluginArguments, &[String]),
    tally: &mut Tally,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let mut printed = Ok(());
    let mut count = |found: &Outcome| {
        let shown = tally.count(found.behaviour, found.result, &found.detail, terminal);
        if printed.is_ok() {
            printed = shown;
        }
    };
    serdes_pjrt::conformance::verify(path, options, suite_options(arguments, left_out), &mut count)
        .map_err(|error| match error {
            error @ PjrtError::NotAPlugin { .. } => Failure::no(error),
            error => Failure::of(error),
        })?;
    printed?;
    terminal.unloading();
    Ok(())
}
