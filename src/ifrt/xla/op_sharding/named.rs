//! Rewrites shardings over named meshes into tiles, for peers that know only tiles.
//!
//! Builds of XLA since 2026 may describe a sharding by the axes of a mesh. Older builds do not know
//! the field and read "replicated"; some newer ones expect tiles in places and abort. The tiles
//! follow XLA's own rule (`HloSharding::V3ToV2Sharding`), and the tests compare the result with the
//! real one.

use std::cmp::Ordering;

use super::{OpSharding, OpShardingType};
use crate::{
    ifrt::{IfrtError, error::invalid, xla::TileAssignment},
    proto::xla,
};

/// The largest number of devices whose order is listed if no iota can express it.
const MOST_LISTED_DEVICES: i64 = 1 << 20;

impl OpSharding {
    /// Returns the sharding without named meshes: tiles, and subgroups for axes that are manual,
    /// unreduced or unused. A sharding without a mesh is returned unchanged; in a tuple every
    /// element is rewritten.
    ///
    /// Devices keep their numbers, which are positions in a device list, as in the mesh. The
    /// metadata is kept. Tiles cannot express that a dimension may be split further; this is lost,
    /// as in XLA.
    ///
    /// # Errors
    /// If the mesh is inconsistent, an axis is not in the mesh, two dimensions are split along the
    /// same part of an axis, the summands of an unreduced value are combined by something other
    /// than a sum, or the order of more than a million devices would have to be listed.
    pub fn named_to_tiles(&self) -> Result<Self, IfrtError> {
        if let Some(named) = self.named_sharding() {
            return rewritten(named);
        }
        if self.kind() != OpShardingType::Tuple || !self.names_a_mesh() {
            return Ok(self.clone());
        }
        let elements: Vec<Self> =
            self.tuple_elements().iter().map(Self::named_to_tiles).collect::<Result<_, _>>()?;
        Self::tuple(elements)
    }

    /// Returns true if the sharding, or an element of a tuple of shardings, uses a named mesh.
    pub fn names_a_mesh(&self) -> bool {
        self.beyond_parts().is_some_and(|proto| {
            proto.named_sharding.is_some()
                || proto.tuple_shardings.iter().any(|element| element.named_sharding.is_some())
        })
    }
}

fn rewritten(named: &xla::NamedShardingProto) -> Result<OpSharding, IfrtError> {
    let no_mesh = xla::MeshProto::default();
    let mesh = named.mesh.as_ref().unwrap_or(&no_mesh);
    let plain = match (mesh.axes.as_slice(), mesh.device_ids.as_slice()) {
        ([], [device]) => OpSharding::maximal(*device),
        // Dimensions may be listed if no axis splits them.
        ([], []) if is_unsplit(named) => OpSharding::replicated(),
        _ => over_mesh(named, mesh)?,
    };
    if named.metadata.is_empty() {
        return Ok(plain);
    }
    OpSharding::new(xla::OpSharding { metadata: named.metadata.clone(), ..plain.proto().clone() })
}

fn is_unsplit(named: &xla::NamedShardingProto) -> bool {
    let dimensions = named.dim_shardings.iter().map(|dimension| &dimension.axes);
    dimensions
        .chain([&named.replicated_axes, &named.unreduced_axes, &named.manual_axes])
        .all(Vec::is_empty)
}

fn over_mesh(
    named: &xla::NamedShardingProto,
    mesh: &xla::MeshProto,
) -> Result<OpSharding, IfrtError> {
    if !named.unreduced_axes.is_empty() && named.reduction_op != 0 {
        return invalid(format!(
            "summands along unreduced axes are combined by reduction {}; expected a sum, since tiles cannot say another",
            named.reduction_op
        ));
    }
    let mut pieces = Pieces::of(named, mesh)?;
    let mut dimensions = Vec::with_capacity(named.dim_shardings.len() + 3);
    for dimension in &named.dim_shardings {
        dimensions.push(pieces.take(&dimension.axes)?);
    }
    let is_one_tile = dimensions.iter().all(|size| *size == 1);
    let manual = pieces.take(&named.manual_axes)?;
    let unreduced = pieces.take(&named.unreduced_axes)?;
    let replicated = pieces.take_rest();
    // As in XLA, the check for named axes comes before the check for lengths above 1.
    let subgroups = [
        (manual, OpShardingType::Manual, !named.manual_axes.is_empty()),
        (unreduced, OpShardingType::Unreduced, !named.unreduced_axes.is_empty()),
        (replicated, OpShardingType::Replicated, replicated > 1),
    ];
    let named_kinds: Vec<_> =
        subgroups.iter().filter(|group| group.2).map(|group| group.1).collect();
    let mut kinds = Vec::with_capacity(3);
    for (size, kind, _) in subgroups.into_iter().filter(|group| group.0 > 1) {
        dimensions.push(size);
        kinds.push(kind);
    }
    if let Some(whole) = of_all_devices(is_one_tile, &named_kinds, &kinds) {
        return Ok(whole);
    }
    let tiles = pieces.tiles(&dimensions, replicated, mesh)?;
    match kinds.as_slice() {
        [] => Ok(OpSharding::tiled(tiles)),
        [OpShardingType::Replicated] => Ok(OpSharding::partially_replicated(tiles)),
        kinds => OpSharding::with_subgroups(tiles, kinds),
    }
}

/// Returns the sharding that has a kind of its own, if the value is one tile and all devices are in
/// one subgroup.
fn of_all_devices(
    is_one_tile: bool,
    named_kinds: &[OpShardingType],
    kinds: &[OpShardingType],
) -> Option<OpSharding> {
    use OpShardingType::{Manual, Replicated, Unreduced};

    match (named_kinds, kinds) {
        _ if !is_one_tile => None,
        ([] | [Replicated], _) | (_, [Replicated]) => Some(OpSharding::replicated()),
        ([Manual], _) | (_, [Manual]) => Some(OpSharding::manual()),
        ([Unreduced], _) => Some(OpSharding::unreduced()),
        _ => None,
    }
}

/// A part of an axis that is not split further, of `size` devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    axis: usize,
    /// The product of the sizes of the pieces before this one on the same axis.
    outside: i64,
    size: i64,
}

/// The axes of a mesh, cut at every boundary of a reference.
#[derive(Debug)]
struct Pieces {
    axis_sizes: Vec<i64>,
    /// In the order of the mesh.
    all: Vec<Piece>,
    /// Positions in `all`, in the order in which they were taken.
    taken: Vec<usize>,
    is_taken: Vec<bool>,
    device_count: i64,
}

impl Pieces {
    fn of(named: &xla::NamedShardingProto, mesh: &xla::MeshProto) -> Result<Self, IfrtError> {
        let axis_sizes: Vec<i64> = mesh.axes.iter().map(|axis| axis.size).collect();
        let product = axis_sizes.iter().try_fold(1_i64, |product, size| {
            (*size >= 1).then(|| product.checked_mul(*size)).flatten()
        });
        let Some(device_count) = product else {
            return invalid(format!(
                "the axes of the mesh have the sizes {axis_sizes:?}; expected sizes of at least 1 whose product fits 63 bits"
            ));
        };
        // The cuts of each axis: for each, the product of the sizes before it.
        let mut cuts: Vec<Vec<i64>> = axis_sizes.iter().map(|size| vec![1, *size]).collect();
        let dimensions = named.dim_shardings.iter().flat_map(|dimension| &dimension.axes);
        let subgroups =
            [&named.replicated_axes, &named.unreduced_axes, &named.manual_axes].into_iter();
        for reference in dimensions.chain(subgroups.flatten()) {
            let (axis, outside, size) = checked(reference, &axis_sizes)?;
            if let Some(cuts) = cuts.get_mut(axis) {
                cuts.extend([outside, outside * size]);
            }
        }
        let mut all = Vec::new();
        for (axis, mut cuts) in cuts.into_iter().enumerate() {
            cuts.sort_unstable();
            cuts.dedup();
            for pair in cuts.windows(2) {
                if let [outside, next] = *pair {
                    if next % outside != 0 {
                        return invalid(format!(
                            "axis {axis} of the mesh is cut after {outside} and after {next} steps; expected each cut to be a multiple of the one before"
                        ));
                    }
                    all.push(Piece { axis, outside, size: next / outside });
                }
            }
        }
        let is_taken = vec![false; all.len()];
        Ok(Self { axis_sizes, all, taken: Vec::new(), is_taken, device_count })
    }

    /// Takes the pieces that the references name, in order; returns the product of their sizes.
    fn take(&mut self, references: &[xla::AxisRefProto]) -> Result<i64, IfrtError> {
        let mut product = 1_i64;
        for reference in references {
            let (axis, outside, size) = checked(reference, &self.axis_sizes)?;
            if size == 1 {
                continue;
            }
            // A reference may span pieces that others cut; pieces that are taken already overlap.
            let end = outside * size;
            let within = |piece: &Piece| {
                piece.axis == axis && piece.outside >= outside && piece.outside < end
            };
            for (place, piece) in self.all.iter().enumerate().filter(|(_, piece)| within(piece)) {
                match self.is_taken.get_mut(place) {
                    Some(taken) if !*taken => *taken = true,
                    _ => {
                        return invalid(format!(
                            "the part of axis {axis} after {} steps is used twice; expected each part of an axis once",
                            piece.outside
                        ));
                    }
                }
                self.taken.push(place);
            }
            // Bounded by the number of devices of the mesh, since no piece is taken twice.
            product *= size;
        }
        Ok(product)
    }

    /// Takes the remaining pieces, in the order of the mesh.
    fn take_rest(&mut self) -> i64 {
        let mut product = 1;
        for ((place, piece), taken) in self.all.iter().enumerate().zip(&self.is_taken) {
            if !taken {
                self.taken.push(place);
                product *= piece.size;
            }
        }
        product
    }

    /// Returns the devices in the order of the taken pieces, arranged in `dimensions`. Among the
    /// last `replicated` of each tile the order has no meaning, so it is ascending.
    fn tiles(
        &self,
        dimensions: &[i64],
        replicated: i64,
        mesh: &xla::MeshProto,
    ) -> Result<TileAssignment, IfrtError> {
        let identity = xla::mesh_proto::IotaTransform {
            reshape_dims: vec![self.device_count],
            transpose_perm: vec![0],
        };
        if mesh.device_ids.is_empty() {
            let iota = mesh.iota_transform.as_ref().filter(|iota| !iota.reshape_dims.is_empty());
            return self.tiles_of_iota(dimensions, replicated, iota.unwrap_or(&identity));
        }
        let tiles = self.device_count;
        if mesh.device_ids.len() as i64 != tiles {
            return invalid(format!(
                "the mesh lists {} devices, but its axes have {tiles}",
                mesh.device_ids.len()
            ));
        }
        self.listed(dimensions, replicated, &mesh.device_ids)
    }

    fn tiles_of_iota(
        &self,
        dimensions: &[i64],
        replicated: i64,
        iota: &xla::mesh_proto::IotaTransform,
    ) -> Result<TileAssignment, IfrtError> {
        let transpose: Vec<i32> = iota
            .transpose_perm
            .iter()
            .map(|axis| i32::try_from(*axis).unwrap_or(i32::MAX))
            .collect();
        // The list, which may be long, is used only if no shorter form exists.
        let mesh = TileAssignment::iota([self.device_count], &iota.reshape_dims, transpose)?;
        if let Some(tiles) = self.composed(dimensions, replicated, iota) {
            return tiles;
        }
        if self.device_count > MOST_LISTED_DEVICES {
            return invalid(format!(
                "the order of the {} devices of the mesh is no iota in tiles; expected at most {MOST_LISTED_DEVICES} devices to be listed",
                self.device_count
            ));
        }
        let limit = usize::try_from(self.device_count).unwrap_or(usize::MAX);
        self.listed(dimensions, replicated, &mesh.devices(limit)?)
    }

    /// Returns the tiles as an iota, if the transposition of the mesh and the pieces cut the
    /// devices at compatible positions.
    fn composed(
        &self,
        dimensions: &[i64],
        replicated: i64,
        iota: &xla::mesh_proto::IotaTransform,
    ) -> Option<Result<TileAssignment, IfrtError>> {
        let transposed: Vec<usize> = iota
            .transpose_perm
            .iter()
            .map(|axis| usize::try_from(*axis))
            .collect::<Result<_, _>>()
            .ok()?;
        let sizes: Vec<i64> = transposed
            .iter()
            .map(|axis| iota.reshape_dims.get(*axis).copied())
            .collect::<Option<_>>()?;
        let pieces: Vec<i64> = self.all.iter().map(|piece| piece.size).collect();
        // Each factor has a size, a dimension of the mesh's transposed iota, and a piece.
        let factors = common_factors(&sizes, &pieces)?;
        // The position of each factor in the iota before its transposition.
        let mut before: Vec<usize> = (0..factors.len()).collect();
        before.sort_by_key(|place| factors.get(*place).and_then(|f| transposed.get(f.of_first)));
        let mut place_before = vec![0; factors.len()];
        for (rank, factor) in before.iter().enumerate() {
            *place_before.get_mut(*factor)? = rank;
        }
        let reshape: Vec<i64> = before
            .iter()
            .map(|factor| factors.get(*factor).map(|f| f.size))
            .collect::<Option<_>>()?;
        let mut order: Vec<usize> = Vec::with_capacity(factors.len());
        for piece in &self.taken {
            let of_piece = factors.iter().enumerate().filter(|(_, f)| f.of_second == *piece);
            order.extend(of_piece.map(|(place, _)| place_before.get(place).copied().unwrap_or(0)));
        }
        // Within a group of copies the order is ascending: the factors of the group in the order of
        // the iota.
        let mut group = 1;
        let mut first = order.len();
        while group < replicated {
            first = first.checked_sub(1)?;
            group *= reshape.get(*order.get(first)?)?;
        }
        order.get_mut(first..)?.sort_unstable();
        if reshape.is_empty() {
            return Some(TileAssignment::iota(dimensions, [1], [0]));
        }
        let order: Vec<i32> =
            order.iter().map(|axis| i32::try_from(*axis)).collect::<Result<_, _>>().ok()?;
        Some(TileAssignment::iota(dimensions, reshape, order))
    }

    /// Returns the devices of a `mesh` that lists its devices, in the order of the taken pieces.
    fn listed(
        &self,
        dimensions: &[i64],
        replicated: i64,
        mesh: &[i64],
    ) -> Result<TileAssignment, IfrtError> {
        let reshape: Vec<i64> = self.all.iter().map(|piece| piece.size).collect();
        let order: Vec<i32> =
            self.taken.iter().map(|place| i32::try_from(*place).unwrap_or(i32::MAX)).collect();
        let order = TileAssignment::iota([self.device_count], reshape, order)?;
        let at = |place: &i64| usize::try_from(*place).ok().and_then(|at| mesh.get(at));
        let mut devices: Vec<i64> =
            order.devices(mesh.len())?.iter().filter_map(at).copied().collect();
        let copies = usize::try_from(replicated).unwrap_or(1).max(1);
        for group in devices.chunks_mut(copies) {
            group.sort_unstable();
        }
        TileAssignment::listed(dimensions, devices)
    }
}

/// Returns the axis of a reference, the product of the sizes before its part, and the size of the
/// part.
fn checked(
    reference: &xla::AxisRefProto,
    axis_sizes: &[i64],
) -> Result<(usize, i64, i64), IfrtError> {
    let index = reference.mesh_axis_index;
    let place = usize::try_from(index).ok();
    let Some((axis, whole)) = place.and_then(|axis| Some((axis, *axis_sizes.get(axis)?))) else {
        return invalid(format!(
            "a dimension is split along axis {index}, but the mesh has {} axes",
            axis_sizes.len()
        ));
    };
    let Some(part) = &reference.sub_axis_info else {
        return Ok((axis, 1, whole));
    };
    let (outside, size) = (part.pre_size, part.size);
    let end = (outside >= 1 && size >= 1).then(|| outside.checked_mul(size)).flatten();
    if end.is_some_and(|end| whole % end == 0) {
        return Ok((axis, outside, size));
    }
    invalid(format!(
        "a part of axis {axis} has the size {size} after {outside} steps; expected a part of the {whole} steps of the axis"
    ))
}

/// A factor that is contained in one factor of each of two lists.
#[derive(Clone, Copy, Debug)]
struct Factor {
    size: i64,
    of_first: usize,
    of_second: usize,
}

/// Returns factors finer than those of both lists, whose products are equal; `None` if the lists
/// cut the product at positions neither of which divides the other.
fn common_factors(first: &[i64], second: &[i64]) -> Option<Vec<Factor>> {
    let mut factors = Vec::new();
    let numbered = |list: &[i64]| -> Vec<(usize, i64)> {
        list.iter().copied().enumerate().filter(|(_, size)| *size > 1).collect()
    };
    let (mut left, mut right) = (numbered(first), numbered(second));
    while let (Some((of_first, one)), Some((of_second, other))) = (left.pop(), right.pop()) {
        let size = one.min(other);
        if one % size != 0 || other % size != 0 {
            return None;
        }
        match one.cmp(&other) {
            Ordering::Greater => left.push((of_first, one / size)),
            Ordering::Less => right.push((of_second, other / size)),
            Ordering::Equal => {}
        }
        factors.push(Factor { size, of_first, of_second });
    }
    factors.reverse();
    Some(factors)
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    fn axis(size: i64) -> xla::mesh_proto::MeshAxis {
        xla::mesh_proto::MeshAxis { name: String::new(), size }
    }

    fn whole(index: i64) -> xla::AxisRefProto {
        xla::AxisRefProto { mesh_axis_index: index, sub_axis_info: None }
    }

    fn part(index: i64, pre_size: i64, size: i64) -> xla::AxisRefProto {
        let sub_axis_info = Some(xla::axis_ref_proto::SubAxis { pre_size, size });
        xla::AxisRefProto { mesh_axis_index: index, sub_axis_info }
    }

    fn named(sizes: &[i64], dimensions: &[&[xla::AxisRefProto]]) -> xla::NamedShardingProto {
        let axes = sizes.iter().copied().map(axis).collect();
        let split = |axes: &&[xla::AxisRefProto]| xla::named_sharding_proto::DimensionSharding {
            axes: axes.to_vec(),
            is_closed: true,
        };
        xla::NamedShardingProto {
            mesh: Some(xla::MeshProto { axes, ..Default::default() }),
            dim_shardings: dimensions.iter().map(split).collect(),
            ..Default::default()
        }
    }

    fn sharding(named: xla::NamedShardingProto) -> OpSharding {
        let proto = xla::OpSharding { named_sharding: Some(named), ..Default::default() };
        OpSharding::new(proto).unwrap()
    }

    fn in_tiles(named: xla::NamedShardingProto) -> String {
        sharding(named).named_to_tiles().unwrap().to_string()
    }

    fn bytes(hexadecimal: &str) -> Vec<u8> {
        let digit = |at| u8::from_str_radix(&hexadecimal[at..at + 2], 16).unwrap();
        (0..hexadecimal.len()).step_by(2).map(digit).collect()
    }

    /// Returns a value that is equal for shardings of the same meaning, with listed devices or an
    /// iota.
    fn meaning(sharding: &OpSharding) -> impl PartialEq + std::fmt::Debug {
        let devices = sharding.tile_assignment().map(|tiles| tiles.devices(1 << 20).unwrap());
        (
            sharding.kind(),
            sharding.tile_assignment().map(|tiles| tiles.dimensions().to_vec()),
            devices,
            sharding.replicates_on_last_tile_dimension(),
            sharding.subgroup_types().collect::<Vec<_>>(),
            sharding.proto().tile_assignment_devices.len() == 1,
        )
    }

    #[test]
    fn named_shardings_become_the_tiles_of_jaxlib_0_12_0_1() {
        let table = include_str!("../../../../tests/data/ifrt/named_shardings.tsv");
        let mut count = 0;
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            let (of_mesh, of_tiles) = line.split_once('\t').unwrap();
            let decoded =
                |text| OpSharding::new(xla::OpSharding::decode(&*bytes(text)).unwrap()).unwrap();
            let (of_mesh, expected) = (decoded(of_mesh), decoded(of_tiles));
            let found = of_mesh.named_to_tiles().unwrap();
            assert_eq!(meaning(&found), meaning(&expected), "{of_mesh}: {found}, not {expected}");
            assert!(!found.names_a_mesh());
            count += 1;
        }
        assert!(count >= 200, "{count}");
    }

    #[test]
    fn axes_are_laid_out_in_the_order_in_which_dimensions_use_them() {
        assert_eq!(in_tiles(named(&[2, 2], &[&[whole(0)], &[whole(1)]])), "{devices=[2,2]<=[4]}");
        assert_eq!(
            in_tiles(named(&[2, 4], &[&[whole(1)], &[whole(0)]])),
            "{devices=[4,2]<=[2,4]T(1,0)}"
        );
        assert_eq!(
            in_tiles(named(&[2, 2], &[&[whole(1)], &[]])),
            "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"
        );
        assert_eq!(
            in_tiles(named(&[16, 4], &[&[whole(1), part(0, 1, 2)]])),
            "{devices=[8,8]<=[16,4]T(1,0) last_tile_dim_replicate}"
        );
        assert_eq!(in_tiles(named(&[4, 4], &[&[], &[]])), "{replicated}");
        assert_eq!(in_tiles(named(&[1], &[&[whole(0)]])), "{replicated}");
    }

    #[test]
    fn a_mesh_of_one_device_and_no_axes_is_that_device() {
        let mesh = xla::MeshProto { device_ids: vec![5], ..Default::default() };
        let maximal = xla::NamedShardingProto { mesh: Some(mesh), ..Default::default() };
        assert_eq!(in_tiles(maximal), "{maximal device=5}");
        assert_eq!(in_tiles(xla::NamedShardingProto::default()), "{replicated}");
    }

    #[test]
    fn elements_of_a_tuple_are_rewritten_each_and_metadata_is_kept() {
        let metadata = vec![crate::proto::OpaqueMessage::decode(&[0x12, 1, b'a'][..]).unwrap()];
        let split = xla::NamedShardingProto { metadata, ..named(&[2], &[&[whole(0)]]) };
        let tuple = OpSharding::tuple([OpSharding::replicated(), sharding(split.clone())]).unwrap();
        assert!(tuple.names_a_mesh());
        let found = tuple.named_to_tiles().unwrap();
        assert_eq!(found.to_string(), "{{replicated}, {devices=[2]<=[2]}}");
        assert_eq!(found.proto().tuple_shardings[1].metadata, split.metadata);
        assert_eq!(found.named_to_tiles(), Ok(found.clone()));
    }

    #[test]
    fn a_large_mesh_is_never_written_out() {
        let split = [whole(0)];
        let found = sharding(named(&[1 << 40, 2], &[&split])).named_to_tiles().unwrap();
        assert_eq!(
            found.to_string(),
            "{devices=[1099511627776,2]<=[2199023255552] last_tile_dim_replicate}"
        );
    }

    #[test]
    fn meshes_that_contradict_themselves_are_refused_with_a_reason() {
        let refused = |named: xla::NamedShardingProto, part: &str| {
            let error = sharding(named).named_to_tiles().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        refused(named(&[2], &[&[whole(1)]]), "axis 1, but the mesh has 1 axes");
        refused(named(&[2], &[&[whole(-1)]]), "axis -1");
        refused(named(&[0], &[&[whole(0)]]), "sizes of at least 1");
        refused(named(&[i64::MAX, 2], &[&[]]), "63 bits");
        refused(named(&[2], &[&[whole(0)], &[whole(0)]]), "used twice");
        refused(named(&[8], &[&[part(0, 1, 4)], &[part(0, 2, 2)]]), "used twice");
        refused(named(&[8], &[&[part(0, 1, 3)]]), "size 3 after 1 steps");
        refused(named(&[8], &[&[part(0, 0, 2)]]), "size 2 after 0 steps");
        refused(named(&[8], &[&[part(0, i64::MAX, 2)]]), "expected a part");
        refused(named(&[12], &[&[part(0, 1, 2)], &[part(0, 1, 3)]]), "multiple");
        let mut listed = named(&[2, 2], &[&[whole(0)]]);
        listed.mesh.as_mut().unwrap().device_ids = vec![0, 1];
        refused(listed, "lists 2 devices, but its axes have 4");
        let mut turned = named(&[2, 2], &[&[whole(0)]]);
        turned.mesh.as_mut().unwrap().iota_transform = Some(xla::mesh_proto::IotaTransform {
            reshape_dims: vec![2, 2],
            transpose_perm: vec![0, 0],
        });
        refused(turned, "transposed by [0, 0]");
        let mut greatest = named(&[2], &[&[]]);
        greatest.unreduced_axes = vec![whole(0)];
        greatest.reduction_op = 1;
        refused(greatest, "expected a sum");
    }
}
