//! Handles of each kind, and the plug-in's objects behind them.
//!
//! A host may keep every handle as long as the C API permits, and passes each call the kind of
//! handle that the call declares. NULL is refused; nothing else can be checked.

use std::{ptr, sync::Arc};

use serdes_abi::pjrt::args::*;

use super::pointers::{Handles, behind};
use crate::{
    Result, Status,
    pjrt::{
        Plugin,
        array::Array,
        client::{OpenClient, OpenDevice, OpenMemory},
        loaded::Loaded,
    },
};

/// Defines `function(raw: C type) -> type, "name"`, which returns the object behind a handle of one
/// kind.
macro_rules! kinds {
    ($($name:ident $(<$plugin:ident>)? ($handle:ty) -> $behind:ty, $what:literal;)*) => {$(
        /// # Safety
        /// `raw` is NULL, or a handle of this kind and of this plug-in that is alive as long as
        /// `'a`.
        pub(super) unsafe fn $name<'a $(, $plugin: Plugin)?>(raw: *const $handle) -> Result<&'a $behind> {
            // SAFETY: the caller's promise: handles of this kind are created below, or with
            // `pointers::give`, for this type.
            unsafe { behind(raw, $what) }
        }
    )*};
}

kinds! {
    client<P>(PJRT_Client) -> Arc<OpenClient<P>>, "a client";
    topology<P>(PJRT_TopologyDescription) -> OpenClient<P>, "a topology";
    device<P>(PJRT_Device) -> OpenDevice<P>, "a device";
    description<P>(PJRT_DeviceDescription) -> OpenDevice<P>, "a description of a device";
    memory<P>(PJRT_Memory) -> OpenMemory<P>, "a memory";
    array<P>(PJRT_Buffer) -> Arc<Array<P>>, "a buffer";
    loaded<P>(PJRT_LoadedExecutable) -> Arc<Loaded<P>>, "a program";
    executable<P>(PJRT_Executable) -> Arc<Loaded<P>>, "a program";
    transfers<P>(PJRT_AsyncHostToDeviceTransferManager) -> crate::pjrt::transfers::Transfers<P>, "a transfer manager";
    event(PJRT_Event) -> super::events::HostEvent, "an event";
}

impl<P: Plugin> OpenClient<P> {
    /// Returns its devices as handles, which also serve as the handles of their descriptions.
    pub(in crate::pjrt) fn device_handles(&self) -> &Handles<PJRT_Device> {
        self.device_handles.get_or_init(|| Handles::of(&self.devices))
    }

    /// Returns its memories as handles.
    pub(super) fn memory_handles(&self) -> &Handles<PJRT_Memory> {
        self.memory_handles.get_or_init(|| Handles::of(&self.memories))
    }

    /// Returns the index of a device.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it is not a device of this client.
    pub(super) fn device_index(&self, device: *const PJRT_Device) -> Result<usize> {
        position(self.device_handles(), device, "device")
    }

    /// Returns the index of a device's default memory.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the device is not one of this client.
    pub(super) fn default_memory(&self, device: *const PJRT_Device) -> Result<usize> {
        let found = self.device_index(device)?;
        let device = self.devices.get(found);
        let device = device.ok_or_else(|| Status::internal("there is no such device"))?;
        Ok(device.memories.start)
    }

    /// Returns the index of a memory.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it is not a memory of this client.
    pub(super) fn memory_index(&self, memory: *const PJRT_Memory) -> Result<usize> {
        position(self.memory_handles(), memory, "memory")
    }

    /// Returns the index of the memory that a host selects: the given memory, or else the default
    /// memory of the given device.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it does not belong to this client, or neither is given.
    pub(super) fn target(
        &self,
        device: *const PJRT_Device,
        memory: *const PJRT_Memory,
    ) -> Result<usize> {
        if memory.is_null() { self.default_memory(device) } else { self.memory_index(memory) }
    }
}

fn position<C>(handles: &Handles<C>, handle: *const C, what: &str) -> Result<usize> {
    let found = handles.all().iter().position(|&known| ptr::eq(known, handle));
    found.ok_or_else(|| {
        Status::invalid_argument(format!("found a {what} that is not one of this client"))
    })
}
