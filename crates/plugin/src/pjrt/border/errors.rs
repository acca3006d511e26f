//! Errors: a code and words, which whoever gets one destroys.

use std::ffi::{c_char, c_int};

use serdes_abi::{StatusCode, TF_Code, pjrt::args::*};

use super::{
    arguments::call,
    function_tables::{self, GivenError},
};
use crate::{Result, Status, panic::contain_drop};

/// What a call answers: NULL, or an error.
pub(super) fn give(result: Result<()>) -> *mut PJRT_Error {
    match result {
        Ok(()) => std::ptr::null_mut(),
        Err(status) => super::handles::give(GivenError::new(status)),
    }
}

/// What was given as an error.
///
/// # Safety
/// [`give`] gave it, and it was not taken before.
#[cfg(test)]
pub(super) unsafe fn take(error: *mut PJRT_Error) -> Status {
    // SAFETY: the caller's promise.
    unsafe { Box::from_raw(error.cast::<GivenError>()) }.status
}

/// The failure of that code and those words; none for 0.
///
/// # Safety
/// There are `length` bytes at `words`, or it is NULL.
pub(super) unsafe fn read(code: c_int, words: *const c_char, length: usize) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    let known = StatusCode::from_number(code);
    // SAFETY: the caller's promise.
    let words = unsafe { super::values::text(words, length) };
    Err(Status::new(known.map_or(TF_Code::UNKNOWN, TF_Code::from), words))
}

/// # Safety
/// As for every call: the arguments are the call's own, as [`call`] says, and what they name is
/// this plug-in's and alive.
pub(super) unsafe extern "C" fn destroy(raw: *mut PJRT_Error_Destroy_Args) {
    let body = |arguments: &mut PJRT_Error_Destroy_Args| {
        // SAFETY: by the C API it is NULL or an error of this plug-in, and is destroyed once.
        contain_drop(unsafe { super::handles::take::<GivenError, _>(arguments.error, "an error") });
        Ok(())
    };
    // SAFETY: the caller's promise. It fails only where the arguments are not read; then there is
    // nobody to be told.
    let failure = unsafe { call(raw, body) };
    if !failure.is_null() {
        // SAFETY: it was given just now.
        drop(unsafe { Box::from_raw(failure.cast::<GivenError>()) });
    }
}

/// # Safety
/// As for [`destroy`].
pub(super) unsafe extern "C" fn message(raw: *mut PJRT_Error_Message_Args) {
    let body = |arguments: &mut PJRT_Error_Message_Args| {
        // SAFETY: it is NULL or an error of this plug-in that is alive.
        let status = unsafe { function_tables::status(arguments.error) };
        let words = status.map_or("", Status::message);
        arguments.message = words.as_ptr().cast();
        arguments.message_size = words.len();
        Ok(())
    };
    // SAFETY: the caller's promise.
    let failure = unsafe { call(raw, body) };
    if !failure.is_null() {
        // SAFETY: it was given just now.
        drop(unsafe { Box::from_raw(failure.cast::<GivenError>()) });
    }
}

calls! {
    code(PJRT_Error_GetCode_Args: arguments) {
        // SAFETY: it is NULL or an error of this plug-in that is alive.
        let status = unsafe { function_tables::status(arguments.error) };
        let status = status.ok_or_else(|| Status::invalid_argument("found NULL, expected an error"))?;
        arguments.code = status.code().0;
    }

    /// There are no payloads.
    for_each_payload(PJRT_Error_ForEachPayload_Args: _arguments) {}
}
