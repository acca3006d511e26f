//! The parts that describe nearly every sharding.

use prost::Message as _;
use smallvec::SmallVec;

use super::OpShardingType;
use crate::{
    ifrt::{IfrtError, error::invalid, xla::TileAssignment},
    proto::xla,
    wire::BackwardWriter,
};

/// The parts that describe nearly every sharding. Messages are large, so reading and writing
/// without one is much cheaper.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Parts {
    pub(super) kind: OpShardingType,
    /// Present if and only if the kind is tiled and the mesh is not named.
    pub(super) tiles: Option<TileAssignment>,
    pub(super) replicates_last: bool,
    pub(super) subgroups: SmallVec<[i32; 4]>,
}

impl Parts {
    /// Creates the parts of a tiled sharding, whose last tile dimensions may be replicated or
    /// subgroups.
    pub(super) fn tiled(
        tiles: TileAssignment,
        replicates_last: bool,
        subgroups: impl Into<SmallVec<[i32; 4]>>,
    ) -> Result<Self, IfrtError> {
        let (kind, subgroups) = (OpShardingType::Tiled, subgroups.into());
        let parts = Self { kind, tiles: Some(tiles), replicates_last, subgroups };
        parts.check()?;
        Ok(parts)
    }

    /// Builds the message of the parts.
    pub(super) fn to_message(&self) -> xla::OpSharding {
        let mut out = BackwardWriter::with_capacity(0);
        self.write(&mut out);
        let mut message = xla::OpSharding::default();
        let parsed = message.merge(&mut out.finish());
        debug_assert_eq!(parsed, Ok(()), "{self:?}");
        message
    }

    /// Checks that tiles, subgroups and replication are consistent.
    fn check(&self) -> Result<(), IfrtError> {
        let rank = self.tiles.as_ref().map_or(0, |tiles| tiles.dimensions().len());
        let subgroups = self.subgroups.len();
        if subgroups > rank || (subgroups > 0 && self.replicates_last) {
            return invalid(format!(
                "{subgroups} subgroups for {rank} tile dimensions{}; expected at most one subgroup for each dimension, and either subgroups or a replicated last dimension",
                if self.replicates_last { ", the last of them replicated" } else { "" },
            ));
        }
        let unknown = |number: &&i32| OpShardingType::from_number(**number).is_none();
        match self.subgroups.iter().find(unknown) {
            Some(number) => invalid(format!("the type of a subgroup is {number}; expected 0 to 6")),
            None => Ok(()),
        }
    }
}

/// Returns the tiles of a message: a list of devices, or an iota.
pub(super) fn tiles_of(
    dimensions: &[i64],
    devices: Vec<i64>,
    (reshape, transpose): (&[i64], &[i32]),
) -> Result<TileAssignment, IfrtError> {
    if reshape.is_empty() {
        TileAssignment::listed(dimensions, devices)
    } else if devices.is_empty() {
        TileAssignment::iota(dimensions, reshape, transpose)
    } else {
        invalid("the tile assignment is both a list and an iota; expected one of them")
    }
}
