//! A client: the devices of a plug-in, and what is asked of all of them.

use std::{ptr::NonNull, sync::Arc};

use serdes_abi::pjrt::{Minor, args::*};

use super::{
    border::{Table, handles, list, pointer, text},
    device::{Device, Memory},
    host_memory::Mapping,
    options::{self, Value},
    plugin::PjrtPlugin,
    topology::Topology,
};
use crate::pjrt::PjrtError;

/// A client as the plug-in handed it over.
#[derive(Debug)]
struct RawClient {
    plugin: PjrtPlugin,
    raw: NonNull<PJRT_Client>,
}

impl Drop for RawClient {
    fn drop(&mut self) {
        let (table, raw) = (self.plugin.table(), self.raw.as_ptr());
        // SAFETY: it is alive, and everything that lived in it held it and is gone. An error
        // changes nothing.
        let _ = unsafe { table.ask(|call: &mut PJRT_Client_Destroy_Args| call.client = raw) };
    }
}

/// A client's handle, and the plug-in that it is of. Whatever lives in the client holds it.
#[derive(Debug)]
pub(super) struct ClientHandle {
    client: RawClient,
    platform_name: String,
    platform_version: String,
    process_index: i32,
    /// What is known of mapping memory of the host.
    pub(super) mapping: Mapping,
}

// SAFETY: the C API lets any thread use a client, several at once; it is destroyed when nobody holds
// it any more.
unsafe impl Send for ClientHandle {}
// SAFETY: as above.
unsafe impl Sync for ClientHandle {}

impl ClientHandle {
    pub(super) fn plugin(&self) -> &PjrtPlugin {
        &self.client.plugin
    }

    #[inline]
    pub(super) fn table(&self) -> &Table {
        self.client.plugin.table()
    }

    #[inline]
    pub(super) fn raw(&self) -> *mut PJRT_Client {
        self.client.raw.as_ptr()
    }
}

/// A client of a plug-in: its devices, and what lives on them. Destroyed when everything is dropped
/// that is of it.
#[derive(Clone, Debug)]
pub struct Client {
    handle: Arc<ClientHandle>,
}

/// Calls that are given the client alone.
macro_rules! of_client {
    ($table:expr, $raw:expr, $arguments:ident) => {{
        let raw = $raw;
        // SAFETY: the client is alive as long as somebody holds it.
        unsafe { $table.ask(|call: &mut $arguments| call.client = raw) }
    }};
    ($client:expr, $arguments:ident) => {
        of_client!($client.handle.table(), $client.handle.raw(), $arguments)
    };
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
        // SAFETY: there are so many options, and what they point to is in `options`.
        let made = unsafe {
            plugin.table().ask(|call: &mut PJRT_Client_Create_Args| {
                call.create_options = named.as_ptr();
                call.num_options = named.len();
            })
        }?;
        let raw = pointer("PJRT_Client_Create", "a client", made.client)?;
        let client = RawClient { plugin: plugin.clone(), raw };
        let (table, raw) = (plugin.table(), raw.as_ptr());
        let name = of_client!(table, raw, PJRT_Client_PlatformName_Args)?;
        let (start, length) = (name.platform_name, name.platform_name_size);
        // SAFETY: the plug-in says that there are so many bytes; they are the client's.
        let platform_name = unsafe { text("PJRT_Client_PlatformName", "its text", start, length) }?;
        let version = of_client!(table, raw, PJRT_Client_PlatformVersion_Args)?;
        let (start, length) = (version.platform_version, version.platform_version_size);
        let call = "PJRT_Client_PlatformVersion";
        // SAFETY: as above.
        let platform_version = unsafe { text(call, "its text", start, length) }?;
        let process_index = of_client!(table, raw, PJRT_Client_ProcessIndex_Args)?.process_index;
        let mapping = Mapping::default();
        let handle =
            ClientHandle { client, platform_name, platform_version, process_index, mapping };
        Ok(Self { handle: Arc::new(handle) })
    }

    /// The client that a device or an array is of.
    pub(super) fn of(handle: &Arc<ClientHandle>) -> Self {
        Self { handle: Arc::clone(handle) }
    }

    #[cfg(feature = "conformance")]
    pub(in crate::pjrt) fn raw(&self) -> *mut PJRT_Client {
        self.handle.raw()
    }

    #[inline]
    pub(super) fn handle(&self) -> &Arc<ClientHandle> {
        &self.handle
    }

    /// The plug-in that it is of.
    #[must_use]
    pub fn plugin(&self) -> &PjrtPlugin {
        self.handle.plugin()
    }

    /// The version of the interface that its plug-in was built with.
    #[must_use]
    pub fn minor(&self) -> Minor {
        self.handle.table().minor()
    }

    /// What the plug-in calls its platform: `cpu`.
    #[must_use]
    pub fn platform_name(&self) -> &str {
        &self.handle.platform_name
    }

    /// The platform's version, in the plug-in's words.
    #[must_use]
    pub fn platform_version(&self) -> &str {
        &self.handle.platform_version
    }

    /// Which of several processes this is.
    #[must_use]
    pub fn process_index(&self) -> i32 {
        self.handle.process_index
    }

    /// Every device, also those of other processes.
    ///
    /// # Errors
    /// As the plug-in's, or [`PjrtError::BadAnswer`].
    pub fn devices(&self) -> Result<Vec<Device>, PjrtError> {
        let found = of_client!(self, PJRT_Client_Devices_Args)?;
        // SAFETY: the plug-in says that there are so many; they belong to the client.
        let found = unsafe { handles("PJRT_Client_Devices", found.devices, found.num_devices) }?;
        Ok(found.into_iter().map(|raw| Device::of(&self.handle, raw)).collect())
    }

    /// The devices that this process can use.
    ///
    /// # Errors
    /// As [`Self::devices`].
    pub fn addressable_devices(&self) -> Result<Vec<Device>, PjrtError> {
        const CALL: &str = "PJRT_Client_AddressableDevices";
        let found = of_client!(self, PJRT_Client_AddressableDevices_Args)?;
        let (start, count) = (found.addressable_devices, found.num_addressable_devices);
        // SAFETY: the plug-in says that there are so many; they belong to the client.
        let found = unsafe { handles(CALL, start, count) }?;
        Ok(found.into_iter().map(|raw| Device::of(&self.handle, raw)).collect())
    }

    /// The memories that this process can use; none, if the plug-in does not tell them apart.
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
        // SAFETY: the plug-in says that there are so many; they belong to the client.
        let found = unsafe { handles(CALL, start, count) }?;
        Ok(found.into_iter().map(|raw| Memory::of(&self.handle, raw)).collect())
    }

    /// The device of that number, among all devices of all processes.
    ///
    /// # Errors
    /// As the plug-in's, such as that there is none.
    pub fn device(&self, id: i32) -> Result<Device, PjrtError> {
        let raw = self.handle.raw();
        // SAFETY: the client is alive.
        let found = unsafe {
            self.handle.table().ask(|call: &mut PJRT_Client_LookupDevice_Args| {
                call.client = raw;
                call.id = id;
            })
        }?;
        let raw = pointer("PJRT_Client_LookupDevice", "a device", found.device)?;
        Ok(Device::of(&self.handle, raw))
    }

    /// The numbers of the devices on which a program of so many replicas and partitions runs unless
    /// it is said otherwise: partition by partition for each replica.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] for no replica or partition, or more than a million of both;
    /// else as the plug-in's, such as that there are not so many devices.
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
        // It fits: it is no more than a million.
        let mut assignment = vec![0_i32; count as usize];
        let (raw, start, length) = (self.handle.raw(), assignment.as_mut_ptr(), assignment.len());
        // SAFETY: the client is alive, and there is room for so many numbers.
        unsafe {
            self.handle.table().ask(|call: &mut PJRT_Client_DefaultDeviceAssignment_Args| {
                call.client = raw;
                call.num_replicas = replicas.cast_signed();
                call.num_partitions = partitions.cast_signed();
                call.default_assignment = start;
                call.default_assignment_size = length;
            })
        }?;
        Ok(assignment)
    }

    /// Its devices and how they are connected.
    ///
    /// # Errors
    /// As the plug-in's, or [`PjrtError::BadAnswer`].
    pub fn topology(&self) -> Result<Topology, PjrtError> {
        let found = of_client!(self, PJRT_Client_TopologyDescription_Args)?;
        let raw = pointer("PJRT_Client_TopologyDescription", "a topology", found.topology)?;
        Ok(Topology::of_client(&self.handle, raw))
    }
}

/// Two handles are the same client.
impl PartialEq for Client {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.handle, &other.handle)
    }
}

impl Eq for Client {}

/// The named values that a plug-in gave: those of a type that is known.
///
/// # Safety
/// There are so many at `start`, or it is NULL, and what they point to is there.
pub(super) unsafe fn attributes(
    call: &'static str,
    start: *const PJRT_NamedValue,
    count: usize,
) -> Result<Vec<(String, Value)>, PjrtError> {
    // SAFETY: as the caller says.
    let found = unsafe { list(call, "its attributes", start, count) }?;
    // SAFETY: as the caller says.
    let values = found.iter().filter_map(|value| unsafe { options::read(call, value) }.transpose());
    values.collect()
}
