//! Raw reads that begin before their target memory is available.

use std::{ffi::c_void, ptr, sync::Arc};

use serdes_abi::pjrt::args::*;
use serdes_library_file::enter;

use super::{
    border::Handed,
    buffer::{Buffer, BufferHandle},
    event::Event,
    host_memory::HostMemory,
    transfer::{Endpoint, Transfer},
};
use crate::PjrtError;

/// The function by which the plug-in receives the target memory.
type FutureReady = unsafe extern "C" fn(*mut PJRT_Buffer_CopyRawToHostFuture_Callback_Args);

/// A raw read that waits for its memory.
///
/// A read that is dropped before it got memory is cancelled, and the plug-in is informed.
#[derive(Debug)]
#[must_use = "the plug-in waits for memory"]
pub struct DeferredRead {
    buffer: Arc<BufferHandle>,
    bytes: usize,
    event: Option<Event>,
    /// The plug-in's identification of the read.
    data: *mut c_void,
    /// Taken by the call that passes the memory, which happens once.
    future_ready: Option<FutureReady>,
}

// SAFETY: the C API lets any thread call back; the plug-in's data is only passed back to it, once,
// by the owner.
unsafe impl Send for DeferredRead {}

/// The status code of a cancelled read.
const CANCELLED: i32 = 1;

impl Buffer {
    /// Begins to read `bytes` raw bytes of the device from `offset`, like [`Self::begin_read_raw`],
    /// into memory that is passed later. The host needs the memory only once the device has the
    /// data.
    ///
    /// # Errors
    /// As [`Self::read_raw`]; [`PjrtError::Missing`] before 0.84; [`PjrtError::BadAnswer`] if the
    /// plug-in does not return the function that takes the memory.
    pub fn begin_read_raw_later(
        &self,
        offset: usize,
        bytes: usize,
    ) -> Result<DeferredRead, PjrtError> {
        const CALL: &str = "PJRT_Buffer_CopyRawToHostFuture";
        let (from, length) = self.raw_range(offset, bytes)?;
        let (client, raw) = (self.handle().client(), self.handle().raw());
        // SAFETY: the buffer is alive, and has these bytes by its own size.
        let begun = unsafe {
            client.table().ask(|call: &mut PJRT_Buffer_CopyRawToHostFuture_Args| {
                call.buffer = raw;
                call.offset = from;
                call.transfer_size = length;
            })
        }?;
        // SAFETY: a successful call returns ownership of this event, or none.
        let event = unsafe { Event::taken(client, begun.event) };
        let (data, future_ready) = (begun.callback_data, begun.future_ready_callback);
        if future_ready.is_none() {
            return Err(PjrtError::BadAnswer {
                call: CALL,
                what: "what is called with the memory",
                found: "NULL".to_owned(),
                expected: "a function",
            });
        }
        Ok(DeferredRead { buffer: Arc::clone(self.handle()), bytes, event, data, future_ready })
    }
}

impl DeferredRead {
    /// Passes the memory to read into, which must be at least as long as the read.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] for memory that is too short; the read is cancelled then.
    pub fn into_memory(mut self, target: HostMemory) -> Result<Transfer, PjrtError> {
        if target.len() < self.bytes {
            return Err(PjrtError::InvalidArgument {
                what: "the memory that is read into",
                found: format!("{} bytes", target.len()),
                expected: format!("{} and more", self.bytes),
            });
        }
        // SAFETY: the memory is at least as long as the read, and the transfer keeps it until the
        // event is done.
        unsafe { self.provide_memory(target.as_start(), 0, "") };
        let endpoint = Endpoint::Buffer { _handle: Arc::clone(&self.buffer) };
        Ok(Transfer::new(self.event.take(), target, endpoint))
    }

    /// Passes the plug-in the memory to read into, or the reason why there is none. Does nothing
    /// after the first call.
    ///
    /// # Safety
    /// There are as many bytes at `memory` as are read, until the event is done, or `code` reports
    /// that there are none.
    unsafe fn provide_memory(&mut self, memory: *mut c_void, code: i32, reason: &'static str) {
        let Some(future_ready) = self.future_ready.take() else { return };
        let minor = self.buffer.client().table().minor();
        let history = PJRT_Buffer_CopyRawToHostFuture_Callback_Args::HISTORY;
        let mut arguments = Handed::of(PJRT_Buffer_CopyRawToHostFuture_Callback_Args {
            struct_size: history.handover(minor).map_or(0, |given| given.struct_size),
            callback_data: self.data,
            error_code: code,
            error_message: reason.as_ptr().cast(),
            error_message_size: reason.len(),
            dst: memory,
        });
        let _call = enter(&"what PJRT_Buffer_CopyRawToHostFuture is told the memory with");
        // SAFETY: the plug-in returned this function for this purpose, with its own data; the
        // arguments are valid for the call.
        unsafe { future_ready(&raw mut *arguments) };
    }
}

impl Drop for DeferredRead {
    fn drop(&mut self) {
        // SAFETY: there is no memory, which the code reports.
        unsafe { self.provide_memory(ptr::null_mut(), CANCELLED, "the read was given up") };
    }
}
