//! Parts of an array, and the devices that hold them.

use serdes::ifrt::{
    ArraySpec, DeviceId, IndexDomain, PjRtLayout, Shape, Sharding, sharding::ShardShapes,
};
use smallvec::SmallVec;

use super::super::format::piece::Domain;

/// A box inside an array, in elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Block {
    /// First index and extent of each dimension.
    pub(crate) dims: SmallVec<[(u64, u64); 4]>,
}

impl Block {
    /// Returns the whole array.
    pub(crate) fn whole(shape: &Shape) -> Self {
        Self { dims: shape.dims().iter().map(|dim| (0, dim.unsigned_abs())).collect() }
    }

    /// Returns the part of an array of `shape` for a stored domain; `None` if the ranks differ.
    pub(crate) fn of(domain: &Domain, shape: &Shape) -> Option<Self> {
        match domain {
            None => Some(Self::whole(shape)),
            Some(dims) if dims.len() == shape.rank() => {
                Some(Self { dims: SmallVec::from_slice(dims) })
            }
            Some(_) => None,
        }
    }

    /// Returns the part for an index domain; an error message if it is not inside an array of
    /// `shape`.
    pub(crate) fn of_domain(domain: &IndexDomain, shape: &Shape) -> Result<Self, String> {
        let outside = || format!("the part {domain} does not lie in an array of {shape}");
        if domain.shape().rank() != shape.rank() {
            return Err(outside());
        }
        let parts = domain.origin().elements().iter().zip(domain.shape().dims()).zip(shape.dims());
        let dims = parts.map(|((start, extent), whole)| {
            let (start, extent) = (u64::try_from(*start).ok()?, u64::try_from(*extent).ok()?);
            (start.checked_add(extent)? <= whole.unsigned_abs()).then_some((start, extent))
        });
        dims.collect::<Option<_>>().map(|dims| Self { dims }).ok_or_else(outside)
    }

    /// Returns the stored form: the whole array needs no domain.
    pub(crate) fn to_domain(&self, shape: &Shape) -> Domain {
        (*self != Self::whole(shape)).then(|| self.dims.to_vec())
    }

    /// Returns the number of elements; `None` on overflow.
    pub(crate) fn elements(&self) -> Option<u64> {
        if self.is_empty() {
            return Some(0);
        }
        self.dims.iter().try_fold(1_u64, |product, (_, extent)| product.checked_mul(*extent))
    }

    /// Returns true if it has no elements.
    pub(crate) fn is_empty(&self) -> bool {
        self.dims.iter().any(|(_, extent)| *extent == 0)
    }
}

/// Returns the parts of an array on its sharding's devices, in order.
pub(crate) fn blocks_of(
    sharding: &Sharding,
    shape: &Shape,
) -> Result<Vec<(DeviceId, Block)>, String> {
    let devices = sharding.devices();
    let whole = || {
        let block = Block::whole(shape);
        devices.ids().iter().map(|device| (*device, block.clone())).collect()
    };
    match sharding {
        // Devices along such an axis hold partial sums, all of which are needed.
        Sharding::ShardingParam(sharding) if !sharding.param().unreduced_axes().is_empty() => {
            return Err(format!(
                "{} has unreduced axes: its devices hold summands, not parts; reduce the array first",
                sharding.param()
            ));
        }
        // These have no index domains; a shard with the array's size needs none.
        Sharding::ConcreteEven(even) => {
            let shard = even.shard_shape(shape).map_err(|error| error.to_string())?;
            if even.is_fully_replicated() || shard == *shape {
                return Ok(whole());
            }
        }
        Sharding::Concrete(concrete) => {
            if let ShardShapes::Static { shape: own, shard_shapes } = concrete.shapes()
                && own == shape
                && shard_shapes.iter().all(|shard| shard == shape)
            {
                return Ok(whole());
            }
        }
        _ if sharding.is_fully_replicated() => return Ok(whole()),
        _ => {}
    }
    let domains = sharding
        .index_domains(shape)
        .map_err(|error| format!("{error}; or give each shard its part of the array with `at`"))?;
    let addressable = devices.addressable();
    let ids = if domains.len() == devices.len() { devices.ids() } else { addressable.ids() };
    if ids.len() != domains.len() {
        return Err(format!("{} index domains for {} devices", domains.len(), devices.len()));
    }
    ids.iter()
        .zip(&domains)
        .map(|(device, domain)| Ok((*device, Block::of_domain(domain, shape)?)))
        .collect()
}

/// Returns the size of an element in bytes; an error message for arrays whose elements have no
/// fixed size, or are not row-major.
pub(crate) fn element_bytes(spec: &ArraySpec) -> Result<u64, String> {
    if let Some(layout) = spec.layout()
        && !is_row_major(layout, spec.shape().rank())
    {
        return Err(format!(
            "its layout is {layout}, and shards are cut from arrays that lie row by row; copy it into the default layout first"
        ));
    }
    spec.dtype().unpacked_byte_size().map(u64::from).ok_or_else(|| {
        format!("elements of {} have no size of their own and no place on a device", spec.dtype())
    })
}

/// Returns true if the layout is row-major without gaps.
fn is_row_major(layout: &PjRtLayout, rank: usize) -> bool {
    let layout = layout.xla_layout();
    let order = layout.minor_to_major();
    order.len() == rank
        && order.iter().rev().zip(0..).all(|(dimension, position)| *dimension == position)
        && layout.tiles().is_empty()
        && layout.element_size_in_bits() == 0
        && layout.tail_padding_alignment_in_elements() <= 1
        && layout.split_configs().is_empty()
        && layout.physical_shape().is_none()
}
