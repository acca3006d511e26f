//! What nearly every sharding consists of, and the fields of its message.

use smallvec::SmallVec;

use super::{OpShardingType, invalid};
use crate::{
    ifrt::{IfrtError, xla::TileAssignment},
    proto::xla,
};

/// What nearly every sharding consists of. Messages are large: reading and writing without one is what makes a sharding cheap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Parts {
    pub(super) kind: OpShardingType,
    /// Present if and only if the kind is tiled and the mesh is not named.
    pub(super) tiles: Option<TileAssignment>,
    pub(super) replicates_last: bool,
    pub(super) subgroups: SmallVec<[i32; 4]>,
}

impl Parts {
    pub(super) fn to_message(&self) -> xla::OpSharding {
        let mut proto = xla::OpSharding {
            r#type: self.kind.number(),
            replicate_on_last_tile_dim: self.replicates_last,
            last_tile_dims: self.subgroups.to_vec(),
            ..Default::default()
        };
        if let Some(tiles) = &self.tiles {
            proto.tile_assignment_dimensions = tiles.dimensions().to_vec();
            if let Some((reshape, transpose)) = tiles.iota_parts() {
                proto.iota_reshape_dims = reshape.to_vec();
                proto.iota_transpose_perm = transpose.to_vec();
            }
            proto.tile_assignment_devices = tiles.listed_devices().unwrap_or_default().to_vec();
        }
        proto
    }

    /// Whether tiles, subgroups and replication go together.
    pub(super) fn check(&self) -> Result<(), IfrtError> {
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

/// The fields of a message that [`OpSharding::of_fields`](super::OpSharding::of_fields) can do without the message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PlainFields {
    pub(crate) kind: i32,
    pub(crate) dimensions: SmallVec<[i64; 4]>,
    pub(crate) devices: Vec<i64>,
    pub(crate) replicates_last: bool,
    pub(crate) subgroups: SmallVec<[i32; 4]>,
    pub(crate) iota_reshape_dims: SmallVec<[i64; 4]>,
    pub(crate) iota_transpose_perm: SmallVec<[i32; 4]>,
}

/// The fields of a message that has no others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain<'a> {
    pub(crate) kind: i32,
    pub(crate) tiles: Option<&'a TileAssignment>,
    pub(crate) replicates_last: bool,
    pub(crate) subgroups: &'a [i32],
}

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
