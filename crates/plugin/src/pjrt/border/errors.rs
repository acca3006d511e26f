//! Errors: a code and a message, which the receiver destroys.

use std::ffi::{c_char, c_int};

use serdes_abi::{StatusCode, TF_Code, pjrt::args::PJRT_Error};

use super::{function_tables::GivenError, pointers, values};
use crate::{Result, Status};

/// Returns the return value of a call: NULL, or an error.
pub(super) fn give(result: Result<()>) -> *mut PJRT_Error {
    match result {
        Ok(()) => std::ptr::null_mut(),
        Err(status) => pointers::give(GivenError::new(status)),
    }
}

/// Takes the status out of an error and frees it.
///
/// # Safety
/// [`give`] returned the error, and it was not freed before.
#[cfg(test)]
pub(super) unsafe fn take(error: *mut PJRT_Error) -> Status {
    // SAFETY: the caller's promise.
    unsafe { Box::from_raw(error.cast::<GivenError>()) }.status
}

/// Returns the failure with this code and message; none for 0.
///
/// # Safety
/// There are `length` bytes at `words`, or it is NULL.
pub(super) unsafe fn read(code: c_int, words: *const c_char, length: usize) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    let known = StatusCode::from_number(code);
    // SAFETY: the caller's promise.
    let words = unsafe { values::text(words, length) };
    Err(Status::new(known.map_or(TF_Code::UNKNOWN, TF_Code::from), words))
}
