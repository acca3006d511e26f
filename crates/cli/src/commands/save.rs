//! `serdes save`: tensors onto a device, and the device's buffers into a state file.

use std::time::Instant;

use serde_json::json;
use serdes::{
    device_state::{Sync, Versions, WriteOptions},
    stream_executor::{Device, Plugin},
    tensor_io,
    version::{SerDesAnyVersionAccessor, SerDesVersion},
};

use crate::{
    arguments::{DeviceArguments, SaveArguments, SyncMode},
    commands::{failures, plugin, selection, watch},
    terminal::{Failure, GOOD, NAME, Status, Terminal, bytes, rate},
};

/// Saves.
pub(crate) fn run(arguments: &SaveArguments, terminal: &mut Terminal) -> Result<Status, Failure> {
    let begin = Instant::now();
    let versions = versions(&arguments.serdes_version, terminal)?;
    let options =
        WriteOptions::new(versions).with_sync(sync(arguments.sync)).with_direct(arguments.direct);
    let sources = arguments
        .from
        .iter()
        .map(|path| tensor_io::open(path).map_err(|error| failures::tensor_io(&error)))
        .collect::<Result<Vec<_>, _>>()?;
    let (plugin, device) = device(&arguments.device)?;
    let watch = watch::watch(terminal)?;
    let report = tensor_io::save(
        &sources,
        &arguments.output,
        &device,
        &options,
        arguments.skip_unsupported,
        &watch,
    )
    .map_err(|error| failures::tensor_io(&error))?;

    if arguments.direct && !report.direct {
        terminal.warning(format_args!(
            "the file system of {} takes no direct I/O: saved through the page cache instead",
            arguments.output.display()
        ));
    }
    for skipped in &report.skipped {
        terminal.warning(format_args!("left out {:?}: {}", skipped.name, skipped.reason));
    }
    let skipped: Vec<_> = report.skipped.iter().map(|skipped| &skipped.name).collect();
    if terminal.json() {
        terminal.object(&json!({
            "tensors": report.tensors,
            "bytes": report.bytes,
            "seconds": report.time.as_secs_f64(),
            "sync_seconds": report.sync_time.as_secs_f64(),
            "total_seconds": begin.elapsed().as_secs_f64(),
            "bytes_per_second": rate(report.bytes, report.time),
            "serdes_version": versions.specs().number(),
            "plugin": plugin.platform().name(),
            "verified": false,
            "format": versions.container().number(),
            "file_bytes": report.file_bytes,
            "direct": report.direct,
            "upload_seconds": report.upload_time.as_secs_f64(),
            "skipped": skipped,
        }))?;
    }
    terminal.line(format_args!(
        "{GOOD}saved{GOOD:#} {} tensors, {} to {NAME}{}{NAME:#} in {:.2} s ({}/s), {}",
        report.tensors,
        bytes(report.bytes),
        arguments.output.display(),
        report.time.as_secs_f64(),
        bytes(rate(report.bytes, report.time)),
        versions.specs(),
    ))?;
    Ok(Status::Yes)
}

/// How a file is taken to the disk.
pub(crate) fn sync(mode: SyncMode) -> Sync {
    match mode {
        SyncMode::Data => Sync::Data,
        SyncMode::None => Sync::None,
    }
}

/// Opens the plug-in and the device that the arguments name.
pub(crate) fn device(arguments: &DeviceArguments) -> Result<(Plugin, Device), Failure> {
    let plugin = plugin::open(&arguments.plugin, arguments.layout.as_deref())?;
    let ordinal = usize::try_from(arguments.device)
        .map_err(|_| Failure::new("--device: an ordinal is 0 or more"))?;
    let device = plugin.device(ordinal).map_err(|error| plugin::failure(&error))?;
    Ok((plugin, device))
}

/// The versions that `--serdes-version` names: of the array specs, and of the container.
///
/// A number is of the IFRT line alone; the selectors move both.
fn versions(name: &str, terminal: &mut Terminal) -> Result<Versions, Failure> {
    Ok(match name {
        "current" => Versions::current(),
        "week-4-old" | "week_4_old" => {
            selection::say_what_is_young(terminal);
            Versions::week_4_old()
        }
        "minimum" => Versions::minimum(),
        number => {
            let number: i32 = number.parse().map_err(|_| {
                Failure::new(format_args!(
                    "--serdes-version {number}: expected current, week-4-old, minimum or a number"
                ))
            })?;
            let version = SerDesAnyVersionAccessor::get(number)
                .map_err(|error| Failure::new(format_args!("--serdes-version: {error}")))?;
            Versions::new(SerDesVersion::current(), version)
        }
    })
}
