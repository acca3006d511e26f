//! What a host holds: pointers to things of the plug-in.
//!
//! A host keeps every handle as long as the C API lets it, and gives each call the kind of handle
//! that the call names. NULL is refused; more cannot be found out.

use std::{ptr, sync::Arc};

use serdes_abi::pjrt::args::*;

use crate::{
    Result, Status,
    pjrt::{
        Plugin,
        array::Array,
        client::{OpenClient, OpenDevice, OpenMemory},
    },
};

/// What is behind a handle.
///
/// # Safety
/// `raw` is NULL, or a pointer to a `T` that lives as long as `'a`.
unsafe fn behind<'a, T, C>(raw: *const C, what: &str) -> Result<&'a T> {
    // SAFETY: the caller's promise.
    unsafe { raw.cast::<T>().as_ref() }
        .ok_or_else(|| Status::invalid_argument(format!("found NULL, expected {what}")))
}

/// Hands something over.
pub(super) fn give<T, C>(value: T) -> *mut C {
    Box::into_raw(Box::new(value)).cast()
}

/// Takes something back that was handed over.
///
/// # Safety
/// `raw` is NULL, or [`give`] gave it for a `T`, and it was not taken back before.
pub(super) unsafe fn take<T, C>(raw: *mut C, what: &str) -> Result<Box<T>> {
    if raw.is_null() {
        return Err(Status::invalid_argument(format!("found NULL, expected {what}")));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { Box::from_raw(raw.cast()) })
}

/// `function(raw: C type) -> type, "what"`: what is behind handles of one kind.
macro_rules! kinds {
    ($($name:ident $(<$plugin:ident>)? ($handle:ty) -> $behind:ty, $what:literal;)*) => {$(
        /// # Safety
        /// `raw` is NULL, or a handle of this kind of this plug-in that is alive as long as `'a`.
        pub(super) unsafe fn $name<'a $(, $plugin: Plugin)?>(raw: *const $handle) -> Result<&'a $behind> {
            // SAFETY: the caller's promise: what is handed out as this kind is given out below, or
            // with `give`, for this type.
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
    transfers<P>(PJRT_AsyncHostToDeviceTransferManager) -> crate::pjrt::transfers::Transfers<P>, "a transfer manager";
    event(PJRT_Event) -> super::events::HostEvent, "an event";
}

/// A list of handles that a host reads.
#[derive(Debug)]
pub(in crate::pjrt) struct Handles<C>(Box<[*mut C]>);

// SAFETY: addresses of things that any thread may use, and that live as long as the list.
unsafe impl<C> Send for Handles<C> {}
// SAFETY: as above.
unsafe impl<C> Sync for Handles<C> {}

impl<C> Handles<C> {
    fn of<T>(values: &[T]) -> Self {
        Self(values.iter().map(|value| ptr::from_ref(value).cast_mut().cast()).collect())
    }

    pub(super) fn all(&self) -> &[*mut C] {
        &self.0
    }

    pub(super) fn get(&self, index: usize) -> Option<*mut C> {
        self.0.get(index).copied()
    }
}

impl<P: Plugin> OpenClient<P> {
    /// Its devices as handles, which are as well the handles of their descriptions.
    pub(super) fn device_handles(&self) -> &Handles<PJRT_Device> {
        self.device_handles.get_or_init(|| Handles::of(&self.devices))
    }

    /// Its memories as handles.
    pub(super) fn memory_handles(&self) -> &Handles<PJRT_Memory> {
        self.memory_handles.get_or_init(|| Handles::of(&self.memories))
    }

    /// The place of a device's default memory.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the device is none of this client.
    pub(super) fn default_memory(&self, device: *const PJRT_Device) -> Result<usize> {
        let found = position(self.device_handles(), device, "device")?;
        let device = self.devices.get(found);
        let device = device.ok_or_else(|| Status::internal("there is no such device"))?;
        Ok(device.memories.start)
    }

    /// The place of a memory.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it is none of this client.
    pub(super) fn memory_index(&self, memory: *const PJRT_Memory) -> Result<usize> {
        position(self.memory_handles(), memory, "memory")
    }

    /// The place of the memory that a host means: the memory that it names, or else the device's
    /// default.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if that is none of this client, or it names none.
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
