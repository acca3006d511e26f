//! A state onto a device, and its buffers back into a file of tensors.

use std::{
    io::{self, Read},
    time::{Duration, Instant},
};

use crate::{
    device_state::{Downloads, HostedDevice, HostedMemory, PieceSums, Reader, Tensor},
    files::{Phase, Watch},
    ifrt::DType,
    tensor_io::{Error, Target, TensorInfo, TensorSink},
};

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

/// Puts `tensors` of `state` onto `device`, each chunk compared with its checksum, and if there is
/// a target reads them back from the device into it.
///
/// What the device gives back is compared with the checksums of the state once more.
///
/// # Errors
/// If the state is damaged, the device or the target fails, or the target cannot hold one of the
/// tensors. No file is left behind then, and an old one stays.
pub fn restore<D: HostedDevice>(
    state: &Reader,
    tensors: &[Tensor],
    device: &D,
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
    let sink = target.map(|target| target.begin(infos, &metadata)).transpose()?;

    let (strings, numbers): (Vec<_>, Vec<_>) =
        tensors.iter().cloned().partition(|tensor| tensor.spec().dtype() == DType::String);
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

    let Some(mut sink) = sink else { return Ok(report) };
    let begin = Instant::now();
    watch.begin(Phase::ReadBack, restored.bytes);
    let (mut memories, mut texts) = (memories.into_iter(), texts.into_iter());
    let restored = tensors.iter().filter_map(|tensor| {
        Some(match tensor.spec().dtype() {
            DType::String => Restored::Strings(texts.next()?),
            _ => Restored::OnDevice(tensor, memories.next()?),
        })
    });
    read_back(&restored.collect::<Vec<_>>(), &mut *sink, watch)?;
    report.read_back_time = begin.elapsed();
    watch.check()?;
    report.sync_time = sink.finish()?;
    report.read_back_verified = true;
    Ok(report)
}

/// A tensor between its state and its target.
enum Restored<'a, M> {
    OnDevice(&'a Tensor, M),
    Strings(Vec<Vec<u8>>),
}

/// Reads tensors back from the device into their target, in its order, and compares them with the
/// checksums of the state once more.
fn read_back<M: HostedMemory>(
    restored: &[Restored<'_, M>],
    sink: &mut dyn TensorSink,
    watch: &Watch,
) -> Result<(), Error> {
    let mut downloads = Downloads::new();
    for position in sink.order().to_vec() {
        match restored.get(position) {
            Some(Restored::Strings(strings)) => sink.write_strings(position, strings)?,
            Some(Restored::OnDevice(tensor, memory)) => {
                let data = downloads.reader(tensor.name(), memory);
                let mut back = ReadBack { data, sums: tensor.sums(), watch };
                sink.write(position, &mut back)?;
                back.sums.compare(tensor)?;
            }
            None => {}
        }
    }
    Ok(())
}

/// The bytes that come back from the device, summed as they pass.
struct ReadBack<'a, R> {
    data: R,
    sums: PieceSums,
    watch: &'a Watch,
}

impl<R: Read> Read for ReadBack<'_, R> {
    #[expect(clippy::indexing_slicing, reason = "a reader gives no more than it is asked for")]
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.data.read(out)?;
        self.sums.update(&out[..count]);
        self.watch.advance(count as u64).map_err(io::Error::other)?;
        Ok(count)
    }
}
