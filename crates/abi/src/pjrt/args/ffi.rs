//! The extension through which a plug-in is given functions that programs call by name (number 5),
//! and the arguments of the one that hands them over.

use core::{
    ffi::{c_char, c_int, c_void},
    ptr,
};

use super::extension::ExtensionArguments;

/// Arguments of `PJRT_FFI_Register_Handler`: the only ones that no chain of extensions can follow.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PJRT_FFI_Register_Handler_Args {
    /// The length of the struct that the caller declares, in bytes: 52, the value of its macro.
    pub struct_size: usize,
    /// The name by which programs call it, not terminated.
    pub target_name: *const c_char,
    /// Its length in bytes.
    pub target_name_size: usize,
    /// The function.
    pub handler: *mut c_void,
    /// For which platform it is, not terminated.
    pub platform_name: *const c_char,
    /// Its length in bytes.
    pub platform_name_size: usize,
    /// The places where it may be used: 1 for a command buffer.
    pub traits: c_int,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<PJRT_FFI_Register_Handler_Args>() == 56);
    assert!(core::mem::offset_of!(PJRT_FFI_Register_Handler_Args, traits) == 48);
};

// SAFETY: `repr(C)` and it begins with its size; every field is a number or a pointer, for which
// all bytes are values.
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
