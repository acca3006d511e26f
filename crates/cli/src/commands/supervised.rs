//! Commands that work with a foreign plug-in, in a process that may be lost.

use std::io;

use super::{plugin_opening, plugin_process, streams};
use crate::{
    arguments::{Cli, Command},
    failure::Failure,
    process_settings,
    signals::Hangup,
    supervision::{self, Ended},
    terminal::Terminal,
};

/// Has a command that works with a foreign plug-in done by a worker, and answers its exit status;
/// `None` where this process is to do it.
///
/// # Errors
/// What the system says if there can be no worker.
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
    if plugin_opening::is_embedded(plugin) || !supervision::is_possible() {
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
