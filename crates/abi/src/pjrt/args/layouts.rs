//! The extension that tells how arrays lie on devices (number 4), and the arguments of its
//! functions: as they are in 0.114, the only minor in which an extension's structs were measured.

use core::ffi::{c_char, c_int, c_void};

use super::*;

/// A function of an extension, and the struct that it takes.
///
/// # Safety
/// The type is `repr(C)` and begins with its size as `usize`; any bytes are a value of it.
pub unsafe trait ExtensionArguments: Copy {
    /// The function, by its name in C.
    const FUNCTION: &'static &'static str;
    /// The number of its extension.
    const EXTENSION: i32;
    /// Where its pointer lies in the extension, in bytes.
    const OFFSET: usize;

    /// A struct without values: its size, and zero.
    fn new() -> Self;
}

/// `STRUCT of FUNCTION at OFFSET, SIZE { field: type, … }`, without the two fields that each begins
/// with.
macro_rules! extension_arguments {
    ($extension:literal: $($name:ident of $function:literal at $offset:literal, $size:literal { $($field:ident: $type:ty,)* })*) => {
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
                    #[doc = concat!("`", stringify!($field), "`.")]
                    pub $field: $type,
                )*
            }

            #[cfg(target_pointer_width = "64")]
            const _: () = assert!(size_of::<$name>() == $size && align_of::<$name>() == 8);

            // SAFETY: `repr(C)` and the two first fields are above; every field is a number or a
            // pointer, for which all bytes are values.
            unsafe impl ExtensionArguments for $name {
                const FUNCTION: &'static &'static str = &$function;
                const EXTENSION: i32 = $extension;
                const OFFSET: usize = $offset;

                fn new() -> Self {
                    // SAFETY: zero is a value of every number and pointer.
                    let zero: Self = unsafe { core::mem::zeroed() };
                    Self { struct_size: size_of::<Self>(), ..zero }
                }
            }
        )*
    };
}

handles! {
    /// How an array lies on a device; whoever gets one destroys it.
    PJRT_Layouts_MemoryLayout;
    /// What owns the text of a layout.
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
