//! The devices of a client, their memories, and their default assignment to programs.

use serdes_abi::pjrt::args::*;

use super::{
    border::{handles, pointer},
    client::{Client, of_client},
    device::{Device, Memory},
    topology::Topology,
};
use crate::PjrtError;

impl Client {
    /// Returns every device, including those of other processes.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn devices(&self) -> Result<Vec<Device>, PjrtError> {
        let found = of_client!(self, PJRT_Client_Devices_Args)?;
        // SAFETY: the plug-in declares this number of entries; they belong to the client.
        let found = unsafe { handles("PJRT_Client_Devices", found.devices, found.num_devices) }?;
        Ok(found.into_iter().map(|raw| Device::of(self.handle(), raw)).collect())
    }

    /// Returns the devices that this process can use.
    ///
    /// # Errors
    /// As [`Self::devices`].
    pub fn addressable_devices(&self) -> Result<Vec<Device>, PjrtError> {
        const CALL: &str = "PJRT_Client_AddressableDevices";
        let found = of_client!(self, PJRT_Client_AddressableDevices_Args)?;
        let (start, count) = (found.addressable_devices, found.num_addressable_devices);
        // SAFETY: the plug-in declares this number of entries; they belong to the client.
        let found = unsafe { handles(CALL, start, count) }?;
        Ok(found.into_iter().map(|raw| Device::of(self.handle(), raw)).collect())
    }

    /// Returns the memories that this process can use; none if the plug-in does not have separate
    /// memories.
    ///
    /// # Errors
    /// As [`Self::devices`].
    pub fn addressable_memories(&self) -> Result<Vec<Memory>, PjrtError> {
        const CALL: &str = "PJRT_Client_AddressableMemories";
        let found = match of_client!(self, PJRT_Client_AddressableMemories_Args) {
            Err(error) if error.is_unsupported() => return Ok(Vec::new()),
            found => found?,
        };
        let (start, count) = (found.addressable_memories, found.num_addressable_memories);
        // SAFETY: the plug-in declares this number of entries; they belong to the client.
        let found = unsafe { handles(CALL, start, count) }?;
        Ok(found.into_iter().map(|raw| Memory::of(self.handle(), raw)).collect())
    }

    /// Returns the device with this id among the devices of all processes.
    ///
    /// # Errors
    /// The plug-in's errors, for example if there is none.
    pub fn device(&self, id: i32) -> Result<Device, PjrtError> {
        let raw = self.handle().raw();
        // SAFETY: the client is alive.
        let found = unsafe {
            self.handle().table().ask(|call: &mut PJRT_Client_LookupDevice_Args| {
                call.client = raw;
                call.id = id;
            })
        }?;
        let raw = pointer("PJRT_Client_LookupDevice", "a device", found.device)?;
        Ok(Device::of(self.handle(), raw))
    }

    /// Returns the ids of the devices on which a program with these replicas and partitions runs by
    /// default: partition by partition for each replica.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] for no replica or partition, or more than a million of both;
    /// else the plug-in's errors, for example for too few devices.
    pub fn default_device_assignment(
        &self,
        replicas: u32,
        partitions: u32,
    ) -> Result<Vec<i32>, PjrtError> {
        let count =
            replicas.checked_mul(partitions).filter(|&count| (1..=1 << 20).contains(&count));
        let Some(count) = count else {
            return Err(PjrtError::InvalidArgument {
                what: "the number of replicas and partitions",
                found: format!("{replicas} and {partitions}"),
                expected: "1 and more, and a million together at most".to_owned(),
            });
        };
        // The cast is lossless: the count is at most a million.
        let mut assignment = vec![0_i32; count as usize];
        let (raw, start, length) = (self.handle().raw(), assignment.as_mut_ptr(), assignment.len());
        // SAFETY: the client is alive, and the list has space for the declared number of ids.
        unsafe {
            self.handle().table().ask(|call: &mut PJRT_Client_DefaultDeviceAssignment_Args| {
                call.client = raw;
                call.num_replicas = replicas.cast_signed();
                call.num_partitions = partitions.cast_signed();
                call.default_assignment = start;
                call.default_assignment_size = length;
            })
        }?;
        Ok(assignment)
    }

    /// Returns the topology: the devices and their connections.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn topology(&self) -> Result<Topology, PjrtError> {
        let found = of_client!(self, PJRT_Client_TopologyDescription_Args)?;
        let raw = pointer("PJRT_Client_TopologyDescription", "a topology", found.topology)?;
        Ok(Topology::of_client(self.handle(), raw))
    }
}
