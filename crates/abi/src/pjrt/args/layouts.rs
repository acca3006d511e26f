//! The extension that returns the layouts of arrays on devices (number 4), and the arguments of its
//! functions.

use core::ffi::{c_char, c_int, c_void};

use super::*;

handles! {
    /// The layout of an array on a device; the receiver destroys it.
    PJRT_Layouts_MemoryLayout;
    /// The owner of a layout's text.
    PJRT_Layouts_SerializedLayout;
}

extension_arguments! { 4:
    PJRT_Layouts_MemoryLayout_Destroy_Args of "PJRT_Layouts_MemoryLayout_Destroy" at 24, 24 {
        layout: *mut PJRT_Layouts_MemoryLayout,
    }
    PJRT_Layouts_MemoryLayout_Serialize_Args of "PJRT_Layouts_MemoryLayout_Serialize" at 32, 56 {
        layout: *mut PJRT_Layouts_MemoryLayout,
        serialized_bytes: *const c_char,
        serialized_bytes_size: usize,
        serialized_layout: *mut PJRT_Layouts_SerializedLayout,
        serialized_layout_deleter: Deleter<PJRT_Layouts_SerializedLayout>,
    }
    PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args of "PJRT_Layouts_PJRT_Client_GetDefaultLayout" at 40, 56 {
        client: *mut PJRT_Client,
        r#type: c_int,
        dims: *const i64,
        num_dims: usize,
        layout: *mut PJRT_Layouts_MemoryLayout,
    }
    PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args of "PJRT_Layouts_PJRT_Buffer_MemoryLayout" at 48, 32 {
        buffer: *mut PJRT_Buffer,
        layout: *mut PJRT_Layouts_MemoryLayout,
    }
    PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args of "PJRT_Layouts_PJRT_Topology_GetDefaultLayout" at 56, 56 {
        topology_description: *mut PJRT_TopologyDescription,
        r#type: c_int,
        dims: *const i64,
        num_dims: usize,
        layout: *mut PJRT_Layouts_MemoryLayout,
    }
    PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args of "PJRT_Layouts_PJRT_Executable_GetOutputLayouts" at 64, 40 {
        executable: *mut PJRT_Executable,
        num_outputs: usize,
        layouts: *const *mut PJRT_Layouts_MemoryLayout,
    }
    PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args of "PJRT_Layouts_PJRT_Executable_GetParameterLayouts" at 72, 40 {
        executable: *mut PJRT_Executable,
        num_parameters: usize,
        layouts: *const *mut PJRT_Layouts_MemoryLayout,
    }
}
