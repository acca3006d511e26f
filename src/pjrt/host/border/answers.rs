//! What plug-ins give back: texts, lists and handles, each checked before it is used.

use std::{ffi::c_char, ptr::NonNull};

use crate::{pjrt::PjrtError, stream_executor::printable};

/// Most entries that a list is believed to have: no machine has so many devices.
const LONGEST_LIST: usize = 1 << 20;

/// A handle that must not be NULL.
pub(in crate::pjrt::host) fn pointer<T>(
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

/// A text of so many bytes, with control characters escaped; no more of it than 16 KiB.
///
/// # Safety
/// There are so many bytes at `start`, or it is NULL.
pub(in crate::pjrt::host) unsafe fn text(
    call: &'static str,
    what: &'static str,
    start: *const c_char,
    length: usize,
) -> Result<String, PjrtError> {
    // SAFETY: as the caller says; a byte is aligned everywhere.
    let bytes = unsafe { list(call, what, start.cast::<u8>(), length) }?;
    Ok(printable(bytes))
}

/// A list of so many entries.
///
/// # Errors
/// [`PjrtError::BadAnswer`] if it is NULL and not empty, not aligned, or longer than any.
///
/// # Safety
/// There are so many entries at `start`, or it is NULL, and they stay for `'a`.
pub(in crate::pjrt::host) unsafe fn list<'a, T>(
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
    // SAFETY: it is not NULL, aligned, and of bounded length; the caller says that it is there.
    Ok(unsafe { std::slice::from_raw_parts(start, length) })
}
