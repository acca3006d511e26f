//! Arguments of calls about devices and memories.

use core::ffi::{c_char, c_int, c_void};

use super::*;

arguments! {
    PJRT_DeviceDescription_Id_Args of "PJRT_DeviceDescription_Id" {
        device_description: *mut PJRT_DeviceDescription,
        id: c_int,
    }
    PJRT_DeviceDescription_ProcessIndex_Args of "PJRT_DeviceDescription_ProcessIndex" {
        device_description: *mut PJRT_DeviceDescription,
        process_index: c_int,
    }
    PJRT_DeviceDescription_Attributes_Args of "PJRT_DeviceDescription_Attributes" {
        device_description: *mut PJRT_DeviceDescription,
        num_attributes: usize,
        attributes: *const PJRT_NamedValue,
    }
    PJRT_DeviceDescription_Kind_Args of "PJRT_DeviceDescription_Kind" {
        device_description: *mut PJRT_DeviceDescription,
        device_kind: *const c_char,
        device_kind_size: usize,
    }
    PJRT_DeviceDescription_DebugString_Args of "PJRT_DeviceDescription_DebugString" {
        device_description: *mut PJRT_DeviceDescription,
        debug_string: *const c_char,
        debug_string_size: usize,
    }
    PJRT_DeviceDescription_ToString_Args of "PJRT_DeviceDescription_ToString" {
        device_description: *mut PJRT_DeviceDescription,
        to_string: *const c_char,
        to_string_size: usize,
    }
    PJRT_Device_GetDescription_Args of "PJRT_Device_GetDescription" {
        device: *mut PJRT_Device,
        device_description: *mut PJRT_DeviceDescription,
    }
    PJRT_Device_IsAddressable_Args of "PJRT_Device_IsAddressable" {
        device: *mut PJRT_Device,
        is_addressable: u8,
    }
    PJRT_Device_LocalHardwareId_Args of "PJRT_Device_LocalHardwareId" {
        device: *mut PJRT_Device,
        local_hardware_id: c_int,
    }
    PJRT_Device_AddressableMemories_Args of "PJRT_Device_AddressableMemories" {
        device: *mut PJRT_Device,
        memories: *const *mut PJRT_Memory,
        num_memories: usize,
    }
    PJRT_Device_DefaultMemory_Args of "PJRT_Device_DefaultMemory" {
        device: *mut PJRT_Device,
        memory: *mut PJRT_Memory,
    }
    PJRT_Device_MemoryStats_Args of "PJRT_Device_MemoryStats" {
        device: *mut PJRT_Device,
        bytes_in_use: i64,
        peak_bytes_in_use: i64,
        peak_bytes_in_use_is_set: u8,
        num_allocs: i64,
        num_allocs_is_set: u8,
        largest_alloc_size: i64,
        largest_alloc_size_is_set: u8,
        bytes_limit: i64,
        bytes_limit_is_set: u8,
        bytes_reserved: i64,
        bytes_reserved_is_set: u8,
        peak_bytes_reserved: i64,
        peak_bytes_reserved_is_set: u8,
        bytes_reservable_limit: i64,
        bytes_reservable_limit_is_set: u8,
        largest_free_block_bytes: i64,
        largest_free_block_bytes_is_set: u8,
        pool_bytes: i64,
        pool_bytes_is_set: u8,
        peak_pool_bytes: i64,
        peak_pool_bytes_is_set: u8,
        peak_allocated_bytes: i64,
        peak_allocated_bytes_is_set: u8,
    }
    PJRT_Memory_Id_Args of "PJRT_Memory_Id" {
        memory: *mut PJRT_Memory,
        id: c_int,
    }
    PJRT_Memory_Kind_Args of "PJRT_Memory_Kind" {
        memory: *mut PJRT_Memory,
        kind: *const c_char,
        kind_size: usize,
    }
    PJRT_Memory_DebugString_Args of "PJRT_Memory_DebugString" {
        memory: *mut PJRT_Memory,
        debug_string: *const c_char,
        debug_string_size: usize,
    }
    PJRT_Memory_ToString_Args of "PJRT_Memory_ToString" {
        memory: *mut PJRT_Memory,
        to_string: *const c_char,
        to_string_size: usize,
    }
    PJRT_Memory_AddressableByDevices_Args of "PJRT_Memory_AddressableByDevices" {
        memory: *mut PJRT_Memory,
        devices: *const *mut PJRT_Device,
        num_devices: usize,
    }
    PJRT_Memory_Kind_Id_Args of "PJRT_Memory_Kind_Id" {
        memory: *mut PJRT_Memory,
        kind_id: c_int,
    }
    PJRT_Device_PoisonExecution_Args of "PJRT_Device_PoisonExecution" {
        device: *mut PJRT_Device,
        launch_id: i32,
        error_code: c_int,
        error_message: *const c_char,
        error_message_size: usize,
        poisoned: u8,
        payload: *const PJRT_NamedValue,
        num_payload: usize,
    }
    PJRT_Device_CreateAsyncTrackingEvent_Args of "PJRT_Device_CreateAsyncTrackingEvent" {
        device: *mut PJRT_Device,
        description: *const c_char,
        description_size: usize,
        event: *mut PJRT_AsyncTrackingEvent,
    }
    PJRT_Device_GetAttributes_Args of "PJRT_Device_GetAttributes" {
        device: *mut PJRT_Device,
        attributes: *const PJRT_NamedValue,
        num_attributes: usize,
        device_attributes: *mut PJRT_Device_Attributes,
        attributes_deleter: Deleter<PJRT_Device_Attributes>,
    }
    PJRT_Device_ClearMemoryStats_Args of "PJRT_Device_ClearMemoryStats" {
        device: *mut PJRT_Device,
    }
}
