//! The sharding of a value over numbered devices in XLA: the message and its checked parts.

mod extent;
mod kind;
mod named;
mod parts;
mod text;
mod wire;

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::{Arc, OnceLock},
};

pub use kind::OpShardingType;
use parts::{Parts, tiles_of};

use super::TileAssignment;
use crate::{
    codec::{DecodeError, serde_forms::serde_as_message},
    ifrt::{IfrtError, error::invalid},
    proto::xla,
};

/// A sharding of XLA without devices of its own (`xla.OpSharding`): numbers in it are positions in
/// a device list.
///
/// The message is kept and written as it was read; its content was checked. Formatted in the
/// notation of HLO: `{devices=[2,1]<=[2]}`, `{replicated}`,
/// `{devices=[2,1,2]<=[4] last_tile_dim_replicate}`.
///
/// Cheap to clone.
#[derive(Clone)]
pub struct OpSharding(Arc<Checked>);

struct Checked {
    parts: Parts,
    /// Built on first use, if the parts describe the whole sharding.
    message: OnceLock<Box<xla::OpSharding>>,
    /// True if the message equals the one that is built from the parts.
    is_plain: bool,
}

/// Formats the message, even if it has not been built yet.
impl fmt::Debug for OpSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpSharding").field(self.proto()).finish()
    }
}

/// Two shardings are equal if their messages are.
impl PartialEq for OpSharding {
    fn eq(&self, other: &Self) -> bool {
        if Arc::ptr_eq(&self.0, &other.0) {
            return true;
        }
        match (self.0.is_plain, other.0.is_plain) {
            (true, true) => self.0.parts == other.0.parts,
            (false, false) => self.proto() == other.proto(),
            _ => false,
        }
    }
}

impl Eq for OpSharding {}

impl Hash for OpSharding {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.parts.hash(state);
    }
}

/// Tuples in XLA are flat: an element of a tuple sharding is not a tuple.
const TUPLE_IN_TUPLE: &str = "a tuple sharding inside of a tuple sharding; expected a flat tuple";

impl OpSharding {
    /// Creates the sharding in which every device holds the whole value.
    pub fn replicated() -> Self {
        Self::of_parts(Parts { kind: OpShardingType::Replicated, ..Parts::default() })
    }

    /// Creates the sharding in which the device at this position holds the whole value.
    pub fn maximal(device: i64) -> Self {
        Self::of_kind(
            OpShardingType::Maximal,
            xla::OpSharding {
                tile_assignment_dimensions: vec![1],
                tile_assignment_devices: vec![device],
                ..Default::default()
            },
        )
    }

    /// Creates the sharding in which the program itself defines the part on each device.
    pub fn manual() -> Self {
        Self::of_parts(Parts { kind: OpShardingType::Manual, ..Parts::default() })
    }

    /// Creates the sharding in which every device holds a summand of the value.
    pub fn unreduced() -> Self {
        Self::of_parts(Parts { kind: OpShardingType::Unreduced, ..Parts::default() })
    }

    /// Creates the sharding about which nothing is known.
    pub fn unknown() -> Self {
        Self::of_parts(Parts { kind: OpShardingType::Unknown, ..Parts::default() })
    }

    fn of_kind(kind: OpShardingType, mut proto: xla::OpSharding) -> Self {
        proto.r#type = kind.number();
        Self::with_message(Parts { kind, ..Parts::default() }, proto)
    }

    fn with_message(parts: Parts, proto: xla::OpSharding) -> Self {
        let is_plain = parts.to_message() == proto;
        Self(Arc::new(Checked { parts, message: OnceLock::from(Box::new(proto)), is_plain }))
    }

    /// Creates a sharding that the parts describe completely.
    fn of_parts(parts: Parts) -> Self {
        Self(Arc::new(Checked { parts, message: OnceLock::new(), is_plain: true }))
    }

    /// Creates the sharding in which the value is cut into tiles.
    pub fn tiled(tiles: TileAssignment) -> Self {
        let kind = OpShardingType::Tiled;
        Self::of_parts(Parts { kind, tiles: Some(tiles), ..Parts::default() })
    }

    /// Creates the sharding in which the value is cut into tiles and the devices along the last
    /// tile dimension hold the same tile.
    pub fn partially_replicated(tiles: TileAssignment) -> Self {
        let kind = OpShardingType::Tiled;
        let tiles = Some(tiles);
        Self::of_parts(Parts { kind, tiles, replicates_last: true, ..Parts::default() })
    }

    /// Creates the sharding in which the value is cut into tiles and the last tile dimensions are
    /// subgroups of these kinds.
    ///
    /// # Errors
    /// If there are more subgroups than tile dimensions.
    pub fn with_subgroups(
        tiles: TileAssignment,
        kinds: &[OpShardingType],
    ) -> Result<Self, IfrtError> {
        let subgroups: Vec<_> = kinds.iter().map(|kind| kind.number()).collect();
        Parts::tiled(tiles, false, subgroups).map(Self::of_parts)
    }

    /// Creates a tuple of shardings, one for each element of a flat tuple.
    ///
    /// # Errors
    /// If an element is a tuple itself.
    pub fn tuple(elements: impl IntoIterator<Item = Self>) -> Result<Self, IfrtError> {
        let mut proto =
            xla::OpSharding { r#type: OpShardingType::Tuple.number(), ..Default::default() };
        for element in elements {
            if element.kind() == OpShardingType::Tuple {
                return invalid(TUPLE_IN_TUPLE);
            }
            proto.tuple_shardings.push(element.proto().clone());
        }
        Ok(Self::of_kind(OpShardingType::Tuple, proto))
    }

    /// Creates the sharding from a message, which is kept.
    ///
    /// # Errors
    /// XLA refuses the same messages: an unknown type, an inconsistent tile assignment, a tuple
    /// inside a tuple.
    pub fn new(proto: xla::OpSharding) -> Result<Self, IfrtError> {
        Self::checked(proto, true)
    }

    /// Like [`new`](Self::new), with the status that XLA returns.
    pub(crate) fn from_proto(
        type_name: &'static str,
        proto: xla::OpSharding,
    ) -> Result<Self, DecodeError> {
        Self::new(proto).map_err(|error| DecodeError::inconsistent(type_name, error.to_string()))
    }

    fn checked(proto: xla::OpSharding, may_be_tuple: bool) -> Result<Self, IfrtError> {
        let Some(kind) = OpShardingType::from_number(proto.r#type) else {
            return invalid(format!("the sharding type is {}; expected 0 to 6", proto.r#type));
        };
        let mut parts = Parts { kind, ..Parts::default() };
        match kind {
            _ if proto.named_sharding.is_some() => {}
            OpShardingType::Tuple if !may_be_tuple => return invalid(TUPLE_IN_TUPLE),
            OpShardingType::Tuple => {
                for element in &proto.tuple_shardings {
                    Self::checked(element.clone(), false)?;
                }
            }
            OpShardingType::Maximal => {
                let devices = proto.tile_assignment_devices.len();
                if devices != 1 {
                    return invalid(format!(
                        "a maximal sharding lists {devices} devices; expected 1"
                    ));
                }
            }
            OpShardingType::Tiled => {
                let (reshape, transpose) = (&proto.iota_reshape_dims, &proto.iota_transpose_perm);
                let tiles = tiles_of(
                    &proto.tile_assignment_dimensions,
                    proto.tile_assignment_devices.clone(),
                    (reshape, transpose),
                )?;
                let subgroups = proto.last_tile_dims.as_slice();
                parts = Parts::tiled(tiles, proto.replicate_on_last_tile_dim, subgroups)?;
            }
            OpShardingType::Replicated
            | OpShardingType::Manual
            | OpShardingType::Unknown
            | OpShardingType::Unreduced => {}
        }
        Ok(Self::with_message(parts, proto))
    }

    /// Returns the kind, which has no meaning if there is a [named sharding](Self::named_sharding).
    pub fn kind(&self) -> OpShardingType {
        self.0.parts.kind
    }

    /// Returns the tiles of a tiled sharding.
    pub fn tile_assignment(&self) -> Option<&TileAssignment> {
        self.0.parts.tiles.as_ref()
    }

    /// Returns true if the devices along the last tile dimension hold the same tile.
    pub fn replicates_on_last_tile_dimension(&self) -> bool {
        self.0.parts.replicates_last
            || self.beyond_parts().is_some_and(|proto| proto.replicate_on_last_tile_dim)
    }

    /// Returns the message, if the parts do not describe the whole sharding.
    pub(super) fn beyond_parts(&self) -> Option<&xla::OpSharding> {
        (!self.0.is_plain).then(|| self.proto())
    }

    /// Returns the kinds of the subgroups, which are the last tile dimensions.
    pub fn subgroup_types(&self) -> impl Iterator<Item = OpShardingType> + '_ {
        let numbers = match self.beyond_parts() {
            Some(proto) => proto.last_tile_dims.iter(),
            None => self.0.parts.subgroups.iter(),
        };
        numbers.map(|number| OpShardingType::from_number(*number).unwrap_or_default())
    }

    /// Returns the sharding over a named mesh, if the message has one; it then replaces all other
    /// fields.
    pub fn named_sharding(&self) -> Option<&xla::NamedShardingProto> {
        self.beyond_parts()?.named_sharding.as_ref()
    }

    /// Returns the elements of a tuple sharding.
    pub fn tuple_elements(&self) -> Vec<Self> {
        let elements = self.beyond_parts().into_iter().flat_map(|proto| &proto.tuple_shardings);
        // Each element was checked when this sharding was created.
        elements.filter_map(|element| Self::checked(element.clone(), false).ok()).collect()
    }

    /// Returns the message.
    pub fn proto(&self) -> &xla::OpSharding {
        self.0.message.get_or_init(|| Box::new(self.0.parts.to_message()))
    }
}

serde_as_message!(
    OpSharding,
    |sharding| {
        use prost::Message as _;
        Ok(sharding.proto().encode_to_vec().into())
    },
    |bytes| Self::from_proto(
        "xla.OpSharding",
        crate::codec::decode_message(
            "xla.OpSharding",
            bytes,
            &crate::codec::DeserializeOptions::new()
        )?
    )
);

#[cfg(test)]
mod tests;
