//! `serdes plugin check FOLDER`: registers every plug-in of a folder in one process, as a framework
//! does.

use std::time::Duration;

use serde_json::json;
use serdes_stream_executor::{LayoutChoice, PluginOptions, PluginRegistry};

use crate::{
    arguments::PluginArguments,
    failure::Failure,
    status::ExitStatus,
    terminal::{BAD, FAINT, GOOD, NAME, Terminal, harmless, json_of_path, shown, shown_path},
};

/// Registers each library of the folder whose name ends in `.so`, and prints the resulting
/// platforms and devices. A skipped library counts as a refusal, and so does a folder without
/// plug-ins.
pub(super) fn check(
    arguments: &PluginArguments,
    limit: Duration,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let layout = arguments.layout.as_deref();
    let layout =
        layout.map_or(Ok(LayoutChoice::Detect), LayoutChoice::named).map_err(Failure::of)?;
    let options = PluginOptions::new().with_layout(layout).with_time_limit(limit);
    let mut plugins = PluginRegistry::new();
    let skipped = plugins.load_directory(&arguments.plugin, options).map_err(Failure::of)?;
    let devices = plugins.device_names();
    let platforms: Vec<_> = plugins.plugins().iter().map(|plugin| plugin.report()).collect();
    if terminal.json() {
        let skipped: Vec<_> = skipped
            .iter()
            .map(|library| {
                json!({ "path": json_of_path(&library.path), "reason": library.error.to_string() })
            })
            .collect();
        let platforms: Vec<_> = platforms
            .iter()
            .map(|report| {
                json!({
                    "platform": report.platform,
                    "type": report.device_type,
                    "devices": report.devices,
                    "layout": report.layout,
                })
            })
            .collect();
        terminal.object(&json!({
            "path": arguments.plugin,
            "platforms": platforms,
            "devices": devices,
            "skipped": skipped,
        }))?;
    }
    for report in platforms {
        terminal.line(format_args!(
            "{NAME}{}{NAME:#}: {GOOD}accepted{GOOD:#}",
            shown(report.platform.as_deref().unwrap_or("unknown"))
        ))?;
    }
    for name in &devices {
        terminal.line(format_args!("  {}", shown(name)))?;
    }
    for library in &skipped {
        terminal.line(format_args!(
            "{NAME}{}{NAME:#}: {BAD}passed over{BAD:#}: {FAINT}{}{FAINT:#}",
            shown_path(&library.path),
            harmless(&library.error.to_string())
        ))?;
    }
    if devices.is_empty() && skipped.is_empty() {
        return Err(Failure::no(format_args!(
            "{} has no library whose name ends in .so",
            arguments.plugin
        )));
    }
    Ok(if skipped.is_empty() { ExitStatus::Success } else { ExitStatus::Negative })
}
