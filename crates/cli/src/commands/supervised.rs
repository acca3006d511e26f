//! Runs commands with a foreign plug-in in a process that may crash.

use std::{ffi::OsString, io};

use super::{locations, plugin_opening, plugin_process, streams, xla_flags};
use crate::{
    arguments::{Cli, Command},
    failure::Failure,
    plugin_argument::PluginArgument,
    process_settings,
    signals::Hangup,
    supervision::{self, Ended, Work},
    terminal::Terminal,
};

/// Runs a command with a foreign plug-in in a worker, and returns its exit status; `None` if this
/// process should run the command.
///
/// # Errors
/// The system's error if the worker cannot be started.
pub(crate) fn supervise(cli: &Cli) -> io::Result<Option<u8>> {
    if matches!(cli.command, Command::Serve(_)) {
        // The state contains data of clients, and the machine may have other users.
        process_settings::keep_private();
    }
    if let Some(pipes) = &cli.worker {
        supervision::become_worker(pipes)?;
        process_settings::note();
        return Ok(None);
    }
    let (plugin, hangup, output) = match &cli.command {
        Command::Save(arguments) => {
            (&arguments.device.plugin, Hangup::Stops, Some(&arguments.output))
        }
        Command::Restore(arguments) => {
            (&arguments.device.plugin, Hangup::Stops, arguments.to.as_ref())
        }
        // Supervised by the server that started it.
        Command::Serve(arguments) if arguments.compile_worker => return Ok(None),
        Command::Serve(arguments) => (&arguments.plugin, Hangup::Asks, arguments.state.as_ref()),
        _ => return Ok(None),
    };
    if plugin_opening::is_embedded(plugin) || !supervision::is_possible() {
        return Ok(None);
    }
    let takes_stream =
        hangup == Hangup::Stops && output.is_some_and(|output| streams::is_output(output));
    let target = output.filter(|_| !takes_stream).and_then(|path| locations::in_file_system(path));
    let environment = match &cli.command {
        Command::Serve(_) => server_environment(plugin),
        _ => None,
    };
    let Ended { status, exit } = supervision::run(&Work { hangup, target, environment })?;
    let mut terminal = Terminal::new(&cli.global)?;
    if takes_stream {
        // Error messages are not part of the stream; a terminal has none.
        let _ = terminal.take_stream();
    }
    let how = match (exit, status) {
        (Some(exit), _) => plugin_process::describe(exit),
        (None, Some(_)) => "its process did not end, and was killed".to_owned(),
        (None, None) => format!(
            "it was asked to stop and hung for {} seconds more, and its process was killed",
            supervision::STOPPING_LIMIT.as_secs()
        ),
    };
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

/// Returns an additional environment variable of the worker, for a server with this plug-in.
fn server_environment(plugin: &str) -> Option<(&'static str, OsString)> {
    // The worker reports an invalid argument.
    let Ok(PluginArgument::Pjrt { path, .. }) = PluginArgument::parse(plugin) else { return None };
    let set = std::env::var_os(xla_flags::VARIABLE);
    Some((xla_flags::VARIABLE, xla_flags::for_server(&path, set.as_deref())?))
}
