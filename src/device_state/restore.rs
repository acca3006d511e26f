//! From a state onto a device: a thread reads ahead while this one checks and copies.

use std::{
    collections::VecDeque,
    num::NonZero,
    ops::Range,
    sync::mpsc::channel,
    thread::{self, available_parallelism},
    time::{Duration, Instant},
};

use super::{
    Error, Reader, Tensor, Watch,
    ahead::Ahead,
    buffer::BUFFER_BYTES,
    chunks::ChunkSums,
    format::{checksum, index::PieceEntry},
};
use crate::stream_executor::{Device, DeviceMemory, HostMemory, Stream, Transfer};

/// Copies to the device that are under way at a time.
const IN_FLIGHT: usize = 3;
/// Buffers: those that are read ahead, those whose copies are under way.
const BUFFERS: usize = 2 * IN_FLIGHT;
/// Pieces from this size on are read into buffers of their own and copied by a stream.
const STREAMED_FROM: u64 = BUFFER_BYTES as u64;

/// Something to be read: one stretch of the file, as long as a buffer at most.
#[derive(Clone, Debug)]
struct Step {
    offset: u64,
    bytes: usize,
    /// Positions in the list of pieces to be restored.
    pieces: Range<usize>,
}

/// A piece on its way.
struct Job {
    number: u32,
    piece: PieceEntry,
    name: String,
}

/// What a finished restore did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Restored {
    /// Number of tensors.
    pub tensors: u64,
    /// Payload of all tensors in bytes.
    pub bytes: u64,
    /// From the first read of data until the last byte was on the device.
    pub time: Duration,
}

impl Tensor {
    /// Puts the tensor into memory of `device`, every chunk compared with its checksum.
    ///
    /// # Errors
    /// If the bytes are damaged, cannot be read, or the device fails; or if the tensor holds
    /// strings, which stay on the host.
    pub fn restore(&self, device: &Device) -> Result<DeviceMemory, Error> {
        let (mut memories, _) =
            self.reader.restore(std::slice::from_ref(self), device, &Watch::new())?;
        memories.pop().ok_or_else(|| Error::Unsupported {
            name: self.name().to_owned(),
            reason: "it has no data".to_owned(),
        })
    }
}

impl Reader {
    /// Puts `tensors` of this state into memory of `device`, in their order.
    ///
    /// Every chunk is compared with its checksum. Where neighbours in the file are restored
    /// together, what stands between them is compared as well.
    ///
    /// # Errors
    /// As [`Tensor::restore`]; or [`Error::Cancelled`].
    pub fn restore(
        &self,
        tensors: &[Tensor],
        device: &Device,
        watch: &Watch,
    ) -> Result<(Vec<DeviceMemory>, Restored), Error> {
        if tensors.iter().any(|tensor| !tensor.is_whole()) {
            return self.restore_mixed(tensors, device, watch);
        }
        let mut jobs = Vec::with_capacity(tensors.len());
        for tensor in tensors {
            if tensor.spec().dtype().bits().is_none() {
                return Err(Error::Unsupported {
                    name: tensor.name().to_owned(),
                    reason: "strings have no buffer on a device".to_owned(),
                });
            }
            for (number, piece) in tensor.pieces() {
                jobs.push(Job { number, piece, name: tensor.name().to_owned() });
            }
        }
        let begin = Instant::now();
        let steps = plan(&jobs, self.shared.salvaged || self.shared.merged.is_some());
        let memories = Landing::new(self, device, &jobs, watch)?.land(&steps)?;
        let restored = Restored {
            tensors: tensors.len() as u64,
            bytes: jobs.iter().map(|job| job.piece.data_bytes).sum(),
            time: begin.elapsed(),
        };
        Ok((memories, restored))
    }
}

/// Cuts what is to be read into steps: large pieces in buffers of their own, small neighbours
/// together with what stands between them. An index that was salvaged or merged does not know
/// neighbours.
fn plan(jobs: &[Job], strangers: bool) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (position, job) in jobs.iter().enumerate() {
        let PieceEntry { data_offset, data_bytes, .. } = job.piece;
        if data_bytes >= STREAMED_FROM {
            let mut offset = 0;
            while offset < data_bytes {
                let bytes = (data_bytes - offset).min(BUFFER_BYTES as u64) as usize;
                steps.push(Step {
                    offset: data_offset + offset,
                    bytes,
                    pieces: position..position + 1,
                });
                offset += bytes as u64;
            }
            continue;
        }
        let before = position.checked_sub(1).and_then(|before| jobs.get(before));
        let joined = steps.last_mut().filter(|step| {
            before.is_some_and(|before| {
                before.piece.data_bytes < STREAMED_FROM
                    && before.number + 1 == job.number
                    && !strangers
            }) && data_offset + data_bytes - step.offset <= BUFFER_BYTES as u64
        });
        match joined {
            Some(step) => {
                step.bytes = (data_offset + data_bytes - step.offset) as usize;
                step.pieces.end = position + 1;
            }
            None => steps.push(Step {
                offset: data_offset,
                bytes: data_bytes as usize,
                pieces: position..position + 1,
            }),
        }
    }
    steps
}

/// Pieces on their way onto a device.
struct Landing<'a> {
    reader: &'a Reader,
    device: &'a Device,
    jobs: &'a [Job],
    watch: &'a Watch,
    /// Made when the first large piece comes.
    stream: Option<Stream>,
    memories: Vec<DeviceMemory>,
    /// Checksums of the large piece that is coming in, and how much of it has come.
    sums: ChunkSums,
    arrived: u64,
    under_way: VecDeque<(Transfer, usize)>,
    /// Room for the words between two pieces.
    expected: Vec<u8>,
}

impl<'a> Landing<'a> {
    fn new(
        reader: &'a Reader,
        device: &'a Device,
        jobs: &'a [Job],
        watch: &'a Watch,
    ) -> Result<Self, Error> {
        Ok(Self {
            reader,
            device,
            jobs,
            watch,
            stream: None,
            memories: Vec::with_capacity(jobs.len()),
            sums: ChunkSums::new(reader.chunk_bytes()),
            arrived: 0,
            under_way: VecDeque::with_capacity(IN_FLIGHT),
            expected: Vec::new(),
        })
    }

    /// Reads and lands all steps; a second core reads ahead if there is one.
    fn land(mut self, steps: &[Step]) -> Result<Vec<DeviceMemory>, Error> {
        let longest = steps.iter().map(|step| step.bytes).max().unwrap_or(0);
        let mut buffers = VecDeque::with_capacity(BUFFERS);
        for _ in 0..steps.len().min(BUFFERS) {
            let buffer = self.device.allocate_host(longest);
            buffers
                .push_back(buffer.map_err(|e| Error::device("allocating host memory for", "", e))?);
        }
        let shared = &self.reader.shared;
        let mut ahead =
            Ahead::new(steps.iter().map(|step| step.offset..step.offset + step.bytes as u64));
        let mut read = |step: &Step, buffer: &mut HostMemory| {
            let part = buffer.get_mut(..step.bytes).unwrap_or_default();
            let result = ahead.read(&*shared.source, part, step.offset);
            result.map_err(|error| Error::io("read", &shared.path, error))
        };
        let cores = available_parallelism().map_or(1, NonZero::get);
        if steps.len() <= 2 || cores == 1 {
            for step in steps {
                while buffers.is_empty() {
                    buffers.extend(self.complete()?);
                }
                let Some(mut buffer) = buffers.pop_front() else { break };
                read(step, &mut buffer)?;
                buffers.extend(self.step(step, buffer)?);
            }
            return self.finish();
        }
        thread::scope(|scope| {
            let (fill, filled) = channel::<Result<HostMemory, Error>>();
            let (give_back, empty) = channel::<HostMemory>();
            for buffer in buffers {
                // The receiver is alive: it is in this function.
                let _ = give_back.send(buffer);
            }
            scope.spawn(move || {
                for step in steps {
                    // Either end closes when the other side gives up.
                    let Ok(mut buffer) = empty.recv() else { return };
                    let result = read(step, &mut buffer).map(|()| buffer);
                    if fill.send(result).is_err() {
                        return;
                    }
                }
            });
            // On failure these two are dropped, and the thread ends before the scope does.
            let (filled, give_back) = (filled, give_back);
            for step in steps {
                let Ok(buffer) = filled.recv() else { break };
                if let Some(buffer) = self.step(step, buffer?)? {
                    let _ = give_back.send(buffer);
                }
                while self.under_way.len() >= IN_FLIGHT {
                    if let Some(buffer) = self.complete()? {
                        let _ = give_back.send(buffer);
                    }
                }
            }
            drop((filled, give_back));
            self.finish()
        })
    }

    /// Lands the bytes of one step; gives the buffer back unless a copy is using it.
    fn step(&mut self, step: &Step, buffer: HostMemory) -> Result<Option<HostMemory>, Error> {
        self.watch.check()?;
        let jobs = self.jobs.get(step.pieces.clone()).unwrap_or_default();
        match jobs {
            [job] if job.piece.data_bytes >= STREAMED_FROM => {
                self.land_part(job, step.bytes, buffer).map(|()| None)
            }
            jobs => {
                self.land_small(jobs, step, &buffer)?;
                Ok(Some(buffer))
            }
        }
    }

    /// The next part of a large piece.
    fn land_part(&mut self, job: &Job, bytes: usize, buffer: HostMemory) -> Result<(), Error> {
        let failed = |error| Error::device("writing", &job.name, error);
        if self.arrived == 0 {
            self.memories.push(self.device.allocate(job.piece.data_bytes).map_err(failed)?);
        }
        self.sums.update(buffer.get(..bytes).unwrap_or_default());
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(self.device.create_stream().map_err(failed)?),
        };
        if let Some(memory) = self.memories.last() {
            let transfer =
                stream.copy_to_device(buffer, bytes, memory, self.arrived).map_err(failed)?;
            self.under_way.push_back((transfer, bytes));
        }
        self.arrived += bytes as u64;
        if self.arrived == job.piece.data_bytes {
            self.arrived = 0;
            let next = ChunkSums::new(self.reader.chunk_bytes());
            let sums = std::mem::replace(&mut self.sums, next);
            self.compare(job, sums)?;
        }
        Ok(())
    }

    /// Neighbours that came in one buffer, and what stands between them.
    fn land_small(&mut self, jobs: &[Job], step: &Step, buffer: &[u8]) -> Result<(), Error> {
        let mut end = 0;
        let mut expected = std::mem::take(&mut self.expected);
        let mut first = true;
        for job in jobs {
            let failed = |error| Error::device("writing", &job.name, error);
            let begin = (job.piece.data_offset - step.offset) as usize;
            if !std::mem::take(&mut first) {
                self.reader.shared.push_words_before(job.number, &job.piece, &mut expected)?;
                if buffer.get(end..begin) != Some(&expected[..]) {
                    return Err(Error::corrupt(
                        &format!("words before the data of {:?}", job.name),
                        "other bytes".to_owned(),
                        "what the index says".to_owned(),
                    ));
                }
            }
            end = begin + job.piece.data_bytes as usize;
            let data = buffer.get(begin..end).unwrap_or_default();
            if data.is_empty() || data.len() > self.reader.chunk_bytes() as usize {
                let mut sums = ChunkSums::new(self.reader.chunk_bytes());
                sums.update(data);
                self.compare(job, sums)?;
            } else {
                let sum = checksum(data);
                self.reader.shared.compare_sums(&job.name, &job.piece, &[sum])?;
            }
            expected.clear();
            self.reader.shared.push_words_behind(job.number, &job.piece, &mut expected);
            let memory = self.device.allocate(job.piece.data_bytes).map_err(failed)?;
            self.device.copy_to_device(data, &memory, 0).map_err(failed)?;
            self.memories.push(memory);
            self.watch.advance(job.piece.data_bytes)?;
        }
        self.expected = expected;
        Ok(())
    }

    fn compare(&self, job: &Job, sums: ChunkSums) -> Result<(), Error> {
        self.reader.shared.compare_sums(&job.name, &job.piece, &sums.finish())
    }

    /// Waits for the oldest copy and gives its buffer back.
    fn complete(&mut self) -> Result<Option<HostMemory>, Error> {
        let Some((transfer, bytes)) = self.under_way.pop_front() else { return Ok(None) };
        let memory = transfer.wait().map_err(|error| Error::device("writing", "data", error))?;
        self.watch.advance(bytes as u64)?;
        Ok(Some(memory))
    }

    fn finish(mut self) -> Result<Vec<DeviceMemory>, Error> {
        while !self.under_way.is_empty() {
            self.complete()?;
        }
        Ok(self.memories)
    }
}
