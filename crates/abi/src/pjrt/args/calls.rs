//! Arguments of the general calls: errors, events, contexts, and the plug-in itself.

use core::ffi::{c_char, c_int, c_void};

use super::*;

arguments! {
    PJRT_Error_Destroy_Args of "PJRT_Error_Destroy" {
        error: *mut PJRT_Error,
    }
    PJRT_Error_Message_Args of "PJRT_Error_Message" {
        error: *const PJRT_Error,
        message: *const c_char,
        message_size: usize,
    }
    PJRT_Error_GetCode_Args of "PJRT_Error_GetCode" {
        error: *const PJRT_Error,
        code: c_int,
    }
    PJRT_Plugin_Initialize_Args of "PJRT_Plugin_Initialize" {
    }
    PJRT_Plugin_Attributes_Args of "PJRT_Plugin_Attributes" {
        attributes: *const PJRT_NamedValue,
        num_attributes: usize,
    }
    PJRT_Event_Destroy_Args of "PJRT_Event_Destroy" {
        event: *mut PJRT_Event,
    }
    PJRT_Event_IsReady_Args of "PJRT_Event_IsReady" {
        event: *mut PJRT_Event,
        is_ready: u8,
    }
    PJRT_Event_Error_Args of "PJRT_Event_Error" {
        event: *mut PJRT_Event,
    }
    PJRT_Event_Await_Args of "PJRT_Event_Await" {
        event: *mut PJRT_Event,
    }
    PJRT_Event_OnReady_Args of "PJRT_Event_OnReady" {
        event: *mut PJRT_Event,
        callback: Option<PJRT_Event_OnReadyCallback>,
        user_arg: *mut c_void,
    }
    PJRT_CopyToDeviceStream_Destroy_Args of "PJRT_CopyToDeviceStream_Destroy" {
        stream: *mut PJRT_CopyToDeviceStream,
    }
    PJRT_CopyToDeviceStream_AddChunk_Args of "PJRT_CopyToDeviceStream_AddChunk" {
        stream: *mut PJRT_CopyToDeviceStream,
        chunk: *mut PJRT_Chunk,
        transfer_complete: *mut PJRT_Event,
    }
    PJRT_CopyToDeviceStream_TotalBytes_Args of "PJRT_CopyToDeviceStream_TotalBytes" {
        stream: *mut PJRT_CopyToDeviceStream,
        total_bytes: i64,
    }
    PJRT_CopyToDeviceStream_GranuleSize_Args of "PJRT_CopyToDeviceStream_GranuleSize" {
        stream: *mut PJRT_CopyToDeviceStream,
        granule_size_in_bytes: i64,
    }
    PJRT_CopyToDeviceStream_CurrentBytes_Args of "PJRT_CopyToDeviceStream_CurrentBytes" {
        stream: *mut PJRT_CopyToDeviceStream,
        current_bytes: i64,
    }
    PJRT_ExecuteContext_Create_Args of "PJRT_ExecuteContext_Create" {
        context: *mut PJRT_ExecuteContext,
    }
    PJRT_ExecuteContext_Destroy_Args of "PJRT_ExecuteContext_Destroy" {
        context: *mut PJRT_ExecuteContext,
    }
    PJRT_AsyncTrackingEvent_Destroy_Args of "PJRT_AsyncTrackingEvent_Destroy" {
        event: *mut PJRT_AsyncTrackingEvent,
    }
    PJRT_Event_Create_Args of "PJRT_Event_Create" {
        event: *mut PJRT_Event,
    }
    PJRT_Event_Set_Args of "PJRT_Event_Set" {
        event: *mut PJRT_Event,
        error_code: c_int,
        error_message: *const c_char,
        error_message_size: usize,
    }
    PJRT_Error_ForEachPayload_Args of "PJRT_Error_ForEachPayload" {
        error: *const PJRT_Error,
        visitor: Option<PJRT_Error_PayloadVisitor>,
        user_arg: *mut c_void,
    }
}
