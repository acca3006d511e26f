//! Puts arrays onto devices.

use std::ffi::c_int;

use serdes_abi::pjrt::{Minor, args::*};

use super::{
    buffer::Buffer, client::Client, element_type::number_of, event::Event, host_array::HostArray,
    target::Target,
};
use crate::PjrtError;

/// The permitted use of host memory that is passed to a plug-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostBufferSemantics {
    /// The plug-in may read it until the transfer is done.
    ImmutableUntilTransferCompletes,
    /// The plug-in may use it as the array's memory, without writing to it, as long as the array
    /// lives.
    ImmutableZeroCopy,
    /// The plug-in may use it as the array's memory, and write to it.
    MutableZeroCopy,
}

/// The number for memory that is only lent for the call.
const ONLY_DURING_CALL: c_int = 0;
/// The first minor with the writable kind; before it, one number stood for both.
const MUTABLE_SINCE: Minor = Minor::new(48);

impl HostBufferSemantics {
    const fn number(self) -> c_int {
        match self {
            Self::ImmutableUntilTransferCompletes => 1,
            Self::ImmutableZeroCopy => 2,
            Self::MutableZeroCopy => 3,
        }
    }
}

impl Client {
    /// Puts an array onto a device. The plug-in has copied `data` when this returns.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] for input on which plug-ins would end the process or read
    /// outside `data`: a type that the plug-in's version does not know, a negative stride, too
    /// little data. [`PjrtError::OtherClient`] for a target of another client.
    /// [`PjrtError::Status`] from the plug-in.
    pub fn put(
        &self,
        array: &HostArray<'_>,
        data: &[u8],
        target: Target<'_>,
    ) -> Result<Buffer, PjrtError> {
        // SAFETY: the data is valid until the call returns, and while `done` is waited for.
        let (buffer, done) =
            unsafe { self.put_from(array, data.as_ptr(), data.len(), ONLY_DURING_CALL, target) }?;
        if let Some(done) = done {
            done.wait()?;
        }
        Ok(buffer)
    }

    /// Puts an array onto a device, or makes `data` itself its memory: the plug-in keeps `data`
    /// until it reports that it is done with it.
    ///
    /// # Errors
    /// As [`Self::put`]; also for a kind of semantics that the plug-in's version does not know.
    pub fn put_owned(
        &self,
        array: &HostArray<'_>,
        mut data: Vec<u8>,
        semantics: HostBufferSemantics,
        target: Target<'_>,
    ) -> Result<Buffer, PjrtError> {
        let minor = self.minor();
        if semantics == HostBufferSemantics::MutableZeroCopy && minor < MUTABLE_SINCE {
            return Err(PjrtError::InvalidArgument {
                what: "the semantics of host memory",
                found: format!("{semantics:?}"),
                expected: format!("another: it came with {MUTABLE_SINCE}, and this is {minor}"),
            });
        }
        let (start, bytes) = (data.as_mut_ptr(), data.len());
        // SAFETY: the data does not move with the vector, which `done` keeps until the plug-in
        // reports that it does not use it any more.
        let (buffer, done) =
            unsafe { self.put_from(array, start, bytes, semantics.number(), target) }?;
        if let Some(done) = done {
            done.keep(data);
        } else if semantics != HostBufferSemantics::ImmutableUntilTransferCompletes {
            // Nothing reports when the array is gone.
            std::mem::forget(data);
        }
        Ok(buffer)
    }

    /// # Safety
    /// There are `bytes` bytes at `data` until the returned event is done; if there is none, until
    /// this returns.
    unsafe fn put_from(
        &self,
        array: &HostArray<'_>,
        data: *const u8,
        bytes: usize,
        semantics: c_int,
        target: Target<'_>,
    ) -> Result<(Buffer, Option<Event>), PjrtError> {
        const CALL: &str = "PJRT_Client_BufferFromHostBuffer";
        target.check(self.handle())?;
        let extent = array.extent()?;
        if extent > bytes {
            return Err(PjrtError::InvalidArgument {
                what: "the data of the array",
                found: format!("{bytes} bytes"),
                expected: format!("at least {extent}"),
            });
        }
        let number = number_of(array.element_type(), self.minor())?;
        let (client, dims, strides) = (self.handle().raw(), array.dims(), array.byte_strides());
        // SAFETY: the handles are alive and belong to this client; dimensions and strides are valid
        // for the call, and no element is outside the data, whose lifetime the caller guarantees.
        let made = unsafe {
            self.handle().table().ask(|call: &mut PJRT_Client_BufferFromHostBuffer_Args| {
                call.client = client;
                call.data = data.cast();
                call.r#type = number;
                (call.dims, call.num_dims) = (dims.as_ptr(), dims.len());
                if !strides.is_empty() {
                    (call.byte_strides, call.num_byte_strides) = (strides.as_ptr(), strides.len());
                }
                call.host_buffer_semantics = semantics;
                match target {
                    Target::Device(device) => call.device = device.raw(),
                    Target::Memory(memory) => call.memory = memory.raw(),
                }
            })
        }?;
        // SAFETY: a successful call returns ownership of this event, or none.
        let done = unsafe { Event::taken(self.handle(), made.done_with_host_buffer) };
        // SAFETY: as above; this buffer has no other owner.
        match unsafe { Buffer::taken(CALL, self.handle(), made.buffer) } {
            Ok(buffer) => Ok((buffer, done)),
            Err(error) => {
                // The plug-in may still be reading.
                if let Some(done) = done {
                    let _ = done.wait();
                }
                Err(error)
            }
        }
    }
}
