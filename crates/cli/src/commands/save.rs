//! `serdes save`: uploads tensors to a device, and saves the device's buffers in a state file.

use std::{
    borrow::Cow,
    io::Write,
    path::{Path, PathBuf},
    time::Instant,
};

use serde_json::json;
use serdes::version::SerDesAnyVersionAccessor;
use serdes_device_state::{
    Durability, HostedDevice, Part, ProgressMonitor, SaveId, Versions, WriteOptions,
};
use serdes_tensors::{
    self as tensor_io, Form, Source,
    storage::Storage,
    transfers::{self, SaveReport},
};

use crate::{
    arguments::{SaveArguments, SyncMode},
    commands::{
        device::{self, OpenDevice},
        failures, left_out, locations, plugin_opening, progress_monitor, selection, streams,
        transfer_report::TransferReport,
    },
    failure::Failure,
    numbers::plain_number,
    status::ExitStatus,
    terminal::{GOOD, NAME, Terminal, shown_path},
};

/// Runs the command.
pub(crate) fn run(
    arguments: &SaveArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let begin = Instant::now();
    let stream = if streams::is_output(&arguments.output) {
        if arguments.direct {
            return Err(Failure::new("--direct: standard output is no file"));
        }
        Some(terminal.take_stream()?)
    } else {
        locations::refuse_served(&arguments.output)?;
        None
    };
    let versions = versions("--serdes-version", &arguments.serdes_version, terminal)?;
    let options = WriteOptions::new(versions)
        .with_durability(durability(arguments.sync))
        .with_direct(arguments.direct);
    streams::once(arguments.from.iter().map(PathBuf::as_path))?;
    let form = input_form(arguments.kind.as_deref(), &arguments.from)?;
    let part = part(arguments)?;
    if arguments.direct {
        locations::refuse_direct(&arguments.output)?;
    }
    let input = streams::input_among(arguments.from.iter().map(PathBuf::as_path))?;
    let monitor = progress_monitor::monitor(terminal)?;
    let storage = locations::storage(&monitor);
    let sources = arguments
        .from
        .iter()
        .map(|path| {
            let path = lasting(path, &arguments.device.plugin)?;
            streams::open(&storage, &path, input.as_ref(), form)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let output = lasting(&arguments.output, &arguments.device.plugin)?;
    let device = device::open(&arguments.device)?;
    let transfer = Transfer {
        sources: &sources,
        storage: &storage,
        output: &output,
        part,
        options: &options,
        skip_unsupported: arguments.skip_unsupported,
        monitor: &monitor,
    };
    let report = match &device {
        OpenDevice::StreamExecutor(_, device) => transfer.save(device, stream),
        OpenDevice::Pjrt(space) => transfer.save(space, stream),
    }
    .map_err(failures::tensor_io)?;

    print_report(arguments, versions, &device.platform_name(), &report, begin, terminal)?;
    done(ExitStatus::Success);
    Ok(ExitStatus::Success)
}

/// Tensors to save, and their target.
struct Transfer<'a> {
    sources: &'a [Box<dyn Source>],
    storage: &'a Storage,
    output: &'a Path,
    /// The part of the state, if several processes save it.
    part: Option<Part>,
    options: &'a WriteOptions,
    skip_unsupported: bool,
    monitor: &'a ProgressMonitor,
}

impl Transfer<'_> {
    /// Saves through this device, to the stream if there is one.
    fn save<D: HostedDevice>(
        &self,
        device: &D,
        stream: Option<impl Write + Send + 'static>,
    ) -> Result<SaveReport, tensor_io::Error> {
        let Self { sources, storage, output, part, options, skip_unsupported, monitor } = *self;
        if let Some(stream) = stream {
            return transfers::save_stream(
                sources,
                stream,
                device,
                options,
                skip_unsupported,
                monitor,
            );
        }
        let begin = |options: WriteOptions| match part {
            Some(part) => storage.create_part(output, part, options),
            None => storage.create_state(output, options),
        };
        transfers::save_into(begin, sources, device, options, skip_unsupported, monitor)
    }
}

/// Prints the results, with warnings for tensors that were left out and options that had no effect.
fn print_report(
    arguments: &SaveArguments,
    versions: Versions,
    platform: &str,
    report: &SaveReport,
    begin: Instant,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let moved = TransferReport::of(report.moved, begin);
    if arguments.direct && !report.direct {
        terminal.warning(format_args!(
            "the file system of {} takes no direct I/O: saved through the page cache instead",
            arguments.output.display()
        ));
    }
    for skipped in &report.skipped {
        terminal.warning(format_args!("left out {:?}: {}", skipped.name, skipped.reason));
    }
    left_out::warn(&report.left_out, terminal);
    let skipped: Vec<_> = report.skipped.iter().map(|skipped| &skipped.name).collect();
    if terminal.json() {
        terminal.object(&moved.object(json!({
            "serdes_version": versions.specs().number(),
            "plugin": platform,
            "verified": false,
            "format": versions.container().number(),
            "file_bytes": report.file_bytes,
            "direct": report.direct,
            "part": arguments.part,
            "upload_seconds": report.upload_time.as_secs_f64(),
            "skipped": skipped,
            "left_out": left_out::object(&report.left_out),
        })))?;
    }
    // Nothing exists at the path before the parts are merged.
    let part = arguments.part.as_ref().map(|part| format!("part {part} of ")).unwrap_or_default();
    terminal.line(format_args!(
        "{GOOD}saved{GOOD:#} {} to {part}{NAME}{}{NAME:#} {}, {}",
        moved.amount(),
        shown_path(&arguments.output),
        moved.duration_and_rate(),
        versions.specs(),
    ))
}

/// Returns the part of a state that `--part` and `--id` name.
fn part(arguments: &SaveArguments) -> Result<Option<Part>, Failure> {
    let (Some(text), Some(id)) = (&arguments.part, &arguments.id) else { return Ok(None) };
    if streams::is_output(&arguments.output) {
        return Err(Failure::new("--part: standard output takes whole states; name a file"));
    }
    let numbers = text.split_once('/').and_then(|(number, count)| {
        Some((plain_number::<i32>(number)?, plain_number::<i32>(count)?))
            .filter(|(number, _)| *number >= 0)
    });
    let wrong = || {
        Failure::new(format_args!(
            "--part {text}: expected K/N, the number of the part and how many there are, counted from 0: 0/4 to 3/4"
        ))
    };
    let (number, count) = numbers.ok_or_else(wrong)?;
    let part = Part::new(SaveId::of_text(id), number.cast_unsigned(), count.cast_unsigned());
    part.map(Some).map_err(|_| wrong())
}

/// Reports the status of the finished work, before the plug-in is unloaded.
pub(crate) fn done(status: ExitStatus) {
    #[cfg(target_os = "linux")]
    crate::supervision::report_status(status);
    #[cfg(not(target_os = "linux"))]
    let _ = status;
}

/// Returns an absolute path, which stays valid if foreign code changes the working directory.
pub(crate) fn lasting<'a>(path: &'a Path, plugin: &str) -> Result<Cow<'a, Path>, Failure> {
    if plugin_opening::is_embedded(plugin) || streams::is_input(path) || streams::is_output(path) {
        return Ok(Cow::Borrowed(path));
    }
    Storage::anywhere().absolute(path).map_err(|error| {
        Failure::new(format_args!("cannot find out where {} is: {error}", path.display()))
    })
}

/// Returns the format of standard input from `--kind`; one of the paths must then be standard
/// input.
pub(crate) fn input_form(kind: Option<&str>, paths: &[PathBuf]) -> Result<Option<Form>, Failure> {
    if kind.is_some() && !paths.iter().any(|path| streams::is_input(path)) {
        return Err(Failure::new("--kind says what standard input is, which no path here names"));
    }
    streams::form("--kind", kind)
}

/// Returns the durability for the mode of syncing.
pub(crate) fn durability(mode: SyncMode) -> Durability {
    match mode {
        SyncMode::Data => Durability::Data,
        SyncMode::None => Durability::None,
    }
}

/// Returns the versions of an option such as `--serdes-version`: of the array specs, and of the
/// container. A number belongs to the IFRT line; the container has the version that builds of that
/// number's day read.
pub(super) fn versions(
    option: &str,
    name: &str,
    terminal: &mut Terminal,
) -> Result<Versions, Failure> {
    Ok(match name {
        "current" => Versions::current(),
        "week-4-old" | "week_4_old" => {
            selection::say_what_is_young(terminal);
            Versions::week_4_old()
        }
        "minimum" => Versions::minimum(),
        number => {
            let number = plain_number(number).ok_or_else(|| {
                Failure::new(format_args!(
                    "{option} {number}: expected current, week-4-old, minimum or a number"
                ))
            })?;
            let version = SerDesAnyVersionAccessor::get(number)
                .map_err(|error| Failure::new(format_args!("{option}: {error}")))?;
            Versions::for_reader_of(version)
        }
    })
}
