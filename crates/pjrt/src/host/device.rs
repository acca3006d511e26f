//! Devices and their memories. Both belong to their client, and are never destroyed.

use std::{ffi::c_char, ptr::NonNull, sync::Arc};

use serdes_abi::pjrt::args::*;

use super::{
    border::{Table, handles, pointer, text},
    client::{Client, ClientHandle},
    client_object::ClientObject,
    options::{Value, attributes},
    statistics::MemoryStatistics,
};
use crate::PjrtError;

/// A device of a client. Two are equal if they are the same device of the same client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device(ClientObject<PJRT_Device>);

/// Makes a call whose only input is the device.
macro_rules! of_device {
    ($device:expr, $arguments:ident) => {{
        let raw = $device.raw();
        // SAFETY: the device is alive as long as its client.
        unsafe { $device.0.handle().table().ask(|call: &mut $arguments| call.device = raw) }
    }};
}

impl Device {
    #[inline]
    pub(crate) fn raw(&self) -> *mut PJRT_Device {
        self.0.raw()
    }

    pub(super) fn of(client: &Arc<ClientHandle>, raw: NonNull<PJRT_Device>) -> Self {
        Self(ClientObject::new(client, raw))
    }

    pub(super) fn client_handle(&self) -> &Arc<ClientHandle> {
        self.0.handle()
    }

    /// Returns the client that owns the device.
    #[must_use]
    pub fn client(&self) -> Client {
        self.0.client()
    }

    /// Returns the description of the device. Devices of other processes have one too.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn description(&self) -> Result<DeviceDescription<'_>, PjrtError> {
        let found = of_device!(self, PJRT_Device_GetDescription_Args)?.device_description;
        let raw = pointer("PJRT_Device_GetDescription", "a description", found)?;
        Ok(DeviceDescription { table: self.0.handle().table(), raw })
    }

    /// Returns the id of the device among the devices of all processes.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn id(&self) -> Result<i32, PjrtError> {
        self.description()?.id()
    }

    /// Returns the index of the process that the device belongs to.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn process_index(&self) -> Result<i32, PjrtError> {
        self.description()?.process_index()
    }

    /// Returns the vendor's name for this kind of device.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn kind(&self) -> Result<String, PjrtError> {
        self.description()?.kind()
    }

    /// Returns a text for people, which may differ between builds.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn debug_string(&self) -> Result<String, PjrtError> {
        self.description()?.debug_string()
    }

    /// Returns the vendor's attributes by name, such as the coordinates.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn attributes(&self) -> Result<Vec<(String, Value)>, PjrtError> {
        self.description()?.attributes()
    }

    /// Returns true if this process can use the device.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn is_addressable(&self) -> Result<bool, PjrtError> {
        Ok(of_device!(self, PJRT_Device_IsAddressable_Args)?.is_addressable != 0)
    }

    /// Returns the number of the device among the devices of this machine.
    ///
    /// # Errors
    /// The plug-in's errors.
    #[inline]
    pub fn local_hardware_id(&self) -> Result<i32, PjrtError> {
        Ok(of_device!(self, PJRT_Device_LocalHardwareId_Args)?.local_hardware_id)
    }

    /// Returns the memories that the device can use; none if the plug-in does not have separate
    /// memories.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn memories(&self) -> Result<Vec<Memory>, PjrtError> {
        const CALL: &str = "PJRT_Device_AddressableMemories";
        let found = match of_device!(self, PJRT_Device_AddressableMemories_Args) {
            Err(error) if error.is_unsupported() => return Ok(Vec::new()),
            found => found?,
        };
        // SAFETY: the plug-in declares this number of entries; they belong to the client.
        let found = unsafe { handles(CALL, found.memories, found.num_memories) }?;
        Ok(found.into_iter().map(|raw| Memory::of(self.0.handle(), raw)).collect())
    }

    /// Returns the memory for arrays by default; `None` if the plug-in does not have separate
    /// memories.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn default_memory(&self) -> Result<Option<Memory>, PjrtError> {
        match of_device!(self, PJRT_Device_DefaultMemory_Args) {
            Err(error) if error.is_unsupported() => Ok(None),
            found => {
                let raw = pointer("PJRT_Device_DefaultMemory", "a memory", found?.memory)?;
                Ok(Some(Memory::of(self.0.handle(), raw)))
            }
        }
    }

    /// Returns the statistics of the device's memory; `None` if the plug-in counts nothing.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn memory_statistics(&self) -> Result<Option<MemoryStatistics>, PjrtError> {
        match of_device!(self, PJRT_Device_MemoryStats_Args) {
            Err(error) if error.is_unsupported() => Ok(None),
            found => Ok(Some(MemoryStatistics::of(&found?, self.0.handle().table().minor()))),
        }
    }

    /// Resets the peaks of the statistics.
    ///
    /// # Errors
    /// The plug-in's errors; [`PjrtError::Missing`] before 0.106.
    pub fn clear_memory_statistics(&self) -> Result<(), PjrtError> {
        of_device!(self, PJRT_Device_ClearMemoryStats_Args).map(drop)
    }
}

/// The description of a device, present or not.
#[derive(Clone, Copy, Debug)]
pub struct DeviceDescription<'a> {
    table: &'a Table,
    raw: NonNull<PJRT_DeviceDescription>,
}

// SAFETY: a description belongs to its client or topology, which is used from any thread; it is
// never written to.
unsafe impl Send for DeviceDescription<'_> {}
// SAFETY: as above.
unsafe impl Sync for DeviceDescription<'_> {}

/// Makes a call whose only input is the description.
macro_rules! of_description {
    ($description:expr, $arguments:ident) => {{
        let raw = $description.raw.as_ptr();
        // SAFETY: the description is alive as long as the object that it borrows from.
        unsafe { $description.table.ask(|call: &mut $arguments| call.device_description = raw) }
    }};
}

impl<'a> DeviceDescription<'a> {
    /// # Safety
    /// The description belongs to this plug-in, and lives for `'a`.
    pub(super) unsafe fn of(table: &'a Table, raw: NonNull<PJRT_DeviceDescription>) -> Self {
        Self { table, raw }
    }

    /// Returns the id of the device among the devices of all processes.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn id(&self) -> Result<i32, PjrtError> {
        Ok(of_description!(self, PJRT_DeviceDescription_Id_Args)?.id)
    }

    /// Returns the index of the process that the device belongs to.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn process_index(&self) -> Result<i32, PjrtError> {
        Ok(of_description!(self, PJRT_DeviceDescription_ProcessIndex_Args)?.process_index)
    }

    /// Returns the vendor's name for this kind of device.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn kind(&self) -> Result<String, PjrtError> {
        let found = of_description!(self, PJRT_DeviceDescription_Kind_Args)?;
        self.text("PJRT_DeviceDescription_Kind", found.device_kind, found.device_kind_size)
    }

    /// Returns a text for people, which may differ between builds.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn debug_string(&self) -> Result<String, PjrtError> {
        let found = of_description!(self, PJRT_DeviceDescription_DebugString_Args)?;
        let call = "PJRT_DeviceDescription_DebugString";
        self.text(call, found.debug_string, found.debug_string_size)
    }

    /// Returns a shorter text for people.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn short_string(&self) -> Result<String, PjrtError> {
        let found = of_description!(self, PJRT_DeviceDescription_ToString_Args)?;
        self.text("PJRT_DeviceDescription_ToString", found.to_string, found.to_string_size)
    }

    /// Returns the vendor's attributes by name, such as the coordinates.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn attributes(&self) -> Result<Vec<(String, Value)>, PjrtError> {
        const CALL: &str = "PJRT_DeviceDescription_Attributes";
        let found = of_description!(self, PJRT_DeviceDescription_Attributes_Args)?;
        // SAFETY: the plug-in declares this number of entries; they belong to the description.
        unsafe { attributes(CALL, found.attributes, found.num_attributes) }
    }

    fn text(
        &self,
        call: &'static str,
        start: *const c_char,
        length: usize,
    ) -> Result<String, PjrtError> {
        // SAFETY: the plug-in returned both just now; the bytes belong to the description, which is
        // alive.
        unsafe { text(call, "its text", start, length) }
    }
}

/// A memory of a client. Two are equal if they are the same memory of the same client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory(ClientObject<PJRT_Memory>);

/// Makes a call whose only input is the memory.
macro_rules! of_memory {
    ($memory:expr, $arguments:ident) => {{
        let raw = $memory.raw();
        // SAFETY: the memory is alive as long as its client.
        unsafe { $memory.0.handle().table().ask(|call: &mut $arguments| call.memory = raw) }
    }};
}

impl Memory {
    pub(crate) fn raw(&self) -> *mut PJRT_Memory {
        self.0.raw()
    }

    pub(super) fn of(client: &Arc<ClientHandle>, raw: NonNull<PJRT_Memory>) -> Self {
        Self(ClientObject::new(client, raw))
    }

    pub(super) fn client_handle(&self) -> &Arc<ClientHandle> {
        self.0.handle()
    }

    /// Returns the client that owns the memory.
    #[must_use]
    pub fn client(&self) -> Client {
        self.0.client()
    }

    /// Returns the id of the memory.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn id(&self) -> Result<i32, PjrtError> {
        Ok(of_memory!(self, PJRT_Memory_Id_Args)?.id)
    }

    /// Returns the kind of the memory, such as `device` or `pinned_host`.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn kind(&self) -> Result<String, PjrtError> {
        let found = of_memory!(self, PJRT_Memory_Kind_Args)?;
        // SAFETY: the plug-in declares this length in bytes; the bytes belong to the memory.
        unsafe { text("PJRT_Memory_Kind", "its text", found.kind, found.kind_size) }
    }

    /// Returns the number of the memory's kind; in some plug-ins a hash, which may be negative.
    ///
    /// # Errors
    /// The plug-in's errors; [`PjrtError::Missing`] before 0.48.
    pub fn kind_id(&self) -> Result<i32, PjrtError> {
        Ok(of_memory!(self, PJRT_Memory_Kind_Id_Args)?.kind_id)
    }

    /// Returns a text for people, which may differ between builds.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn debug_string(&self) -> Result<String, PjrtError> {
        let found = of_memory!(self, PJRT_Memory_DebugString_Args)?;
        let call = "PJRT_Memory_DebugString";
        // SAFETY: the plug-in declares this length in bytes; the bytes belong to the memory.
        unsafe { text(call, "its text", found.debug_string, found.debug_string_size) }
    }

    /// Returns the devices that can use the memory.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn devices(&self) -> Result<Vec<Device>, PjrtError> {
        const CALL: &str = "PJRT_Memory_AddressableByDevices";
        let found = of_memory!(self, PJRT_Memory_AddressableByDevices_Args)?;
        // SAFETY: the plug-in declares this number of entries; they belong to the client.
        let found = unsafe { handles(CALL, found.devices, found.num_devices) }?;
        Ok(found.into_iter().map(|raw| Device::of(self.0.handle(), raw)).collect())
    }
}
