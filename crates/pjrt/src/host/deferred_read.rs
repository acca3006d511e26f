//! Raw reads that are begun before there is memory to read into.

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
    /// Identity of the read for the plug-in.
    data: *mut c_void,
    /// Taken by the call that passes the memory on, which happens once.
    future_ready: Option<FutureReady>,
}

// SAFETY: the C API lets any thread call back; what the plug-in knows the read by is only handed
// back to it, once, by the owner.
unsafe impl Send for DeferredRead {}

/// The status code of a read that was given up.
const CANCELLED: i32 = 1;

impl Buffer {
    /// Begins to read `bytes` raw bytes of the device from `offset` on, as [`Self::begin_read_raw`]
    /// does, into memory that is given later: the host needs it only once the device has the data.
    ///
    /// # Errors
    /// As [`Self::read_raw`]; [`PjrtError::Missing`] before 0.84; [`PjrtError::BadAnswer`] if the
    /// plug-in cannot be told of the memory.
    pub fn begin_read_raw_later(
        &self,
        offset: usize,
        bytes: usize,
    ) -> Result<DeferredRead, PjrtError> {
        const CALL: &str = "PJRT_Buffer_CopyRawToHostFuture";
        let (from, length) = self.raw_range(offset, bytes)?;
        let (client, raw) = (self.handle().client(), self.handle().raw());
        // SAFETY: the buffer is alive, and has these bytes as it says.
        let begun = unsafe {
            client.table().ask(|call: &mut PJRT_Buffer_CopyRawToHostFuture_Args| {
                call.buffer = raw;
                call.offset = from;
                call.transfer_size = length;
            })
        }?;
        // SAFETY: a call that succeeds hands over this event, or none.
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
    /// Gives it memory, which is as long as what is read, or longer.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] for memory that is shorter; the read is given up then.
    pub fn into_memory(mut self, target: HostMemory) -> Result<Transfer, PjrtError> {
        if target.len() < self.bytes {
            return Err(PjrtError::InvalidArgument {
                what: "the memory that is read into",
                found: format!("{} bytes", target.len()),
                expected: format!("{} and more", self.bytes),
            });
        }
        // SAFETY: the memory is as long as what is read, and the transfer keeps it until the event
        // has happened.
        unsafe { self.provide_memory(target.as_start(), 0, "") };
        let endpoint = Endpoint::Buffer { _handle: Arc::clone(&self.buffer) };
        Ok(Transfer::new(self.event.take(), target, endpoint))
    }

    /// Gives the plug-in the memory to read into, or the reason why there is none. Does nothing
    /// after the first call.
    ///
    /// # Safety
    /// There are as many bytes at `memory` as are read until the event has happened, or a code says
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
        // SAFETY: the plug-in gave this function for this, with the data that it gets back; the
        // arguments are there for the call.
        unsafe { future_ready(&raw mut *arguments) };
    }
}

impl Drop for DeferredRead {
    fn drop(&mut self) {
        // SAFETY: there is no memory, as the code says.
        unsafe { self.provide_memory(ptr::null_mut(), CANCELLED, "the read was given up") };
    }
}
