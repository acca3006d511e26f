//! Shardings as XLA describes them, over a list of devices.

use std::fmt;

use smallvec::SmallVec;

use super::{DEFAULT_ANSWER_BYTES, on_devices::on_devices};
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, Registered,
        fields::{Fields, Joined},
        serde_forms::deserialize_checked,
        wire_format::{Encoded, WireFormat, described_by_bytes},
    },
    ifrt::{
        DeserializeShardingOptions, DeviceId, DeviceList, IfrtError, Index, IndexDomain,
        MemoryKind, Shape,
        xla::{OpSharding, OpShardingType, TileAssignment},
    },
    proto::xla::ifrt::HloShardingProto,
    version::SerDesVersion,
    wire::BackwardWriter,
};

const FORMATS: Formats = Formats::of("HloSharding");

/// A sharding as XLA describes it, over a list of devices (`xla::ifrt::HloSharding`).
///
/// Real clients use it nearly everywhere, also for a single device. Invariant: the list is never
/// empty, and if the sharding has a number of devices, the list has the same length.
///
/// ```
/// use serdes::ifrt::{DeviceList, HloSharding, MemoryKind, Shape, xla::{OpSharding, TileAssignment}};
///
/// let halves = OpSharding::tiled(TileAssignment::iota([2, 1], [2], [0])?);
/// let sharding = HloSharding::new(DeviceList::from([0, 1]), MemoryKind::unset(), halves)?;
/// assert_eq!(sharding.shard_shape(&Shape::new([4, 4])?)?, Shape::new([2, 4])?);
/// assert_eq!(sharding.op_sharding().to_string(), "{devices=[2,1]<=[2]}");
/// # Ok::<(), serdes::ifrt::IfrtError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct HloSharding {
    devices: DeviceList,
    memory_kind: MemoryKind,
    op_sharding: OpSharding,
}

deserialize_checked!(HloSharding {
    devices: DeviceList,
    memory_kind: MemoryKind,
    op_sharding: OpSharding
});

impl HloSharding {
    /// Creates the sharding `op_sharding` over `devices`.
    ///
    /// # Errors
    /// [`IfrtError::Invalid`], which names both counts and the sharding, if there is no device or
    /// if their number differs from the number of tiles. (Upstream ends the process.)
    pub fn new(
        devices: DeviceList,
        memory_kind: MemoryKind,
        op_sharding: OpSharding,
    ) -> Result<Self, IfrtError> {
        let listed = devices.len();
        if devices.is_empty() {
            return Err(IfrtError::Invalid(format!(
                "the sharding {op_sharding} is over 0 devices; expected at least 1"
            )));
        }
        match op_sharding.device_count() {
            Some(tiles) if usize::try_from(tiles) != Ok(listed) => {
                Err(IfrtError::Invalid(format!(
                    "the sharding {op_sharding} has {tiles} tiles, but {listed} devices are listed; expected a device for each tile"
                )))
            }
            _ => Ok(Self { devices, memory_kind, op_sharding }),
        }
    }

    /// Creates the sharding in which every device holds the whole array.
    ///
    /// # Errors
    /// [`IfrtError::Invalid`] if there is no device.
    pub fn replicated(devices: DeviceList, memory_kind: MemoryKind) -> Result<Self, IfrtError> {
        Self::new(devices, memory_kind, OpSharding::replicated())
    }

    /// Returns the sharding of XLA.
    pub const fn op_sharding(&self) -> &OpSharding {
        &self.op_sharding
    }

    /// Returns true if every device holds the whole array.
    pub fn is_fully_replicated(&self) -> bool {
        let one_tile = || {
            let rank = self.op_sharding.tiled_rank().unwrap_or_default();
            let tiles = self.op_sharding.tile_assignment()?;
            let whole = tiles.dimensions().iter().take(rank).all(|tiles| *tiles == 1);
            Some(whole && only_replicated_subgroups(&self.op_sharding))
        };
        self.op_sharding.is_replicated()
            || one_tile().unwrap_or(false)
            || (self.devices.len() == 1 && self.op_sharding.kind() == OpShardingType::Maximal)
    }

    /// Returns the devices in the order of their tiles; the list itself if the array is not cut.
    ///
    /// # Errors
    /// [`IfrtError::Invalid`] if the tile assignment names a position outside the list.
    pub fn device_order(&self) -> Result<Vec<DeviceId>, IfrtError> {
        let Some(tiles) = self.op_sharding.tile_assignment() else {
            return Ok(self.devices.ids().to_vec());
        };
        tiles
            .devices(self.devices.len())?
            .into_iter()
            .map(|position| {
                let device = usize::try_from(position).ok();
                device.and_then(|at| self.devices.ids().get(at)).copied().ok_or_else(|| {
                    IfrtError::Invalid(format!(
                        "the sharding {} names the device position {position}; expected 0 to {}",
                        self.op_sharding,
                        self.devices.len().saturating_sub(1),
                    ))
                })
            })
            .collect()
    }

    /// Returns the shape of a shard: each dimension divided by its tiles, rounded up.
    ///
    /// # Errors
    /// [`IfrtError::RankMismatch`] if the ranks of array and sharding differ.
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape, IfrtError> {
        match self.op_sharding.shards(shape.rank())? {
            None => Ok(shape.clone()),
            Some(tiles) => Shape::new(tile_shape(shape, &tiles)),
        }
    }

    /// Returns the part of the array that each device holds. Parts at the far edges are smaller,
    /// possibly empty, where tiles do not divide a dimension.
    ///
    /// # Errors
    /// [`IfrtError`] if the ranks of array and sharding differ, or if the sharding does not
    /// determine the parts: it is manual or unreduced, a tuple, over a named mesh, or has subgroups
    /// other than replicated ones. [`IfrtError::LimitExceeded`] if the result would take more than
    /// [`DEFAULT_ANSWER_BYTES`].
    pub fn index_domains(&self, shape: &Shape) -> Result<Vec<IndexDomain>, IfrtError> {
        self.index_domains_within(shape, DEFAULT_ANSWER_BYTES)
    }

    pub(super) fn index_domains_within(
        &self,
        shape: &Shape,
        limit: u64,
    ) -> Result<Vec<IndexDomain>, IfrtError> {
        let sharding = &self.op_sharding;
        let unknown =
            |remedy| IfrtError::NotKnown { sharding: "HloSharding", what: "index domains", remedy };
        let devices = self.devices.len();
        let whole = || {
            super::require_domains(devices as u64, shape.rank(), limit)?;
            Ok(vec![IndexDomain::whole(shape.clone()); devices])
        };
        if sharding.is_replicated() {
            return whole();
        }
        if sharding.named_sharding().is_some() {
            return Err(unknown("use tiles in place of a named mesh"));
        }
        let tiles = match (sharding.kind(), sharding.tile_assignment()) {
            (OpShardingType::Maximal, _) => return whole(),
            (OpShardingType::Tiled, Some(tiles)) => tiles,
            _ => return Err(unknown("only replicated, maximal and tiled shardings have some")),
        };
        if !only_replicated_subgroups(sharding) {
            return Err(unknown("only replicated subgroups have some"));
        }
        let shards = sharding.shards(shape.rank())?.unwrap_or_default();
        // Each domain costs a step per tile dimension, and there may be more of those than array
        // dimensions.
        let rank = tiles.dimensions().len().max(shape.rank());
        super::require_domains(devices as u64, rank, limit)?;
        let tile = tile_shape(shape, &shards);
        let places = (0_i64..).zip(self.tile_of_each_device(tiles)?);
        places
            .map(|(position, tile_number)| {
                let tile_number = tile_number.ok_or_else(|| {
                    IfrtError::Invalid(format!(
                        "the sharding {sharding} names no tile for the device position {position}"
                    ))
                })?;
                part_of(shape, &tile, tiles.dimensions(), tile_number)
            })
            .collect()
    }

    /// Returns the number of each device's tile, with tiles in row-major order.
    fn tile_of_each_device(&self, tiles: &TileAssignment) -> Result<Vec<Option<i64>>, IfrtError> {
        let order = tiles.devices(self.devices.len())?;
        let mut tile_of = vec![None; order.len()];
        for (tile, position) in (0_i64..).zip(&order) {
            let place = usize::try_from(*position).ok().and_then(|at| tile_of.get_mut(at));
            *place.ok_or_else(|| {
                IfrtError::Invalid(format!(
                    "the sharding {} names the device position {position}; expected 0 to {}",
                    self.op_sharding,
                    self.devices.len().saturating_sub(1),
                ))
            })? = Some(tile);
        }
        Ok(tile_of)
    }

    pub(super) fn shard_shapes_of(
        &self,
        shape: &Shape,
        limit: u64,
    ) -> Result<Vec<Shape>, IfrtError> {
        let domains = self.index_domains_within(shape, limit)?;
        Ok(domains.into_iter().map(IndexDomain::into_shape).collect())
    }

    on_devices!();
}

/// Returns the part of an array of `shape` that is tile number `tile` of `dimensions`, whose
/// leading ones cut the array.
fn part_of(
    shape: &Shape,
    tile: &[i64],
    dimensions: &[i64],
    mut number: i64,
) -> Result<IndexDomain, IfrtError> {
    let mut index: SmallVec<[i64; 8]> = SmallVec::from_elem(0, dimensions.len());
    for (place, size) in index.iter_mut().zip(dimensions).rev() {
        // The sizes of an assignment are at least 1.
        *place = number % size;
        number /= size;
    }
    let origin: SmallVec<[i64; 8]> = index
        .iter()
        .zip(tile)
        .zip(shape.dims())
        .map(|((at, tile), whole)| at.saturating_mul(*tile).min(*whole))
        .collect();
    let size = tile.iter().zip(shape.dims()).zip(&origin);
    let size: SmallVec<[i64; 8]> =
        size.map(|((tile, whole), at)| (*tile).min(whole - at)).collect();
    IndexDomain::new(Index::new(origin), Shape::new(size)?)
}

fn only_replicated_subgroups(sharding: &OpSharding) -> bool {
    let mut kinds = sharding.subgroup_types();
    kinds.all(|kind| kind == OpShardingType::Replicated)
}

/// Returns each dimension divided by its tiles, rounded up.
pub(in crate::ifrt) fn tile_shape(shape: &Shape, tiles: &[i64]) -> Vec<i64> {
    let sizes = shape.dims().iter().zip(tiles);
    sizes.map(|(size, tiles)| size / tiles + i64::from(size % tiles != 0)).collect()
}

/// Formats as `HloSharding(devices: [0,1], memory_kind: device, {devices=[2,1]<=[2]})`.
impl fmt::Display for HloSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { devices, memory_kind, op_sharding } = self;
        write!(f, "HloSharding(devices: {devices}, memory_kind: {memory_kind}, {op_sharding})")
    }
}

impl Registered for HloSharding {
    const TYPE_NAME: &'static str = "xla::ifrt::HloSharding";
}

described_by_bytes! {
    /// Writes format 0 at every version.
    ToProto,
    /// Accepts format 0. Returns an error where upstream ends the process; in strict mode a tile
    /// assignment must also name every device once.
    FromProto for HloSharding as HloShardingProto
}

impl WireFormat for HloSharding {
    const NAME: &'static str = "HloSharding";

    fn capacity(&self) -> usize {
        self.devices.capacity()
    }

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        self.devices.can_write(version)?;
        FORMATS.for_request(version).map(drop)
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        out.number(4, FORMATS.for_request(version)?);
        self.memory_kind.write(3, out);
        out.nested(2, |out| self.op_sharding.write(out));
        out.message(1, |out| self.devices.write(version, out))
    }

    fn read(message: Encoded<'_>, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let (mut devices, mut op_sharding) = <(Joined, Joined)>::default();
        let (mut memory_kind, mut recorded) = (None, 0);
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => devices.add(value.bytes()?),
                2 => op_sharding.add(value.bytes()?),
                3 => memory_kind = Some(value.text()?),
                4 => recorded = value.number()?,
                _ => {}
            }
        }
        FORMATS.check_recorded(recorded)?;
        let devices = DeviceList::read(message.part(devices.bytes()), options)?;
        let memory_kind = MemoryKind::from_message(memory_kind);
        let op_sharding = OpSharding::read(Self::NAME, op_sharding.bytes())?;
        let sharding = Self::new(devices, memory_kind, op_sharding)
            .map_err(|error| error.decoding(Self::NAME))?;
        if options.is_strict() {
            sharding.check_order().map_err(|error| error.decoding(Self::NAME))?;
        }
        Ok(sharding)
    }

    fn check_options(options: &DeserializeOptions) -> Result<(), DecodeError> {
        options.require::<DeserializeShardingOptions>(Self::NAME).map(drop)
    }
}

impl HloSharding {
    /// Fails unless the tile assignment names every device of the list once.
    fn check_order(&self) -> Result<(), IfrtError> {
        let Some(listed) =
            self.op_sharding.tile_assignment().and_then(|tiles| tiles.listed_devices())
        else {
            return Ok(());
        };
        let mut seen = vec![false; self.devices.len()];
        for position in listed {
            match usize::try_from(*position).ok().and_then(|at| seen.get_mut(at)) {
                Some(seen) if !*seen => *seen = true,
                _ => {
                    return Err(IfrtError::Invalid(format!(
                        "the sharding {} names the device position {position} twice or outside of the list; expected each of 0 to {} once",
                        self.op_sharding,
                        self.devices.len().saturating_sub(1),
                    )));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
