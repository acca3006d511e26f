//! `serdes restore`: restores a state's buffers to a device, and reads them back into a file.

use std::{borrow::Cow, io::Write, path::Path, sync::Arc, time::Instant};

use serde_json::json;
use serdes_device_state::{
    Damage, Error, LocalParts, ProgressMonitor, Reader, Tensor, Versions, WriteOptions,
    files::ReadAt, matches_any,
};
use serdes_tensors::{self as tensor_io, Form, Target, storage::Storage, transfers};

use crate::{
    arguments::RestoreArguments,
    commands::{
        device::{self, OpenDevice},
        failures, locations, progress_monitor, restore_fit, save, streams,
        transfer_report::TransferReport,
        unread,
    },
    failure::Failure,
    startup::INPUT,
    status::ExitStatus,
    terminal::{BAD, GOOD, NAME, Terminal, WARN, count, shown_path},
};

/// State and tensors to restore.
struct Found {
    state: Reader,
    tensors: Vec<Tensor>,
    lost: Vec<Damage>,
    lost_parts: Vec<Damage>,
    /// True if a requested tensor is lost, or may be.
    incomplete: bool,
}

/// Returns the damaged tensors.
fn names(damage: &[Damage]) -> Vec<&str> {
    damage.iter().map(|damage| damage.tensor.as_str()).collect()
}

/// Returns the reason why a salvage lost a tensor. The original message advises to salvage, which
/// has been done here.
fn loss(error: &Error) -> String {
    match error {
        Error::Corrupt { place, found, expected, .. } => {
            format!("damaged at its {place}: found {found}, expected {expected}")
        }
        error => error.to_string(),
    }
}

/// Runs the command.
pub(crate) fn run(
    arguments: &RestoreArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let begin = Instant::now();
    let from_stream = streams::is_input(&arguments.file);
    if arguments.direct {
        refuse_direct(&arguments.file)?;
    }
    let stream = output_stream(arguments, terminal)?;
    if let Some(to) = arguments.to.as_deref().filter(|_| stream.is_none()) {
        locations::refuse_served(to)?;
    }
    // Read before the Ctrl-C handler is installed, so that Ctrl-C still ends a process that waits
    // for input.
    let input = if from_stream { Some(streams::input()?) } else { None };
    let monitor = progress_monitor::monitor(terminal)?;
    let storage = locations::storage(&monitor);
    let file = save::lasting(&arguments.file, &arguments.device.plugin)?;
    let files = Arc::new(LocalParts::new(&*file).with_direct(arguments.direct));
    let found = if arguments.salvage {
        salvage(arguments, input, &storage, &file, &monitor, terminal)?
    } else {
        open(arguments, input, &storage, &file, &files)?
    };
    if arguments.dry_run {
        return restore_fit::answer(arguments, &found.tensors, terminal);
    }
    // Checked before any code of the plug-in runs.
    let versions = save::versions("--serdes-version", &arguments.serdes_version, terminal)?;
    let to = arguments.to.as_deref();
    let to = to.map(|path| save::lasting(path, &arguments.device.plugin)).transpose()?;
    let device = device::open(&arguments.device)?;
    let target = target((arguments, versions), stream, &storage, to, &monitor)?;
    let (state, tensors, only) = (&found.state, &found.tensors, &arguments.only);
    let report = match &device {
        OpenDevice::StreamExecutor(_, device) => {
            transfers::restore(state, tensors, only, device, target, &monitor)
        }
        OpenDevice::Pjrt(space) => {
            transfers::restore(state, tensors, only, space, target, &monitor)
        }
    }
    .map_err(failures::tensor_io)?;

    let direct = reads_direct(arguments, &files, terminal);
    let moved = TransferReport::of(report.moved, begin);
    if terminal.json() {
        terminal.object(&moved.object(json!({
            "plugin": device.platform_name(),
            "direct": direct,
            "read_back_seconds": report.read_back_time.as_secs_f64(),
            "read_back_verified": report.read_back_verified,
            "serdes_version": found.state.ifrt_version(),
            "verified": !found.incomplete,
            "lost": names(&found.lost),
            "lost_parts": names(&found.lost_parts),
        })))?;
    }
    terminal.line(format_args!(
        "{GOOD}restored{GOOD:#} {} {}, verified{}",
        moved.amount(),
        moved.duration_and_rate(),
        ending(arguments, &found),
    ))?;
    let status = if found.incomplete { ExitStatus::Negative } else { ExitStatus::Success };
    save::done(status);
    Ok(status)
}

/// Refuses direct I/O for streams and remote files.
fn refuse_direct(file: &Path) -> Result<(), Failure> {
    if streams::is_input(file) {
        return Err(Failure::new("--direct: standard input is no file"));
    }
    locations::refuse_direct(file)
}

/// Opens an intact state.
fn open(
    arguments: &RestoreArguments,
    input: Option<Arc<dyn ReadAt>>,
    storage: &Storage,
    file: &Path,
    files: &Arc<LocalParts>,
) -> Result<Found, Failure> {
    let state = match input {
        Some(input) => Reader::from_source(input, INPUT),
        None if arguments.direct => Reader::open_in(files.clone()),
        None => storage.open_state(file),
    };
    let state = state.map_err(|error| {
        let failure = failures::device_state(error);
        if streams::is_input(&arguments.file) || failure.status() == ExitStatus::Negative {
            return failure;
        }
        unread::no_state(failure, storage, file)
    })?;
    let tensors = transfers::select(&state, &arguments.only).map_err(failures::device_state)?;
    Ok(Found { state, tensors, lost: Vec::new(), lost_parts: Vec::new(), incomplete: false })
}

/// Salvages a damaged state, and reports the losses.
fn salvage(
    arguments: &RestoreArguments,
    input: Option<Arc<dyn ReadAt>>,
    storage: &Storage,
    file: &Path,
    monitor: &ProgressMonitor,
    terminal: &mut Terminal,
) -> Result<Found, Failure> {
    let salvaged = match input {
        Some(input) => Reader::salvage_source(input, INPUT, monitor),
        None => storage.salvage_state(file, monitor),
    }
    .map_err(failures::device_state)?;
    if !salvaged.complete_list {
        terminal
            .warning("the index is gone: tensors of which nothing was found are in neither list");
    }
    let (mut whole, mut lost) = (salvaged.whole, salvaged.lost);
    for pattern in &arguments.only {
        let found = |name: &str| matches_any(&[pattern], name);
        let any = whole.iter().any(|tensor| found(tensor.name()))
            || lost.iter().any(|damage| found(&damage.tensor));
        if !any {
            let failure = format_args!("no tensor that was found is called {pattern:?}");
            return Err(Failure::new(failure).with_hint("leave --only out to see all"));
        }
    }
    let chosen = |name: &str| arguments.only.is_empty() || matches_any(&arguments.only, name);
    whole.retain(|tensor| chosen(tensor.name()));
    lost.retain(|damage| chosen(&damage.tensor));
    let lost_parts = salvaged.lost_parts;
    for damage in &lost_parts {
        terminal.warning(format_args!(
            "{} cannot be relied on: {}",
            damage.tensor,
            loss(&damage.error)
        ));
    }
    for damage in &lost {
        terminal.warning(format_args!("{:?} is lost: {}", damage.tensor, loss(&damage.error)));
    }
    // Requested names are found or not, independently of other losses.
    let named = !arguments.only.is_empty() && arguments.only.iter().all(|name| is_name(name));
    // Unreliable parts matter only if the user did not name the tensors.
    let incomplete = (!salvaged.complete_list && !named)
        || !lost.is_empty()
        || (arguments.only.is_empty() && !lost_parts.is_empty());
    Ok(Found { state: salvaged.reader, tensors: whole, lost, lost_parts, incomplete })
}

/// Returns the target to which the tensors are read back, if there is one.
fn target(
    (arguments, versions): (&RestoreArguments, Versions),
    stream: Option<(impl Write + Send + 'static, Form)>,
    storage: &Storage,
    to: Option<Cow<'_, Path>>,
    monitor: &ProgressMonitor,
) -> Result<Option<Box<dyn Target>>, Failure> {
    let options = WriteOptions::new(versions)
        .with_durability(save::durability(arguments.sync))
        .with_monitor(monitor.clone());
    let target = match (stream, to) {
        (Some((stream, form)), _) => tensor_io::create_stream(stream, form, &options),
        (None, Some(path)) => tensor_io::create_in(storage, path, &options),
        (None, None) => return Ok(None),
    };
    target.map(Some).map_err(failures::tensor_io)
}

/// Returns true if the state was read past the page cache; prints a warning if that was requested
/// and failed.
fn reads_direct(arguments: &RestoreArguments, files: &LocalParts, terminal: &mut Terminal) -> bool {
    let direct = files.reads_direct();
    if arguments.direct && !direct {
        terminal.warning(format_args!(
            "the file system of {} takes no direct I/O: restored through the page cache instead",
            arguments.file.display()
        ));
    }
    direct
}

/// Returns the end of the text line: the tensors' destination, and the losses.
fn ending(arguments: &RestoreArguments, found: &Found) -> String {
    let to = arguments
        .to
        .as_ref()
        .map(|path| format!(" and read back into {NAME}{}{NAME:#}", shown_path(path)))
        .unwrap_or_default();
    match found.lost.len() as u64 {
        0 if found.incomplete => format!("{to}, {WARN}perhaps not all{WARN:#}"),
        0 => to,
        lost => format!("{to}, {BAD}{} lost{BAD:#}", count(lost, "tensor")),
    }
}

/// Returns true if the pattern is the name of one tensor.
fn is_name(pattern: &str) -> bool {
    !pattern.contains(['*', '?', '['])
}

/// Returns standard output and its format, if `--to` names it.
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
