//! Functions by which a host reads an error.

use serdes_abi::pjrt::args::*;

use super::{
    arguments::call,
    function_tables::{self, GivenError},
    pointers,
};
use crate::{Result, Status, panic::contain_drop};

/// # Safety
/// As for every call: the arguments are the call's own, as [`call`] says, and what they name is
/// this plug-in's and alive.
pub(super) unsafe extern "C" fn destroy(raw: *mut PJRT_Error_Destroy_Args) {
    let body = |arguments: &mut PJRT_Error_Destroy_Args| {
        // SAFETY: by the C API it is NULL or an error of this plug-in, and is destroyed once.
        contain_drop(unsafe { pointers::take::<GivenError, _>(arguments.error, "an error") });
        Ok(())
    };
    // SAFETY: the caller's promise. It fails only where the arguments are not read; then there is
    // no caller to report to.
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
