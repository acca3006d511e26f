//! The topology of a client, which lists its devices. It belongs to the client, and is not
//! destroyed.

use serdes_abi::pjrt::args::*;

use super::pointers;
use crate::{Result, panic::contain_drop};

/// The text of a topology.
type Text = String;

/// Frees the text that [`serialize`] handed out.
///
/// # Safety
/// [`serialize`] handed it out, and it is freed once.
unsafe extern "C" fn free(raw: *mut PJRT_SerializedTopology) {
    // SAFETY: the caller's promise.
    contain_drop(unsafe { pointers::take::<Text, _>(raw, "a topology's bytes") });
}

calls! {
    platform_name<P>(PJRT_TopologyDescription_PlatformName_Args: arguments, topology: topology::<P>) {
        arguments.platform_name = topology.platform_name.as_ptr().cast();
        arguments.platform_name_size = topology.platform_name.len();
    }

    platform_version<P>(PJRT_TopologyDescription_PlatformVersion_Args: arguments, topology: topology::<P>) {
        arguments.platform_version = topology.platform_version.as_ptr().cast();
        arguments.platform_version_size = topology.platform_version.len();
    }

    descriptions<P>(PJRT_TopologyDescription_GetDeviceDescriptions_Args: arguments, topology: topology::<P>) {
        let devices = topology.device_handles().all();
        // A device and its description have the same handle.
        arguments.descriptions = devices.as_ptr().cast();
        arguments.num_descriptions = devices.len();
    }

    attributes<P>(PJRT_TopologyDescription_Attributes_Args: arguments, topology: topology::<P>) {
        let _ = topology;
        (arguments.attributes, arguments.num_attributes) = (std::ptr::dangling(), 0);
    }

    serialize<P>(PJRT_TopologyDescription_Serialize_Args: arguments, topology: topology::<P>) {
        let text = Box::new(topology.topology());
        arguments.serialized_bytes = text.as_ptr().cast();
        arguments.serialized_bytes_size = text.len();
        arguments.serialized_topology = Box::into_raw(text).cast();
        arguments.serialized_topology_deleter = Some(free);
    }

    /// Returns the FNV-1a hash (64 bits) of the topology's bytes, which is the same in every
    /// process.
    fingerprint<P>(PJRT_TopologyDescription_Fingerprint_Args: arguments, topology: topology::<P>) {
        let text = topology.topology();
        arguments.fingerprint = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    }
}
