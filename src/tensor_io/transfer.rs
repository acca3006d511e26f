//! Whole trips: files of tensors onto a device and into a state, and back.

use std::{
    collections::HashSet,
    io::{self, Read, Write},
    path::Path,
    time::{Duration, Instant},
};

use super::{Error, Metadata, Refused, Source, Target, TensorInfo};
use crate::{
    device_state::{
        self, Downloads, Phase, PieceSums, Reader, Tensor, Uploads, Watch, WriteOptions, Writer,
    },
    ifrt::{ArraySpec, DType, DeviceId, SingleDeviceSharding},
    stream_executor::{Device, DeviceMemory},
};

/// What a save did.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SaveReport {
    /// Number of tensors saved.
    pub tensors: u64,
    /// Their payload in bytes.
    pub bytes: u64,
    /// Length of the state in bytes.
    pub file_bytes: u64,
    /// Putting the tensors of the sources onto the device.
    pub upload_time: Duration,
    /// From the first copy from the device until the last byte was handed to the system.
    pub time: Duration,
    /// Syncing and renaming.
    pub sync_time: Duration,
    /// Whether the data went to the disk past the system's page cache; see
    /// [`WriteOptions::with_direct`].
    pub direct: bool,
    /// Tensors that were left out.
    pub skipped: Vec<Refused>,
}

/// What a restore did.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RestoreReport {
    /// Number of tensors restored.
    pub tensors: u64,
    /// Their payload in bytes.
    pub bytes: u64,
    /// From the first read of the state's data until the last byte was on the device.
    pub time: Duration,
    /// Reading back from the device into the target, without syncing.
    pub read_back_time: Duration,
    /// Syncing and renaming of the target.
    pub sync_time: Duration,
    /// Whether what the device gave back was compared with the checksums of the state, too.
    pub read_back_verified: bool,
}

/// A tensor between its source and its state.
enum Loaded {
    OnDevice(DeviceMemory),
    Strings(Vec<Vec<u8>>),
}

/// Puts the tensors of `sources` onto `device`, then streams the device's buffers into a state at
/// `output`.
///
/// The state says that its arrays are on the device's ordinal. The metadata is that of the first
/// source that has some.
///
/// # Errors
/// [`Error::Refused`] for the first tensor that no state can hold, unless `skip_unsupported`; two
/// tensors of one name; or whatever the sources, the device or the file report. No file is left
/// behind then, and an old one stays.
pub fn save(
    sources: &[Box<dyn Source>],
    output: &Path,
    device: &Device,
    options: &WriteOptions,
    skip_unsupported: bool,
    watch: &Watch,
) -> Result<SaveReport, Error> {
    let begin = |options: WriteOptions| options.create(output);
    save_into(begin, sources, device, options, skip_unsupported, watch)
}

/// As [`save`], into a stream, such as standard output. A stream is not taken back: where the work fails, it ends early, and no reader takes
/// what is in it for a state.
///
/// # Errors
/// As [`save`].
pub fn save_stream(
    sources: &[Box<dyn Source>],
    output: impl Write + Send + 'static,
    device: &Device,
    options: &WriteOptions,
    skip_unsupported: bool,
    watch: &Watch,
) -> Result<SaveReport, Error> {
    let begin = |options: WriteOptions| options.stream(output);
    save_into(begin, sources, device, options, skip_unsupported, watch)
}

fn save_into(
    begin_state: impl FnOnce(WriteOptions) -> Result<Writer, device_state::Error>,
    sources: &[Box<dyn Source>],
    device: &Device,
    options: &WriteOptions,
    skip_unsupported: bool,
    watch: &Watch,
) -> Result<SaveReport, Error> {
    let mut report = SaveReport::default();
    let mut names = HashSet::new();
    for source in sources {
        report.skipped.extend(source.refused().iter().cloned());
        for info in source.tensors() {
            if !names.insert(info.name.as_str()) {
                let name = info.name.clone();
                return Err(device_state::Error::DuplicateName { name }.into());
            }
        }
    }
    if let Some(Refused { name, reason }) = report.skipped.first().filter(|_| !skip_unsupported) {
        let reason = format!("{reason}; leave such tensors out with --skip-unsupported");
        return Err(Error::refused(name, reason));
    }

    // The output is begun before the work, so that a place where no file can be made is found out
    // at once.
    let metadata: Metadata = sources.iter().find_map(|source| source.metadata().clone());
    let options = options.clone().with_metadata(metadata).with_watch(watch.clone());
    let mut writer = begin_state(options)?;

    let begin = Instant::now();
    let infos = || sources.iter().flat_map(|source| source.tensors());
    let total = infos().map(|info| info.bytes).sum();
    watch.begin(Phase::Upload, total);
    let mut upload = Uploads::<DeviceMemory>::new(device, watch);
    let mut loaded = Vec::new();
    for source in sources {
        for (position, info) in source.tensors().iter().enumerate() {
            if info.dtype == DType::String {
                loaded.push(Loaded::Strings(source.strings(position)?));
                continue;
            }
            let mut data = source.read(position)?;
            let memory = upload
                .put(&info.name, &mut *data, info.bytes)?
                .map_err(|source| Error::Data { name: info.name.clone(), source })?;
            loaded.push(Loaded::OnDevice(memory));
        }
    }
    drop(upload);
    report.upload_time = begin.elapsed();

    watch.begin(Phase::Save, total);
    for (info, loaded) in infos().zip(loaded) {
        let sharding = SingleDeviceSharding::new(DeviceId(device.ordinal()));
        let spec = ArraySpec::new(info.dtype, info.shape.clone(), sharding);
        match loaded {
            Loaded::OnDevice(memory) => writer.add(&info.name, &spec, &memory)?,
            Loaded::Strings(strings) => writer.add_strings(&info.name, &spec, &strings)?,
        }
    }
    let written = writer.finish()?;
    report.tensors = written.tensors;
    report.bytes = written.bytes;
    report.file_bytes = written.file_bytes;
    report.time = written.time;
    report.sync_time = written.sync_time;
    report.direct = written.direct;
    Ok(report)
}

/// Puts `tensors` of `state` onto `device`, each chunk compared with its checksum, and if there is
/// a target reads them back from the device into it.
///
/// What the device gives back is compared with the checksums of the state once more.
///
/// # Errors
/// If the state is damaged, the device or the target fails, or the target cannot hold one of the
/// tensors. No file is left behind then, and an old one stays.
pub fn restore(
    state: &Reader,
    tensors: &[Tensor],
    device: &Device,
    target: Option<Box<dyn Target>>,
    watch: &Watch,
) -> Result<RestoreReport, Error> {
    let infos = tensors
        .iter()
        .map(|tensor| {
            let spec = tensor.spec();
            TensorInfo::new(tensor.name(), spec.dtype(), spec.shape().clone())
        })
        .collect::<Result<Vec<_>, _>>()?;
    let metadata = state.metadata().map(<[_]>::to_vec);
    // Begun first: a target that cannot hold a tensor says so before the work.
    let target = match target {
        Some(mut target) => {
            let order = target.begin(&infos, &metadata)?;
            Some((target, order))
        }
        None => None,
    };

    let is_string = |tensor: &Tensor| tensor.spec().dtype() == DType::String;
    let (strings, numbers): (Vec<_>, Vec<_>) = tensors.iter().cloned().partition(is_string);
    watch.begin(Phase::Restore, numbers.iter().map(Tensor::bytes).sum());
    let (memories, restored) = state.restore(&numbers, device, watch)?;
    let mut report = RestoreReport {
        tensors: tensors.len() as u64,
        bytes: restored.bytes,
        time: restored.time,
        ..RestoreReport::default()
    };
    // Strings have no place on a device; they are read and compared all the same.
    let mut texts = Vec::with_capacity(strings.len());
    for tensor in &strings {
        report.bytes += tensor.bytes();
        texts.push(tensor.strings()?);
    }

    let Some((mut target, order)) = target else { return Ok(report) };
    let begin = Instant::now();
    watch.begin(Phase::ReadBack, restored.bytes);
    // Where each tensor went: the how-manieth of its kind it is.
    let mut counts = [0_usize; 2];
    let places: Vec<(bool, usize)> = tensors
        .iter()
        .map(|tensor| {
            let kind = is_string(tensor);
            let count = &mut counts[usize::from(kind)];
            *count += 1;
            (kind, *count - 1)
        })
        .collect();
    let mut downloads = Downloads::new();
    for position in order {
        match places.get(position) {
            Some((true, place)) => {
                let text = texts.get(*place).map(Vec::as_slice).unwrap_or_default();
                target.write_strings(position, text)?;
            }
            Some((false, place)) => {
                let Some((tensor, memory)) = numbers.get(*place).zip(memories.get(*place)) else {
                    continue;
                };
                let mut back = ReadBack {
                    data: downloads.reader(tensor.name(), memory),
                    sums: tensor.sums(),
                    watch,
                };
                target.write(position, &mut back)?;
                back.sums.compare(tensor)?;
            }
            None => {}
        }
    }
    report.read_back_time = begin.elapsed();
    watch.check()?;
    report.sync_time = target.finish()?;
    report.read_back_verified = true;
    Ok(report)
}

/// The bytes that come back from the device, summed as they pass.
struct ReadBack<'a, R> {
    data: R,
    sums: PieceSums,
    watch: &'a Watch,
}

impl<R: Read> Read for ReadBack<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.data.read(out)?;
        self.sums.update(out.get(..count).unwrap_or_default());
        self.watch.advance(count as u64).map_err(io::Error::other)?;
        Ok(count)
    }
}
