//! Arguments of calls about a client, including those that create buffers directly.

use core::ffi::{c_char, c_int, c_void};

use super::*;

arguments! {
    PJRT_Client_Create_Args of "PJRT_Client_Create" {
        create_options: *const PJRT_NamedValue,
        num_options: usize,
        kv_get_callback: *mut c_void,
        kv_get_user_arg: *mut c_void,
        kv_put_callback: *mut c_void,
        kv_put_user_arg: *mut c_void,
        client: *mut PJRT_Client,
        kv_try_get_callback: *mut c_void,
        kv_try_get_user_arg: *mut c_void,
    }
    PJRT_Client_Destroy_Args of "PJRT_Client_Destroy" {
        client: *mut PJRT_Client,
    }
    PJRT_Client_PlatformName_Args of "PJRT_Client_PlatformName" {
        client: *mut PJRT_Client,
        platform_name: *const c_char,
        platform_name_size: usize,
    }
    PJRT_Client_ProcessIndex_Args of "PJRT_Client_ProcessIndex" {
        client: *mut PJRT_Client,
        process_index: c_int,
    }
    PJRT_Client_PlatformVersion_Args of "PJRT_Client_PlatformVersion" {
        client: *mut PJRT_Client,
        platform_version: *const c_char,
        platform_version_size: usize,
    }
    PJRT_Client_Devices_Args of "PJRT_Client_Devices" {
        client: *mut PJRT_Client,
        devices: *const *mut PJRT_Device,
        num_devices: usize,
    }
    PJRT_Client_AddressableDevices_Args of "PJRT_Client_AddressableDevices" {
        client: *mut PJRT_Client,
        addressable_devices: *const *mut PJRT_Device,
        num_addressable_devices: usize,
    }
    PJRT_Client_LookupDevice_Args of "PJRT_Client_LookupDevice" {
        client: *mut PJRT_Client,
        id: c_int,
        device: *mut PJRT_Device,
    }
    PJRT_Client_LookupAddressableDevice_Args of "PJRT_Client_LookupAddressableDevice" {
        client: *mut PJRT_Client,
        local_hardware_id: c_int,
        addressable_device: *mut PJRT_Device,
    }
    PJRT_Client_AddressableMemories_Args of "PJRT_Client_AddressableMemories" {
        client: *mut PJRT_Client,
        addressable_memories: *const *mut PJRT_Memory,
        num_addressable_memories: usize,
    }
    PJRT_Client_DefaultDeviceAssignment_Args of "PJRT_Client_DefaultDeviceAssignment" {
        client: *mut PJRT_Client,
        num_replicas: c_int,
        num_partitions: c_int,
        default_assignment_size: usize,
        default_assignment: *mut c_int,
    }
    PJRT_Client_BufferFromHostBuffer_Args of "PJRT_Client_BufferFromHostBuffer" {
        client: *mut PJRT_Client,
        data: *const c_void,
        r#type: c_int,
        dims: *const i64,
        num_dims: usize,
        byte_strides: *const i64,
        num_byte_strides: usize,
        host_buffer_semantics: c_int,
        device: *mut PJRT_Device,
        memory: *mut PJRT_Memory,
        device_layout: *mut PJRT_Buffer_MemoryLayout,
        done_with_host_buffer: *mut PJRT_Event,
        buffer: *mut PJRT_Buffer,
    }
    PJRT_Client_CreateViewOfDeviceBuffer_Args of "PJRT_Client_CreateViewOfDeviceBuffer" {
        client: *mut PJRT_Client,
        device_buffer_ptr: *mut c_void,
        dims: *const i64,
        num_dims: usize,
        element_type: c_int,
        layout: *mut PJRT_Buffer_MemoryLayout,
        device: *mut PJRT_Device,
        on_delete_callback: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
        on_delete_callback_arg: *mut c_void,
        stream: isize,
        buffer: *mut PJRT_Buffer,
        memory: *mut PJRT_Memory,
    }
    PJRT_Client_CreateUninitializedBuffer_Args of "PJRT_Client_CreateUninitializedBuffer" {
        client: *mut PJRT_Client,
        shape_dims: *const i64,
        shape_num_dims: usize,
        shape_element_type: c_int,
        shape_layout: *mut PJRT_Buffer_MemoryLayout,
        device: *mut PJRT_Device,
        memory: *mut PJRT_Memory,
        buffer: *mut PJRT_Buffer,
    }
    PJRT_Client_UpdateGlobalProcessInfo_Args of "PJRT_Client_UpdateGlobalProcessInfo" {
        client: *mut PJRT_Client,
        process_infos: *mut c_void,
        num_process_infos: usize,
    }
    PJRT_Client_CreateAliasBuffer_Args of "PJRT_Client_CreateAliasBuffer" {
        client: *mut PJRT_Client,
        memory: *mut PJRT_Memory,
        shape_dims: *const i64,
        shape_num_dims: usize,
        shape_element_type: c_int,
        shape_layout: *mut PJRT_Buffer_MemoryLayout,
        alias_buffer: *mut PJRT_Buffer,
        fulfill_alias_buffer_cb: *mut PJRT_FulfillAliasBufferCallback,
    }
    PJRT_Client_FulfillAliasBuffer_Args of "PJRT_Client_FulfillAliasBuffer" {
        client: *mut PJRT_Client,
        buffer: *mut PJRT_Buffer,
        status_code: c_int,
        error_message: *const c_char,
        error_message_size: usize,
        fulfill_alias_buffer_cb: *mut PJRT_FulfillAliasBufferCallback,
    }
    PJRT_Client_CreateErrorBuffer_Args of "PJRT_Client_CreateErrorBuffer" {
        client: *mut PJRT_Client,
        error_code: c_int,
        error_message: *const c_char,
        error_message_size: usize,
        shape_dims: *const i64,
        shape_num_dims: usize,
        shape_element_type: c_int,
        shape_layout: *mut PJRT_Buffer_MemoryLayout,
        memory: *mut PJRT_Memory,
        buffer: *mut PJRT_Buffer,
        payload: *const PJRT_NamedValue,
        num_payload: usize,
        device_layout: *mut PJRT_Buffer_MemoryLayout,
    }
    PJRT_Client_Load_Args of "PJRT_Client_Load" {
        client: *mut PJRT_Client,
        executable: *mut PJRT_Executable,
        compile_options: *const c_char,
        compile_options_size: usize,
        loaded_executable: *mut PJRT_LoadedExecutable,
    }
}
