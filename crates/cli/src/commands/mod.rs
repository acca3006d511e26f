//! One file a command; each turns its arguments into calls of the library and prints what comes
//! back.

mod abi;
mod check;
mod consumers;
mod convert;
mod device;
mod diff;
mod explain;
mod failures;
mod inspect;
mod merge;
mod moved;
mod negotiate;
mod offer;
mod ops;
mod pjrt_check;
mod places;
mod plugin;
mod plugin_inspect;
mod plugin_process;
mod plugin_suite;
pub(crate) mod remedies;
mod restore;
mod save;
mod selection;
mod serve;
mod serve_access;
mod serve_log;
mod serve_manager;
mod streams;
mod verdicts;
mod versions;
mod watch;

#[cfg(target_os = "linux")]
use std::io;

use clap::CommandFactory;

pub(crate) use self::versions::entries;
use crate::{
    arguments::{Cli, Command},
    failure::Failure,
    terminal::{Status, Terminal},
};
#[cfg(target_os = "linux")]
use crate::{
    process_settings,
    signals::Hangup,
    supervision::{self, Ended},
};

/// Has a command that works with a foreign plug-in done by a worker, and answers its exit status;
/// `None` where this process is to do it.
///
/// # Errors
/// What the system says if there can be no worker.
#[cfg(target_os = "linux")]
pub(crate) fn supervise(cli: &Cli) -> io::Result<Option<u8>> {
    if matches!(cli.command, Command::Serve(_)) {
        // The state is what clients have sent, and this machine may have others.
        process_settings::keep_private();
    }
    if let Some(pipes) = &cli.worker {
        supervision::become_worker(pipes)?;
        process_settings::note();
        return Ok(None);
    }
    let (plugin, hangup, takes_stream) = match &cli.command {
        Command::Save(arguments) => {
            (&arguments.device.plugin, Hangup::Stops, streams::is_output(&arguments.output))
        }
        Command::Restore(arguments) => (
            &arguments.device.plugin,
            Hangup::Stops,
            arguments.to.as_deref().is_some_and(streams::is_output),
        ),
        Command::Serve(arguments) => (&arguments.plugin, Hangup::Asks, false),
        _ => return Ok(None),
    };
    if plugin::is_embedded(plugin) || !supervision::is_possible() {
        return Ok(None);
    }
    let Ended { status, exit } = supervision::run(hangup)?;
    let mut terminal = Terminal::new(&cli.global)?;
    if takes_stream {
        // What went wrong is no part of the stream; on a terminal there is none.
        let _ = terminal.take_stream();
    }
    let how = exit.map_or_else(
        || "its process did not end, and was killed".to_owned(),
        plugin_process::describe,
    );
    let status = match status {
        Some(status) if exit.is_some_and(|exit| exit.code() == Some(status as i32)) => status,
        Some(status) => {
            terminal.warning(format_args!("the work with {plugin} was done before; then {how}"));
            status
        }
        None => terminal.fail(
            &Failure::new(format_args!("{plugin} did not let the work come to its end: {how}"))
                .with_hint(format_args!("try `serdes plugin verify {plugin}`")),
        ),
    };
    terminal.end(status);
    Ok(Some(status as u8))
}

/// Runs a command; a failure is printed by the caller.
pub(crate) fn run(command: &Command, terminal: &mut Terminal) -> Result<Status, Failure> {
    match command {
        Command::Versions(arguments) => versions::run(arguments, terminal),
        Command::Check(arguments) => check::run(arguments, terminal),
        Command::Explain(arguments) => explain::run(arguments, terminal),
        Command::Inspect(arguments) => inspect::run(arguments, terminal),
        Command::Ops(arguments) => ops::run(arguments, terminal),
        Command::Save(arguments) => save::run(arguments, terminal),
        Command::Restore(arguments) => restore::run(arguments, terminal),
        Command::Merge(arguments) => merge::run(arguments, terminal),
        Command::Diff(arguments) => diff::run(arguments, terminal),
        Command::Convert(arguments) => convert::run(arguments, terminal),
        Command::Plugin(command) => plugin::run(command, terminal),
        Command::Abi(command) => abi::run(command, terminal),
        Command::Negotiate(arguments) => negotiate::run(arguments, terminal),
        Command::Serve(arguments) => serve::run(arguments, terminal),
        Command::Completions { shell } => completions(*shell, terminal),
    }
}

fn completions(shell: clap_complete::Shell, terminal: &mut Terminal) -> Result<Status, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "serdes", &mut script);
    terminal.raw(&script)?;
    Ok(Status::Yes)
}
