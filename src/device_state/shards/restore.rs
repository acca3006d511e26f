//! From the pieces of a state onto any sharding.
//!
//! One walk through the array, in which each chunk of the file is read once, compared with its
//! checksum, and cut into the shards that want some of it. A thread reads ahead.

use std::{
    collections::HashMap,
    num::NonZero,
    ops::Range,
    sync::mpsc::{Receiver, sync_channel},
    thread::{self, available_parallelism},
    time::{Duration, Instant},
};

use super::{
    super::{
        Error, Reader, Restored, Tensor, Watch,
        ahead::Ahead,
        format::{checksum, index::PieceEntry},
    },
    Block, Sweep,
    assemble::{element_bytes, pieces_of},
    block::blocks_of,
};
use crate::{
    ifrt::{DeviceId, IndexDomain, Sharding},
    stream_executor::{Device, DeviceMemory, HostMemory},
};

/// Windows that are read ahead.
const AHEAD: usize = 3;
/// Bytes that are read at a time, if chunks are smaller.
const WINDOW_BYTES: u64 = 64 << 10;
/// Bytes that are collected for a shard before they are copied onto its device.
const STAGE_BYTES: u64 = 1 << 20;
/// Bytes that are collected for all shards together, unless there are very many.
const ALL_STAGES_BYTES: u64 = 32 << 20;

/// Where a shard of a restored array goes.
#[derive(Clone, Debug)]
pub struct ShardTarget<'a> {
    device: DeviceId,
    on: &'a Device,
    domain: Option<IndexDomain>,
}

impl<'a> ShardTarget<'a> {
    /// The shard of the device `device` of the sharding, into memory of `on`.
    pub const fn new(device: DeviceId, on: &'a Device) -> Self {
        Self { device, on, domain: None }
    }

    /// The same, for shardings that do not say which device holds which part.
    #[must_use]
    pub fn at(mut self, domain: IndexDomain) -> Self {
        self.domain = Some(domain);
        self
    }
}

/// What a restore onto several devices did.
#[derive(Debug)]
#[non_exhaustive]
pub struct RestoredShards {
    /// The shard of each target, in the order of the targets.
    pub memories: Vec<DeviceMemory>,
    /// Bytes of all shards together, replicas included.
    pub bytes: u64,
    /// Bytes of data that were read from the file, each of them once: all bytes of the array if
    /// the targets hold all of it, less if parts of it are on no target.
    pub bytes_read: u64,
    /// From the first read until the last byte was on its device.
    pub time: Duration,
}

impl Tensor {
    /// Puts the shards of the tensor, cut by `sharding`, onto devices.
    ///
    /// The sharding need not be the one that was saved, nor be over as many devices. Targets are
    /// the devices of this process; shards of other devices of the sharding are left out, and what
    /// only they hold is not read. Each chunk is read at most once, whole, and compared with its
    /// checksum before any of it reaches a device, also if only a part of the chunk is wanted. In
    /// memory are a chunk of each piece that a row of the array crosses, at least 64 KiB, and a
    /// MiB at most of each shard.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a target is no device of the sharding; [`Error::Unsupported`] if the
    /// tensor holds strings, which stay on the host, or the sharding does not say which device
    /// holds what; [`Error::Corrupt`] if the bytes are damaged; or what the devices report.
    pub fn restore_sharded(
        &self,
        sharding: &Sharding,
        targets: &[ShardTarget<'_>],
        watch: &Watch,
    ) -> Result<RestoredShards, Error> {
        self.check_complete()?;
        let wanted = self.wanted(sharding, targets)?;
        self.restore_blocks(&wanted, watch)
    }

    /// The part of the array that each target gets.
    fn wanted<'a>(
        &self,
        sharding: &Sharding,
        targets: &[ShardTarget<'a>],
    ) -> Result<Vec<(Block, &'a Device)>, Error> {
        let shape = self.spec().shape();
        let unsupported = |reason| Error::Unsupported { name: self.name().to_owned(), reason };
        match targets.iter().filter(|target| target.domain.is_some()).count() {
            0 => {}
            count if count < targets.len() => {
                return Err(Error::invalid(format!(
                    "{count} of {} targets have a domain; give all or none",
                    targets.len()
                )));
            }
            _ => {
                return targets
                    .iter()
                    .filter_map(|target| Some((target.on, target.domain.as_ref()?)))
                    .map(|(on, domain)| {
                        let block = Block::of_domain(domain, shape);
                        Ok((block.map_err(Error::invalid)?, on))
                    })
                    .collect();
            }
        }
        let blocks: HashMap<DeviceId, Block> =
            blocks_of(sharding, shape).map_err(unsupported)?.into_iter().collect();
        targets
            .iter()
            .map(|target| match blocks.get(&target.device) {
                Some(block) => Ok((block.clone(), target.on)),
                None => Err(Error::invalid(format!(
                    "the device {} is not one of the sharding {sharding}",
                    target.device
                ))),
            })
            .collect()
    }

    /// Puts parts of the array onto devices.
    pub(in super::super) fn restore_blocks(
        &self,
        wanted: &[(Block, &Device)],
        watch: &Watch,
    ) -> Result<RestoredShards, Error> {
        let begin = Instant::now();
        let failed = |error| Error::device("writing", self.name(), error);
        let element = element_bytes(self)?;
        let (pieces, sources) = pieces_of(self)?;
        let mut memories = Vec::with_capacity(wanted.len());
        let mut blocks: Vec<Block> = Vec::new();
        let mut numbers: HashMap<&Block, usize> = HashMap::new();
        let mut replicas: Vec<Vec<usize>> = Vec::new();
        for (position, (block, device)) in wanted.iter().enumerate() {
            let bytes = block.elements().and_then(|elements| elements.checked_mul(element));
            let bytes = bytes.ok_or(Error::TooLarge { what: "shard", found: u64::MAX })?;
            memories.push(device.allocate(bytes).map_err(failed)?);
            let number = *numbers.entry(block).or_insert(blocks.len());
            if number == blocks.len() {
                blocks.push(block.clone());
                replicas.push(Vec::new());
            }
            replicas.get_mut(number).into_iter().for_each(|places| places.push(position));
        }
        let whole = Block::whole(self.spec().shape());
        let sweep = || {
            Sweep::new(&whole, &sources, &blocks)
                .map_err(|reason| Error::Unsupported { name: self.name().to_owned(), reason })
        };
        let plan = Plan { tensor: self, pieces: &pieces, element };
        let stage =
            (ALL_STAGES_BYTES / blocks.len().max(1) as u64).clamp(WINDOW_BYTES, STAGE_BYTES);
        let mut stages = replicas
            .into_iter()
            .map(|replicas| Stage { replicas, bytes: None, used: 0, position: 0 })
            .collect::<Vec<_>>();
        let landing = Landing { plan: &plan, memories: &memories, stage: stage as usize, watch };
        let mut windows = Vec::new();
        if self.reader.shared.source.answers_late() {
            plan.each_window(sweep()?, |source, window| {
                windows.extend(plan.range_of(source, window));
                true
            });
        }
        let mut reads = Ahead::new(windows.into_iter());
        let cores = available_parallelism().map_or(1, NonZero::get);
        let bytes_read = if cores == 1 || self.bytes() <= 2 * plan.window() {
            landing.land(sweep()?, &mut stages, &mut Feed::Inline(&plan, reads))?
        } else {
            let ahead = sweep()?;
            thread::scope(|scope| {
                let (send, receive) = sync_channel(AHEAD);
                scope.spawn(|| {
                    let send = send;
                    let reads = &mut reads;
                    // Ends early when the other side has given up.
                    plan.each_window(ahead, |source, window| {
                        let read = plan.read(source, window, reads);
                        let stop = read.is_err();
                        send.send(read).is_ok() && !stop
                    });
                });
                landing.land(sweep()?, &mut stages, &mut Feed::Ahead(receive))
            })?
        };
        let bytes = memories.iter().map(DeviceMemory::size).sum();
        Ok(RestoredShards { memories, bytes, bytes_read, time: begin.elapsed() })
    }
}

impl Reader {
    /// Puts tensors onto one device, of which some are stored in shards.
    pub(in super::super) fn restore_mixed(
        &self,
        tensors: &[Tensor],
        device: &Device,
        watch: &Watch,
    ) -> Result<(Vec<DeviceMemory>, Restored), Error> {
        let begin = Instant::now();
        let whole: Vec<_> = tensors.iter().filter(|tensor| tensor.is_whole()).cloned().collect();
        let (whole, _) = self.restore(&whole, device, watch)?;
        let mut whole = whole.into_iter();
        let mut memories = Vec::with_capacity(tensors.len());
        for tensor in tensors {
            if tensor.is_whole() {
                memories.extend(whole.next());
                continue;
            }
            tensor.check_complete()?;
            let block = Block::whole(tensor.spec().shape());
            memories.extend(tensor.restore_blocks(&[(block, device)], watch)?.memories);
        }
        let bytes = memories.iter().map(DeviceMemory::size).sum();
        let tensors = tensors.len() as u64;
        Ok((memories, Restored { tensors, bytes, time: begin.elapsed() }))
    }
}

/// What is read, and how it is cut.
struct Plan<'a> {
    tensor: &'a Tensor,
    pieces: &'a [(u32, PieceEntry)],
    element: u64,
}

impl Plan<'_> {
    /// Bytes that are read at a time: whole chunks.
    fn window(&self) -> u64 {
        u64::from(self.tensor.reader.chunk_bytes()).max(WINDOW_BYTES)
    }

    /// Names every window of which something is wanted, in the order in which the walk comes to
    /// it, until `visit` says false.
    fn each_window(&self, mut sweep: Sweep, mut visit: impl FnMut(usize, u64) -> bool) {
        let window = self.window();
        // Bytes passed of each piece, and the window that was named last.
        let mut passed = vec![(0_u64, None); self.pieces.len()];
        while let Some(run) = sweep.next() {
            let Some(source) = run.source.map(|source| source as usize) else { return };
            let Some((begin, last)) = passed.get_mut(source) else { return };
            let end = begin.saturating_add(run.elements.saturating_mul(self.element));
            if !run.targets.is_empty() {
                for number in *begin / window..end.div_ceil(window) {
                    if *last != Some(number) {
                        *last = Some(number);
                        if !visit(source, number) {
                            return;
                        }
                    }
                }
            }
            *begin = end;
        }
    }

    /// Where a window of a piece lies in the file.
    fn range_of(&self, source: usize, window: u64) -> Option<Range<u64>> {
        let (_, piece) = self.pieces.get(source)?;
        let begin = window.saturating_mul(self.window());
        let length = piece.data_bytes.saturating_sub(begin).min(self.window());
        let begin = piece.data_offset.saturating_add(begin);
        Some(begin..begin.saturating_add(length))
    }

    /// Reads a window of a piece and compares its chunks with their checksums.
    fn read(&self, source: usize, window: u64, ahead: &mut Ahead<'_>) -> Result<Vec<u8>, Error> {
        let shared = &self.tensor.reader.shared;
        let Some((_, piece)) = self.pieces.get(source) else { return Ok(Vec::new()) };
        let Some(range) = self.range_of(source, window) else { return Ok(Vec::new()) };
        let begin = window.saturating_mul(self.window());
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let read = ahead.read(&*shared.source, &mut bytes, range.start);
        read.map_err(|error| Error::io("read", &shared.path, error))?;
        let chunk_bytes = self.tensor.reader.chunk_bytes();
        let first = begin / u64::from(chunk_bytes);
        for (chunk, part) in (first..).zip(bytes.chunks(chunk_bytes as usize)) {
            let stored = shared.index.checksum(u64::from(piece.first_chunk) + chunk);
            let computed = checksum(part);
            if stored != computed {
                let begin = chunk * u64::from(chunk_bytes);
                let name = self.tensor.name();
                let place = format!("data of {name:?}, chunk {chunk} from its byte {begin} on");
                return Err(Error::checksum(&place, stored, computed));
            }
        }
        Ok(bytes)
    }
}

/// Where windows come from, in the order in which they are wanted.
enum Feed<'a> {
    /// They are read when they are wanted.
    Inline(&'a Plan<'a>, Ahead<'a>),
    /// Another thread has read them.
    Ahead(Receiver<Result<Vec<u8>, Error>>),
}

impl Feed<'_> {
    fn next(&mut self, source: usize, window: u64) -> Result<Vec<u8>, Error> {
        match self {
            Self::Inline(plan, ahead) => plan.read(source, window, ahead),
            Self::Ahead(windows) => windows
                .recv()
                .unwrap_or_else(|_| Err(Error::invalid("the reading thread ended".to_owned()))),
        }
    }
}

/// Number and bytes of the window of a piece that is here.
type Window = (u64, Vec<u8>);

/// Bytes of one shard on their way onto the devices that hold it.
struct Stage {
    /// Positions of the memories.
    replicas: Vec<usize>,
    bytes: Option<HostMemory>,
    used: usize,
    /// Bytes that are on the devices.
    position: u64,
}

/// The landing side of the walk.
struct Landing<'a> {
    plan: &'a Plan<'a>,
    memories: &'a [DeviceMemory],
    /// Bytes that are collected a shard.
    stage: usize,
    watch: &'a Watch,
}

impl Landing<'_> {
    /// Walks through the array and brings every run to its shards; answers the bytes read.
    fn land(
        &self,
        mut sweep: Sweep,
        stages: &mut [Stage],
        feed: &mut Feed<'_>,
    ) -> Result<u64, Error> {
        let window = self.plan.window();
        let mut bytes_read = 0_u64;
        let count = self.plan.pieces.len();
        // Bytes passed of each piece, and its window.
        let mut sources: Vec<(u64, Option<Window>)> = Vec::with_capacity(count);
        sources.resize_with(count, || (0, None));
        while let Some(run) = sweep.next() {
            let source = run.source.map_or(usize::MAX, |source| source as usize);
            let Some((passed, here)) = sources.get_mut(source) else {
                let reason = "a part is missing".to_owned();
                return Err(Error::shards(self.plan.tensor.name(), reason));
            };
            let mut left = run.elements.saturating_mul(self.plan.element);
            if run.targets.is_empty() {
                *passed = passed.saturating_add(left);
                continue;
            }
            while left > 0 {
                let number = *passed / window;
                if here.as_ref().is_none_or(|(here, _)| *here != number) {
                    // The old one goes before the next one comes.
                    drop(here.take());
                    self.watch.check()?;
                    let bytes = feed.next(source, number)?;
                    bytes_read += bytes.len() as u64;
                    self.watch.advance(bytes.len() as u64)?;
                    *here = Some((number, bytes));
                }
                let from = (*passed - number * window) as usize;
                let bytes = here.as_ref().and_then(|(_, bytes)| bytes.get(from..));
                let bytes = bytes.filter(|bytes| !bytes.is_empty()).unwrap_or_default();
                let length = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                let part = bytes.get(..length).unwrap_or_default();
                if part.is_empty() {
                    let reason = "a part is shorter than its domain".to_owned();
                    return Err(Error::shards(self.plan.tensor.name(), reason));
                }
                for target in run.targets {
                    if let Some(stage) = stages.get_mut(*target as usize) {
                        self.collect(stage, part)?;
                    }
                }
                left -= part.len() as u64;
                *passed += part.len() as u64;
            }
            let ended = self.plan.pieces.get(source).is_none_or(|(_, p)| p.data_bytes == *passed);
            if ended {
                *here = None;
            }
        }
        stages.iter_mut().try_for_each(|stage| self.flush(stage))?;
        Ok(bytes_read)
    }

    /// The next bytes of a shard.
    fn collect(&self, stage: &mut Stage, mut part: &[u8]) -> Result<(), Error> {
        if stage.used == 0 && part.len() >= self.stage / 2 {
            return self.copy(&stage.replicas, &mut stage.position, part);
        }
        while !part.is_empty() {
            let buffer = match &mut stage.bytes {
                Some(buffer) => buffer,
                none => {
                    let Some(memory) = stage.replicas.first().and_then(|at| self.memories.get(*at))
                    else {
                        return Ok(());
                    };
                    // A shard may be smaller.
                    let length = memory.size().min(self.stage as u64) as usize;
                    let buffer = memory.device().allocate_host(length);
                    none.insert(buffer.map_err(|error| {
                        Error::device("allocating host memory for", self.plan.tensor.name(), error)
                    })?)
                }
            };
            let room = buffer.get_mut(stage.used..).unwrap_or_default();
            let (now, later) = part.split_at(part.len().min(room.len()));
            let Some(room) = room.get_mut(..now.len()).filter(|room| !room.is_empty()) else {
                self.flush(stage)?;
                continue;
            };
            room.copy_from_slice(now);
            stage.used += now.len();
            part = later;
        }
        let size = stage.replicas.first().and_then(|at| self.memories.get(*at));
        if size.is_some_and(|memory| stage.position + stage.used as u64 == memory.size()) {
            // The shard is complete, and its buffer free for another.
            self.flush(stage)?;
            stage.bytes = None;
        }
        Ok(())
    }

    fn flush(&self, stage: &mut Stage) -> Result<(), Error> {
        let bytes = stage.bytes.as_ref().and_then(|bytes| bytes.get(..stage.used));
        if let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) {
            self.copy(&stage.replicas, &mut stage.position, bytes)?;
        }
        stage.used = 0;
        Ok(())
    }

    /// Puts bytes onto every device that holds the shard.
    fn copy(&self, replicas: &[usize], position: &mut u64, bytes: &[u8]) -> Result<(), Error> {
        for memory in replicas.iter().filter_map(|at| self.memories.get(*at)) {
            memory
                .device()
                .copy_to_device(bytes, memory, *position)
                .map_err(|error| Error::device("writing", self.plan.tensor.name(), error))?;
        }
        *position += bytes.len() as u64;
        Ok(())
    }
}
