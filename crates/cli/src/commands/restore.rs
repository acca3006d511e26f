//! `serdes restore`: a state's buffers onto a device, and back into a file.

use std::{io::Write, sync::Arc, time::Instant};

use serde_json::json;
use serdes::{
    device_state::{LocalParts, Reader, Versions, WriteOptions, matches_any},
    tensor_io::{self, Form},
    trips,
};

use crate::{
    arguments::RestoreArguments,
    commands::{failures, save, streams, watch},
    failure::Failure,
    terminal::{BAD, GOOD, NAME, Status, Terminal, WARN, bytes, count, rate},
};

/// Restores.
pub(crate) fn run(
    arguments: &RestoreArguments,
    terminal: &mut Terminal,
) -> Result<Status, Failure> {
    let begin = Instant::now();
    let failure = failures::device_state;
    let from_stream = streams::is_input(&arguments.file);
    if from_stream && arguments.direct {
        return Err(Failure::new("--direct: standard input is no file"));
    }
    let stream = output_stream(arguments, terminal)?;
    // Read before anybody listens for Ctrl-C: a process that waits for its input is ended by it.
    let input = if from_stream { Some(streams::input()?) } else { None };
    let watch = watch::watch(terminal)?;
    let file = save::lasting(&arguments.file, &arguments.device.plugin)?;
    let files = Arc::new(LocalParts::new(&*file).with_direct(arguments.direct));
    let mut incomplete = false;
    let (state, tensors, lost, lost_parts) = if arguments.salvage {
        let salvaged = match input {
            Some(input) => Reader::salvage_source(input, streams::INPUT, &watch),
            None => Reader::salvage(&file, &watch),
        }
        .map_err(failure)?;
        if !salvaged.complete_list {
            terminal.warning(
                "the index is gone: tensors of which nothing was found are in neither list",
            );
        }
        let named = !arguments.only.is_empty() && arguments.only.iter().all(|name| is_name(name));
        // What was asked for by name is there or it is not, whatever else is.
        incomplete = !salvaged.complete_list && !named;
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
        let state = match input {
            Some(input) => Reader::from_source(input, streams::INPUT),
            None if arguments.direct => Reader::open_in(files.clone()),
            None => Reader::open(&file),
        }
        .map_err(failure)?;
        let tensors = state.select(&arguments.only).map_err(failure)?;
        (state, tensors, Vec::new(), Vec::new())
    };
    for damage in &lost_parts {
        terminal.warning(format_args!("{} cannot be relied on: {}", damage.tensor, damage.error));
    }
    for damage in &lost {
        terminal.warning(format_args!("{:?} is lost: {}", damage.tensor, damage.error));
    }
    // Parts that cannot be relied on matter only where nobody said what is wanted of the rest.
    incomplete |= !lost.is_empty() || (arguments.only.is_empty() && !lost_parts.is_empty());
    let target_path = arguments
        .to
        .as_ref()
        .map(|path| save::lasting(path, &arguments.device.plugin))
        .transpose()?;
    let (plugin, device) = save::device(&arguments.device)?;
    let options = WriteOptions::new(Versions::current())
        .with_sync(save::sync(arguments.sync))
        .with_watch(watch.clone());
    let target = match (stream, target_path) {
        (Some((stream, form)), _) => Some(tensor_io::create_stream(stream, form, &options)),
        (None, Some(path)) => Some(tensor_io::create(path, &options)),
        (None, None) => None,
    }
    .transpose()
    .map_err(failures::tensor_io)?;
    let report =
        trips::restore(&state, &tensors, &device, target, &watch).map_err(failures::tensor_io)?;

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
            "verified": !incomplete,
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
    let missing = match lost.len() as u64 {
        0 if incomplete => format!(", {WARN}perhaps not all{WARN:#}"),
        0 => String::new(),
        lost => format!(", {BAD}{} lost{BAD:#}", count(lost, "tensor")),
    };
    terminal.line(format_args!(
        "{GOOD}restored{GOOD:#} {}, {} in {:.2} s ({}/s), verified{to}{missing}",
        count(report.tensors, "tensor"),
        bytes(report.bytes),
        report.time.as_secs_f64(),
        bytes(rate(report.bytes, report.time)),
    ))?;
    let status = if incomplete { Status::No } else { Status::Yes };
    save::done(status);
    Ok(status)
}

/// Whether a pattern is the name of one tensor.
fn is_name(pattern: &str) -> bool {
    !pattern.contains(['*', '?', '['])
}

/// Standard output and what is to go there, if `--to` names it.
fn output_stream(
    arguments: &RestoreArguments,
    terminal: &mut Terminal,
) -> Result<Option<(impl Write + Send + 'static, Form)>, Failure> {
    let form = streams::form("--to-kind", arguments.to_kind.as_deref())?;
    if !arguments.to.as_deref().is_some_and(streams::is_output) {
        return match form {
            None => Ok(None),
            Some(_) => Err(Failure::new(
                "--to-kind says what goes to standard output; the name of a file says it itself",
            )),
        };
    }
    Ok(Some((terminal.take_stream()?, form.unwrap_or(Form::Safetensors))))
}
