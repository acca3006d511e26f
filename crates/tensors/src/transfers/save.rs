//! Uploads tensors of files to a device, and saves its buffers in a state.

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
    /// Data moved from the device to the state.
    pub moved: Moved,
    /// Length of the state in bytes.
    pub file_bytes: u64,
    /// Time of uploading the tensors of the sources to the device.
    pub upload_time: Duration,
    /// True if the data went to the disk past the system's page cache; see
    /// [`WriteOptions::with_direct`].
    pub direct: bool,
    /// Tensors and values that were left out.
    pub skipped: Vec<Refused>,
    /// Properties of saved tensors that were lost: attributes, keys that are not text.
    pub left_out: Vec<Refused>,
}

/// A tensor between its source and the state.
enum Loaded<M> {
    /// A tensor on the device, with the source's checksums of its chunks.
    OnDevice(M, Vec<u32>),
    Strings(Vec<Vec<u8>>),
}

/// Uploads the tensors of `sources` to `device`, then streams the device's buffers into a state at
/// `output`.
///
/// The device belongs to a StreamExecutor plug-in or a PJRT client. The state records the device's
/// ordinal or id for its arrays. The metadata come from the first source that has any; a tensor
/// with several names is stored once, and the metadata hold the aliases. The device's data are
/// compared with the sources' by checksums.
///
/// # Errors
/// [`Error::CannotSave`] for tensors that a state cannot hold, unless `skip_unsupported`; two
/// tensors of one name; a tensor that the device returns changed; errors of the sources, the device
/// or the file. No file is left behind then, and an old one stays.
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

/// Like [`save`], but writes to a stream, such as standard output. Written bytes cannot be taken
/// back: on failure the stream ends early, and readers reject it.
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

/// Like [`save`], but writes to the state that `begin_state` creates: at an address, or one
/// process's part of a state.
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
    // Create the output before the work, so that an unusable path is reported at once.
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

/// Uploads tensors of the sources to the device, in order.
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

/// Returns the contents of device memory for a tensor.
fn contents_of(info: &TensorInfo) -> Result<Contents, Error> {
    let contents = Contents::new(info.dtype, info.shape.dims().iter().copied());
    contents.filter(|contents| contents.bytes() == info.bytes).ok_or_else(|| Error::CannotSave {
        name: info.name.clone(),
        reason: format!("{}{} does not take {} bytes", info.dtype, info.shape, info.bytes),
        others: Vec::new(),
    })
}
