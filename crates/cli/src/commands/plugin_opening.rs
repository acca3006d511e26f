//! Opens the plug-in of a command: selects the process that loads it, opens and unloads it, and
//! maps its errors to exit statuses. Does not depend on what is done with it.

use std::time::Duration;

use serdes_stream_executor::{Error, LayoutChoice, Plugin, PluginOptions, with_time_limit};

use crate::{arguments::PluginArguments, failure::Failure, terminal::Terminal};

/// Time limit for opening a plug-in for other work, far beyond the time that a real device takes to
/// initialize.
pub(crate) const OPENING_LIMIT: Duration = Duration::from_secs(120);

/// Returns true if this process was started to load the plug-in for another one.
pub(crate) fn is_supervised(arguments: &PluginArguments, terminal: &mut Terminal) -> bool {
    if arguments.supervised.is_some() {
        terminal.be_supervised();
        end_with_parent();
    }
    arguments.supervised.is_some()
}

/// Returns true if this process loads the plug-in: because it was started for that, the user asked
/// for it, or it is embedded.
pub(crate) fn is_in_this_process(arguments: &PluginArguments, terminal: &mut Terminal) -> bool {
    is_supervised(arguments, terminal) || arguments.in_process || is_embedded(&arguments.plugin)
}

/// Returns true for the embedded plug-in, which is not foreign code.
pub(crate) fn is_embedded(plugin: &str) -> bool {
    plugin == "host" || plugin.starts_with("host:")
}

/// Makes this process end with the process that reads its results.
fn end_with_parent() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, set_parent_process_death_signal};
        // If this fails, the process ends after its work.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }
}

/// Opens a plug-in by its description; a refused one is an answer, one that cannot be loaded a
/// failure.
pub(crate) fn open(plugin: &str, layout: Option<&str>) -> Result<Plugin, Failure> {
    try_open(plugin, layout, OPENING_LIMIT).map_err(failure)
}

pub(crate) fn try_open(
    plugin: &str,
    layout: Option<&str>,
    limit: Duration,
) -> Result<Plugin, Error> {
    let layout = layout.map_or(Ok(LayoutChoice::Detect), LayoutChoice::named)?;
    PluginOptions::new().with_layout(layout).with_time_limit(limit).open(plugin)
}

/// Converts an error of the host to a failure with its exit status.
pub(crate) fn failure(error: Error) -> Failure {
    let may_be_named = matches!(&error, Error::Refused(report) if report.layout_may_be_named);
    let failure = if is_answer(&error) { Failure::no(error) } else { Failure::of(error) };
    if may_be_named { failure.with_hint("--layout NAME names the layout") } else { failure }
}

/// Returns true if the error means that the plug-in is refused.
pub(crate) fn is_answer(error: &Error) -> bool {
    matches!(error, Error::Refused(_) | Error::NotAPlugin { .. } | Error::AlreadyRegistered { .. })
}

/// Unloads a plug-in, whose functions may not return.
pub(crate) fn close(plugin: Plugin, limit: Duration) -> Result<(), Error> {
    with_time_limit(limit, move || drop(plugin))
}
