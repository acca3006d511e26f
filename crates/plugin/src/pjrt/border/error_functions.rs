//! Functions by which a host reads an error.

use serdes_abi::pjrt::args::*;

use super::{
    arguments::call,
    function_tables::{self, GivenError},
    pointers,
};
use crate::{Result, Status, panic::contain_drop};

/// # Safety
/// As for every call: the arguments are exclusive to the call, as [`call`] says, and the objects in
/// them are live objects of this plug-in.
pub(super) unsafe extern "C" fn destroy(raw: *mut PJRT_Error_Destroy_Args) {
    let body = |arguments: &mut PJRT_Error_Destroy_Args| {
        // SAFETY: by the C API it is NULL or an error of this plug-in, and is destroyed once.
        contain_drop(unsafe { pointers::take::<GivenError, _>(arguments.error, "an error") });
        Ok(())
    };
    // SAFETY: the caller's promise. It fails only if the arguments cannot be read, and then there
    // is no caller to report to.
    let failure = unsafe { call(raw, body) };
    if !failure.is_null() {
        // SAFETY: it was created just now.
        drop(unsafe { Box::from_raw(failure.cast::<GivenError>()) });
    }
}

/// # Safety
/// As for [`destroy`].
pub(super) unsafe extern "C" fn message(raw: *mut PJRT_Error_Message_Args) {
    let body = |arguments: &mut PJRT_Error_Message_Args| {
        // SAFETY: it is NULL or a live error of this plug-in.
        let status = unsafe { function_tables::status(arguments.error) };
        let words = status.map_or("", Status::message);
        arguments.message = words.as_ptr().cast();
        arguments.message_size = words.len();
        Ok(())
    };
    // SAFETY: the caller's promise.
    let failure = unsafe { call(raw, body) };
    if !failure.is_null() {
        // SAFETY: it was created just now.
        drop(unsafe { Box::from_raw(failure.cast::<GivenError>()) });
    }
}

calls! {
    code(PJRT_Error_GetCode_Args: arguments) {
        // SAFETY: it is NULL or a live error of this plug-in.
        let status = unsafe { function_tables::status(arguments.error) };
        let status = status.ok_or_else(|| Status::invalid_argument("found NULL, expected an error"))?;
        arguments.code = status.code().0;
    }

    /// Visits nothing: there are no payloads.
    for_each_payload(PJRT_Error_ForEachPayload_Args: _arguments) {}
}
