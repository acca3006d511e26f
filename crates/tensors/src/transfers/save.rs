//! Tensors of files onto a device, and its buffers into a state.

use std::{
    io::Write,
    path::Path,
    time::{Duration, Instant},
};

use serdes::ifrt::{ArraySpec, DType, SingleDeviceSharding};
use serdes_device_state::{Contents, HostedDevice, Uploads, WriteOptions, Writer};
use serdes_files::{Phase, ProgressMonitor};

use super::{
    Moved,
    plan::{Choice, Plan, Planned, announce, plan},
};
use crate::{Error, Refused, Source, TensorInfo};

/// Summary of a save.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SaveReport {
    /// Data moved from the device into the state.
    pub moved: Moved,
    /// Length of the state in bytes.
    pub file_bytes: u64,
    /// Putting the tensors of the sources onto the device.
    pub upload_time: Duration,
    /// True if the data went to the disk past the system's page cache; see
    /// [`WriteOptions::with_direct`].
    pub direct: bool,
    /// Tensors and values that were left out.
    pub skipped: Vec<Refused>,
    /// Properties of something that was saved which were not kept with it: attributes, keys that
    /// are no texts.
    pub left_out: Vec<Refused>,
}

/// A tensor between its source and its state.
enum Loaded<M> {
    /// With the checksums of its chunks as the source gave them.
    OnDevice(M, Vec<u32>),
    Strings(Vec<Vec<u8>>),
}

/// Puts the tensors of `sources` onto `device`, then streams the device's buffers into a state at
/// `output`.
///
/// The device is one of a StreamExecutor plug-in or of a PJRT client. The state says that its
/// arrays are on the device's ordinal, or its id. The metadata is that of the first source that has
/// some; a tensor of several names is stored once, and the metadata tell the others. What the device
/// gives back is compared with what the sources gave, by checksums.
///
/// # Errors
/// [`Error::CannotSave`] for what no state can hold, unless `skip_unsupported`; two tensors of one
/// name; a tensor that the device does not give back as it was; or whatever the sources, the device
/// or the file report. No file is left behind then, and an old one stays.
pub fn save<D: HostedDevice>(
    sources: &[Box<dyn Source>],
    output: &Path,
    device: &D,
    options: &WriteOptions,
    skip_unsupported: bool,
    monitor: &ProgressMonitor,
) -> Result<SaveReport, Error> {
    let begin = |options: WriteOptions| options.create(output);
    save_into(begin, sources, device, options, skip_unsupported, monitor)
}

/// Like [`save`], into a stream, such as standard output. A stream is not taken back: where the
/// work fails, it ends early, and no reader takes what is in it for a state.
///
/// # Errors
/// As [`save`].
pub fn save_stream<D: HostedDevice>(
    sources: &[Box<dyn Source>],
    output: impl Write + Send + 'static,
    device: &D,
    options: &WriteOptions,
    skip_unsupported: bool,
    monitor: &ProgressMonitor,
) -> Result<SaveReport, Error> {
    let begin = |options: WriteOptions| options.stream(output);
    save_into(begin, sources, device, options, skip_unsupported, monitor)
}

/// Like [`save`], into the state that `begin_state` begins: at an address, or as the part of one
/// process of several.
///
/// # Errors
/// As [`save`].
pub fn save_into<D: HostedDevice>(
    begin_state: impl FnOnce(WriteOptions) -> Result<Writer, serdes_device_state::Error>,
    sources: &[Box<dyn Source>],
    device: &D,
    options: &WriteOptions,
    skip_unsupported: bool,
    monitor: &ProgressMonitor,
) -> Result<SaveReport, Error> {
    let choice = Choice { only: &[], skip_unsupported, keep_aliases: true };
    let Plan { tensors, metadata, skipped, left_out } = plan(sources, choice)?;
    let mut report = SaveReport { skipped, left_out, ..SaveReport::default() };
    // The output is begun before the work, so that a place where no file can be made is found out
    // at once.
    let options = options.clone().with_metadata(metadata).with_monitor(monitor.clone());
    let mut writer = begin_state(options)?;

    let begin = Instant::now();
    let total = tensors.iter().map(|tensor| tensor.info.bytes).sum();
    monitor.begin(Phase::Upload, total);
    announce(sources, tensors.iter());
    let loaded = load(&tensors, device, writer.chunk_bytes(), monitor)?;
    report.upload_time = begin.elapsed();

    monitor.begin(Phase::Save, total);
    for (Planned { info, .. }, loaded) in tensors.iter().zip(loaded) {
        let sharding = SingleDeviceSharding::new(device.device_id());
        let spec = ArraySpec::new(info.dtype, info.shape.clone(), sharding);
        match loaded {
            Loaded::OnDevice(memory, sums) => {
                writer.add_uploaded(&info.name, &spec, &memory, &sums)?;
            }
            Loaded::Strings(strings) => writer.add_strings(&info.name, &spec, &strings)?,
        }
    }
    let written = writer.finish()?;
    report.moved = Moved {
        tensors: written.tensors,
        bytes: written.bytes,
        time: written.time,
        sync_time: written.sync_time,
    };
    report.file_bytes = written.file_bytes;
    report.direct = written.direct;
    Ok(report)
}

/// Puts tensors of the sources onto the device, in their order.
fn load<D: HostedDevice>(
    tensors: &[Planned<'_>],
    device: &D,
    chunk_bytes: u32,
    monitor: &ProgressMonitor,
) -> Result<Vec<Loaded<D::Memory>>, Error> {
    let mut uploads = Uploads::<D::Memory>::new(device, monitor).summing(chunk_bytes);
    let mut loaded = Vec::new();
    for Planned { source, position, info } in tensors {
        if info.dtype == DType::String {
            loaded.push(Loaded::Strings(source.strings(*position)?));
            continue;
        }
        let mut data = source.read(*position)?;
        let memory = uploads
            .put(&info.name, &mut *data, &contents_of(info)?)?
            .map_err(|source| Error::Data { name: info.name.clone(), source })?;
        loaded.push(Loaded::OnDevice(memory, uploads.take_sums()));
    }
    Ok(loaded)
}

/// Contents of device memory for a tensor.
fn contents_of(info: &TensorInfo) -> Result<Contents, Error> {
    let contents = Contents::new(info.dtype, info.shape.dims().iter().copied());
    contents.filter(|contents| contents.bytes() == info.bytes).ok_or_else(|| Error::CannotSave {
        name: info.name.clone(),
        reason: format!("{}{} does not take {} bytes", info.dtype, info.shape, info.bytes),
        others: Vec::new(),
    })
}
