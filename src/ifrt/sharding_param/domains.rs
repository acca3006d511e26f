//! The index domain of each device of a [`ShardingParam`], which is the part of the array that the
//! device holds.

use smallvec::SmallVec;

use super::ShardingParam;
use crate::{
    codec::Validation,
    ifrt::{
        IfrtError, Index, IndexDomain, Shape,
        sharding::{DEFAULT_ANSWER_BYTES, require_domains},
    },
};

/// An axis of a mesh.
struct Axis {
    /// The number of devices along the axis.
    size: i32,
    /// The difference of the logical numbers of two neighbours along the axis.
    stride: i32,
}

/// An array divided over the mesh of a verified [`ShardingParam`].
struct Tiles {
    axes: SmallVec<[Axis; 4]>,
    devices: i32,
    /// The number of devices that hold the same shard.
    replicas: i32,
    shard_shape: Shape,
}

impl ShardingParam {
    /// Returns the logical numbers of the devices in the order of their shards.
    ///
    /// Axis 0 of the mesh is the most minor one; the first axis of the permutation varies fastest.
    ///
    /// # Errors
    /// As [`verify`](Self::verify) in strict mode.
    pub fn device_order(&self) -> Result<impl Iterator<Item = i32> + use<>, IfrtError> {
        self.verify(Validation::Strict)?;
        let (axes, devices) = self.axes();
        Ok((0..devices).map(move |position| {
            let mut rest = position;
            let mut device = 0;
            for Axis { size, stride } in &axes {
                device += rest % size * stride;
                rest /= size;
            }
            device
        }))
    }

    /// Returns the axes of a verified mesh with more than one device, the fastest varying first,
    /// and the number of all devices.
    fn axes(&self) -> (SmallVec<[Axis; 4]>, i32) {
        let mut devices = 1_i32;
        let mut strides = Vec::with_capacity(self.axis_sizes.len());
        for size in &self.axis_sizes {
            strides.push(devices);
            // The mesh is verified: the product of all sizes fits.
            devices = devices.saturating_mul(*size);
        }
        let axes = self.permutation.iter().filter_map(|axis| {
            let index = usize::try_from(*axis).ok()?;
            let axis = Axis { size: *self.axis_sizes.get(index)?, stride: *strides.get(index)? };
            (axis.size > 1).then_some(axis)
        });
        (axes.collect(), devices)
    }

    /// Returns the part of an array of `shape` that each device holds, in the order of the logical
    /// numbers of the devices.
    ///
    /// # Errors
    /// As [`verify`](Self::verify) in strict mode and [`shard_shape`](Self::shard_shape);
    /// [`IfrtError::LimitExceeded`] if the result would take more than [`DEFAULT_ANSWER_BYTES`].
    pub fn index_domains(&self, shape: &Shape) -> Result<Vec<IndexDomain>, IfrtError> {
        self.index_domains_within(shape, DEFAULT_ANSWER_BYTES)
    }

    /// Computes [`index_domains`](Self::index_domains) in at most `limit` bytes of memory. For
    /// single devices of a large mesh use [`index_domain_of`](Self::index_domain_of).
    ///
    /// # Errors
    /// As [`index_domains`](Self::index_domains).
    pub fn index_domains_within(
        &self,
        shape: &Shape,
        limit: u64,
    ) -> Result<Vec<IndexDomain>, IfrtError> {
        let tiles = self.tiles(shape)?;
        require_domains(tiles.devices.unsigned_abs().into(), shape.rank(), limit)?;
        (0..tiles.devices).map(|device| self.domain_of(&tiles, device)).collect()
    }

    /// Returns the part of an array of `shape` that the device with this logical number holds.
    ///
    /// ```
    /// use serdes::ifrt::{ShardingParam, Shape};
    ///
    /// let huge: ShardingParam = "32768 to [0,1] on 32768x32768".parse()?;
    /// let domain = huge.index_domain_of((1 << 30) - 1, &Shape::new([65536])?)?;
    /// assert_eq!(domain.to_string(), "[65534]+[2]");
    /// # Ok::<(), serdes::ifrt::IfrtError>(())
    /// ```
    ///
    /// # Errors
    /// As [`verify`](Self::verify) in strict mode and [`shard_shape`](Self::shard_shape);
    /// [`IfrtError::Invalid`] if there is no such device.
    pub fn index_domain_of(&self, device: i32, shape: &Shape) -> Result<IndexDomain, IfrtError> {
        let tiles = self.tiles(shape)?;
        if !(0..tiles.devices).contains(&device) {
            return Err(IfrtError::Invalid(format!(
                "the mesh has no device {device}; expected 0 to {}",
                tiles.devices - 1
            )));
        }
        self.domain_of(&tiles, device)
    }

    /// Verifies the sharding and divides an array of `shape` by it.
    fn tiles(&self, shape: &Shape) -> Result<Tiles, IfrtError> {
        self.verify(Validation::Strict)?;
        let shard_shape = self.shard_shape(shape)?;
        let (axes, devices) = self.axes();
        // The parameters are verified: the number of shards divides the number of devices.
        let replicas = (devices / self.shard_count()?.max(1)).max(1);
        Ok(Tiles { axes, devices, replicas, shard_shape })
    }

    fn domain_of(&self, tiles: &Tiles, device: i32) -> Result<IndexDomain, IfrtError> {
        // The position of the device in `device_order` combines its indices along the axes; the
        // first axis varies fastest.
        let (mut position, mut product) = (0, 1_i32);
        for Axis { size, stride } in &tiles.axes {
            position += device / stride % size * product;
            product = product.saturating_mul(*size);
        }
        let origin = self.origin(position / tiles.replicas, &tiles.shard_shape);
        IndexDomain::new(origin, tiles.shard_shape.clone())
    }

    /// Returns the index of the first element of a tile. Tiles are numbered in row-major order.
    fn origin(&self, tile: i32, shard_shape: &Shape) -> Index {
        let mut rest = i64::from(tile);
        let mut elements: SmallVec<[i64; 8]> = self
            .dim_shards
            .iter()
            .zip(shard_shape.dims())
            .rev()
            .map(|(shards, size)| {
                let index = rest % shards;
                rest /= shards;
                index * size
            })
            .collect();
        elements.reverse();
        Index::new(elements)
    }
}
