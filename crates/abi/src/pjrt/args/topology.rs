//! Arguments of calls about a topology, which has devices without a client.

use core::ffi::{c_char, c_int, c_void};

use super::*;

arguments! {
    PJRT_TopologyDescription_Create_Args of "PJRT_TopologyDescription_Create" {
        topology_name: *const c_char,
        topology_name_size: usize,
        create_options: *const PJRT_NamedValue,
        num_options: usize,
        topology: *mut PJRT_TopologyDescription,
    }
    PJRT_TopologyDescription_Destroy_Args of "PJRT_TopologyDescription_Destroy" {
        topology: *mut PJRT_TopologyDescription,
    }
    PJRT_TopologyDescription_PlatformName_Args of "PJRT_TopologyDescription_PlatformName" {
        topology: *const PJRT_TopologyDescription,
        platform_name: *const c_char,
        platform_name_size: usize,
    }
    PJRT_TopologyDescription_PlatformVersion_Args of "PJRT_TopologyDescription_PlatformVersion" {
        topology: *mut PJRT_TopologyDescription,
        platform_version: *const c_char,
        platform_version_size: usize,
    }
    PJRT_TopologyDescription_GetDeviceDescriptions_Args of "PJRT_TopologyDescription_GetDeviceDescriptions" {
        topology: *const PJRT_TopologyDescription,
        descriptions: *const *mut PJRT_DeviceDescription,
        num_descriptions: usize,
    }
    PJRT_TopologyDescription_Serialize_Args of "PJRT_TopologyDescription_Serialize" {
        topology: *mut PJRT_TopologyDescription,
        serialized_bytes: *const c_char,
        serialized_bytes_size: usize,
        serialized_topology: *mut PJRT_SerializedTopology,
        serialized_topology_deleter: Deleter<PJRT_SerializedTopology>,
    }
    PJRT_TopologyDescription_Attributes_Args of "PJRT_TopologyDescription_Attributes" {
        topology: *mut PJRT_TopologyDescription,
        attributes: *const PJRT_NamedValue,
        num_attributes: usize,
    }
    PJRT_Client_TopologyDescription_Args of "PJRT_Client_TopologyDescription" {
        client: *mut PJRT_Client,
        topology: *mut PJRT_TopologyDescription,
    }
    PJRT_TopologyDescription_Deserialize_Args of "PJRT_TopologyDescription_Deserialize" {
        serialized_topology: *const c_char,
        serialized_topology_size: usize,
        topology: *mut PJRT_TopologyDescription,
    }
    PJRT_TopologyDescription_Fingerprint_Args of "PJRT_TopologyDescription_Fingerprint" {
        topology: *const PJRT_TopologyDescription,
        fingerprint: u64,
    }
    PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args of "PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace" {
        topology: *const PJRT_TopologyDescription,
        memory_space_kind_id: c_int,
        dims: *const i64,
        num_dims: usize,
        element_type: c_int,
        layout: *const PJRT_Buffer_MemoryLayout,
        serialized_shape: *const c_char,
        serialized_shape_size: usize,
        serialized_shape_deleter: Deleter<c_char>,
    }
    PJRT_TopologyDescription_GetMemorySpaceKindIds_Args of "PJRT_TopologyDescription_GetMemorySpaceKindIds" {
        topology: *const PJRT_TopologyDescription,
        memory_space_kind_ids: *const c_int,
        num_memory_space_kind_ids: usize,
    }
}
