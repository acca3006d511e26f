//! Checked access to the texts, lists and handles that plug-ins return.

use std::{ffi::c_char, ptr::NonNull};

use serdes_abi::pjrt::args::Deleter;
use serdes_library_file::{enter, printable};

use crate::PjrtError;

/// The longest list that is accepted, in entries: no machine has this number of devices.
const LONGEST_LIST: usize = 1 << 20;

/// Returns a handle that must not be NULL.
pub(in crate::host) fn pointer<T>(
    call: &'static str,
    what: &'static str,
    found: *mut T,
) -> Result<NonNull<T>, PjrtError> {
    NonNull::new(found).ok_or_else(|| PjrtError::BadAnswer {
        call,
        what,
        found: "NULL".to_owned(),
        expected: "a handle",
    })
}

/// Returns a text of `length` bytes, with control characters escaped and truncated to 16 KiB.
///
/// # Safety
/// `start` points to `length` bytes, or is NULL.
pub(crate) unsafe fn text(
    call: &'static str,
    what: &'static str,
    start: *const c_char,
    length: usize,
) -> Result<String, PjrtError> {
    // SAFETY: guaranteed by the caller; a byte is aligned everywhere.
    let bytes = unsafe { list(call, what, start.cast::<u8>(), length) }?;
    Ok(printable(bytes))
}

/// Returns a list of `length` entries.
///
/// # Errors
/// [`PjrtError::BadAnswer`] if it is NULL and not empty, not aligned, or too long.
///
/// # Safety
/// `start` points to `length` entries that live for `'a`, or is NULL.
pub(in crate::host) unsafe fn list<'a, T>(
    call: &'static str,
    what: &'static str,
    start: *const T,
    length: usize,
) -> Result<&'a [T], PjrtError> {
    let bad = |found: String, expected| Err(PjrtError::BadAnswer { call, what, found, expected });
    if length == 0 {
        return Ok(&[]);
    }
    if start.is_null() {
        return bad(format!("NULL for {length} entries"), "a list");
    }
    if !start.is_aligned() {
        return bad(format!("a list at {start:?}"), "one at an aligned address");
    }
    if length > LONGEST_LIST {
        return bad(format!("{length} entries"), "1,048,576 at most");
    }
    // SAFETY: it is not NULL, aligned, and of bounded length; the caller guarantees that it exists.
    Ok(unsafe { std::slice::from_raw_parts(start, length) })
}

/// The longest serialized object that is accepted, in bytes.
pub(in crate::host) const LONGEST_BYTES: usize = 1 << 32;

/// Returns a copy of bytes that a plug-in returned together with their owner, which is freed.
///
/// # Errors
/// [`PjrtError::BadAnswer`] if they are NULL and not empty, or too long.
///
/// # Safety
/// `start` points to `length` bytes, or is NULL. `owner` and `deleter` are those that the call
/// returned with these bytes.
pub(in crate::host) unsafe fn owned_bytes<T>(
    call: &'static str,
    what: &'static str,
    (start, length): (*const c_char, usize),
    owner: *mut T,
    deleter: Deleter<T>,
) -> Result<Vec<u8>, PjrtError> {
    // SAFETY: guaranteed by the caller.
    let copied = unsafe { bytes(call, what, start, length) }.map(<[u8]>::to_vec);
    if let Some(deleter) = deleter.filter(|_| !owner.is_null()) {
        let _call = enter(&"the deleter of serialized bytes");
        // SAFETY: the call returned the owner, and this function to free it; the bytes are not used
        // any more.
        unsafe { deleter(owner) };
    }
    copied
}

/// Returns bytes without interpreting them.
///
/// # Errors
/// [`PjrtError::BadAnswer`] if they are NULL and not empty, or too long.
///
/// # Safety
/// `start` points to `length` bytes that live for `'a`, or is NULL.
pub(in crate::host) unsafe fn bytes<'a>(
    call: &'static str,
    what: &'static str,
    start: *const c_char,
    length: usize,
) -> Result<&'a [u8], PjrtError> {
    let bad = |found: String, expected| Err(PjrtError::BadAnswer { call, what, found, expected });
    if length == 0 {
        return Ok(&[]);
    }
    if start.is_null() {
        return bad(format!("NULL for {length} bytes"), "bytes");
    }
    if length > LONGEST_BYTES {
        return bad(format!("{length} bytes"), "4 GiB at most");
    }
    // SAFETY: it is not NULL, of bounded length, and the caller guarantees that it exists.
    Ok(unsafe { std::slice::from_raw_parts(start.cast(), length) })
}

/// Returns a list of handles, none of which is NULL.
///
/// # Errors
/// [`PjrtError::BadAnswer`] if the list is invalid, or an entry is NULL.
///
/// # Safety
/// `start` points to `length` entries, or is NULL.
pub(in crate::host) unsafe fn handles<T>(
    call: &'static str,
    start: *const *mut T,
    length: usize,
) -> Result<Vec<NonNull<T>>, PjrtError> {
    // SAFETY: guaranteed by the caller.
    let found = unsafe { list(call, "its list", start, length) }?;
    found.iter().map(|&handle| pointer(call, "an entry of its list", handle)).collect()
}
