//! The tables of functions at the start of a memory (since 0.105) and of an error (since 0.107),
//! which make them usable without the table of the plug-in.

use core::ffi::{c_char, c_int, c_void};

use super::*;

/// The functions of a memory, through which a framework stores its own data there, by the address
/// of a key.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PJRT_Memory_FunctionTable {
    /// The size of the struct, in bytes.
    pub struct_size: usize,
    /// NULL, or a chain of extensions.
    pub extension_start: *mut c_void,
    /// The size of the public part of a memory, in bytes.
    pub instance_struct_size: usize,
    /// Returns the data stored for the key, or NULL.
    pub get_user_data:
        Option<unsafe extern "C" fn(memory: *mut PJRT_Memory, key: *const c_void) -> *mut c_void>,
    /// Stores data and takes ownership of it, together with its destructor; NULL removes the data.
    pub set_user_data: Option<PJRT_Memory_SetUserData>,
}

/// Stores data of a framework by a key.
pub type PJRT_Memory_SetUserData = unsafe extern "C" fn(
    memory: *mut PJRT_Memory,
    key: *const c_void,
    data: *mut c_void,
    destroy: Option<unsafe extern "C" fn(data: *mut c_void)>,
);

described!(PJRT_Memory_FunctionTable {
    struct_size: usize,
    extension_start: *mut c_void,
    instance_struct_size: usize,
    get_user_data: Option<unsafe extern "C" fn(*mut PJRT_Memory, *const c_void) -> *mut c_void>,
    set_user_data: Option<PJRT_Memory_SetUserData>,
});

/// The functions of an error.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PJRT_Error_FunctionTable {
    /// The size of the struct, in bytes.
    pub struct_size: usize,
    /// The size of an error, in bytes.
    pub instance_size: usize,
    /// NULL, or a chain of extensions.
    pub extension_start: *mut c_void,
    /// Destroys the error.
    pub destroy: Option<unsafe extern "C" fn(error: *mut PJRT_Error)>,
    /// Returns the message, which the error owns.
    pub message: Option<PJRT_Error_Words>,
    /// Returns the code of the error.
    pub get_code: Option<unsafe extern "C" fn(error: *const PJRT_Error) -> c_int>,
    /// Visits each payload of the error.
    pub for_each_payload: Option<PJRT_Error_Payloads>,
}

/// Returns the message of an error, and its length in bytes.
pub type PJRT_Error_Words = unsafe extern "C" fn(
    error: *const PJRT_Error,
    message: *mut *const c_char,
    message_size: *mut usize,
);

/// Visits each payload of an error.
pub type PJRT_Error_Payloads = unsafe extern "C" fn(
    error: *const PJRT_Error,
    visitor: Option<PJRT_Error_PayloadVisitor>,
    user_arg: *mut c_void,
);

described!(PJRT_Error_FunctionTable {
    struct_size: usize,
    instance_size: usize,
    extension_start: *mut c_void,
    destroy: Option<unsafe extern "C" fn(*mut PJRT_Error)>,
    message: Option<PJRT_Error_Words>,
    get_code: Option<unsafe extern "C" fn(*const PJRT_Error) -> c_int>,
    for_each_payload: Option<PJRT_Error_Payloads>,
});
