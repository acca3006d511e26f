//! A client, its devices and their memories.

use std::{ffi::c_char, ptr::NonNull, sync::Arc};

use serdes_abi::pjrt::{Minor, args::*};

use super::{
    border::{Handed, Table, list, pointer, text},
    options::{self, Value},
    plugin::PjrtPlugin,
};
use crate::pjrt::PjrtError;

/// A client's handle, and the plug-in that it is of. Whatever lives in the client holds it.
#[derive(Debug)]
pub(super) struct ClientHandle {
    plugin: PjrtPlugin,
    raw: NonNull<PJRT_Client>,
}

// SAFETY: the C API lets any thread use a client, several at once; it is destroyed when nobody holds
// it any more.
unsafe impl Send for ClientHandle {}
// SAFETY: as above.
unsafe impl Sync for ClientHandle {}

impl ClientHandle {
    pub(super) fn table(&self) -> &Table {
        self.plugin.table()
    }

    pub(super) fn raw(&self) -> *mut PJRT_Client {
        self.raw.as_ptr()
    }
}

impl Drop for ClientHandle {
    fn drop(&mut self) {
        let mut arguments = Handed::<PJRT_Client_Destroy_Args>::new();
        arguments.client = self.raw();
        // SAFETY: it is alive, and everything that lived in it held it and is gone.
        let _ = unsafe { self.table().call(&mut arguments) };
    }
}

/// A client of a plug-in: its devices, and what lives on them. Destroyed when everything is dropped
/// that is of it.
#[derive(Clone, Debug)]
pub struct Client {
    handle: Arc<ClientHandle>,
    platform_name: String,
    platform_version: String,
    process_index: i32,
}

/// Calls that give a text about a client, a device or a memory.
macro_rules! text_of {
    ($table:expr, $arguments:ident { $handle:ident: $raw:expr }, $text:ident, $length:ident) => {{
        let mut arguments = Handed::<$arguments>::new();
        arguments.$handle = $raw;
        // SAFETY: the handle is alive, and its plug-in's.
        unsafe { $table.call(&mut arguments) }?;
        let (start, length): (*const c_char, usize) = (arguments.$text, arguments.$length);
        // SAFETY: the plug-in says that there are so many bytes; they belong to what the handle is
        // of, which is alive.
        unsafe { text(<$arguments as Arguments>::FUNCTION, "its text", start, length) }
    }};
}

/// Calls that give a number.
macro_rules! number_of {
    ($table:expr, $arguments:ident { $handle:ident: $raw:expr }, $number:ident) => {{
        let mut arguments = Handed::<$arguments>::new();
        arguments.$handle = $raw;
        // SAFETY: the handle is alive, and its plug-in's.
        unsafe { $table.call(&mut arguments) }.map(|()| arguments.$number)
    }};
}

/// Calls that give a list of handles.
macro_rules! handles_of {
    ($table:expr, $arguments:ident { $handle:ident: $raw:expr }, $list:ident, $length:ident) => {{
        const CALL: &str = *<$arguments as Arguments>::FUNCTION;
        let mut arguments = Handed::<$arguments>::new();
        arguments.$handle = $raw;
        // SAFETY: the handle is alive, and its plug-in's.
        unsafe { $table.call(&mut arguments) }?;
        // SAFETY: the plug-in says that there are so many; they belong to the client, which is
        // alive.
        let found = unsafe { list(CALL, "its list", arguments.$list, arguments.$length) }?;
        found
            .iter()
            .map(|&handle| pointer(CALL, "an entry of its list", handle))
            .collect::<Result<Vec<_>, PjrtError>>()
    }};
}

impl Client {
    pub(super) fn create(
        plugin: &PjrtPlugin,
        options: &[(String, Value)],
    ) -> Result<Self, PjrtError> {
        // Without these nothing that is begun could be waited for, or its failure seen.
        plugin.table().require::<PJRT_Event_Await_Args>()?;
        plugin.table().require::<PJRT_Error_GetCode_Args>()?;
        let named = options::named_values(options, plugin.minor())?;
        let mut arguments = Handed::<PJRT_Client_Create_Args>::new();
        arguments.create_options = named.as_ptr();
        arguments.num_options = named.len();
        // SAFETY: there are so many options, and what they point to is in `options`.
        unsafe { plugin.table().call(&mut arguments) }?;
        let raw = pointer("PJRT_Client_Create", "a client", arguments.client)?;
        let handle = Arc::new(ClientHandle { plugin: plugin.clone(), raw });
        let (table, raw) = (handle.table(), handle.raw());
        let platform_name = text_of!(
            table,
            PJRT_Client_PlatformName_Args { client: raw },
            platform_name,
            platform_name_size
        )?;
        let platform_version = text_of!(
            table,
            PJRT_Client_PlatformVersion_Args { client: raw },
            platform_version,
            platform_version_size
        )?;
        let process_index =
            number_of!(table, PJRT_Client_ProcessIndex_Args { client: raw }, process_index)?;
        Ok(Self { handle, platform_name, platform_version, process_index })
    }

    pub(super) fn handle(&self) -> &Arc<ClientHandle> {
        &self.handle
    }

    /// The plug-in that it is of.
    #[must_use]
    pub fn plugin(&self) -> &PjrtPlugin {
        &self.handle.plugin
    }

    /// The version of the interface that its plug-in was built with.
    #[must_use]
    pub fn minor(&self) -> Minor {
        self.handle.table().minor()
    }

    /// What the plug-in calls its platform: `cpu`.
    #[must_use]
    pub fn platform_name(&self) -> &str {
        &self.platform_name
    }

    /// The platform's version, in the plug-in's words.
    #[must_use]
    pub fn platform_version(&self) -> &str {
        &self.platform_version
    }

    /// Which of several processes this is.
    #[must_use]
    pub fn process_index(&self) -> i32 {
        self.process_index
    }

    /// Every device, also those of other processes.
    ///
    /// # Errors
    /// As the plug-in's, or [`PjrtError::BadAnswer`].
    pub fn devices(&self) -> Result<Vec<Device>, PjrtError> {
        let (table, raw) = (self.handle.table(), self.handle.raw());
        let found =
            handles_of!(table, PJRT_Client_Devices_Args { client: raw }, devices, num_devices)?;
        Ok(found.into_iter().map(|raw| Device { client: Arc::clone(&self.handle), raw }).collect())
    }

    /// The devices that this process can use.
    ///
    /// # Errors
    /// As [`Self::devices`].
    pub fn addressable_devices(&self) -> Result<Vec<Device>, PjrtError> {
        let (table, raw) = (self.handle.table(), self.handle.raw());
        let found = handles_of!(
            table,
            PJRT_Client_AddressableDevices_Args { client: raw },
            addressable_devices,
            num_addressable_devices
        )?;
        Ok(found.into_iter().map(|raw| Device { client: Arc::clone(&self.handle), raw }).collect())
    }
}

/// A device of a client.
#[derive(Clone, Debug)]
pub struct Device {
    client: Arc<ClientHandle>,
    raw: NonNull<PJRT_Device>,
}

// SAFETY: a device is its client's, which is used from any thread; the handle is never destroyed.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    pub(super) fn raw(&self) -> *mut PJRT_Device {
        self.raw.as_ptr()
    }

    pub(super) fn client(&self) -> &Arc<ClientHandle> {
        &self.client
    }

    fn description(&self) -> Result<*mut PJRT_DeviceDescription, PjrtError> {
        let arguments = number_of!(
            self.client.table(),
            PJRT_Device_GetDescription_Args { device: self.raw() },
            device_description
        )?;
        let call = "PJRT_Device_GetDescription";
        pointer(call, "a description", arguments).map(NonNull::as_ptr)
    }

    /// Its number among all devices of all processes.
    ///
    /// # Errors
    /// As the plug-in's.
    pub fn id(&self) -> Result<i32, PjrtError> {
        let raw = self.description()?;
        number_of!(
            self.client.table(),
            PJRT_DeviceDescription_Id_Args { device_description: raw },
            id
        )
    }

    /// Which process it belongs to.
    ///
    /// # Errors
    /// As the plug-in's.
    pub fn process_index(&self) -> Result<i32, PjrtError> {
        let raw = self.description()?;
        number_of!(
            self.client.table(),
            PJRT_DeviceDescription_ProcessIndex_Args { device_description: raw },
            process_index
        )
    }

    /// What kind of device it is, in the vendor's words.
    ///
    /// # Errors
    /// As the plug-in's, or [`PjrtError::BadAnswer`].
    pub fn kind(&self) -> Result<String, PjrtError> {
        let raw = self.description()?;
        text_of!(
            self.client.table(),
            PJRT_DeviceDescription_Kind_Args { device_description: raw },
            device_kind,
            device_kind_size
        )
    }

    /// A text for people; it changes between builds.
    ///
    /// # Errors
    /// As the plug-in's, or [`PjrtError::BadAnswer`].
    pub fn debug_string(&self) -> Result<String, PjrtError> {
        let raw = self.description()?;
        text_of!(
            self.client.table(),
            PJRT_DeviceDescription_DebugString_Args { device_description: raw },
            debug_string,
            debug_string_size
        )
    }

    /// Whether this process can use it.
    ///
    /// # Errors
    /// As the plug-in's.
    pub fn is_addressable(&self) -> Result<bool, PjrtError> {
        number_of!(
            self.client.table(),
            PJRT_Device_IsAddressable_Args { device: self.raw() },
            is_addressable
        )
        .map(|flag| flag != 0)
    }

    /// Its number among the devices of this machine.
    ///
    /// # Errors
    /// As the plug-in's.
    pub fn local_hardware_id(&self) -> Result<i32, PjrtError> {
        number_of!(
            self.client.table(),
            PJRT_Device_LocalHardwareId_Args { device: self.raw() },
            local_hardware_id
        )
    }

    /// The memories that it can use; none, if the plug-in does not tell them apart.
    ///
    /// # Errors
    /// As the plug-in's, or [`PjrtError::BadAnswer`].
    pub fn memories(&self) -> Result<Vec<Memory>, PjrtError> {
        let found = (|| {
            handles_of!(
                self.client.table(),
                PJRT_Device_AddressableMemories_Args { device: self.raw() },
                memories,
                num_memories
            )
        })();
        match found {
            Err(error) if error.is_unsupported() => Ok(Vec::new()),
            found => Ok(found?.into_iter().map(|raw| self.memory(raw)).collect()),
        }
    }

    /// The memory in which arrays are put by default; `None`, if the plug-in does not tell memories
    /// apart.
    ///
    /// # Errors
    /// As the plug-in's, or [`PjrtError::BadAnswer`].
    pub fn default_memory(&self) -> Result<Option<Memory>, PjrtError> {
        let raw = number_of!(
            self.client.table(),
            PJRT_Device_DefaultMemory_Args { device: self.raw() },
            memory
        );
        match raw {
            Err(error) if error.is_unsupported() => Ok(None),
            raw => {
                let raw = pointer("PJRT_Device_DefaultMemory", "a memory", raw?)?;
                Ok(Some(self.memory(raw)))
            }
        }
    }

    fn memory(&self, raw: NonNull<PJRT_Memory>) -> Memory {
        Memory { client: Arc::clone(&self.client), raw }
    }
}

/// A memory of a client.
#[derive(Clone, Debug)]
pub struct Memory {
    client: Arc<ClientHandle>,
    raw: NonNull<PJRT_Memory>,
}

// SAFETY: as for a device.
unsafe impl Send for Memory {}
// SAFETY: as for a device.
unsafe impl Sync for Memory {}

impl Memory {
    pub(super) fn raw(&self) -> *mut PJRT_Memory {
        self.raw.as_ptr()
    }

    pub(super) fn client(&self) -> &Arc<ClientHandle> {
        &self.client
    }

    /// Its number.
    ///
    /// # Errors
    /// As the plug-in's.
    pub fn id(&self) -> Result<i32, PjrtError> {
        number_of!(self.client.table(), PJRT_Memory_Id_Args { memory: self.raw() }, id)
    }

    /// What kind of memory it is: `device`, `pinned_host`.
    ///
    /// # Errors
    /// As the plug-in's, or [`PjrtError::BadAnswer`].
    pub fn kind(&self) -> Result<String, PjrtError> {
        text_of!(self.client.table(), PJRT_Memory_Kind_Args { memory: self.raw() }, kind, kind_size)
    }
}
