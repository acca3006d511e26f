//! The arguments of a host's call: a struct that declares its size.
//!
//! A host of another day has shorter or longer structs. Fields that it lacks are zero here, and are
//! not written; fields that it has beyond ours are not accessed.

use std::ptr;

use serdes_abi::pjrt::{
    Minor, Struct,
    args::{Arguments, ExtensionArguments, PJRT_Error},
};

use super::errors;
use crate::{Result, Status, panic::contain};

/// Performs a call: reads the arguments, calls `body`, and writes them back if it succeeds. A
/// failure or a panic becomes an error.
///
/// # Safety
/// `raw` is NULL or points to the call's arguments, which begin with their size, have as many bytes
/// as a build that declares this size gives them, and are exclusive to the call until it returns.
pub(super) unsafe fn call<A: Arguments>(
    raw: *mut A,
    body: impl FnOnce(&mut A) -> Result<()>,
) -> *mut PJRT_Error {
    // SAFETY: the caller's promise.
    errors::give(contain(|| unsafe {
        exchange(raw, A::new(), |size| usable_size(A::FUNCTION, A::STRUCT, size), body)
    }))
}

/// Like [`call`], for a function of an extension: the history has no older sizes of its structs,
/// and no newer ones are known.
///
/// # Safety
/// As for [`call`].
pub(super) unsafe fn call_extension<A: ExtensionArguments>(
    raw: *mut A,
    body: impl FnOnce(&mut A) -> Result<()>,
) -> *mut PJRT_Error {
    let usable_size = |size| match size {
        size if size < size_of::<A>() => Err(too_short(A::FUNCTION, size, size_of::<A>())),
        _ => Ok(size_of::<A>()),
    };
    // SAFETY: the caller's promise.
    errors::give(contain(|| unsafe { exchange(raw, A::new(), usable_size, body) }))
}

/// # Safety
/// As for [`call`]; `A` is `repr(C)`, begins with its size, and accepts any bytes; there are as
/// many bytes behind `raw` as `usable_size` returns.
unsafe fn exchange<A>(
    raw: *mut A,
    mut own: A,
    usable_size: impl FnOnce(usize) -> Result<usize>,
    body: impl FnOnce(&mut A) -> Result<()>,
) -> Result<()> {
    if raw.is_null() {
        return Err(Status::invalid_argument("found NULL, expected the arguments of the call"));
    }
    // SAFETY: not NULL, so it begins with a size, by the caller's promise.
    let declared = unsafe { raw.cast::<usize>().read_unaligned() };
    let bytes = usable_size(declared)?.min(size_of::<A>());
    // SAFETY: by the caller's promise the host has `bytes` bytes there, and `own` has no fewer.
    // They do not overlap, because `own` is ours.
    unsafe { ptr::copy_nonoverlapping(raw.cast::<u8>(), (&raw mut own).cast::<u8>(), bytes) };
    body(&mut own)?;
    // SAFETY: as above, in the other direction; the arguments have no other user during the call.
    unsafe { ptr::copy_nonoverlapping((&raw const own).cast::<u8>(), raw.cast::<u8>(), bytes) };
    Ok(())
}

/// Returns the number of bytes of the arguments to use if a host declares the size `declared`.
///
/// # Errors
/// `INVALID_ARGUMENT` if it is less than that of any host since the oldest supported one.
fn usable_size(function: &str, history: &Struct, declared: usize) -> Result<usize> {
    let supported = || {
        let oldest = Minor::OLDEST_SUPPORTED.number();
        history.spans.iter().filter(move |span| oldest <= u32::from(span.last))
    };
    let least = supported().map(|span| usize::from(span.declared)).min().unwrap_or(0);
    if declared < least {
        return Err(too_short(function, declared, least));
    }
    // Some macros gave less than the real size: those builds have the fields, and expect results in
    // them.
    let known = supported().filter(|span| usize::from(span.declared) == declared);
    Ok(known.map(|span| usize::from(span.size_of)).min().unwrap_or(declared).max(declared))
}

fn too_short(function: &str, found: usize, expected: usize) -> Status {
    Status::invalid_argument(format!(
        "the arguments of {function} have {found} bytes, expected at least {expected}: the \
         framework is older than this plug-in supports"
    ))
}

#[cfg(test)]
mod tests {
    use serdes_abi::pjrt::args::*;

    use super::*;

    #[test]
    fn sizes_of_supported_minors_are_taken_and_shorter_refused() {
        let attributes = PJRT_Plugin_Attributes_Args::STRUCT;
        assert_eq!(usable_size("", attributes, 24), Ok(32), "the macro forgot a field until 0.70");
        assert_eq!(usable_size("", attributes, 32), Ok(32));
        assert_eq!(usable_size("", attributes, 4096), Ok(4096));
        assert!(usable_size("", attributes, 23).is_err());
        let create = PJRT_Client_Create_Args::STRUCT;
        assert_eq!((usable_size("", create, 72), usable_size("", create, 88)), (Ok(72), Ok(88)));
        let error = usable_size("PJRT_Client_Create", create, 64).unwrap_err();
        assert!(error.message().contains("PJRT_Client_Create have 64 bytes, expected at least 72"));
    }

    #[test]
    fn a_shorter_struct_is_neither_read_nor_written_beyond_its_end() {
        let mut host = PJRT_Client_Create_Args::new();
        host.struct_size = 72;
        host.kv_try_get_user_arg = ptr::without_provenance_mut(7);
        // SAFETY: the arguments are valid, and ours.
        let error = unsafe {
            call(&raw mut host, |arguments| {
                assert!(arguments.kv_try_get_user_arg.is_null());
                arguments.client = ptr::without_provenance_mut(8);
                arguments.kv_try_get_user_arg = ptr::without_provenance_mut(9);
                Ok(())
            })
        };
        assert!(error.is_null());
        assert_eq!((host.client.addr(), host.kv_try_get_user_arg.addr()), (8, 7));
    }

    #[test]
    fn failed_call_writes_nothing_and_a_panic_is_an_error() {
        let mut host = PJRT_Event_IsReady_Args::new();
        for panics in [false, true] {
            // SAFETY: the arguments are valid, and ours.
            let error = unsafe {
                call(&raw mut host, |arguments| {
                    arguments.is_ready = 1;
                    assert!(!panics, "in the plug-in");
                    Err(Status::not_found("nothing"))
                })
            };
            assert_eq!(host.is_ready, 0);
            // SAFETY: `call` gave it, and it is taken back once.
            let status = unsafe { errors::take(error) };
            let words = if panics { "the plug-in panicked: in the plug-in" } else { "nothing" };
            assert_eq!(status.message(), words);
        }
    }
}
