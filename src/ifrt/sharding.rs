//! Shardings: distributions of an array's elements over devices.

mod bound;
mod concrete;
mod concrete_even;
mod hlo;
mod on_devices;
mod opaque;
mod param_sharding;
mod single_device;

pub use bound::DEFAULT_ANSWER_BYTES;
pub(in crate::ifrt) use bound::require_domains;
use bound::require_parts;
pub(in crate::ifrt) use concrete::refuse_index_domains;
pub use concrete::{ConcreteSharding, ShardShapes};
pub use concrete_even::ConcreteEvenSharding;
pub(in crate::ifrt) use concrete_even::check_even;
pub use hlo::HloSharding;
pub(in crate::ifrt) use hlo::tile_shape;
pub use opaque::OpaqueSharding;
pub use param_sharding::ShardingParamSharding;
pub use single_device::SingleDeviceSharding;

use super::{DeviceList, IfrtError, IndexDomain, MemoryKind, Shape, kinds::kinds};
use crate::proto::xla::ifrt as wire;

kinds! {
    ($) by for_each_kind
    /// A sharding of any kind.
    enum Sharding {
        /// The whole array on one device.
        SingleDevice(SingleDeviceSharding),
        /// Shards on known devices, with nothing else known.
        Opaque(OpaqueSharding),
        /// The shape of every shard is listed.
        Concrete(ConcreteSharding),
        /// Equal shards of one array shape.
        ConcreteEven(ConcreteEvenSharding),
        /// Dimensions mapped to the axes of a mesh.
        ShardingParam(ShardingParamSharding),
        /// A sharding as XLA describes it.
        Hlo(HloSharding),
    }
    /// The envelope has no version: the sharding inside is written at the requested one.
    ToProto,
    /// The envelope has no version: the sharding inside records its own. Needs
    /// [`DeserializeShardingOptions`](super::DeserializeShardingOptions).
    FromProto as wire::ShardingProto
}

impl Sharding {
    /// Returns the devices, in the order of the shards.
    pub fn devices(&self) -> DeviceList {
        for_each_kind!(self, sharding => sharding.devices().clone())
    }

    /// Returns the kind of memory that the shards live in.
    pub fn memory_kind(&self) -> &MemoryKind {
        for_each_kind!(self, sharding => sharding.memory_kind())
    }

    /// Returns true if every device holds the whole array.
    pub fn is_fully_replicated(&self) -> bool {
        for_each_kind!(self, sharding => sharding.is_fully_replicated())
    }

    /// Returns the shape of a shard of an array of `shape`, if all shards have the same shape.
    ///
    /// # Errors
    /// [`IfrtError`] if the kind of sharding does not know the shape of its shards, or not for this
    /// array.
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape, IfrtError> {
        for_each_kind!(self, sharding => sharding.shard_shape(shape))
    }

    /// Returns the part of an array of `shape` that each device holds, in the order of the devices.
    ///
    /// # Errors
    /// [`IfrtError`] if the kind of sharding does not know the parts, or not for this shape;
    /// [`IfrtError::LimitExceeded`] if the result would take more than [`DEFAULT_ANSWER_BYTES`].
    pub fn index_domains(&self, shape: &Shape) -> Result<Vec<IndexDomain>, IfrtError> {
        self.index_domains_within(shape, DEFAULT_ANSWER_BYTES)
    }

    /// Computes [`index_domains`](Self::index_domains) in at most `limit` bytes of memory.
    ///
    /// ```
    /// use serdes::ifrt::{DeviceId, DeviceList, HloSharding, IfrtError, MemoryKind, Shape, Sharding};
    ///
    /// let devices: DeviceList = (0..4096).map(DeviceId).collect();
    /// let everywhere = Sharding::from(HloSharding::replicated(devices, MemoryKind::unset())?);
    /// let shape = Shape::new([512, 128])?;
    /// assert_eq!(everywhere.index_domains_within(&shape, 1 << 20)?.len(), 4096);
    /// let error = everywhere.index_domains_within(&shape, 1 << 10).unwrap_err();
    /// assert!(matches!(error, IfrtError::LimitExceeded { limit: 1024, .. }));
    /// # Ok::<(), IfrtError>(())
    /// ```
    ///
    /// # Errors
    /// As [`index_domains`](Self::index_domains).
    pub fn index_domains_within(
        &self,
        shape: &Shape,
        limit: u64,
    ) -> Result<Vec<IndexDomain>, IfrtError> {
        require_domains(self.devices().len() as u64, shape.rank(), limit)?;
        for_each_kind!(self, sharding => sharding.index_domains_within(shape, limit))
    }

    /// Returns the shape of the shard on each device, with a sharding for that device alone, in the
    /// order of the devices.
    ///
    /// # Errors
    /// [`IfrtError`] if the kind of sharding does not know the shapes, or not for this shape;
    /// [`IfrtError::LimitExceeded`] if the result would take more than [`DEFAULT_ANSWER_BYTES`].
    pub fn disassemble(
        &self,
        shape: &Shape,
    ) -> Result<Vec<(Shape, SingleDeviceSharding)>, IfrtError> {
        self.disassemble_within(shape, DEFAULT_ANSWER_BYTES)
    }

    /// Computes [`disassemble`](Self::disassemble) in at most `limit` bytes of memory.
    ///
    /// # Errors
    /// As [`disassemble`](Self::disassemble).
    pub fn disassemble_within(
        &self,
        shape: &Shape,
        limit: u64,
    ) -> Result<Vec<(Shape, SingleDeviceSharding)>, IfrtError> {
        let devices = self.devices();
        require_parts(devices.len() as u64, shape.rank(), limit)?;
        let shapes = for_each_kind!(self, sharding => sharding.shard_shapes_of(shape, limit))?;
        Ok(shapes
            .into_iter()
            .zip(devices.ids())
            .map(|(shape, device)| {
                let kind = self.memory_kind().clone();
                (shape, SingleDeviceSharding::new(*device).with_memory_kind(kind))
            })
            .collect())
    }

    /// Sets other devices, or another kind of memory.
    ///
    /// # Errors
    /// [`IfrtError::CountMismatch`] if `devices` is not as long as the list that it replaces.
    pub fn with_device_assignment(
        &self,
        devices: Option<DeviceList>,
        memory_kind: Option<MemoryKind>,
    ) -> Result<Self, IfrtError> {
        let mut sharding = self.clone();
        for_each_kind!(&mut sharding, sharding => {
            if let Some(devices) = devices {
                sharding.replace_devices(devices)?;
            }
            if let Some(memory_kind) = memory_kind {
                sharding.set_memory_kind(memory_kind);
            }
        });
        Ok(sharding)
    }
}

#[cfg(test)]
mod tests;
