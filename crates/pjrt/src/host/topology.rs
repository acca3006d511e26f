//! The devices of a platform and their connections, with a client or without one.

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

/// The devices and their connections, for which a program is compiled.
#[derive(Debug)]
pub struct Topology {
    /// A client destroys its own topology; one without a client is destroyed on drop.
    origin: Origin,
    raw: NonNull<PJRT_TopologyDescription>,
}

// SAFETY: the C API lets any thread use any object, several at once except for destroying it, which
// only the owner does.
unsafe impl Send for Topology {}
// SAFETY: as above.
unsafe impl Sync for Topology {}

/// Makes a call whose only input is the topology.
macro_rules! of_topology {
    ($topology:expr, $arguments:ident) => {{
        let raw = $topology.raw.as_ptr();
        // SAFETY: the topology is alive as long as its owner.
        unsafe { $topology.table().ask(|call: &mut $arguments| call.topology = raw) }
    }};
}

impl PjrtPlugin {
    /// Returns the topology in bytes from [`Topology::serialize`], which may have run in another
    /// process.
    ///
    /// # Errors
    /// The plug-in's errors, for example if the bytes are of another platform;
    /// [`PjrtError::Missing`] before 0.75.
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

    /// Returns the platform's name from the plug-in.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn platform_name(&self) -> Result<String, PjrtError> {
        const CALL: &str = "PJRT_TopologyDescription_PlatformName";
        let found = of_topology!(self, PJRT_TopologyDescription_PlatformName_Args)?;
        // SAFETY: the plug-in declares this length in bytes; the bytes belong to the topology.
        unsafe { text(CALL, "its text", found.platform_name, found.platform_name_size) }
    }

    /// Returns the platform's version, as text from the plug-in.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn platform_version(&self) -> Result<String, PjrtError> {
        const CALL: &str = "PJRT_TopologyDescription_PlatformVersion";
        let found = of_topology!(self, PJRT_TopologyDescription_PlatformVersion_Args)?;
        // SAFETY: the plug-in declares this length in bytes; the bytes belong to the topology.
        unsafe { text(CALL, "its text", found.platform_version, found.platform_version_size) }
    }

    /// Returns its devices.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn devices(&self) -> Result<Vec<DeviceDescription<'_>>, PjrtError> {
        const CALL: &str = "PJRT_TopologyDescription_GetDeviceDescriptions";
        let found = of_topology!(self, PJRT_TopologyDescription_GetDeviceDescriptions_Args)?;
        // SAFETY: the plug-in declares this number of entries; they belong to the topology.
        let found = unsafe { handles(CALL, found.descriptions, found.num_descriptions) }?;
        // SAFETY: they live as long as the topology, which is borrowed.
        Ok(found
            .into_iter()
            .map(|raw| unsafe { DeviceDescription::of(self.table(), raw) })
            .collect())
    }

    /// Returns the vendor's attributes by name.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn attributes(&self) -> Result<Vec<(String, Value)>, PjrtError> {
        const CALL: &str = "PJRT_TopologyDescription_Attributes";
        let found = of_topology!(self, PJRT_TopologyDescription_Attributes_Args)?;
        // SAFETY: the plug-in declares this number of entries; they belong to the topology.
        unsafe { attributes(CALL, found.attributes, found.num_attributes) }
    }

    /// Returns the topology as bytes, for [`PjrtPlugin::deserialize_topology`].
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn serialize(&self) -> Result<Vec<u8>, PjrtError> {
        const CALL: &str = "PJRT_TopologyDescription_Serialize";
        let found = of_topology!(self, PJRT_TopologyDescription_Serialize_Args)?;
        let bytes = (found.serialized_bytes, found.serialized_bytes_size);
        let (owner, deleter) = (found.serialized_topology, found.serialized_topology_deleter);
        // SAFETY: a successful call returns this number of bytes and their owner.
        unsafe { owned_bytes(CALL, "a topology", bytes, owner, deleter) }
    }

    /// Returns a number that is equal for equal topologies.
    ///
    /// # Errors
    /// The plug-in's errors; [`PjrtError::Missing`] before 0.101.
    pub fn fingerprint(&self) -> Result<u64, PjrtError> {
        Ok(of_topology!(self, PJRT_TopologyDescription_Fingerprint_Args)?.fingerprint)
    }
}

impl Drop for Topology {
    fn drop(&mut self) {
        if let Origin::Plugin(_) = &self.origin {
            // An error has no consequence.
            let _ = of_topology!(self, PJRT_TopologyDescription_Destroy_Args);
        }
    }
}
