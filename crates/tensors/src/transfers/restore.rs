//! Restores a state to a device, and reads its buffers back into a file of tensors.

use std::{
    io::{self, Read},
    time::{Duration, Instant},
};

use serdes::ifrt::DType;
use serdes_device_state::{Downloads, HostedDevice, HostedMemory, PieceSums, Reader, Tensor};
use serdes_files::{Phase, ProgressMonitor};

use super::{
    Moved,
    names::{Named, named},
};
use crate::{Error, Target, TensorSink};

/// Summary of a restore.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RestoreReport {
    /// Data moved from the state to the device; the sync time is the target's.
    pub moved: Moved,
    /// Time of reading back from the device into the target, without syncing.
    pub read_back_time: Duration,
    /// True if the data read back from the device was also compared with the state's checksums.
    pub read_back_verified: bool,
}

/// Restores `tensors` of `state` to `device`, comparing each chunk with its checksum, and, if there
/// is a target, reads them back from the device into it.
///
/// The data read back are compared with the state's checksums again. A target gets the tensors
/// under those names that match one of the patterns `only`, or under all names; each tensor once if
/// its metadata can hold aliases.
///
/// # Errors
/// If the state is damaged, the device or the target fails, or the target cannot hold one of the
/// tensors. No file is left behind then, and an old one stays.
pub fn restore<D: HostedDevice>(
    state: &Reader,
    tensors: &[Tensor],
    only: &[String],
    device: &D,
    target: Option<Box<dyn Target>>,
    monitor: &ProgressMonitor,
) -> Result<RestoreReport, Error> {
    // Begin the target first, so that a tensor that it cannot hold is reported before the work.
    let target = target.map(|target| Output::begin(target, state, tensors, only)).transpose()?;
    let (numbers, strings): (Vec<_>, Vec<_>) =
        tensors.iter().cloned().partition(|tensor| tensor.spec().dtype() != DType::String);
    monitor.begin(Phase::Restore, numbers.iter().map(Tensor::bytes).sum());
    let (memories, restored) = state.restore(&numbers, device, monitor)?;
    let mut report = RestoreReport {
        moved: Moved {
            tensors: tensors.len() as u64,
            bytes: restored.bytes,
            time: restored.time,
            ..Moved::default()
        },
        ..RestoreReport::default()
    };
    // Devices cannot hold strings; they are still read and verified.
    let mut texts = Vec::with_capacity(strings.len());
    for tensor in &strings {
        report.moved.bytes += tensor.bytes();
        texts.push(tensor.strings()?);
    }

    let Some(mut target) = target else { return Ok(report) };
    let begin = Instant::now();
    let (mut memories, mut texts) = (memories.into_iter(), texts.into_iter());
    let restored = tensors.iter().filter_map(|tensor| {
        Some(match tensor.spec().dtype() {
            DType::String => Restored::Strings(texts.next()?),
            _ => Restored::OnDevice(tensor, memories.next()?),
        })
    });
    target.read_back(&restored.collect::<Vec<_>>(), monitor)?;
    report.read_back_time = begin.elapsed();
    monitor.check()?;
    report.moved.sync_time = target.sink.finish()?;
    report.read_back_verified = true;
    Ok(report)
}

/// A tensor between the state and the target.
enum Restored<'a, M> {
    OnDevice(&'a Tensor, M),
    Strings(Vec<Vec<u8>>),
}

/// A started target, with its tensors.
struct Output {
    sink: Box<dyn TensorSink>,
    names: Vec<Named>,
}

impl Output {
    fn begin(
        target: Box<dyn Target>,
        state: &Reader,
        tensors: &[Tensor],
        only: &[String],
    ) -> Result<Self, Error> {
        let (names, metadata) = named(state, tensors, only, target.keeps_aliases())?;
        let infos = names.iter().map(|named| named.info.clone()).collect();
        Ok(Self { sink: target.begin(infos, &metadata)?, names })
    }

    /// Reads tensors back from the device, in the target's order, and compares them with the
    /// state's checksums again.
    fn read_back<M: HostedMemory>(
        &mut self,
        restored: &[Restored<'_, M>],
        monitor: &ProgressMonitor,
    ) -> Result<(), Error> {
        let tensor_of = |named: &Named| restored.get(named.position);
        let bytes = self.names.iter().filter_map(tensor_of).map(Restored::bytes_on_device);
        monitor.begin(Phase::ReadBack, bytes.sum());
        let mut downloads = Downloads::new();
        for position in self.sink.order().to_vec() {
            match self.names.get(position).and_then(tensor_of) {
                Some(Restored::Strings(strings)) => self.sink.write_strings(position, strings)?,
                Some(Restored::OnDevice(tensor, memory)) => {
                    let data = downloads.reader(tensor.name(), memory);
                    let mut back = ReadBack { data, sums: tensor.sums(), monitor };
                    self.sink.write(position, &mut back)?;
                    back.sums.compare(tensor)?;
                }
                None => {}
            }
        }
        Ok(())
    }
}

impl<M> Restored<'_, M> {
    /// Returns the number of bytes that are read back from the device.
    fn bytes_on_device(&self) -> u64 {
        match self {
            Self::OnDevice(tensor, _) => tensor.bytes(),
            Self::Strings(_) => 0,
        }
    }
}

/// Reader of bytes from the device that computes their checksum.
struct ReadBack<'a, R> {
    data: R,
    sums: PieceSums,
    monitor: &'a ProgressMonitor,
}

impl<R: Read> Read for ReadBack<'_, R> {
    #[expect(clippy::indexing_slicing, reason = "a reader gives no more than it is asked for")]
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.data.read(out)?;
        self.sums.update(&out[..count]);
        self.monitor.advance(count as u64).map_err(io::Error::other)?;
        Ok(count)
    }
}
