//! The tables of functions at the start of errors and memories. Plug-ins of an older minor have
//! them too, but hosts do not read them there.

use std::ffi::{c_char, c_int, c_void};

use serdes_abi::pjrt::args::*;

use crate::{
    Result, Status,
    panic::{contain, contain_drop},
    pjrt::user_data::UserData,
};

/// An error as the host holds it.
#[repr(C)]
pub(super) struct GivenError {
    functions: &'static Shared<PJRT_Error_FunctionTable>,
    pub(super) status: Status,
}

impl GivenError {
    pub(super) fn new(status: Status) -> Self {
        Self { functions: &ERRORS, status }
    }
}

/// The first fields of a memory.
#[repr(C)]
#[derive(Debug)]
pub(in crate::pjrt) struct MemoryHead {
    functions: &'static Shared<PJRT_Memory_FunctionTable>,
    user_data: UserData,
}

impl MemoryHead {
    pub(in crate::pjrt) fn new() -> Self {
        Self { functions: &MEMORIES, user_data: UserData::default() }
    }
}

/// A table of functions, which all objects share.
#[repr(transparent)]
#[derive(Debug)]
struct Shared<T>(T);

// SAFETY: the table contains numbers, addresses of functions, and NULL, and is never written.
unsafe impl<T> Sync for Shared<T> {}

static ERRORS: Shared<PJRT_Error_FunctionTable> = Shared(PJRT_Error_FunctionTable {
    struct_size: size_of::<PJRT_Error_FunctionTable>(),
    instance_size: size_of::<GivenError>(),
    extension_start: std::ptr::null_mut(),
    destroy: Some(destroy),
    message: Some(message),
    get_code: Some(code),
    for_each_payload: Some(for_each_payload),
});

static MEMORIES: Shared<PJRT_Memory_FunctionTable> = Shared(PJRT_Memory_FunctionTable {
    struct_size: size_of::<PJRT_Memory_FunctionTable>(),
    extension_start: std::ptr::null_mut(),
    // The address of the table is the public part of a memory.
    instance_struct_size: size_of::<*const PJRT_Memory_FunctionTable>(),
    get_user_data: Some(get_user_data),
    set_user_data: Some(set_user_data),
});

/// Returns the status of an error.
///
/// # Safety
/// It is NULL, or an error of this plug-in that lives as long as `'a`.
pub(super) unsafe fn status<'a>(error: *const PJRT_Error) -> Option<&'a Status> {
    // SAFETY: the caller's promise.
    unsafe { error.cast::<GivenError>().as_ref() }.map(|error| &error.status)
}

/// # Safety
/// It is NULL, or an error of this plug-in that is no longer used.
unsafe extern "C" fn destroy(error: *mut PJRT_Error) {
    // SAFETY: the caller's promise. NULL is refused, and there is no caller to report to.
    if let Ok(error) = unsafe { super::pointers::take::<GivenError, _>(error, "an error") } {
        contain_drop(Ok::<_, Status>(error));
    }
}

/// # Safety
/// It is NULL, or a live error of this plug-in; there is space for both results.
unsafe extern "C" fn message(
    error: *const PJRT_Error,
    words: *mut *const c_char,
    length: *mut usize,
) {
    // SAFETY: the caller's promise.
    let said = unsafe { status(error) }.map_or("", Status::message);
    if !words.is_null() && !length.is_null() {
        // SAFETY: neither is NULL, and the caller guarantees the space.
        unsafe {
            words.write(said.as_ptr().cast());
            length.write(said.len());
        }
    }
}

/// # Safety
/// It is NULL, or a live error of this plug-in.
unsafe extern "C" fn code(error: *const PJRT_Error) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { status(error) }.map_or(0, |status| status.code().0)
}

/// Visits nothing: there are no payloads.
///
/// # Safety
/// None is needed.
unsafe extern "C" fn for_each_payload(
    _error: *const PJRT_Error,
    _visitor: Option<PJRT_Error_PayloadVisitor>,
    _user_arg: *mut c_void,
) {
}

/// Returns the first fields of a memory.
///
/// # Safety
/// It is NULL, or a memory of this plug-in that lives as long as `'a`.
unsafe fn head<'a>(memory: *const PJRT_Memory) -> Option<&'a MemoryHead> {
    // SAFETY: the caller's promise; a memory begins with its head.
    unsafe { memory.cast::<MemoryHead>().as_ref() }
}

/// # Safety
/// It is NULL, or a live memory of this plug-in.
unsafe extern "C" fn get_user_data(memory: *mut PJRT_Memory, key: *const c_void) -> *mut c_void {
    // SAFETY: the caller's promise.
    let head = unsafe { head(memory) };
    head.map_or(std::ptr::null_mut(), |head| head.user_data.get(key))
}

/// # Safety
/// As for [`get_user_data`]; the caller hands over the data together with its destructor.
unsafe extern "C" fn set_user_data(
    memory: *mut PJRT_Memory,
    key: *const c_void,
    data: *mut c_void,
    destroy: Option<unsafe extern "C" fn(*mut c_void)>,
) {
    let keep = || -> Result<()> {
        // SAFETY: the caller's promise.
        if let Some(head) = unsafe { head(memory) } {
            head.user_data.set(key, data, destroy);
        }
        Ok(())
    };
    // There is no caller to report to.
    drop(contain(keep));
}
