//! `serdes merge`: merges the parts that several processes saved into a state.

use std::time::Instant;

use serde_json::json;
use serdes_device_state::{Error, SaveId, Versions, WriteOptions};

use crate::{
    arguments::MergeArguments,
    commands::{failures, locations, progress_monitor, save, streams},
    failure::Failure,
    status::ExitStatus,
    terminal::{GOOD, NAME, Terminal, bytes, count, shown_path},
};

/// Runs the command.
pub(crate) fn run(
    arguments: &MergeArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let begin = Instant::now();
    if streams::is_input(&arguments.name) || streams::is_output(&arguments.name) {
        return Err(Failure::new("parts lie beside a state that has a name; expected a path"));
    }
    locations::refuse_served(&arguments.name)?;
    let monitor = progress_monitor::monitor(terminal)?;
    let storage = locations::storage(&monitor);
    // The state has the versions of its parts.
    let options = WriteOptions::new(Versions::current())
        .with_durability(save::durability(arguments.sync))
        .with_monitor(monitor);
    let save = SaveId::of_text(&arguments.id);
    let merged = storage.merge(&arguments.name, save, &options).map_err(|error| {
        let is_incomplete = matches!(error, Error::IncompleteSave { .. });
        let failure = failures::device_state(error);
        if is_incomplete { failure.about(shown_path(&arguments.name)) } else { failure }
    })?;
    if terminal.json() {
        terminal.object(&json!({
            "parts": merged.parts,
            "tensors": merged.tensors,
            "bytes": merged.bytes,
            "index_bytes": merged.index_bytes,
            "id": save.to_string(),
            "sync_seconds": merged.sync_time.as_secs_f64(),
            "total_seconds": begin.elapsed().as_secs_f64(),
        }))?;
    }
    terminal.line(format_args!(
        "{GOOD}merged{GOOD:#} {} into {NAME}{}{NAME:#}: {}, {}",
        count(merged.parts.into(), "part"),
        shown_path(&arguments.name),
        count(merged.tensors, "tensor"),
        bytes(merged.bytes),
    ))?;
    Ok(ExitStatus::Success)
}
