//! Arguments of transfers in pieces, and of calls about host memory that devices access directly.

use core::ffi::{c_char, c_int, c_void};

use super::*;

arguments! {
    PJRT_AsyncHostToDeviceTransferManager_Destroy_Args of "PJRT_AsyncHostToDeviceTransferManager_Destroy" {
        transfer_manager: *mut PJRT_AsyncHostToDeviceTransferManager,
    }
    PJRT_AsyncHostToDeviceTransferManager_TransferData_Args of "PJRT_AsyncHostToDeviceTransferManager_TransferData" {
        transfer_manager: *mut PJRT_AsyncHostToDeviceTransferManager,
        buffer_index: c_int,
        data: *const c_void,
        offset: i64,
        transfer_size: i64,
        is_last_transfer: u8,
        done_with_h2d_transfer: *mut PJRT_Event,
    }
    PJRT_Client_CreateBuffersForAsyncHostToDevice_Args of "PJRT_Client_CreateBuffersForAsyncHostToDevice" {
        client: *mut PJRT_Client,
        shape_specs: *mut PJRT_ShapeSpec,
        num_shape_specs: usize,
        device_layouts: *const *mut PJRT_Buffer_MemoryLayout,
        num_device_layouts: usize,
        memory: *mut PJRT_Memory,
        transfer_manager: *mut PJRT_AsyncHostToDeviceTransferManager,
    }
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args of "PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer" {
        transfer_manager: *mut PJRT_AsyncHostToDeviceTransferManager,
        buffer_index: c_int,
        buffer_out: *mut PJRT_Buffer,
    }
    PJRT_AsyncHostToDeviceTransferManager_Device_Args of "PJRT_AsyncHostToDeviceTransferManager_Device" {
        transfer_manager: *mut PJRT_AsyncHostToDeviceTransferManager,
        device_out: *mut PJRT_Device,
    }
    PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args of "PJRT_AsyncHostToDeviceTransferManager_BufferCount" {
        transfer_manager: *mut PJRT_AsyncHostToDeviceTransferManager,
        buffer_count: usize,
    }
    PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args of "PJRT_AsyncHostToDeviceTransferManager_BufferSize" {
        transfer_manager: *mut PJRT_AsyncHostToDeviceTransferManager,
        buffer_index: c_int,
        buffer_size: usize,
    }
    PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args of "PJRT_AsyncHostToDeviceTransferManager_SetBufferError" {
        transfer_manager: *mut PJRT_AsyncHostToDeviceTransferManager,
        buffer_index: c_int,
        error_code: c_int,
        error_message: *const c_char,
        error_message_size: usize,
    }
    PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args of "PJRT_AsyncHostToDeviceTransferManager_AddMetadata" {
        transfer_manager: *mut PJRT_AsyncHostToDeviceTransferManager,
        transfer_metadata: *const PJRT_NamedValue,
        num_metadata: usize,
    }
    PJRT_Client_DmaMap_Args of "PJRT_Client_DmaMap" {
        client: *mut PJRT_Client,
        data: *mut c_void,
        size: usize,
    }
    PJRT_Client_DmaUnmap_Args of "PJRT_Client_DmaUnmap" {
        client: *mut PJRT_Client,
        data: *mut c_void,
    }
    PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args of "PJRT_AsyncHostToDeviceTransferManager_TransferLiteral" {
        transfer_manager: *mut PJRT_AsyncHostToDeviceTransferManager,
        buffer_index: c_int,
        data: *const c_void,
        shape_dims: *const i64,
        shape_num_dims: usize,
        shape_element_type: c_int,
        shape_layout: *mut PJRT_Buffer_MemoryLayout,
        done_with_h2d_transfer: *mut PJRT_Event,
    }
}
