//! `serdes convert`: converts tensors of files to another file, without a device.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use serde_json::json;
use serdes_device_state::WriteOptions;
use serdes_tensors::{
    self as tensor_io, Form, Target,
    storage::Storage,
    transfers::{self, ConvertOptions, ConvertReport},
};

use crate::{
    arguments::ConvertArguments,
    commands::{
        convert_message, convert_program, failures, left_out, locations, progress_monitor, save,
        streams, transfer_report::TransferReport,
    },
    failure::Failure,
    status::ExitStatus,
    terminal::{GOOD, NAME, Terminal, json_of_path, shown_path},
};

/// Runs the command.
pub(crate) fn run(
    arguments: &ConvertArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let begin = Instant::now();
    let (to, from) = match (&arguments.output, arguments.paths.split_last()) {
        (Some(to), Some(_)) => (to, arguments.paths.as_slice()),
        (None, Some((to, from))) if !from.is_empty() => (to, from),
        _ => return Err(Failure::new("expected what is read, and last what is written")),
    };
    if let Some(target) = &arguments.to_stablehlo {
        return convert_program::run(arguments, target, from, to, terminal);
    }
    if let Some(version) = &arguments.to_serdes {
        return convert_message::run(arguments, version, from, to, terminal);
    }
    let stream = output_form(arguments, to)?;
    if stream.is_none() {
        locations::refuse_served(to)?;
    }
    let versions = save::versions("--serdes-version", &arguments.serdes_version, terminal)?;
    streams::once(from.iter().map(PathBuf::as_path))?;
    let form = save::input_form(arguments.kind.as_deref(), from)?;
    let options = WriteOptions::new(versions).with_durability(save::durability(arguments.sync));
    let input = streams::input_among(from.iter().map(PathBuf::as_path))?;
    let monitor = progress_monitor::monitor(terminal)?;
    let storage = locations::storage(&monitor);
    let open = |path: &PathBuf| streams::open(&storage, path, input.as_ref(), form);
    let sources = from.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let options = options.with_monitor(monitor.clone());
    let target = target(arguments, &storage, to, stream, &options, terminal)?;
    let choice = ConvertOptions::new()
        .with_only(arguments.only.clone())
        .with_skip_unsupported(arguments.skip_unsupported);
    let report =
        transfers::convert(&sources, target, &choice, &monitor).map_err(failures::tensor_io)?;
    print_report(to, &report, begin, terminal)?;
    Ok(ExitStatus::Success)
}

/// Returns the format of standard output, if that is the target.
fn output_form(arguments: &ConvertArguments, to: &Path) -> Result<Option<Form>, Failure> {
    let form = streams::form("--to-kind", arguments.to_kind.as_deref())?;
    match (streams::is_output(to), form) {
        (false, None) => Ok(None),
        (false, Some(_)) => Err(Failure::new(
            "--to-kind says what goes to standard output; the name of a file says it itself",
        )),
        (true, _) if arguments.shard_bytes.is_some() => {
            Err(Failure::new("--shard-bytes: shards are files; name one instead of -"))
        }
        (true, form) => Ok(Some(form.unwrap_or(Form::DeviceState))),
    }
}

/// Returns the target of the tensors.
fn target(
    arguments: &ConvertArguments,
    storage: &Storage,
    to: &Path,
    stream: Option<Form>,
    options: &WriteOptions,
    terminal: &mut Terminal,
) -> Result<Box<dyn Target>, Failure> {
    let target = match (stream, arguments.shard_bytes) {
        (Some(form), _) => tensor_io::create_stream(terminal.take_stream()?, form, options),
        (None, Some(bytes)) => tensor_io::create_sharded_in(storage, to, bytes, options),
        (None, None) => tensor_io::create_in(storage, to, options),
    };
    target.map_err(failures::tensor_io)
}

/// Prints the conversion's results, with warnings for tensors that were left out.
fn print_report(
    to: &Path,
    report: &ConvertReport,
    begin: Instant,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let moved = TransferReport::of(report.moved, begin);
    for skipped in &report.skipped {
        terminal.warning(format_args!("left out {:?}: {}", skipped.name, skipped.reason));
    }
    left_out::warn(&report.left_out, terminal);
    if terminal.json() {
        let skipped: Vec<_> = report.skipped.iter().map(|skipped| &skipped.name).collect();
        terminal.object(&moved.object(json!({
            "target": json_of_path(to),
            "skipped": skipped,
            "left_out": left_out::object(&report.left_out),
        })))?;
    }
    terminal.line(format_args!(
        "{GOOD}converted{GOOD:#} {} to {NAME}{}{NAME:#} {}",
        moved.amount(),
        shown_path(to),
        moved.duration_and_rate(),
    ))
}
