//! Restores arrays to any sharding.
//!
//! Iterates over the array once; each chunk of the file is read once, compared with its checksum,
//! and split among the shards that need it.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use serdes::ifrt::{DeviceId, IndexDomain, Sharding};
use serdes_files::ProgressMonitor;
use serdes_stream_executor::{Device, DeviceMemory};

use super::{
    Tensor,
    assemble::{element_bytes, pieces_of},
    execute::{Load, Target},
    feed::with_feed,
    plan::{Plan, Source, WINDOW_BYTES},
};
use crate::{
    Error, HostedDevice,
    pump::{Contents, Memory},
    shards::{Block, blocks_of},
};

/// Bytes collected for a shard before they are copied to its device.
const STAGE_BYTES: u64 = 1 << 20;
/// Bytes collected for all shards together, unless there are very many.
const ALL_STAGES_BYTES: u64 = 32 << 20;

/// Target of a restored shard: a device of a StreamExecutor plug-in or of a PJRT client.
#[derive(Debug)]
pub struct ShardTarget<'a, D = Device> {
    device: DeviceId,
    on: &'a D,
    domain: Option<IndexDomain>,
}

/// The device is only referenced, so it need not be `Clone`.
impl<D> Clone for ShardTarget<'_, D> {
    fn clone(&self) -> Self {
        Self { device: self.device, on: self.on, domain: self.domain.clone() }
    }
}

impl<'a, D> ShardTarget<'a, D> {
    /// Creates the target for the shard of the sharding's device `device`, in memory of `on`.
    pub const fn new(device: DeviceId, on: &'a D) -> Self {
        Self { device, on, domain: None }
    }

    /// Sets the shard's part of the array, for shardings that do not define it.
    #[must_use]
    pub fn at(mut self, domain: IndexDomain) -> Self {
        self.domain = Some(domain);
        self
    }
}

/// Result of a restore onto several devices.
#[derive(Debug)]
#[non_exhaustive]
pub struct RestoredShards<M = DeviceMemory> {
    /// The shard of each target, in the order of the targets.
    pub memories: Vec<M>,
    /// Bytes of all shards together, replicas included.
    pub bytes: u64,
    /// Data bytes read from the file, each once: all bytes of the array if the targets hold all of
    /// it, less if they do not.
    pub bytes_read: u64,
    /// Time from the first read until the last byte was on its device.
    pub time: Duration,
}

impl Tensor {
    /// Restores the shards of the tensor, partitioned by `sharding`, to devices.
    ///
    /// The sharding may differ from the saved one, and have another number of devices. Targets are
    /// the devices of this process; shards of other devices are left out, and data that only they
    /// hold are not read. Each chunk is read at most once, completely, and compared with its
    /// checksum before any of it reaches a device, even if only a part of it is needed. Memory
    /// holds a chunk of each piece that a row of the array crosses, at least 64 KiB, and at most 1
    /// MiB of each shard.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a target is not a device of the sharding; [`Error::Unsupported`] if
    /// the tensor holds strings, which stay on the host, or the sharding does not define the parts
    /// of its devices; [`Error::Corrupt`] if the bytes are damaged; or an error of the devices.
    pub fn restore_sharded<D: HostedDevice>(
        &self,
        sharding: &Sharding,
        targets: &[ShardTarget<'_, D>],
        monitor: &ProgressMonitor,
    ) -> Result<RestoredShards<D::Memory>, Error> {
        self.check_complete()?;
        let wanted = self.wanted(sharding, targets)?;
        self.load_blocks::<D>(&wanted, monitor)
    }

    /// Returns the part of the array that each target gets.
    fn wanted<'a, D>(
        &self,
        sharding: &Sharding,
        targets: &[ShardTarget<'a, D>],
    ) -> Result<Vec<(Block, &'a D)>, Error> {
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

    /// Restores parts of the array to devices.
    pub(super) fn load_blocks<D: HostedDevice>(
        &self,
        wanted: &[(Block, &D)],
        monitor: &ProgressMonitor,
    ) -> Result<RestoredShards<D::Memory>, Error> {
        let begin = Instant::now();
        let (memories, bytes_read) = self.load::<D::Memory>(wanted, monitor)?;
        let bytes = memories.iter().map(Memory::bytes).sum();
        Ok(RestoredShards { memories, bytes, bytes_read, time: begin.elapsed() })
    }

    /// Reads parts of the array into memories; returns these and the number of bytes that were
    /// read.
    fn load<M: Memory>(
        &self,
        wanted: &[(Block, &M::Device)],
        monitor: &ProgressMonitor,
    ) -> Result<(Vec<M>, u64), Error> {
        let failed = |error| M::failed("writing", self.name(), error);
        let element = element_bytes(self)?;
        let (pieces, blocks) = pieces_of(self)?;
        let mut memories = Vec::with_capacity(wanted.len());
        let mut shards: Vec<Block> = Vec::new();
        let mut numbers: HashMap<&Block, usize> = HashMap::new();
        let mut replicas: Vec<Vec<usize>> = Vec::new();
        for (position, (block, device)) in wanted.iter().enumerate() {
            let extents = block.dims.iter().map(|&(_, extent)| extent.cast_signed());
            let contents = Contents::new(self.spec().dtype(), extents);
            let contents = contents.ok_or(Error::TooLarge { what: "shard", found: u64::MAX })?;
            memories.push(M::allocate(device, &contents).map_err(failed)?);
            let number = *numbers.entry(block).or_insert(shards.len());
            match replicas.get_mut(number) {
                Some(places) => places.push(position),
                None => {
                    shards.push(block.clone());
                    replicas.push(vec![position]);
                }
            }
        }
        let Some((_, device)) = wanted.first() else { return Ok((Vec::new(), 0)) };
        let stage = (ALL_STAGES_BYTES / shards.len() as u64).clamp(WINDOW_BYTES, STAGE_BYTES);
        let name = self.name();
        let sources =
            pieces.into_iter().map(|(number, piece)| Source { number, piece, name }).collect();
        let state = &self.state;
        let whole = Block::whole(self.spec().shape());
        let plan = Plan::cut(state, name, element, (sources, blocks), whole, shards);
        let targets = replicas.into_iter().map(Target::new).collect();
        let make = |bytes| {
            let buffer = M::allocate_host(device, bytes).map(Into::into);
            buffer.map_err(|error| M::failed("allocating host memory for", name, error))
        };
        with_feed(state, &plan, make, |feed, returns| {
            Load::new(&plan, targets, memories, stage as usize, returns, monitor).run(feed)
        })
    }
}
