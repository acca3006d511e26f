//! Callbacks of running programs: for data that they send to the host, and for data that they
//! receive.
//!
//! A plug-in gets a number, never an address, as in `callbacks`: one that calls after everybody has
//! gone finds nothing under it.

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

/// Gets a piece that a program sends, the length of everything, and whether this is the last; says
/// why the run is to fail.
pub(in crate::host) type OnPiece =
    Arc<dyn Fn(&[u8], usize, bool) -> Result<(), String> + Send + Sync>;

/// Gets a stream that is handed over.
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

/// A handler that programs can call as long as this is.
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
        // What the handler owns is dropped with the lock open.
        drop(removed);
    }
}

/// The code of a host that failed.
const INTERNAL: c_int = 13;

/// Returns the callback for a chunk that a program sends.
pub(in crate::host) unsafe extern "C" fn sent(
    chunk: *mut PJRT_Chunk,
    make_error: *mut Option<PJRT_CallbackError>,
    total: usize,
    is_last: bool,
    number: *mut c_void,
) -> *mut PJRT_Error {
    if chunk.is_null() {
        // SAFETY: as the plug-in promises of what it gives.
        return unsafe { error_of(make_error, "the plug-in sent NULL as a piece") };
    }
    // SAFETY: the plug-in hands over a chunk, which is there for the call.
    let piece = unsafe { chunk.read() };
    let result = match handler(number) {
        Some(Handler::Send(action)) => {
            // SAFETY: the chunk's bytes are there until its deleter is called.
            unsafe { data(&piece) }.and_then(|data| {
                // A panic must not reach the plug-in's frames.
                catch_unwind(AssertUnwindSafe(|| action(data, total, is_last)))
                    .unwrap_or_else(|_| Err("the host panicked over a piece".to_owned()))
            })
        }
        _ => Err("the host waits for this piece no more".to_owned()),
    };
    if let Some(deleter) = piece.deleter {
        // SAFETY: the chunk was handed over with this, to be called once; nothing of it is used
        // any more.
        unsafe { deleter(piece.data, piece.deleter_arg) };
    }
    match result {
        Ok(()) => ptr::null_mut(),
        // SAFETY: as the plug-in promises of what it gives.
        Err(reason) => unsafe { error_of(make_error, &reason) },
    }
}

/// Returns the bytes of a piece.
///
/// # Safety
/// There are as many as it says for as long as its deleter is not called, or it is NULL.
unsafe fn data(piece: &PJRT_Chunk) -> Result<&[u8], String> {
    if piece.size == 0 {
        return Ok(&[]);
    }
    if piece.data.is_null() || piece.size > LONGEST_BYTES {
        return Err(format!("the plug-in sent {} bytes at {:?}", piece.size, piece.data));
    }
    // SAFETY: it is not NULL, of bounded length, and the caller says that it is there.
    Ok(unsafe { std::slice::from_raw_parts(piece.data.cast(), piece.size) })
}

/// Returns an error of the plug-in's making; NULL, if it does not say how one is made.
///
/// # Safety
/// It is NULL, or points to a function that makes errors, or to NULL.
unsafe fn error_of(make: *mut Option<PJRT_CallbackError>, reason: &str) -> *mut PJRT_Error {
    if make.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: it is not NULL, and the caller says what it points to.
    match unsafe { make.read() } {
        // SAFETY: the function takes a code and a message, which is there for the call.
        Some(make) => unsafe { make(INTERNAL, reason.as_ptr().cast(), reason.len()) },
        None => ptr::null_mut(),
    }
}

/// The callback for data that a program receives. A stream without a handler is left alone.
pub(in crate::host) unsafe extern "C" fn received(
    stream: *mut PJRT_CopyToDeviceStream,
    number: *mut c_void,
) {
    if let Some(Handler::Receive(action)) = handler(number).filter(|_| !stream.is_null()) {
        // A panic must not reach the plug-in's frames.
        let _ = catch_unwind(AssertUnwindSafe(|| action(stream)));
    }
}
