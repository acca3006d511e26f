//! The common part of all kinds of shardings: devices, and a kind of memory on them.

use crate::ifrt::{DeviceList, IfrtError};

/// Defines the methods that all kinds share, from their fields `devices` and `memory_kind`.
macro_rules! on_devices {
    () => {
        /// Returns the devices, in the order of the shards.
        pub const fn devices(&self) -> &DeviceList {
            &self.devices
        }

        /// Returns the kind of memory.
        pub const fn memory_kind(&self) -> &MemoryKind {
            &self.memory_kind
        }

        /// Moves the shards to other devices of the same number.
        pub(in crate::ifrt::sharding) fn replace_devices(
            &mut self,
            devices: DeviceList,
        ) -> Result<(), IfrtError> {
            $crate::ifrt::sharding::on_devices::replace(&mut self.devices, devices)
        }

        pub(in crate::ifrt::sharding) fn set_memory_kind(&mut self, memory_kind: MemoryKind) {
            self.memory_kind = memory_kind;
        }
    };
}
pub(super) use on_devices;

/// Replaces `devices` by a list of the same length.
pub(super) fn replace(devices: &mut DeviceList, new: DeviceList) -> Result<(), IfrtError> {
    if devices.len() != new.len() {
        return Err(IfrtError::CountMismatch {
            what: "devices",
            found: new.len() as u64,
            other: "devices to be replaced",
            expected: devices.len() as u64,
        });
    }
    *devices = new;
    Ok(())
}
