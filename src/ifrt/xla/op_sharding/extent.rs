//! The number of devices of a sharding, and the number of tiles into which it cuts a value.

use super::{OpSharding, OpShardingType};
use crate::{
    ifrt::{IfrtError, error::invalid, xla::TileAssignment},
    proto::xla,
};

impl OpSharding {
    /// Returns true if every device holds the whole value.
    pub fn is_replicated(&self) -> bool {
        match self.named_sharding() {
            Some(named) => {
                named.unreduced_axes.is_empty()
                    && named.manual_axes.is_empty()
                    && named.dim_shardings.iter().all(|dimension| dimension.axes.is_empty())
            }
            None => self.0.parts.kind == OpShardingType::Replicated,
        }
    }

    /// Returns the number of devices that the sharding itself determines: tiles, or devices of the
    /// mesh; `None` if any number fits.
    pub fn device_count(&self) -> Option<i64> {
        match self.named_sharding() {
            Some(named) => {
                let mesh = named.mesh.as_ref()?;
                let mut sizes = mesh.axes.iter().map(|axis| axis.size).peekable();
                sizes.peek()?;
                Some(sizes.fold(1, i64::saturating_mul))
            }
            None => self.0.parts.tiles.as_ref().map(TileAssignment::tile_count),
        }
    }

    /// Returns the number of tile dimensions that cut the value; the others are subgroups.
    pub fn tiled_rank(&self) -> Option<usize> {
        let tiles = self.0.parts.tiles.as_ref()?;
        let subgroups = self.0.parts.subgroups.len() + usize::from(self.0.parts.replicates_last);
        tiles.dimensions().len().checked_sub(subgroups)
    }

    /// Returns the number of tiles along each dimension of a value of `rank` dimensions; `None` if
    /// the value is not cut.
    ///
    /// # Errors
    /// If the value has another rank, or the sharding is a tuple.
    pub fn shards(&self, rank: usize) -> Result<Option<Vec<i64>>, IfrtError> {
        let shards: Vec<i64> = match (self.named_sharding(), self.0.parts.kind) {
            (Some(named), _) => named_shards(named)?,
            (None, OpShardingType::Tiled) => {
                let cut = self.tiled_rank().unwrap_or_default();
                let tiles = self.0.parts.tiles.iter().flat_map(|tiles| tiles.dimensions());
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

/// Returns the number of tiles along each dimension: the product of the axes that split it.
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
