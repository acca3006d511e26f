//! Callbacks of running programs: for data that they send to the host, and for data that they
//! receive.
//!
//! A plug-in gets a number, never an address, as in `callbacks`: if it calls after the receiver is
//! gone, the number refers to nothing.

use std::{
    collections::HashMap,
    ffi::{c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use serdes_abi::pjrt::args::*;

use super::answers::LONGEST_BYTES;

/// The handler of a piece that a program sends. It gets the piece, the total length, and a flag for
/// the last piece; an error makes the run fail.
pub(in crate::host) type OnPiece =
    Arc<dyn Fn(&[u8], usize, bool) -> Result<(), String> + Send + Sync>;

/// The handler of a stream, which it gets ownership of.
pub(in crate::host) type OnStream = Arc<dyn Fn(*mut PJRT_CopyToDeviceStream) + Send + Sync>;

#[derive(Clone)]
pub(in crate::host) enum Handler {
    Send(OnPiece),
    Receive(OnStream),
}

static HANDLERS: Mutex<Option<HashMap<usize, Handler>>> = Mutex::new(None);
static NEXT: AtomicUsize = AtomicUsize::new(1);

fn handlers() -> MutexGuard<'static, Option<HashMap<usize, Handler>>> {
    HANDLERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn handler(number: *mut c_void) -> Option<Handler> {
    handlers().as_ref()?.get(&number.addr()).cloned()
}

/// A registered handler, which programs can call as long as this value lives.
#[derive(Debug)]
pub(in crate::host) struct Registration(usize);

impl Registration {
    pub(in crate::host) fn new(handler: Handler) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        handlers().get_or_insert_default().insert(number, handler);
        Self(number)
    }

    /// Returns the number that the plug-in passes to its calls of the handler.
    pub(in crate::host) fn number(&self) -> *mut c_void {
        ptr::without_provenance_mut(self.0)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let removed = handlers().as_mut().and_then(|handlers| handlers.remove(&self.0));
        // The handler's values are dropped after the lock is released.
        drop(removed);
    }
}

/// The status code of a failure in the host.
const INTERNAL: c_int = 13;

/// Handles a chunk that a program sends; called by the plug-in.
pub(in crate::host) unsafe extern "C" fn sent(
    chunk: *mut PJRT_Chunk,
    make_error: *mut Option<PJRT_CallbackError>,
    total: usize,
    is_last: bool,
    number: *mut c_void,
) -> *mut PJRT_Error {
    if chunk.is_null() {
        // SAFETY: the plug-in guarantees its arguments.
        return unsafe { error_of(make_error, "the plug-in sent NULL as a piece") };
    }
    // SAFETY: the plug-in passes a chunk that is valid for the call.
    let piece = unsafe { chunk.read() };
    let result = match handler(number) {
        Some(Handler::Send(action)) => {
            // SAFETY: the chunk's bytes are valid until its deleter is called.
            unsafe { data(&piece) }.and_then(|data| {
                // A panic must not unwind into the plug-in.
                catch_unwind(AssertUnwindSafe(|| action(data, total, is_last)))
                    .unwrap_or_else(|_| Err("the host panicked over a piece".to_owned()))
            })
        }
        _ => Err("the host waits for this piece no more".to_owned()),
    };
    if let Some(deleter) = piece.deleter {
        // SAFETY: the deleter came with the chunk, to be called once; the chunk is not used any
        // more.
        unsafe { deleter(piece.data, piece.deleter_arg) };
    }
    match result {
        Ok(()) => ptr::null_mut(),
        // SAFETY: the plug-in guarantees its arguments.
        Err(reason) => unsafe { error_of(make_error, &reason) },
    }
}

/// Returns the bytes of a piece.
///
/// # Safety
/// The declared number of bytes is valid until the deleter is called, or the pointer is NULL.
unsafe fn data(piece: &PJRT_Chunk) -> Result<&[u8], String> {
    if piece.size == 0 {
        return Ok(&[]);
    }
    if piece.data.is_null() || piece.size > LONGEST_BYTES {
        return Err(format!("the plug-in sent {} bytes at {:?}", piece.size, piece.data));
    }
    // SAFETY: it is not NULL, of bounded length, and the caller guarantees that it exists.
    Ok(unsafe { std::slice::from_raw_parts(piece.data.cast(), piece.size) })
}

/// Creates an error of the plug-in; NULL, if the plug-in does not provide the function for it.
///
/// # Safety
/// `make` is NULL, or points to a function that creates errors, or to NULL.
unsafe fn error_of(make: *mut Option<PJRT_CallbackError>, reason: &str) -> *mut PJRT_Error {
    if make.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: it is not NULL, and the caller guarantees its target.
    match unsafe { make.read() } {
        // SAFETY: the function takes a code and a message, which is valid for the call.
        Some(make) => unsafe { make(INTERNAL, reason.as_ptr().cast(), reason.len()) },
        None => ptr::null_mut(),
    }
}

/// Handles a stream through which a program receives; called by the plug-in. A stream without a
/// handler is ignored.
pub(in crate::host) unsafe extern "C" fn received(
    stream: *mut PJRT_CopyToDeviceStream,
    number: *mut c_void,
) {
    if let Some(Handler::Receive(action)) = handler(number).filter(|_| !stream.is_null()) {
        // A panic must not unwind into the plug-in.
        let _ = catch_unwind(AssertUnwindSafe(|| action(stream)));
    }
}
