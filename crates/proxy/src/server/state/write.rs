//! Writes a plan to a file.

use std::{
    io::{self, Read},
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use prost::Message as _;
use serdes::{ifrt::DType, proto::xla::ifrt::proto::StringArrayContents};
use serdes_device_state::{Error, Phase, Progress, ProgressMonitor, Tensor, Writer};

use super::{
    kept::StateOptions,
    plan::{Parts, Plan, Source},
};
use crate::{
    ProxyError,
    server::arrays::{Array, Item, Region, assemble, item_size},
    status::status,
};

/// Maximum number of unreadable arrays, one after the other, before a save is abandoned: each costs
/// another file.
const UNREADABLE: usize = 8;

/// Checks that a state can be written to the place in `options`, and leaves no file.
///
/// # Errors
/// [`ProxyError::Configuration`] with a remedy.
pub(crate) fn try_place(options: &StateOptions) -> Result<(), ProxyError> {
    let path = &options.path;
    let refuse = |reason: String| {
        ProxyError::configuration("the place of the state", path.display().to_string(), reason)
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match std::fs::metadata(folder) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => {
            let reason = format!("`{}` is no folder; name a file in one", folder.display());
            return Err(refuse(reason));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let reason = format!(
                "there is no folder `{}`; make it, or name a file in one that is there",
                folder.display()
            );
            return Err(refuse(reason));
        }
        Err(error) => {
            let reason = format!(
                "the folder `{}` cannot be looked at: {error}; name a file in another",
                folder.display()
            );
            return Err(refuse(reason));
        }
    }
    for number in 1..=options.previous {
        let mut before = path.clone().into_os_string();
        before.push(format!(".{number}"));
        if Path::new(&before).is_dir() {
            let reason = format!(
                "`{}`, where an older state would go, is a folder; move it, or keep fewer states",
                Path::new(&before).display()
            );
            return Err(refuse(reason));
        }
    }
    // Dropped before it has contents, it leaves nothing.
    options.write_options().create(path).map(drop).map_err(|error| {
        let what = match &error {
            Error::Io { source, .. } => source.to_string(),
            other => other.to_string(),
        };
        refuse(format!(
            "no file can be made there: {what}; name a file in a folder that the server may write to"
        ))
    })
}

/// Progress of the current save.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    beats: AtomicU64,
    /// True once the system has all bytes, and writes them to the disk.
    is_flushing: AtomicBool,
}

impl Pulse {
    /// Resets the progress; returns the monitor of the save.
    pub(crate) fn start(self: &Arc<Self>) -> ProgressMonitor {
        self.is_flushing.store(false, Ordering::Relaxed);
        self.beat();
        ProgressMonitor::new().with_progress(Arc::clone(self) as Arc<dyn Progress>)
    }

    fn beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a number that changes while bytes move; `None` while the system syncs them.
    pub(crate) fn read(&self) -> Option<u64> {
        (!self.is_flushing.load(Ordering::Relaxed)).then(|| self.beats.load(Ordering::Relaxed))
    }
}

impl Progress for Pulse {
    fn begin(&self, _: Phase, _: u64) {
        self.beat();
    }

    fn advance(&self, _: u64) {
        self.beat();
    }
}

/// Writes the file. Waits for devices and the disk. Arrays that cannot be read are left out of the
/// plan; the first such error is returned.
///
/// # Errors
/// If the file cannot be written; the previous one still exists.
pub(crate) fn write(
    options: &StateOptions,
    plan: &mut Plan,
    monitor: &ProgressMonitor,
    pulse: &Pulse,
) -> Result<Option<ProxyError>, ProxyError> {
    let mut first = None;
    for _ in 0..=UNREADABLE {
        match write_once(options, plan, monitor, pulse) {
            Ok(()) => return Ok(first),
            Err(Unwritten { array: Some(name), error }) => {
                tracing::error!(name, %error, "an array cannot be read");
                plan.replace_unreadable(&name);
                first.get_or_insert(*error);
            }
            Err(Unwritten { array: None, error }) => return Err(*error),
        }
    }
    Err(first.unwrap_or_else(|| {
        ProxyError::Status(status!(Internal, "too many arrays of the state cannot be read"))
    }))
}

/// The error of a state that was not written, with the array that caused it, if there is one.
struct Unwritten {
    array: Option<String>,
    error: Box<ProxyError>,
}

impl From<Error> for Unwritten {
    fn from(error: Error) -> Self {
        Self { array: None, error: Box::new(error.into()) }
    }
}

fn write_once(
    options: &StateOptions,
    plan: &Plan,
    monitor: &ProgressMonitor,
    pulse: &Pulse,
) -> Result<(), Unwritten> {
    let mut write_options =
        options.write_options().with_monitor(monitor.clone()).with_metadata(plan.metadata());
    if plan.loses() {
        // Lost arrays may still be recovered from the previous file by other means.
        write_options = write_options.with_previous(options.previous.max(1));
    }
    let mut writer = write_options.create(&options.path)?;
    for (name, planned) in &plan.arrays {
        let added = match &planned.source {
            Source::Memory { array, parts } => add_array(&mut writer, name, array, parts, pulse),
            Source::File(tensor) => add_tensor(&mut writer, tensor),
        };
        added.map_err(|unwritten| {
            let (array, error) = match unwritten {
                NotAdded::File(error) => (None, error),
                NotAdded::Array(error) => (Some(name.clone()), error),
            };
            Unwritten { array, error: Box::new(error) }
        })?;
    }
    pulse.is_flushing.store(true, Ordering::Relaxed);
    let finished = writer.finish();
    pulse.is_flushing.store(false, Ordering::Relaxed);
    finished?;
    Ok(())
}

/// Cause of a failure to add an array.
enum NotAdded {
    File(ProxyError),
    Array(ProxyError),
}

impl From<Error> for NotAdded {
    fn from(error: Error) -> Self {
        match error {
            Error::Io { .. } | Error::Cancelled | Error::TooLarge { .. } => {
                Self::File(error.into())
            }
            other => Self::Array(other.into()),
        }
    }
}

/// Adds an array that is on devices or in pinned memory.
fn add_array(
    writer: &mut Writer,
    name: &str,
    array: &Array,
    parts: &Parts,
    pulse: &Pulse,
) -> Result<(), NotAdded> {
    let of_array = |status| NotAdded::Array(ProxyError::Status(status));
    let spec = &array.spec;
    pulse.beat();
    if let [(memory, domain)] = &parts[..]
        && domain.shape() == array.shape()
        && array.dtype() != DType::String
        && memory.add_to(writer, name, spec)?
    {
        // Directly from the device to the file.
        return Ok(());
    }
    let item = item_size(array.dtype()).map_err(of_array)?;
    let bytes_of_item = match item {
        Item::Bytes(bytes) => bytes,
        Item::Strings => 1,
    };
    let region = Region::dense(array.shape().dims(), bytes_of_item).map_err(of_array)?;
    let bytes = assemble(parts, item, &region, array.shape()).map_err(of_array)?;
    if item == Item::Strings {
        let contents = StringArrayContents::decode(&bytes[..])
            .map_err(|error| of_array(status!(Internal, "the strings are damaged: {error}")))?;
        return Ok(writer.add_strings(name, spec, &contents.strings)?);
    }
    Ok(writer.add_bytes(name, spec, &bytes)?)
}

/// Adds an array of the previous state, a piece at a time, each compared with its checksum.
fn add_tensor(writer: &mut Writer, tensor: &Tensor) -> Result<(), NotAdded> {
    if tensor.spec().dtype() == DType::String {
        let strings = tensor.strings().map_err(|error| NotAdded::Array(error.into()))?;
        return Ok(writer.add_strings(tensor.name(), tensor.spec(), &strings)?);
    }
    let failure = Arc::new(Mutex::new(None));
    let reader = tensor.read().map_err(|error| NotAdded::Array(error.into()))?;
    let mut reader = Noting { reader, failure: Arc::clone(&failure) };
    let added = writer.add_reader(tensor.name(), tensor.spec(), &mut reader, tensor.bytes());
    match (added, failure.lock().unwrap_or_else(PoisonError::into_inner).take()) {
        (Err(_), Some(error)) => {
            Err(NotAdded::Array(ProxyError::System { doing: "reading the state before", error }))
        }
        (added, _) => Ok(added?),
    }
}

/// A reader that records its errors: the writer does not distinguish them from its own.
struct Noting<R> {
    reader: R,
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl<R: Read> Read for Noting<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.reader.read(bytes).inspect_err(|error| {
            let copy = io::Error::new(error.kind(), error.to_string());
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(copy);
        })
    }
}
