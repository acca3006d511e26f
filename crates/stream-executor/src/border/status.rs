//! Our `TF_Status`, and the sixteen functions through which plug-ins access it.
//!
//! A status is on the host's stack for the duration of one call; it allocates only when a plug-in
//! reports an error. All functions accept NULL and ignore it, because plug-ins pass it.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    io,
};

use serdes_abi::{StatusCode, StatusFunctions, TF_Code, TF_Status};
use serdes_library_file::printable;

use crate::error::{Error, StatusError};

/// The struct behind a `*mut TF_Status` of this host.
///
/// Fields that only errors and payloads need are separate, so that the status of a successful call
/// costs two stores and two comparisons.
#[derive(Debug)]
pub(crate) struct Status {
    code: TF_Code,
    detail: Option<Box<Detail>>,
}

#[derive(Debug, Default)]
struct Detail {
    message: CString,
    payloads: Vec<(CString, CString)>,
}

impl Status {
    /// Creates a status with the code OK.
    #[inline]
    pub(crate) const fn new() -> Self {
        Self { code: TF_Code::OK, detail: None }
    }

    /// Returns the pointer that a plug-in gets.
    #[inline]
    pub(crate) fn as_mut_ptr(&mut self) -> *mut TF_Status {
        std::ptr::from_mut(self).cast()
    }

    fn set(&mut self, code: TF_Code, message: CString) {
        self.code = code;
        self.detail =
            (code != TF_Code::OK).then(|| Box::new(Detail { message, payloads: Vec::new() }));
    }

    /// Returns true if the status is OK.
    #[inline]
    pub(crate) fn is_ok(&self) -> bool {
        self.code == TF_Code::OK
    }

    /// Returns the error that a call left in this status.
    #[inline]
    pub(crate) fn into_result(self, call: &'static str) -> Result<(), Error> {
        if self.is_ok() { Ok(()) } else { Err(self.into_error(call)) }
    }

    #[cold]
    fn into_error(self, call: &'static str) -> Error {
        let message = self.detail.map(|detail| printable(detail.message.to_bytes()));
        Error::Status(StatusError { call, code: self.code, message: message.unwrap_or_default() })
    }
}

/// The table of our functions, for plug-ins that are linked into their host.
pub(crate) static FUNCTIONS: StatusFunctions = StatusFunctions {
    new_status: tf_new_status,
    delete_status: tf_delete_status,
    set_status: tf_set_status,
    get_code: tf_get_code,
    message: tf_message,
};

/// Returns the addresses of our functions, in the order of
/// [`SERVED`](serdes_library_file::status_functions::SERVED).
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn served_addresses() -> [usize; 8] {
    [
        tf_new_status as *const () as usize,
        tf_delete_status as *const () as usize,
        tf_set_status as *const () as usize,
        tf_set_payload as *const () as usize,
        tf_for_each_payload as *const () as usize,
        tf_set_status_from_io_error as *const () as usize,
        tf_get_code as *const () as usize,
        tf_message as *const () as usize,
    ]
}

/// # Safety
/// `status` is NULL or came from [`Status::as_mut_ptr`] or [`tf_new_status`], is alive, and is used
/// by this thread alone.
unsafe fn borrow<'a>(status: *mut TF_Status) -> Option<&'a mut Status> {
    // SAFETY: every status in the process is a `Status` (the shim is checked to win over other
    // definers of the functions), and the caller guarantees its lifetime and its use.
    unsafe { status.cast::<Status>().as_mut() }
}

/// # Safety
/// `text` is NULL or points to a NUL-terminated string that does not change during the call.
unsafe fn owned(text: *const c_char) -> CString {
    if text.is_null() {
        return CString::default();
    }
    // SAFETY: not NULL, and the caller guarantees the rest.
    unsafe { CStr::from_ptr(text) }.to_owned()
}

unsafe extern "C" fn tf_new_status() -> *mut TF_Status {
    Box::into_raw(Box::new(Status::new())).cast()
}

unsafe extern "C" fn tf_delete_status(status: *mut TF_Status) {
    if !status.is_null() {
        // SAFETY: by the contract of the C API the pointer came from `tf_new_status` and is deleted
        // once.
        drop(unsafe { Box::from_raw(status.cast::<Status>()) });
    }
}

unsafe extern "C" fn tf_set_status(status: *mut TF_Status, code: TF_Code, message: *const c_char) {
    // SAFETY: the C API passes NULL or a live status of ours, which only this thread uses.
    if let Some(status) = unsafe { borrow(status) } {
        // SAFETY: the C API passes NULL or texts that end in NUL and stay during the call.
        let message = unsafe { owned(message) };
        status.set(code, message);
    }
}

unsafe extern "C" fn tf_set_payload(
    status: *mut TF_Status,
    key: *const c_char,
    value: *const c_char,
) {
    // SAFETY: the C API passes NULL or a live status of ours, which only this thread uses.
    let Some(status) = (unsafe { borrow(status) }) else { return };
    // As in TensorFlow, a status with the code OK has no payloads.
    if status.is_ok() {
        return;
    }
    // SAFETY: the C API passes NULL or texts that end in NUL and stay during the call.
    let (key, value) = unsafe { (owned(key), owned(value)) };
    let payloads = &mut status.detail.get_or_insert_default().payloads;
    match payloads.iter_mut().find(|(known, _)| *known == key) {
        Some((_, old)) => *old = value,
        None => payloads.push((key, value)),
    }
}

type PayloadVisitor = unsafe extern "C" fn(*const c_char, *const c_char, *mut c_void);

unsafe extern "C" fn tf_for_each_payload(
    status: *mut TF_Status,
    visitor: Option<PayloadVisitor>,
    capture: *mut c_void,
) {
    // SAFETY: the C API passes NULL or a live status of ours, which only this thread uses.
    let (Some(status), Some(visitor)) = (unsafe { borrow(status) }, visitor) else { return };
    // The visitor may modify the same status, so it visits a copy.
    let payloads = status.detail.as_ref().map(|detail| detail.payloads.clone());
    for (key, value) in payloads.unwrap_or_default() {
        // SAFETY: both strings live until the visitor returns, as the C API promises it.
        unsafe { visitor(key.as_ptr(), value.as_ptr(), capture) };
    }
}

unsafe extern "C" fn tf_set_status_from_io_error(
    status: *mut TF_Status,
    error: c_int,
    context: *const c_char,
) {
    // SAFETY: the C API passes NULL or a live status of ours, which only this thread uses.
    let Some(status) = (unsafe { borrow(status) }) else { return };
    // SAFETY: the C API passes NULL or texts that end in NUL and stay during the call.
    let context = unsafe { owned(context) };
    let code = error;
    let error = io::Error::from_raw_os_error(code);
    let text = format!("{}: {error}", context.to_string_lossy());
    let code = if code == 0 { TF_Code::OK } else { StatusCode::of_io(&error).into() };
    status.set(code, CString::new(text).unwrap_or_default());
}

unsafe extern "C" fn tf_get_code(status: *const TF_Status) -> TF_Code {
    // SAFETY: the C API passes NULL or a live status of ours, which only this thread uses.
    unsafe { borrow(status.cast_mut()) }.map_or(TF_Code::OK, |status| status.code)
}

unsafe extern "C" fn tf_message(status: *const TF_Status) -> *const c_char {
    // SAFETY: the C API passes NULL or a live status of ours, which only this thread uses.
    let status = unsafe { borrow(status.cast_mut()) };
    let detail = status.and_then(|status| status.detail.as_deref());
    detail.map_or(c"", |detail| detail.message.as_c_str()).as_ptr()
}

/// Sets an error in a status that a plug-in handed to a function of ours.
///
/// # Safety
/// `status` is NULL or a living status of this process, used by this thread alone.
pub(crate) unsafe fn report_to_plugin(status: *mut TF_Status, code: TF_Code, message: &str) {
    // SAFETY: NULL, or a live status of ours that this thread alone uses, by the condition above.
    if let Some(status) = unsafe { borrow(status) } {
        let text: String = message.chars().filter(|&c| c != '\0').collect();
        status.set(code, CString::new(text).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(status: *const TF_Status) -> String {
        // SAFETY: the status is alive and used by this test alone.
        unsafe { CStr::from_ptr(tf_message(status)) }.to_string_lossy().into_owned()
    }

    #[test]
    fn a_status_carries_code_message_and_payloads() {
        // SAFETY: the calls follow the C API: one thread, delete at the end, strings that live.
        unsafe {
            let status = tf_new_status();
            assert_eq!(tf_get_code(status), TF_Code::OK);
            assert_eq!(text(status), "");
            tf_set_status(status, TF_Code::DATA_LOSS, c"gone".as_ptr());
            assert_eq!(tf_get_code(status), TF_Code::DATA_LOSS);
            assert_eq!(text(status), "gone");
            tf_set_payload(status, c"k".as_ptr(), c"1".as_ptr());
            tf_set_payload(status, c"k".as_ptr(), c"2".as_ptr());
            tf_set_payload(status, c"l".as_ptr(), c"3".as_ptr());
            unsafe extern "C" fn collect(k: *const c_char, v: *const c_char, into: *mut c_void) {
                // SAFETY: the caller hands in a vector and two living strings.
                unsafe {
                    (*into.cast::<Vec<(CString, CString)>>()).push((owned(k), owned(v)));
                }
            }
            let mut seen: Vec<(CString, CString)> = Vec::new();
            tf_for_each_payload(status, Some(collect), std::ptr::from_mut(&mut seen).cast());
            assert_eq!(
                seen,
                [(c"k".to_owned(), c"2".to_owned()), (c"l".to_owned(), c"3".to_owned())]
            );
            tf_set_status(status, TF_Code::OK, c"ignored".as_ptr());
            assert_eq!(text(status), "");
            // OK carries nothing.
            tf_set_payload(status, c"k".as_ptr(), c"4".as_ptr());
            seen.clear();
            tf_for_each_payload(status, Some(collect), std::ptr::from_mut(&mut seen).cast());
            assert_eq!(seen, []);
            tf_delete_status(status);
        }
    }

    #[test]
    fn null_is_accepted_everywhere() {
        let null = std::ptr::null_mut();
        // SAFETY: NULL is what this test is about: all functions take it.
        unsafe {
            tf_delete_status(null);
            tf_set_status(null, TF_Code::INTERNAL, std::ptr::null());
            tf_set_payload(null, std::ptr::null(), std::ptr::null());
            tf_for_each_payload(null, None, std::ptr::null_mut());
            tf_set_status_from_io_error(null, 2, std::ptr::null());
            assert_eq!(tf_get_code(null), TF_Code::OK);
            assert_eq!(text(null), "");
            let status = tf_new_status();
            tf_set_status(status, TF_Code::INTERNAL, std::ptr::null());
            assert_eq!(text(status), "");
            tf_delete_status(status);
        }
    }

    #[test]
    fn system_errors_become_codes() {
        // SAFETY: one thread, deleted at the end.
        unsafe {
            let status = tf_new_status();
            tf_set_status_from_io_error(status, 2, c"open /x".as_ptr());
            assert_eq!(tf_get_code(status), TF_Code::NOT_FOUND);
            assert!(text(status).starts_with("open /x: "));
            tf_set_status_from_io_error(status, 0, c"fine".as_ptr());
            assert_eq!(tf_get_code(status), TF_Code::OK);
            tf_delete_status(status);
        }
    }
}
