//! Arguments of calls about a buffer.

use core::ffi::{c_int, c_void};

use super::*;

arguments! {
    PJRT_Buffer_Destroy_Args of "PJRT_Buffer_Destroy" {
        buffer: *mut PJRT_Buffer,
    }
    PJRT_Buffer_ElementType_Args of "PJRT_Buffer_ElementType" {
        buffer: *mut PJRT_Buffer,
        r#type: c_int,
    }
    PJRT_Buffer_Dimensions_Args of "PJRT_Buffer_Dimensions" {
        buffer: *mut PJRT_Buffer,
        dims: *const i64,
        num_dims: usize,
    }
    PJRT_Buffer_UnpaddedDimensions_Args of "PJRT_Buffer_UnpaddedDimensions" {
        buffer: *mut PJRT_Buffer,
        unpadded_dims: *const i64,
        num_dims: usize,
    }
    PJRT_Buffer_DynamicDimensionIndices_Args of "PJRT_Buffer_DynamicDimensionIndices" {
        buffer: *mut PJRT_Buffer,
        dynamic_dim_indices: *const usize,
        num_dynamic_dims: usize,
    }
    PJRT_Buffer_GetMemoryLayout_Args of "PJRT_Buffer_GetMemoryLayout" {
        buffer: *mut PJRT_Buffer,
        layout: PJRT_Buffer_MemoryLayout,
    }
    PJRT_Buffer_OnDeviceSizeInBytes_Args of "PJRT_Buffer_OnDeviceSizeInBytes" {
        buffer: *mut PJRT_Buffer,
        on_device_size_in_bytes: usize,
    }
    PJRT_Buffer_Device_Args of "PJRT_Buffer_Device" {
        buffer: *mut PJRT_Buffer,
        device: *mut PJRT_Device,
    }
    PJRT_Buffer_Memory_Args of "PJRT_Buffer_Memory" {
        buffer: *mut PJRT_Buffer,
        memory: *mut PJRT_Memory,
    }
    PJRT_Buffer_Delete_Args of "PJRT_Buffer_Delete" {
        buffer: *mut PJRT_Buffer,
    }
    PJRT_Buffer_IsDeleted_Args of "PJRT_Buffer_IsDeleted" {
        buffer: *mut PJRT_Buffer,
        is_deleted: u8,
    }
    PJRT_Buffer_CopyToDevice_Args of "PJRT_Buffer_CopyToDevice" {
        buffer: *mut PJRT_Buffer,
        dst_device: *mut PJRT_Device,
        dst_buffer: *mut PJRT_Buffer,
    }
    PJRT_Buffer_ToHostBuffer_Args of "PJRT_Buffer_ToHostBuffer" {
        src: *mut PJRT_Buffer,
        host_layout: *mut PJRT_Buffer_MemoryLayout,
        dst: *mut c_void,
        dst_size: usize,
        event: *mut PJRT_Event,
    }
    PJRT_Buffer_IsOnCpu_Args of "PJRT_Buffer_IsOnCpu" {
        buffer: *mut PJRT_Buffer,
        is_on_cpu: u8,
    }
    PJRT_Buffer_ReadyEvent_Args of "PJRT_Buffer_ReadyEvent" {
        buffer: *mut PJRT_Buffer,
        event: *mut PJRT_Event,
    }
    PJRT_Buffer_UnsafePointer_Args of "PJRT_Buffer_UnsafePointer" {
        buffer: *mut PJRT_Buffer,
        buffer_pointer: usize,
    }
    PJRT_Buffer_IncreaseExternalReferenceCount_Args of "PJRT_Buffer_IncreaseExternalReferenceCount" {
        buffer: *mut PJRT_Buffer,
    }
    PJRT_Buffer_DecreaseExternalReferenceCount_Args of "PJRT_Buffer_DecreaseExternalReferenceCount" {
        buffer: *mut PJRT_Buffer,
    }
    PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args of "PJRT_Buffer_OpaqueDeviceMemoryDataPointer" {
        buffer: *mut PJRT_Buffer,
        device_memory_ptr: *mut c_void,
    }
    PJRT_Buffer_CopyToMemory_Args of "PJRT_Buffer_CopyToMemory" {
        buffer: *mut PJRT_Buffer,
        dst_memory: *mut PJRT_Memory,
        dst_buffer: *mut PJRT_Buffer,
    }
    PJRT_Buffer_CopyRawToHost_Args of "PJRT_Buffer_CopyRawToHost" {
        buffer: *mut PJRT_Buffer,
        dst: *mut c_void,
        offset: i64,
        transfer_size: i64,
        event: *mut PJRT_Event,
    }
    PJRT_Buffer_CopyRawToHostFuture_Args of "PJRT_Buffer_CopyRawToHostFuture" {
        buffer: *mut PJRT_Buffer,
        offset: i64,
        transfer_size: i64,
        event: *mut PJRT_Event,
        callback_data: *mut c_void,
        future_ready_callback: Option<unsafe extern "C" fn(*mut PJRT_Buffer_CopyRawToHostFuture_Callback_Args)>,
    }
    PJRT_Buffer_DonateWithControlDependency_Args of "PJRT_Buffer_DonateWithControlDependency" {
        buffer: *mut PJRT_Buffer,
        callback_data: *mut c_void,
        dependency_ready_callback: Option<unsafe extern "C" fn(*mut PJRT_Buffer_DonateWithControlDependency_Callback_Args)>,
        out_buffer: *mut PJRT_Buffer,
    }
    PJRT_Buffer_Bitcast_Args of "PJRT_Buffer_Bitcast" {
        buffer: *mut PJRT_Buffer,
        element_type: c_int,
        dims: *const i64,
        num_dims: usize,
        device_layout: *mut PJRT_Buffer_MemoryLayout,
        out_buffer: *mut PJRT_Buffer,
    }
}
