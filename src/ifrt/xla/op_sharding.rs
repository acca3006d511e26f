use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use super::TileAssignment;
use crate::{codec::DecodeError, ifrt::IfrtError, proto::xla};

/// The kind of an [`OpSharding`] or of one of its subgroups (`xla.OpSharding.Type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpShardingType {
    /// Every device holds the whole value.
    #[default]
    Replicated,
    /// One device holds the whole value.
    Maximal,
    /// Each element of a tuple has a sharding of its own.
    Tuple,
    /// The value is cut into tiles.
    Tiled,
    /// The program itself says what each device holds.
    Manual,
    /// Nothing is known.
    Unknown,
    /// Every device holds a summand of the value.
    Unreduced,
}

impl OpShardingType {
    const ALL: [Self; 7] = [
        Self::Replicated,
        Self::Maximal,
        Self::Tuple,
        Self::Tiled,
        Self::Manual,
        Self::Unknown,
        Self::Unreduced,
    ];

    /// The number on the wire.
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// The kind with this number of the wire.
    pub fn from_number(number: i32) -> Option<Self> {
        usize::try_from(number).ok().and_then(|index| Self::ALL.get(index)).copied()
    }

    /// The word in the notation of HLO.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Replicated => "replicated",
            Self::Maximal => "maximal",
            Self::Tuple => "tuple",
            Self::Tiled => "devices",
            Self::Manual => "manual",
            Self::Unknown => "unknown",
            Self::Unreduced => "unreduced",
        }
    }
}

/// A sharding of XLA without devices of its own (`xla.OpSharding`): numbers in it are positions in a device list.
///
/// The message is kept as it was read, so that it is written as it was read; what it means was checked. Printed in the
/// notation of HLO: `{devices=[2,1]<=[2]}`, `{replicated}`, `{devices=[2,1,2]<=[4] last_tile_dim_replicate}`.
///
/// Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpSharding(Arc<Checked>);

#[derive(Debug, PartialEq, Eq)]
struct Checked {
    proto: xla::OpSharding,
    kind: OpShardingType,
    /// Present if and only if the kind is tiled and the mesh is not named.
    tiles: Option<TileAssignment>,
}

impl Hash for OpSharding {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.kind.hash(state);
        self.0.tiles.hash(state);
        self.0.proto.replicate_on_last_tile_dim.hash(state);
        self.0.proto.tuple_shardings.len().hash(state);
    }
}

/// Tuples of XLA are flat: the elements of a tuple sharding are no tuples.
const TUPLE_IN_TUPLE: &str = "a tuple sharding inside of a tuple sharding; expected a flat tuple";

fn invalid<T>(message: impl Into<String>) -> Result<T, IfrtError> {
    Err(IfrtError::Invalid(message.into()))
}

impl OpSharding {
    /// Every device holds the whole value.
    pub fn replicated() -> Self {
        Self::of_kind(OpShardingType::Replicated, xla::OpSharding::default())
    }

    /// The device at this position holds the whole value.
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

    /// The program itself says what each device holds.
    pub fn manual() -> Self {
        Self::of_kind(OpShardingType::Manual, xla::OpSharding::default())
    }

    /// Every device holds a summand of the value.
    pub fn unreduced() -> Self {
        Self::of_kind(OpShardingType::Unreduced, xla::OpSharding::default())
    }

    /// Nothing is known.
    pub fn unknown() -> Self {
        Self::of_kind(OpShardingType::Unknown, xla::OpSharding::default())
    }

    fn of_kind(kind: OpShardingType, mut proto: xla::OpSharding) -> Self {
        proto.r#type = kind.number();
        Self(Arc::new(Checked { proto, kind, tiles: None }))
    }

    /// The value is cut into tiles.
    pub fn tiled(tiles: TileAssignment) -> Self {
        Self(Arc::new(Self::of_tiles(tiles)))
    }

    fn of_tiles(tiles: TileAssignment) -> Checked {
        let mut proto = xla::OpSharding {
            r#type: OpShardingType::Tiled.number(),
            tile_assignment_dimensions: tiles.dimensions().to_vec(),
            ..Default::default()
        };
        if let Some((reshape, transpose)) = tiles.iota_parts() {
            proto.iota_reshape_dims = reshape.to_vec();
            proto.iota_transpose_perm = transpose.to_vec();
        } else {
            proto.tile_assignment_devices = tiles.listed_devices().unwrap_or_default().to_vec();
        }
        Checked { proto, kind: OpShardingType::Tiled, tiles: Some(tiles) }
    }

    /// The value is cut into tiles, each of which several devices hold: those along the last tile dimension.
    pub fn partially_replicated(tiles: TileAssignment) -> Self {
        let mut checked = Self::of_tiles(tiles);
        checked.proto.replicate_on_last_tile_dim = true;
        Self(Arc::new(checked))
    }

    /// The value is cut into tiles; the last tile dimensions are subgroups of these kinds.
    ///
    /// # Errors
    /// If there are more subgroups than tile dimensions.
    pub fn with_subgroups(
        tiles: TileAssignment,
        kinds: &[OpShardingType],
    ) -> Result<Self, IfrtError> {
        let mut proto = Self::of_tiles(tiles).proto;
        proto.last_tile_dims = kinds.iter().map(|kind| kind.number()).collect();
        Self::new(proto)
    }

    /// One sharding for each element of a flat tuple.
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

    /// The sharding of a message, which is kept.
    ///
    /// # Errors
    /// What XLA refuses too: an unknown type, a tile assignment that contradicts itself, a tuple inside of a tuple.
    pub fn new(proto: xla::OpSharding) -> Result<Self, IfrtError> {
        Self::checked(proto, true)
    }

    /// As [`new`](Self::new), with the status that XLA answers.
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
        let mut tiles = None;
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
            OpShardingType::Tiled => tiles = Some(Self::tiles_of(&proto)?),
            OpShardingType::Replicated
            | OpShardingType::Manual
            | OpShardingType::Unknown
            | OpShardingType::Unreduced => {}
        }
        Ok(Self(Arc::new(Checked { proto, kind, tiles })))
    }

    fn tiles_of(proto: &xla::OpSharding) -> Result<TileAssignment, IfrtError> {
        let dimensions = &proto.tile_assignment_dimensions;
        let tiles = if proto.iota_reshape_dims.is_empty() {
            TileAssignment::listed(dimensions, proto.tile_assignment_devices.clone())?
        } else if proto.tile_assignment_devices.is_empty() {
            let (reshape, transpose) = (&proto.iota_reshape_dims, &proto.iota_transpose_perm);
            TileAssignment::iota(dimensions, reshape, transpose)?
        } else {
            return invalid("the tile assignment is both a list and an iota; expected one of them");
        };
        let rank = proto.tile_assignment_dimensions.len();
        let subgroups = proto.last_tile_dims.len();
        if subgroups > rank || (subgroups > 0 && proto.replicate_on_last_tile_dim) {
            return invalid(format!(
                "{subgroups} subgroups for {rank} tile dimensions{}; expected at most one subgroup for each dimension, and either subgroups or a replicated last dimension",
                if proto.replicate_on_last_tile_dim { ", the last of them replicated" } else { "" },
            ));
        }
        if let Some(number) = proto
            .last_tile_dims
            .iter()
            .find(|number| OpShardingType::from_number(**number).is_none())
        {
            return invalid(format!("the type of a subgroup is {number}; expected 0 to 6"));
        }
        Ok(tiles)
    }

    /// The kind; with a [named sharding](Self::named_sharding) it says nothing.
    pub fn kind(&self) -> OpShardingType {
        self.0.kind
    }

    /// The tiles of a tiled sharding.
    pub fn tile_assignment(&self) -> Option<&TileAssignment> {
        self.0.tiles.as_ref()
    }

    /// Whether the devices along the last tile dimension hold the same tile.
    pub fn replicates_on_last_tile_dimension(&self) -> bool {
        self.0.proto.replicate_on_last_tile_dim
    }

    /// The kinds of the subgroups, which are the last tile dimensions.
    pub fn subgroup_types(&self) -> impl Iterator<Item = OpShardingType> + '_ {
        let numbers = self.0.proto.last_tile_dims.iter();
        numbers.map(|number| OpShardingType::from_number(*number).unwrap_or_default())
    }

    /// The sharding over a named mesh, if the message has one; it then stands for the whole.
    pub fn named_sharding(&self) -> Option<&xla::NamedShardingProto> {
        self.0.proto.named_sharding.as_ref()
    }

    /// The elements of a tuple sharding.
    pub fn tuple_elements(&self) -> Vec<Self> {
        let elements = self.0.proto.tuple_shardings.iter();
        // Each was checked when this one was made.
        elements.filter_map(|element| Self::checked(element.clone(), false).ok()).collect()
    }

    /// The message.
    pub fn proto(&self) -> &xla::OpSharding {
        &self.0.proto
    }

    /// Whether every device holds the whole value.
    pub fn is_replicated(&self) -> bool {
        match self.named_sharding() {
            Some(named) => {
                named.unreduced_axes.is_empty()
                    && named.manual_axes.is_empty()
                    && named.dim_shardings.iter().all(|dimension| dimension.axes.is_empty())
            }
            None => self.0.kind == OpShardingType::Replicated,
        }
    }

    /// The number of devices that the sharding itself speaks of: tiles, or devices of the mesh; `None` if it fits any number.
    pub fn device_count(&self) -> Option<i64> {
        match self.named_sharding() {
            Some(named) => {
                let mesh = named.mesh.as_ref()?;
                let mut sizes = mesh.axes.iter().map(|axis| axis.size).peekable();
                sizes.peek()?;
                Some(sizes.fold(1, i64::saturating_mul))
            }
            None => self.0.tiles.as_ref().map(TileAssignment::tile_count),
        }
    }

    /// The number of tile dimensions that cut the value; the others are subgroups.
    pub fn tiled_rank(&self) -> Option<usize> {
        let tiles = self.0.tiles.as_ref()?;
        let subgroups = self.0.proto.last_tile_dims.len()
            + usize::from(self.0.proto.replicate_on_last_tile_dim);
        tiles.dimensions().len().checked_sub(subgroups)
    }

    /// The number of tiles along each dimension of a value of `rank` dimensions; `None` if the value is not cut.
    ///
    /// # Errors
    /// If the value has another rank, or the sharding is one of a tuple.
    pub fn shards(&self, rank: usize) -> Result<Option<Vec<i64>>, IfrtError> {
        let shards: Vec<i64> = match (self.named_sharding(), self.0.kind) {
            (Some(named), _) => named_shards(named)?,
            (None, OpShardingType::Tiled) => {
                let cut = self.tiled_rank().unwrap_or_default();
                let tiles = self.0.tiles.iter().flat_map(|tiles| tiles.dimensions());
                tiles.take(cut).copied().collect()
            }
            (None, OpShardingType::Tuple) => {
                return invalid(format!("the sharding {self} is one of a tuple, not of an array"));
            }
            (None, _) => return Ok(None),
        };
        if shards.len() != rank {
            return Err(IfrtError::RankMismatch {
                what: "the shape",
                found: rank,
                other: "sharding",
                expected: shards.len(),
            });
        }
        Ok(Some(shards))
    }
}

/// The bytes of the message, in hexadecimal digits.
#[cfg(feature = "serde")]
impl serde::Serialize for OpSharding {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use prost::Message as _;
        let bytes = self.0.proto.encode_to_vec();
        serializer.collect_str(&bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for OpSharding {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use prost::Message as _;
        use serde::de::Error as _;
        let text = String::deserialize(deserializer)?;
        let digits = text.as_bytes().chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
            u8::from_str_radix(pair, 16).ok()
        });
        let bytes: Option<Vec<u8>> = digits.collect();
        let bytes =
            bytes.ok_or_else(|| D::Error::custom("expected pairs of hexadecimal digits"))?;
        let proto = xla::OpSharding::decode(&bytes[..]).map_err(D::Error::custom)?;
        Self::new(proto).map_err(D::Error::custom)
    }
}

/// The number of tiles along each dimension: the product of the axes that split it.
fn named_shards(named: &xla::NamedShardingProto) -> Result<Vec<i64>, IfrtError> {
    let axes = named.mesh.as_ref().map_or(&[][..], |mesh| &mesh.axes);
    let size = |axis: &xla::AxisRefProto| {
        let whole = usize::try_from(axis.mesh_axis_index).ok().and_then(|index| axes.get(index));
        let size = axis.sub_axis_info.map_or(whole?.size, |part| part.size);
        (size >= 1).then_some(size)
    };
    let mut shards = Vec::with_capacity(named.dim_shardings.len());
    for dimension in &named.dim_shardings {
        let product =
            dimension.axes.iter().try_fold(1_i64, |product, axis| product.checked_mul(size(axis)?));
        let Some(product) = product else {
            return invalid(format!(
                "an axis of a dimension is none of the {} axes of the mesh, or its size is not positive",
                axes.len()
            ));
        };
        shards.push(product);
    }
    Ok(shards)
}

impl fmt::Display for OpSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(named) = self.named_sharding() {
            return write_named(named, f);
        }
        match self.0.kind {
            OpShardingType::Tuple => {
                f.write_str("{")?;
                for (index, element) in self.tuple_elements().iter().enumerate() {
                    if index != 0 {
                        f.write_str(", ")?;
                    }
                    if index != 0 && index % 5 == 0 {
                        write!(f, "/*index={index}*/")?;
                    }
                    write!(f, "{element}")?;
                }
                return f.write_str("}");
            }
            OpShardingType::Maximal => {
                let device =
                    self.0.proto.tile_assignment_devices.first().copied().unwrap_or_default();
                write!(f, "{{maximal device={device}")?;
            }
            OpShardingType::Tiled => {
                f.write_str("{devices=")?;
                if let Some(tiles) = &self.0.tiles {
                    write!(f, "{tiles}")?;
                }
                if self.0.proto.replicate_on_last_tile_dim {
                    f.write_str(" last_tile_dim_replicate")?;
                }
                if !self.0.proto.last_tile_dims.is_empty() {
                    f.write_str(" last_tile_dims={")?;
                    for (index, kind) in self.subgroup_types().enumerate() {
                        let comma = if index == 0 { "" } else { ", " };
                        write!(f, "{comma}{}", kind.name())?;
                    }
                    f.write_str("}")?;
                }
            }
            kind => write!(f, "{{{}", kind.name())?,
        }
        if self.0.proto.is_shard_group {
            let alike =
                self.0.proto.shard_group_type == xla::op_sharding::ShardGroupType::Like as i32;
            let word = if alike { "shard_like" } else { "shard_as" };
            write!(f, " {word} {}", self.0.proto.shard_group_id)?;
        }
        f.write_str("}")
    }
}

/// The mesh with its axes, then the axes that split each dimension: `{mesh['x'=2,'y'=4], [{'x'}, {?}]}`.
fn write_named(named: &xla::NamedShardingProto, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let axes = named.mesh.as_ref().map_or(&[][..], |mesh| &mesh.axes);
    let write_axes = |f: &mut fmt::Formatter<'_>, list: &[xla::AxisRefProto]| -> fmt::Result {
        for (index, axis) in list.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let place = usize::try_from(axis.mesh_axis_index).ok();
            let name = place.and_then(|place| axes.get(place)).map_or("?", |axis| &axis.name);
            write!(f, "{comma}'{name}'")?;
            if let Some(part) = &axis.sub_axis_info {
                write!(f, ":({}){}", part.pre_size, part.size)?;
            }
        }
        Ok(())
    };
    f.write_str("{mesh[")?;
    for (index, axis) in axes.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(f, "{comma}'{}'={}", axis.name, axis.size)?;
    }
    f.write_str("], [")?;
    for (index, dimension) in named.dim_shardings.iter().enumerate() {
        f.write_str(if index == 0 { "{" } else { ", {" })?;
        write_axes(f, &dimension.axes)?;
        match (dimension.is_closed, dimension.axes.is_empty()) {
            (true, _) => f.write_str("}")?,
            (false, true) => f.write_str("?}")?,
            (false, false) => f.write_str(",?}")?,
        }
    }
    f.write_str("]")?;
    for (word, list) in [
        ("replicated", &named.replicated_axes),
        ("unreduced", &named.unreduced_axes),
        ("manual", &named.manual_axes),
    ] {
        if !list.is_empty() {
            write!(f, ", {word}={{")?;
            write_axes(f, list)?;
            f.write_str("}")?;
        }
    }
    f.write_str("}")
}

#[cfg(test)]
#[path = "op_sharding_tests.rs"]
mod tests;
