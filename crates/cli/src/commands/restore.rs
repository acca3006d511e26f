//! `serdes restore`: a state's buffers onto a device, and back into a file.

use std::{sync::Arc, time::Instant};

use serde_json::json;
use serdes::{
    device_state::{LocalParts, Reader, Versions, WriteOptions, matches_any},
    tensor_io,
};

use crate::{
    arguments::RestoreArguments,
    commands::{failures, save, watch},
    terminal::{Failure, GOOD, NAME, Status, Terminal, bytes, rate},
};

/// Restores.
pub(crate) fn run(
    arguments: &RestoreArguments,
    terminal: &mut Terminal,
) -> Result<Status, Failure> {
    let begin = Instant::now();
    let failure = |error| failures::device_state(&error);
    let watch = watch::watch(terminal)?;
    let files = Arc::new(LocalParts::new(&arguments.file).with_direct(arguments.direct));
    let (state, tensors, lost, lost_parts) = if arguments.salvage {
        let salvaged = Reader::salvage(&arguments.file, &watch).map_err(failure)?;
        if !salvaged.complete_list {
            terminal.warning(
                "the index is gone: tensors of which nothing was found are in neither list",
            );
        }
        let (mut whole, mut lost) = (salvaged.whole, salvaged.lost);
        for pattern in &arguments.only {
            let found = |name: &str| matches_any(&[pattern], name);
            let any = whole.iter().any(|tensor| found(tensor.name()))
                || lost.iter().any(|damage| found(&damage.tensor));
            if !any {
                return Err(Failure::new(format_args!(
                    "no tensor that was found is called {pattern:?}; leave --only out to see all"
                )));
            }
        }
        let chosen = |name: &str| arguments.only.is_empty() || matches_any(&arguments.only, name);
        whole.retain(|tensor| chosen(tensor.name()));
        lost.retain(|damage| chosen(&damage.tensor));
        (salvaged.reader, whole, lost, salvaged.lost_parts)
    } else {
        let state = if arguments.direct {
            Reader::open_in(files.clone()).map_err(failure)?
        } else {
            Reader::open(&arguments.file).map_err(failure)?
        };
        let tensors = state.select(&arguments.only).map_err(failure)?;
        (state, tensors, Vec::new(), Vec::new())
    };
    for damage in &lost_parts {
        terminal.warning(format_args!("{} cannot be relied on: {}", damage.tensor, damage.error));
    }
    for damage in &lost {
        terminal.warning(format_args!("{:?} is lost: {}", damage.tensor, damage.error));
    }
    let (plugin, device) = save::device(&arguments.device)?;
    let options = WriteOptions::new(Versions::current())
        .with_sync(save::sync(arguments.sync))
        .with_watch(watch.clone());
    let target = arguments
        .to
        .as_ref()
        .map(|path| tensor_io::create(path, &options))
        .transpose()
        .map_err(|error| failures::tensor_io(&error))?;
    let report = tensor_io::restore(&state, &tensors, &device, target, &watch)
        .map_err(|error| failures::tensor_io(&error))?;

    let direct = files.reads_direct();
    if arguments.direct && !direct {
        terminal.warning(format_args!(
            "the file system of {} takes no direct I/O: restored through the page cache instead",
            arguments.file.display()
        ));
    }
    if terminal.json() {
        terminal.object(&json!({
            "tensors": report.tensors,
            "bytes": report.bytes,
            "seconds": report.time.as_secs_f64(),
            "sync_seconds": report.sync_time.as_secs_f64(),
            "total_seconds": begin.elapsed().as_secs_f64(),
            "bytes_per_second": rate(report.bytes, report.time),
            "serdes_version": state.ifrt_version(),
            "plugin": plugin.platform().name(),
            "verified": true,
            "direct": direct,
            "read_back_seconds": report.read_back_time.as_secs_f64(),
            "read_back_verified": report.read_back_verified,
            "lost": lost.iter().map(|damage| &damage.tensor).collect::<Vec<_>>(),
            "lost_parts": lost_parts.iter().map(|damage| &damage.tensor).collect::<Vec<_>>(),
        }))?;
    }
    let to = arguments
        .to
        .as_ref()
        .map(|path| format!(" and read back into {NAME}{}{NAME:#}", path.display()))
        .unwrap_or_default();
    terminal.line(format_args!(
        "{GOOD}restored{GOOD:#} {} tensors, {} in {:.2} s ({}/s), verified{to}",
        report.tensors,
        bytes(report.bytes),
        report.time.as_secs_f64(),
        bytes(rate(report.bytes, report.time)),
    ))?;
    Ok(Status::Yes)
}
