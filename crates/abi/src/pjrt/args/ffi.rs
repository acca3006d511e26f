//! Arguments of the FFI extension (number 5), through which a host registers functions with a
//! plug-in for programs to call by name.

use core::{
    ffi::{c_char, c_int, c_void},
    ptr,
};

use super::extension::ExtensionArguments;

/// Arguments of `PJRT_FFI_Register_Handler`, which have no `extension_start`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PJRT_FFI_Register_Handler_Args {
    /// Size of the struct that the caller declares, in bytes: 52, the value of its macro.
    pub struct_size: usize,
    /// Name by which programs call the function, not NUL-terminated.
    pub target_name: *const c_char,
    /// Length of the name, in bytes.
    pub target_name_size: usize,
    /// The function.
    pub handler: *mut c_void,
    /// Name of the platform that the function is for, not NUL-terminated.
    pub platform_name: *const c_char,
    /// Length of that name, in bytes.
    pub platform_name_size: usize,
    /// Flags of the function: 1 if it may be recorded in a command buffer.
    pub traits: c_int,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<PJRT_FFI_Register_Handler_Args>() == 56);
    assert!(core::mem::offset_of!(PJRT_FFI_Register_Handler_Args, traits) == 48);
};

// SAFETY: the type is `repr(C)` and begins with its size; every field is a number or a pointer, for
// which all bytes are values.
unsafe impl ExtensionArguments for PJRT_FFI_Register_Handler_Args {
    const FUNCTION: &'static &'static str = &"PJRT_FFI_Register_Handler";
    const EXTENSION: i32 = 5;
    const OFFSET: usize = 40;

    fn new() -> Self {
        Self {
            struct_size: core::mem::offset_of!(Self, traits) + size_of::<c_int>(),
            target_name: ptr::null(),
            target_name_size: 0,
            handler: ptr::null_mut(),
            platform_name: ptr::null(),
            platform_name_size: 0,
            traits: 0,
        }
    }
}
