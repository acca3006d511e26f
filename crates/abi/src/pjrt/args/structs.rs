//! Structs inside arguments, and the types of callbacks.

use core::{
    ffi::{c_char, c_int, c_void},
    ptr,
};

use super::*;

/// A named value: an option of a client, or an attribute of a plug-in; an element of arrays.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PJRT_NamedValue {
    /// The size of the struct, in bytes.
    pub struct_size: usize,
    /// NULL.
    pub extension_start: *mut c_void,
    /// The name, not terminated.
    pub name: *const c_char,
    /// The length of the name in bytes.
    pub name_size: usize,
    /// The type of the value (`PJRT_NamedValue_Type`).
    pub r#type: c_int,
    /// The value, or a pointer to it: eight bytes whose meaning `type` determines.
    pub value: u64,
    /// The number of values; 1 except for texts and lists.
    pub value_size: usize,
}

described!(PJRT_NamedValue {
    struct_size: usize,
    extension_start: *mut c_void,
    name: *const c_char,
    name_size: usize,
    r#type: c_int,
    value: u64,
    value_size: usize,
});

/// The shape of a buffer to create; an element of arrays.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PJRT_ShapeSpec {
    /// The value of the struct's macro, in bytes.
    pub struct_size: usize,
    /// NULL.
    pub extension_start: *mut c_void,
    /// The dimensions.
    pub dims: *const i64,
    /// The number of elements.
    pub num_dims: usize,
    /// The element type (`PJRT_Buffer_Type`).
    pub element_type: c_int,
}

described!(PJRT_ShapeSpec {
    struct_size: usize,
    extension_start: *mut c_void,
    dims: *const i64,
    num_dims: usize,
    element_type: c_int,
});

/// A program as bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PJRT_Program {
    /// The size of the struct, in bytes.
    pub struct_size: usize,
    /// NULL.
    pub extension_start: *mut c_void,
    /// The program; for output, memory for it, or NULL to query its size.
    pub code: *mut c_char,
    /// The size of the program in bytes.
    pub code_size: usize,
    /// The format of the program, such as `mlir`.
    pub format: *const c_char,
    /// The length of the format's name in bytes.
    pub format_size: usize,
}

described!(PJRT_Program {
    struct_size: usize,
    extension_start: *mut c_void,
    code: *mut c_char,
    code_size: usize,
    format: *const c_char,
    format_size: usize,
});

/// The options of a program's execution.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PJRT_ExecuteOptions {
    /// The value of the struct's macro, in bytes.
    pub struct_size: usize,
    /// NULL.
    pub extension_start: *mut c_void,
    /// The callbacks for sending, a list for each device.
    pub send_callbacks: *mut *mut PJRT_SendCallbackInfo,
    /// The callbacks for receiving, a list for each device.
    pub recv_callbacks: *mut *mut PJRT_RecvCallbackInfo,
    /// The number of callbacks for each device.
    pub num_send_ops: usize,
    /// The number of callbacks for each device.
    pub num_recv_ops: usize,
    /// The launch: the same number on all devices of one launch, and a new one for each launch.
    pub launch_id: c_int,
    /// The arguments that are kept although the program may donate them.
    pub non_donatable_input_indices: *const i64,
    /// The number of elements.
    pub num_non_donatable_input_indices: usize,
    /// The context of the run, or NULL.
    pub context: *mut PJRT_ExecuteContext,
    /// The source location of the call, NUL-terminated, or NULL.
    pub call_location: *const c_char,
    /// The number of processes listed.
    pub num_tasks: usize,
    /// The numbers of the processes.
    pub task_ids: *mut c_int,
    /// The incarnation of each process.
    pub incarnation_ids: *mut i64,
    /// The configuration of several slices that work together, or NULL.
    pub multi_slice_config: *mut c_void,
    /// Nonzero if callbacks see arrays in row-major order.
    pub use_major_to_minor_data_layout_for_callbacks: u8,
    /// The callbacks for values inside the program.
    pub hlo_output_callbacks: *mut c_void,
    /// The number of elements.
    pub num_hlo_output_callbacks: usize,
    /// Options for the plug-in's runtime.
    pub custom_options: *const PJRT_NamedValue,
    /// The number of elements.
    pub num_custom_options: usize,
}

described!(PJRT_ExecuteOptions {
    struct_size: usize,
    extension_start: *mut c_void,
    send_callbacks: *mut *mut PJRT_SendCallbackInfo,
    recv_callbacks: *mut *mut PJRT_RecvCallbackInfo,
    num_send_ops: usize,
    num_recv_ops: usize,
    launch_id: c_int,
    non_donatable_input_indices: *const i64,
    num_non_donatable_input_indices: usize,
    context: *mut PJRT_ExecuteContext,
    call_location: *const c_char,
    num_tasks: usize,
    task_ids: *mut c_int,
    incarnation_ids: *mut i64,
    multi_slice_config: *mut c_void,
    use_major_to_minor_data_layout_for_callbacks: u8,
    hlo_output_callbacks: *mut c_void,
    num_hlo_output_callbacks: usize,
    custom_options: *const PJRT_NamedValue,
    num_custom_options: usize,
});

/// The logical position of a device in a program that runs on several devices; an element of
/// arrays.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PJRT_LogicalDeviceIds {
    /// The replica of the program.
    pub replica: c_int,
    /// The partition of the program.
    pub partition: c_int,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<PJRT_LogicalDeviceIds>() == 8);

/// The argument of the callback that provides memory for a copy of raw bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args {
    /// The size of the struct, in bytes.
    pub struct_size: usize,
    /// The `callback_data` that the call returned.
    pub callback_data: *mut c_void,
    /// 0, or the code of the error because of which there will be no memory.
    pub error_code: c_int,
    /// The message of the error.
    pub error_message: *const c_char,
    /// The length of the message in bytes.
    pub error_message_size: usize,
    /// The memory.
    pub dst: *mut c_void,
}

described!(PJRT_Buffer_CopyRawToHostFuture_Callback_Args {
    struct_size: usize,
    callback_data: *mut c_void,
    error_code: c_int,
    error_message: *const c_char,
    error_message_size: usize,
    dst: *mut c_void,
});

/// The argument of the callback for the end of the work that a donated buffer waits for.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PJRT_Buffer_DonateWithControlDependency_Callback_Args {
    /// The size of the struct, in bytes.
    pub struct_size: usize,
    /// The `callback_data` that the call returned.
    pub callback_data: *mut c_void,
    /// 0, or the code of the error.
    pub error_code: c_int,
    /// The message of the error.
    pub error_message: *const c_char,
    /// The length of the message in bytes.
    pub error_message_size: usize,
}

described!(PJRT_Buffer_DonateWithControlDependency_Callback_Args {
    struct_size: usize,
    callback_data: *mut c_void,
    error_code: c_int,
    error_message: *const c_char,
    error_message_size: usize,
});

/// A layout of an array, in tiles or by strides; only the first kind is supported here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PJRT_Buffer_MemoryLayout {
    /// The value of the struct's macro, in bytes.
    pub struct_size: usize,
    /// NULL.
    pub extension_start: *mut c_void,
    /// The union of both kinds.
    pub value: PJRT_Buffer_MemoryLayout_Tiled,
    /// The kind of the layout (`PJRT_Buffer_MemoryLayout_Type`): 0 for tiles.
    pub r#type: c_int,
}

described!(PJRT_Buffer_MemoryLayout {
    struct_size: usize,
    extension_start: *mut c_void,
    value: PJRT_Buffer_MemoryLayout_Tiled,
    r#type: c_int,
});

/// A layout given by an order of dimensions, and tiles.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PJRT_Buffer_MemoryLayout_Tiled {
    /// The size of the struct, in bytes.
    pub struct_size: usize,
    /// NULL.
    pub extension_start: *mut c_void,
    /// The dimensions, the one that changes fastest first.
    pub minor_to_major: *const i64,
    /// The number of elements.
    pub minor_to_major_size: usize,
    /// The dimensions of all tiles, or NULL.
    pub tile_dims: *const i64,
    /// The number of dimensions of each tile, or NULL.
    pub tile_dim_sizes: *const usize,
    /// The number of tiles.
    pub num_tiles: usize,
}

described!(PJRT_Buffer_MemoryLayout_Tiled {
    struct_size: usize,
    extension_start: *mut c_void,
    minor_to_major: *const i64,
    minor_to_major_size: usize,
    tile_dims: *const i64,
    tile_dim_sizes: *const usize,
    num_tiles: usize,
});

impl PJRT_Buffer_MemoryLayout {
    /// Creates the layout with this order of dimensions and without tiles.
    ///
    /// It points to `minor_to_major`, and must not outlive it.
    #[must_use]
    pub const fn of_order(minor_to_major: &[i64]) -> Self {
        Self {
            struct_size: core::mem::offset_of!(Self, r#type) + size_of::<c_int>(),
            extension_start: ptr::null_mut(),
            value: PJRT_Buffer_MemoryLayout_Tiled {
                struct_size: size_of::<PJRT_Buffer_MemoryLayout_Tiled>(),
                extension_start: ptr::null_mut(),
                minor_to_major: minor_to_major.as_ptr(),
                minor_to_major_size: minor_to_major.len(),
                tile_dims: ptr::null(),
                tile_dim_sizes: ptr::null(),
                num_tiles: 0,
            },
            r#type: 0,
        }
    }
}

/// The callback of an event that is ready. It gets ownership of an error, or NULL.
pub type PJRT_Event_OnReadyCallback =
    unsafe extern "C" fn(error: *mut PJRT_Error, user_arg: *mut c_void);

/// The visitor of an error's payloads. It gets a key and a value, which are valid during the call.
pub type PJRT_Error_PayloadVisitor = unsafe extern "C" fn(
    key: *const c_char,
    key_size: usize,
    value: *const c_char,
    value_size: usize,
    user_arg: *mut c_void,
);

/// The function that frees an object returned by a call.
pub type Deleter<T> = Option<unsafe extern "C" fn(*mut T)>;
