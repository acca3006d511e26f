//! Devices and how they are connected, with a client or without one.

use std::{ptr::NonNull, sync::Arc};

use serdes_abi::pjrt::args::*;

use super::{
    border::{Table, handles, owned_bytes, pointer, text},
    client::ClientHandle,
    device::DeviceDescription,
    options::{Value, attributes},
    origin::Origin,
    plugin::PjrtPlugin,
};
use crate::PjrtError;

/// Devices and how they are connected: what a program is compiled for.
#[derive(Debug)]
pub struct Topology {
    /// A client destroys its own; one without a client is destroyed with this.
    origin: Origin,
    raw: NonNull<PJRT_TopologyDescription>,
}

// SAFETY: the C API lets any thread use any object, several at once but for destroying it; that is
// done by the owner alone.
unsafe impl Send for Topology {}
// SAFETY: as above.
unsafe impl Sync for Topology {}

/// Calls that are given the topology alone.
macro_rules! of_topology {
    ($topology:expr, $arguments:ident) => {{
        let raw = $topology.raw.as_ptr();
        // SAFETY: the topology is alive as long as its owner.
        unsafe { $topology.table().ask(|call: &mut $arguments| call.topology = raw) }
    }};
}

impl PjrtPlugin {
    /// Returns the topology of these bytes, which [`Topology::serialize`] has given, also in
    /// another process.
    ///
    /// # Errors
    /// As the plug-in's, such as that they are of another platform; [`PjrtError::Missing`] before
    /// 0.75.
    pub fn deserialize_topology(&self, serialized: &[u8]) -> Result<Topology, PjrtError> {
        // SAFETY: the name and its length in bytes are valid for the call.
        let made = unsafe {
            self.table().ask(|call: &mut PJRT_TopologyDescription_Deserialize_Args| {
                call.serialized_topology = serialized.as_ptr().cast();
                call.serialized_topology_size = serialized.len();
            })
        }?;
        let raw = pointer("PJRT_TopologyDescription_Deserialize", "a topology", made.topology)?;
        Ok(Topology { origin: Origin::Plugin(self.clone()), raw })
    }
}

impl Topology {
    /// Returns the topology of a client.
    pub(super) fn of_client(
        client: &Arc<ClientHandle>,
        raw: NonNull<PJRT_TopologyDescription>,
    ) -> Self {
        Self { origin: Origin::Client(Arc::clone(client)), raw }
    }

    fn table(&self) -> &Table {
        self.origin.table()
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    pub(super) fn raw(&self) -> *mut PJRT_TopologyDescription {
        self.raw.as_ptr()
    }

    /// Returns the name of the platform as the plug-in gives it.
    ///
    /// # Errors
    /// As the plug-in's, or [`PjrtError::BadAnswer`].
    pub fn platform_name(&self) -> Result<String, PjrtError> {
        const CALL: &str = "PJRT_TopologyDescription_PlatformName";
        let found = of_topology!(self, PJRT_TopologyDescription_PlatformName_Args)?;
        // SAFETY: the plug-in declares this length in bytes; they are the topology's.
        unsafe { text(CALL, "its text", found.platform_name, found.platform_name_size) }
    }

    /// Returns the platform's version, in the plug-in's words.
    ///
    /// # Errors
    /// As the plug-in's, or [`PjrtError::BadAnswer`].
    pub fn platform_version(&self) -> Result<String, PjrtError> {
        const CALL: &str = "PJRT_TopologyDescription_PlatformVersion";
        let found = of_topology!(self, PJRT_TopologyDescription_PlatformVersion_Args)?;
        // SAFETY: the plug-in declares this length in bytes; they are the topology's.
        unsafe { text(CALL, "its text", found.platform_version, found.platform_version_size) }
    }

    /// Returns its devices.
    ///
    /// # Errors
    /// As the plug-in's, or [`PjrtError::BadAnswer`].
    pub fn devices(&self) -> Result<Vec<DeviceDescription<'_>>, PjrtError> {
        const CALL: &str = "PJRT_TopologyDescription_GetDeviceDescriptions";
        let found = of_topology!(self, PJRT_TopologyDescription_GetDeviceDescriptions_Args)?;
        // SAFETY: the plug-in declares this number of entries; they are the topology's.
        let found = unsafe { handles(CALL, found.descriptions, found.num_descriptions) }?;
        // SAFETY: they live as long as the topology, which is borrowed.
        Ok(found
            .into_iter()
            .map(|raw| unsafe { DeviceDescription::of(self.table(), raw) })
            .collect())
    }

    /// Attributes of the vendor by name.
    ///
    /// # Errors
    /// As the plug-in's, or [`PjrtError::BadAnswer`].
    pub fn attributes(&self) -> Result<Vec<(String, Value)>, PjrtError> {
        const CALL: &str = "PJRT_TopologyDescription_Attributes";
        let found = of_topology!(self, PJRT_TopologyDescription_Attributes_Args)?;
        // SAFETY: the plug-in declares this number of entries; they are the topology's.
        unsafe { attributes(CALL, found.attributes, found.num_attributes) }
    }

    /// Returns its bytes, for [`PjrtPlugin::deserialize_topology`].
    ///
    /// # Errors
    /// As the plug-in's, or [`PjrtError::BadAnswer`].
    pub fn serialize(&self) -> Result<Vec<u8>, PjrtError> {
        const CALL: &str = "PJRT_TopologyDescription_Serialize";
        let found = of_topology!(self, PJRT_TopologyDescription_Serialize_Args)?;
        let bytes = (found.serialized_bytes, found.serialized_bytes_size);
        let (owner, deleter) = (found.serialized_topology, found.serialized_topology_deleter);
        // SAFETY: a successful call returns this number of bytes and their owner.
        unsafe { owned_bytes(CALL, "a topology", bytes, owner, deleter) }
    }

    /// Returns a number that is the same for topologies that are.
    ///
    /// # Errors
    /// As the plug-in's; [`PjrtError::Missing`] before 0.101.
    pub fn fingerprint(&self) -> Result<u64, PjrtError> {
        Ok(of_topology!(self, PJRT_TopologyDescription_Fingerprint_Args)?.fingerprint)
    }
}

impl Drop for Topology {
    fn drop(&mut self) {
        if let Origin::Plugin(_) = &self.origin {
            // An error changes nothing.
            let _ = of_topology!(self, PJRT_TopologyDescription_Destroy_Args);
        }
    }
}
