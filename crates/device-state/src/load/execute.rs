//! Executes a plan: copies the bytes that are read to their target memories.

use std::rc::Rc;

use serdes_files::ProgressMonitor;
use smallvec::{SmallVec, smallvec};

use super::{
    feed::{Arrived, Feed, Held},
    plan::{Plan, Run},
};
use crate::{
    Error,
    pump::{Filling, Incoming, Memory, Returns, ToDevice},
};

/// A target of a plan: the bytes in transfer to the devices that hold it.
pub(super) struct Target {
    /// Positions of the memories; usually one.
    replicas: SmallVec<[usize; 1]>,
    /// Bytes collected for one copy.
    stage: Option<Filling>,
    /// Number of bytes that are on the devices or in transfer.
    position: u64,
}

impl Target {
    /// Creates a target with the memories at these positions.
    pub(super) fn new(replicas: Vec<usize>) -> Self {
        Self { replicas: replicas.into(), stage: None, position: 0 }
    }

    /// Creates a target with the memory at this position.
    pub(super) fn of_one(memory: usize) -> Self {
        Self { replicas: smallvec![memory], stage: None, position: 0 }
    }
}

/// Iterator that allocates memories, one after the other.
type Make<'a, M> = Box<dyn Iterator<Item = Result<<M as Memory>::Incoming, Error>> + 'a>;

/// Progress of a load within a piece.
#[derive(Default)]
struct Progress {
    passed: u64,
    /// The current extent.
    held: Option<Held>,
}

/// Transfer of bytes from a state to devices.
pub(super) struct Load<'a, M: Memory> {
    plan: &'a Plan<'a>,
    targets: Vec<Target>,
    memories: Vec<M::Incoming>,
    /// Allocates the memories that do not exist yet.
    make: Option<Make<'a, M>>,
    to: ToDevice<M>,
    monitor: &'a ProgressMonitor,
    /// Maximum number of bytes that are collected for a target before they are copied.
    stage_bytes: usize,
    /// Current extent with the data of several pieces.
    shared: Option<Held>,
    bytes_read: u64,
}

impl<'a, M: Memory> Load<'a, M> {
    /// Creates a load of `plan`, with the target `targets[n]` for position `n`.
    pub(super) fn new(
        plan: &'a Plan<'a>,
        targets: Vec<Target>,
        memories: Vec<M::Incoming>,
        stage_bytes: usize,
        returns: Returns,
        monitor: &'a ProgressMonitor,
    ) -> Self {
        let (shared, bytes_read) = (None, 0);
        let to = ToDevice::new(returns);
        Self { plan, targets, memories, make: None, to, monitor, stage_bytes, shared, bytes_read }
    }

    /// Makes the load allocate each memory, in the order of `make`, when its first data arrive. The
    /// target of position `n` must be one memory of the same position.
    ///
    /// Memories allocated in advance would have left the processor's caches by the time they are
    /// filled: ten thousand small tensors took a sixth longer.
    pub(super) fn making(
        mut self,
        make: impl Iterator<Item = Result<M::Incoming, Error>> + 'a,
    ) -> Self {
        self.make = Some(Box::new(make));
        self
    }

    /// Allocates the missing memories of the first `count` positions.
    fn make_memories(&mut self, count: usize) -> Result<(), Error> {
        let Some(make) = &mut self.make else { return Ok(()) };
        while self.memories.len() < count
            && let Some(memory) = make.next()
        {
            self.memories.push(memory?);
        }
        Ok(())
    }

    /// Executes the plan and copies every run to its targets; returns the memories and the number
    /// of data bytes that were read.
    pub(super) fn run(mut self, feed: &mut Feed<'_>) -> Result<(Vec<M>, u64), Error> {
        let mut progress: Vec<Progress> = Vec::new();
        progress.resize_with(self.plan.sources.len(), Progress::default);
        let mut runs = self.plan.runs()?;
        while let Some(run) = runs.next() {
            let source = run.source.unwrap_or(usize::MAX);
            let (Some(progress), Some(piece)) =
                (progress.get_mut(source), self.plan.sources.get(source))
            else {
                let name = self.plan.name();
                return Err(Error::shards(name, "a part is missing".to_owned()));
            };
            if run.targets.is_empty() {
                progress.passed = progress.passed.saturating_add(run.bytes);
                continue;
            }
            if let Some(last) = run.targets.iter().max() {
                self.make_memories(*last as usize + 1)?;
            }
            self.deliver(source, &run, progress, feed)?;
            if piece.piece.data_bytes == progress.passed {
                progress.held = None;
            }
        }
        self.make_memories(self.targets.len())?;
        let name = self.plan.name();
        for target in &mut self.targets {
            target.flush::<M>(name, &mut self.memories)?;
        }
        self.to.finish()?;
        let memories = self.memories.into_iter().map(M::Incoming::finish);
        let memories = memories.collect::<Result<Vec<_>, _>>();
        let memories = memories.map_err(|error| M::failed("writing", name, error))?;
        Ok((memories, self.bytes_read))
    }

    /// Copies one run to its targets.
    fn deliver(
        &mut self,
        source: usize,
        run: &Run<'_>,
        progress: &mut Progress,
        feed: &mut Feed<'_>,
    ) -> Result<(), Error> {
        let Some(from) = self.plan.sources.get(source).copied() else { return Ok(()) };
        let mut left = run.bytes;
        if left == 0 && self.plan.reads_empty_pieces() {
            self.extent(source, feed)?;
        }
        while left > 0 {
            let offset = from.piece.data_offset.saturating_add(progress.passed);
            if progress.held.as_ref().is_none_or(|held| !held.extent.has(source, offset)) {
                // Release the old extent before reading the next.
                progress.held = None;
                progress.held = match self.extent(source, feed)? {
                    New::Among(held) => Some(held),
                    New::Alone(arrived) => {
                        let bytes = arrived.extent.bytes as u64;
                        let all = arrived.extent.offset == offset && bytes <= left;
                        let rest = match run.targets {
                            [target] if all => self.push(from.name, *target, arrived)?,
                            _ => Some(arrived),
                        };
                        if rest.is_none() {
                            progress.passed += bytes;
                            left -= bytes;
                            continue;
                        }
                        rest.map(Rc::new)
                    }
                };
            }
            let here = progress.held.as_ref().and_then(|held| held.from(offset));
            let length = left.min(from.piece.data_bytes.saturating_sub(progress.passed));
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let part = here.map(|here| here.get(..length).unwrap_or(here)).unwrap_or_default();
            if part.is_empty() {
                let reason = "a part is shorter than its domain".to_owned();
                return Err(Error::shards(from.name, reason));
            }
            for target in run.targets {
                self.collect(from.name, *target as usize, part)?;
            }
            left -= part.len() as u64;
            progress.passed += part.len() as u64;
        }
        Ok(())
    }

    /// Returns the extent with a byte of a piece: the current one with several pieces, or the next.
    #[expect(clippy::indexing_slicing, reason = "a plan makes its extents of its own sources")]
    fn extent(&mut self, source: usize, feed: &mut Feed<'_>) -> Result<New, Error> {
        if let Some(shared) = &self.shared
            && shared.extent.sources.contains(&source)
        {
            return Ok(New::Among(Rc::clone(shared)));
        }
        self.shared = None;
        self.monitor.check()?;
        let arrived = feed.next()?;
        let pieces = arrived.extent.sources.clone();
        if pieces.len() <= 1 {
            self.read(arrived.extent.bytes as u64)?;
            return Ok(New::Alone(arrived));
        }
        let pieces = &self.plan.sources[pieces];
        self.read(pieces.iter().map(|source| source.piece.data_bytes).sum())?;
        let held = Rc::new(arrived);
        self.shared = Some(Rc::clone(&held));
        Ok(New::Among(held))
    }

    /// Records and reports data that were read.
    fn read(&mut self, bytes: u64) -> Result<(), Error> {
        self.bytes_read += bytes;
        Ok(self.monitor.advance(bytes)?)
    }

    /// Passes a buffer to the only memory of a target; returns it if the target has several
    /// memories, or pending bytes.
    fn push(
        &mut self,
        name: &str,
        target: u32,
        arrived: Arrived,
    ) -> Result<Option<Arrived>, Error> {
        let Some(Target { replicas, stage: None, position }) =
            self.targets.get_mut(target as usize)
        else {
            return Ok(Some(arrived));
        };
        let [memory] = replicas[..] else { return Ok(Some(arrived)) };
        let Some(memory) = self.memories.get_mut(memory) else { return Ok(Some(arrived)) };
        let Some(filled) = arrived.take() else { return Ok(None) };
        let bytes = filled.len() as u64;
        self.to.push(name, memory, *position, filled)?;
        *position += bytes;
        Ok(None)
    }

    /// Returns the next bytes of a target.
    #[expect(
        clippy::indexing_slicing,
        reason = "a stage gives no more room than it is asked for, and counts no more"
    )]
    fn collect(&mut self, name: &str, target: usize, mut part: &[u8]) -> Result<(), Error> {
        let Self { targets, memories, stage_bytes, .. } = self;
        let Some(target) = targets.get_mut(target) else { return Ok(()) };
        let Some(memory) = target.replicas.first().and_then(|at| memories.get(*at)) else {
            return Ok(());
        };
        let (device, bytes) = (memory.device().clone(), memory.bytes());
        let large = part.len() >= *stage_bytes / 2 || part.len() as u64 == bytes;
        if target.stage.is_none() && large {
            return target.copy::<M>(name, memories, part);
        }
        while !part.is_empty() {
            let stage = match &mut target.stage {
                Some(stage) => stage,
                none => {
                    // A shard may be smaller.
                    let length = bytes.min(*stage_bytes as u64) as usize;
                    let buffer = M::allocate_host(&device, length)
                        .map_err(|error| M::failed("allocating host memory for", name, error))?;
                    none.insert(Filling::new(buffer.into(), length))
                }
            };
            let count = stage.fill(part.len() as u64, |room| {
                room.copy_from_slice(&part[..room.len()]);
                Ok::<_, Error>(())
            })?;
            part = &part[count..];
            let complete = target.position + stage.bytes().len() as u64 == bytes;
            if stage.is_full() || complete {
                target.flush::<M>(name, memories)?;
            }
            if complete {
                // Its buffer is free for reuse.
                target.stage = None;
            }
        }
        Ok(())
    }
}

/// An extent that contains the next bytes.
enum New {
    /// It has data of one piece.
    Alone(Arrived),
    /// It also has data of other pieces.
    Among(Held),
}

impl Target {
    /// Copies the collected bytes.
    fn flush<M: Memory>(&mut self, name: &str, memories: &mut [M::Incoming]) -> Result<(), Error> {
        let Some(stage) = self.stage.take() else { return Ok(()) };
        let filled = stage.finish();
        self.copy::<M>(name, memories, &filled)?;
        self.stage = Some(Filling::new(filled.into_buffer(), usize::MAX));
        Ok(())
    }

    /// Copies the next bytes to every device that holds the target.
    fn copy<M: Memory>(
        &mut self,
        name: &str,
        memories: &mut [M::Incoming],
        bytes: &[u8],
    ) -> Result<(), Error> {
        for at in &self.replicas {
            let Some(memory) = memories.get_mut(*at) else { continue };
            let written = memory.write(self.position, bytes);
            written.map_err(|error| M::failed("writing", name, error))?;
        }
        self.position += bytes.len() as u64;
        Ok(())
    }
}
