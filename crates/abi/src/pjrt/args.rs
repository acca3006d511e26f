//! The structs of the calls that a host makes, as `repr(C)` types in the newest layout.
//!
//! Each begins with its size and a pointer to extensions, which the constructor sets to the newest
//! size and to NULL; everything else is zero. That every field lies where the history says is
//! checked when this crate is compiled.

use core::{
    ffi::{c_char, c_int, c_void},
    ptr,
};

use super::layout::Struct;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[repr(C)]
            #[derive(Debug)]
            pub struct $name {
                _opaque: [u8; 0],
            }
        )*
    };
}

handles! {
    /// An error; whoever gets one destroys it.
    PJRT_Error;
    /// Something that will be done.
    PJRT_Event;
    /// A client: the devices of a plug-in, and what lives on them.
    PJRT_Client;
    /// A device of a client, which owns it.
    PJRT_Device;
    /// What is known of a device; it belongs to the client.
    PJRT_DeviceDescription;
    /// A memory of a client, which owns it.
    PJRT_Memory;
    /// An array in a memory.
    PJRT_Buffer;
    /// Takes the data of some buffers in pieces.
    PJRT_AsyncHostToDeviceTransferManager;
}

/// The call that a struct of arguments belongs to.
///
/// # Safety
/// The type is `repr(C)`, has the layout of [`Self::STRUCT`] in the newest minor, and begins with
/// its size as `usize`; any bytes are a value of it.
pub unsafe trait Arguments: Copy {
    /// The function, by its name in C.
    const FUNCTION: &'static &'static str;
    /// The struct's history.
    const STRUCT: &'static Struct;

    /// A struct without values: the newest size, and zero.
    fn new() -> Self;
}

/// `STRUCT of FUNCTION { field: type, … }`, without the two fields that each begins with.
macro_rules! arguments {
    ($($name:ident of $function:literal { $($(#[$doc:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            #[doc = concat!("Arguments of `", $function, "`.")]
            #[repr(C)]
            #[derive(Clone, Copy, Debug)]
            pub struct $name {
                /// How much of the struct the caller declares, in bytes.
                pub struct_size: usize,
                /// NULL, or a chain of extensions.
                pub extension_start: *mut c_void,
                $(
                    $(#[$doc])*
                    #[doc = concat!("`", stringify!($field), "`.")]
                    pub $field: $type,
                )*
            }

            described!($name { $($field: $type,)* });

            // SAFETY: the layout is compared with the history by `described`; every field is a
            // number or a pointer, for which all bytes are values.
            unsafe impl Arguments for $name {
                const FUNCTION: &'static &'static str = &$function;
                const STRUCT: &'static Struct = $name::HISTORY;

                fn new() -> Self {
                    // SAFETY: zero is a value of every number and pointer.
                    let zero: Self = unsafe { core::mem::zeroed() };
                    Self { struct_size: size_of::<Self>(), ..zero }
                }
            }
        )*
    };
}

/// Compares a `repr(C)` type with the newest layout of its struct, and gives it `HISTORY`.
macro_rules! described {
    ($name:ident { $($field:ident: $type:ty,)* }) => {
        impl $name {
            /// What the struct was in each minor.
            pub const HISTORY: &'static Struct = match super::history::structure(stringify!($name)) {
                Some(history) => history,
                None => panic!("the history has no such struct"),
            };
        }

        #[cfg(target_pointer_width = "64")]
        const _: () = {
            let history = $name::HISTORY;
            match history.size(super::Minor::NEWEST) {
                Some(size) => assert!(size_of::<$name>() == size.size_of),
                None => panic!("the newest minor has no such struct"),
            }
            assert!(align_of::<$name>() == 8);
            $(
                let name = crate::layout::c_name(stringify!($field));
                match history.field(name, super::Minor::NEWEST) {
                    Some(field) => {
                        assert!(core::mem::offset_of!($name, $field) == field.offset as usize);
                        assert!(size_of::<$type>() == field.size as usize);
                    }
                    None => panic!("the newest minor has no such field"),
                }
            )*
        };
    };
}

/// A value with a name: an option of a client, an attribute of a plug-in. It stands in arrays.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PJRT_NamedValue {
    /// Its own size, in bytes.
    pub struct_size: usize,
    /// NULL.
    pub extension_start: *mut c_void,
    /// The name, not terminated.
    pub name: *const c_char,
    /// Its length in bytes.
    pub name_size: usize,
    /// Which type the value has (`PJRT_NamedValue_Type`).
    pub r#type: c_int,
    /// The value, or a pointer to it: eight bytes that `type` says how to read.
    pub value: u64,
    /// How many values; 1 but for texts and lists.
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

/// The shape of a buffer that is to be made. It stands in arrays.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PJRT_ShapeSpec {
    /// What its macro gives, in bytes.
    pub struct_size: usize,
    /// NULL.
    pub extension_start: *mut c_void,
    /// The dimensions.
    pub dims: *const i64,
    /// How many.
    pub num_dims: usize,
    /// Of what (`PJRT_Buffer_Type`).
    pub element_type: c_int,
}

described!(PJRT_ShapeSpec {
    struct_size: usize,
    extension_start: *mut c_void,
    dims: *const i64,
    num_dims: usize,
    element_type: c_int,
});

/// A layout of an array, in tiles or by strides; here only the first kind.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PJRT_Buffer_MemoryLayout {
    /// What its macro gives, in bytes.
    pub struct_size: usize,
    /// NULL.
    pub extension_start: *mut c_void,
    /// The union of both kinds.
    pub value: PJRT_Buffer_MemoryLayout_Tiled,
    /// Which it is (`PJRT_Buffer_MemoryLayout_Type`): 0 for tiles.
    pub r#type: c_int,
}

described!(PJRT_Buffer_MemoryLayout {
    struct_size: usize,
    extension_start: *mut c_void,
    value: PJRT_Buffer_MemoryLayout_Tiled,
    r#type: c_int,
});

/// A layout by the order of dimensions, and tiles.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PJRT_Buffer_MemoryLayout_Tiled {
    /// Its own size, in bytes.
    pub struct_size: usize,
    /// NULL.
    pub extension_start: *mut c_void,
    /// The dimensions, the one that changes fastest first.
    pub minor_to_major: *const i64,
    /// How many.
    pub minor_to_major_size: usize,
    /// The dimensions of all tiles, or NULL.
    pub tile_dims: *const i64,
    /// How many dimensions each tile has, or NULL.
    pub tile_dim_sizes: *const usize,
    /// How many tiles.
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
    /// The layout without tiles in which the dimensions have that order.
    ///
    /// It points to the order, and is good as long as that is.
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

/// What an event calls when it is ready: with an error, which it hands over, or NULL.
pub type PJRT_Event_OnReadyCallback =
    unsafe extern "C" fn(error: *mut PJRT_Error, user_arg: *mut c_void);

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
    PJRT_Event_Await_Args of "PJRT_Event_Await" {
        event: *mut PJRT_Event,
    }
    PJRT_Event_OnReady_Args of "PJRT_Event_OnReady" {
        event: *mut PJRT_Event,
        callback: Option<PJRT_Event_OnReadyCallback>,
        user_arg: *mut c_void,
    }
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
    PJRT_Client_PlatformVersion_Args of "PJRT_Client_PlatformVersion" {
        client: *mut PJRT_Client,
        platform_version: *const c_char,
        platform_version_size: usize,
    }
    PJRT_Client_ProcessIndex_Args of "PJRT_Client_ProcessIndex" {
        client: *mut PJRT_Client,
        process_index: c_int,
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
    PJRT_DeviceDescription_Id_Args of "PJRT_DeviceDescription_Id" {
        device_description: *mut PJRT_DeviceDescription,
        id: c_int,
    }
    PJRT_DeviceDescription_ProcessIndex_Args of "PJRT_DeviceDescription_ProcessIndex" {
        device_description: *mut PJRT_DeviceDescription,
        process_index: c_int,
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
    PJRT_Memory_Id_Args of "PJRT_Memory_Id" {
        memory: *mut PJRT_Memory,
        id: c_int,
    }
    PJRT_Memory_Kind_Args of "PJRT_Memory_Kind" {
        memory: *mut PJRT_Memory,
        kind: *const c_char,
        kind_size: usize,
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
    PJRT_Buffer_ElementType_Args of "PJRT_Buffer_ElementType" {
        buffer: *mut PJRT_Buffer,
        r#type: c_int,
    }
    PJRT_Buffer_Dimensions_Args of "PJRT_Buffer_Dimensions" {
        buffer: *mut PJRT_Buffer,
        dims: *const i64,
        num_dims: usize,
    }
    PJRT_Buffer_OnDeviceSizeInBytes_Args of "PJRT_Buffer_OnDeviceSizeInBytes" {
        buffer: *mut PJRT_Buffer,
        on_device_size_in_bytes: usize,
    }
    PJRT_Buffer_ReadyEvent_Args of "PJRT_Buffer_ReadyEvent" {
        buffer: *mut PJRT_Buffer,
        event: *mut PJRT_Event,
    }
    PJRT_Buffer_ToHostBuffer_Args of "PJRT_Buffer_ToHostBuffer" {
        src: *mut PJRT_Buffer,
        host_layout: *mut PJRT_Buffer_MemoryLayout,
        dst: *mut c_void,
        dst_size: usize,
        event: *mut PJRT_Event,
    }
    PJRT_Buffer_CopyToDevice_Args of "PJRT_Buffer_CopyToDevice" {
        buffer: *mut PJRT_Buffer,
        dst_device: *mut PJRT_Device,
        dst_buffer: *mut PJRT_Buffer,
    }
    PJRT_Buffer_CopyToMemory_Args of "PJRT_Buffer_CopyToMemory" {
        buffer: *mut PJRT_Buffer,
        dst_memory: *mut PJRT_Memory,
        dst_buffer: *mut PJRT_Buffer,
    }
    PJRT_Buffer_IsDeleted_Args of "PJRT_Buffer_IsDeleted" {
        buffer: *mut PJRT_Buffer,
        is_deleted: u8,
    }
    PJRT_Buffer_Delete_Args of "PJRT_Buffer_Delete" {
        buffer: *mut PJRT_Buffer,
    }
    PJRT_Buffer_Destroy_Args of "PJRT_Buffer_Destroy" {
        buffer: *mut PJRT_Buffer,
    }
    PJRT_Buffer_CopyRawToHost_Args of "PJRT_Buffer_CopyRawToHost" {
        buffer: *mut PJRT_Buffer,
        dst: *mut c_void,
        offset: i64,
        transfer_size: i64,
        event: *mut PJRT_Event,
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
    PJRT_AsyncHostToDeviceTransferManager_TransferData_Args of "PJRT_AsyncHostToDeviceTransferManager_TransferData" {
        transfer_manager: *mut PJRT_AsyncHostToDeviceTransferManager,
        buffer_index: c_int,
        data: *const c_void,
        offset: i64,
        transfer_size: i64,
        is_last_transfer: u8,
        done_with_h2d_transfer: *mut PJRT_Event,
    }
    PJRT_AsyncHostToDeviceTransferManager_Destroy_Args of "PJRT_AsyncHostToDeviceTransferManager_Destroy" {
        transfer_manager: *mut PJRT_AsyncHostToDeviceTransferManager,
    }
}
