//! Payloads of errors, in addition to their code and message.
//!
//! A plug-in passes them one by one to a function of the host during one call. They are collected
//! per thread: payloads that come later, or on another thread, are lost.

use std::{
    cell::RefCell,
    ffi::{c_char, c_void},
};

use serdes_library_file::printable;

/// A payload of an error, for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorPayload {
    /// The name of the payload, such as the type of a message; control characters are escaped.
    pub key: String,
    /// The first 64 KiB of the content.
    pub value: Vec<u8>,
}

/// The maximum number of payloads of an error.
const MOST: usize = 64;
/// The maximum length of a payload, in bytes.
const LONGEST_VALUE: usize = 64 << 10;
/// The maximum length of a key, in bytes.
const LONGEST_KEY: usize = 4 << 10;

thread_local! {
    /// The payloads of the call in progress; `None` outside such a call.
    static SHOWN: RefCell<Option<Vec<ErrorPayload>>> = const { RefCell::new(None) };
}

/// Runs `call`, and returns its result with the payloads that it passed to [`visit`].
pub(super) fn collected<R>(call: impl FnOnce() -> R) -> (R, Vec<ErrorPayload>) {
    SHOWN.set(Some(Vec::new()));
    let result = call();
    (result, SHOWN.take().unwrap_or_default())
}

/// Receives each payload; called by the plug-in.
pub(super) unsafe extern "C" fn visit(
    key: *const c_char,
    key_size: usize,
    value: *const c_char,
    value_size: usize,
    _: *mut c_void,
) {
    // The thread-local value is gone while a thread ends. `collected` is never called from here.
    let _ = SHOWN.try_with(|shown| {
        let Ok(mut shown) = shown.try_borrow_mut() else { return };
        let Some(found) = shown.as_mut().filter(|found| found.len() < MOST) else { return };
        // SAFETY: the plug-in declares these lengths in bytes, for the duration of the call.
        let (key, value) = unsafe {
            (bytes(key, key_size.min(LONGEST_KEY)), bytes(value, value_size.min(LONGEST_VALUE)))
        };
        found.push(ErrorPayload { key: printable(key), value: value.to_vec() });
    });
}

/// # Safety
/// `start` points to `length` bytes that live for `'a`, or is NULL.
unsafe fn bytes<'a>(start: *const c_char, length: usize) -> &'a [u8] {
    if start.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: it is not NULL, and the caller guarantees `length` bytes.
    unsafe { std::slice::from_raw_parts(start.cast(), length) }
}
