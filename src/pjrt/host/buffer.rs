//! Arrays on a device: put, read, copied, deleted.

use std::{ffi::c_int, ptr::NonNull, sync::Arc};

use serdes_abi::pjrt::{Minor, args::*};

use super::{
    border::{Handed, list, pointer},
    client::{Client, ClientHandle, Device, Memory},
    element_type::ElementType,
    event::Event,
    host_array::{HostArray, MOST_DIMENSIONS, element_count},
};
use crate::pjrt::PjrtError;

/// Where an array is put.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// Into the default memory of a device.
    Device(&'a Device),
    /// Into that memory.
    Memory(&'a Memory),
}

impl Target<'_> {
    fn client(&self) -> &Arc<ClientHandle> {
        match self {
            Self::Device(device) => device.client(),
            Self::Memory(memory) => memory.client(),
        }
    }

    /// Fails unless it is of that client.
    fn check(&self, client: &Arc<ClientHandle>) -> Result<(), PjrtError> {
        let what = match self {
            Self::Device(_) => "device",
            Self::Memory(_) => "memory",
        };
        let is_same = Arc::ptr_eq(self.client(), client);
        if is_same { Ok(()) } else { Err(PjrtError::OtherClient { what }) }
    }
}

/// What a plug-in may do with memory of the host that it is given for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostBufferSemantics {
    /// Read it until the transfer is done.
    ImmutableUntilTransferCompletes,
    /// Use it as the array's memory, without writing to it, as long as the array lives.
    ImmutableZeroCopy,
    /// Use it as the array's memory, and write to it.
    MutableZeroCopy,
}

/// The number of memory that is only lent for the call.
const ONLY_DURING_CALL: c_int = 0;
/// The minor that brought the kind that may be written to; before it one number stood for both.
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
    /// [`PjrtError::InvalidArgument`] for what plug-ins would end the process on or read outside of
    /// `data` for: a type that the plug-in's version does not know, a negative stride, too little
    /// data. [`PjrtError::OtherClient`] for a target of another client. [`PjrtError::Status`] as
    /// the plug-in's.
    pub fn put(
        &self,
        array: &HostArray<'_>,
        data: &[u8],
        target: Target<'_>,
    ) -> Result<Buffer, PjrtError> {
        // SAFETY: the data is there until the call is over, and for as long as `done` is waited
        // for.
        let (buffer, done) =
            unsafe { self.put_from(array, data.as_ptr(), data.len(), ONLY_DURING_CALL, target) }?;
        if let Some(done) = done {
            done.wait()?;
        }
        Ok(buffer)
    }

    /// Puts an array onto a device, or makes one of `data` itself: the plug-in has it until it says
    /// that it is done with it.
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
        // SAFETY: the data does not move with the vector, which `done` keeps until the plug-in says
        // that it does not use it any more.
        let (buffer, done) =
            unsafe { self.put_from(array, start, bytes, semantics.number(), target) }?;
        if let Some(done) = done {
            done.keep(data);
        } else if semantics != HostBufferSemantics::ImmutableUntilTransferCompletes {
            // Nothing says when the array is gone.
            std::mem::forget(data);
        }
        Ok(buffer)
    }

    /// # Safety
    /// There are `bytes` bytes at `data` until the event that comes back has happened; where there
    /// is none, until this returns.
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
        let mut arguments = Handed::<PJRT_Client_BufferFromHostBuffer_Args>::new();
        arguments.client = self.handle().raw();
        arguments.data = data.cast();
        arguments.r#type = number_of(array.element_type(), self.minor())?;
        (arguments.dims, arguments.num_dims) = (array.dims().as_ptr(), array.dims().len());
        if !array.byte_strides().is_empty() {
            let strides = array.byte_strides();
            (arguments.byte_strides, arguments.num_byte_strides) =
                (strides.as_ptr(), strides.len());
        }
        arguments.host_buffer_semantics = semantics;
        match target {
            Target::Device(device) => arguments.device = device.raw(),
            Target::Memory(memory) => arguments.memory = memory.raw(),
        }
        // SAFETY: the handles are alive and of this client; dimensions and strides are there for
        // the call, and no element lies outside of the data, whose life the caller promises.
        unsafe { self.handle().table().call(&mut arguments) }?;
        // SAFETY: a call that succeeds hands over this event, or none.
        let done = unsafe { Event::taken(self.handle(), arguments.done_with_host_buffer) };
        // SAFETY: as above; this buffer is nobody else's.
        match unsafe { Buffer::taken(CALL, self.handle(), arguments.buffer) } {
            Ok(buffer) => Ok((buffer, done)),
            Err(error) => {
                // The plug-in may be reading still.
                if let Some(done) = done {
                    let _ = done.wait();
                }
                Err(error)
            }
        }
    }
}

/// The number of a type, or that the plug-in's version does not know it.
fn number_of(element_type: ElementType, minor: Minor) -> Result<c_int, PjrtError> {
    element_type.number(minor).ok_or_else(|| PjrtError::InvalidArgument {
        what: "the element type",
        found: element_type.name().to_owned(),
        expected: format!("one that PJRT {minor} knows: plug-ins crash on others"),
    })
}

/// An array on a device. Freed when it is dropped.
#[derive(Debug)]
pub struct Buffer {
    client: Arc<ClientHandle>,
    raw: NonNull<PJRT_Buffer>,
}

// SAFETY: the C API lets any thread use any buffer, several at once but for destroying it; that is
// done by the owner alone.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

/// Calls that give a value of a buffer.
macro_rules! of_buffer {
    ($buffer:expr, $arguments:ident) => {{
        let mut arguments = Handed::<$arguments>::new();
        arguments.buffer = $buffer.raw();
        // SAFETY: the buffer is alive until it is dropped.
        unsafe { $buffer.client.table().call(&mut arguments) }.map(|()| arguments)
    }};
}

impl Buffer {
    /// Takes a buffer that a plug-in handed over.
    ///
    /// # Safety
    /// It is NULL or alive, of that client, and nobody else's.
    unsafe fn taken(
        call: &'static str,
        client: &Arc<ClientHandle>,
        raw: *mut PJRT_Buffer,
    ) -> Result<Self, PjrtError> {
        let raw = pointer(call, "a buffer", raw)?;
        Ok(Self { client: Arc::clone(client), raw })
    }

    fn raw(&self) -> *mut PJRT_Buffer {
        self.raw.as_ptr()
    }

    /// What it is made of.
    ///
    /// # Errors
    /// As the plug-in's; [`PjrtError::BadAnswer`] for a number that is no type with data.
    pub fn element_type(&self) -> Result<ElementType, PjrtError> {
        let number = of_buffer!(self, PJRT_Buffer_ElementType_Args)?.r#type;
        ElementType::of_number(number, self.client.table().minor()).ok_or_else(|| {
            PjrtError::BadAnswer {
                call: "PJRT_Buffer_ElementType",
                what: "an element type",
                found: number.to_string(),
                expected: "one of its version that has data",
            }
        })
    }

    /// Its dimensions.
    ///
    /// # Errors
    /// As the plug-in's; [`PjrtError::BadAnswer`] for more than 254 of them, or a negative one.
    pub fn dims(&self) -> Result<Vec<i64>, PjrtError> {
        const CALL: &str = "PJRT_Buffer_Dimensions";
        let found = of_buffer!(self, PJRT_Buffer_Dimensions_Args)?;
        let bad = |found: String, expected| {
            Err(PjrtError::BadAnswer { call: CALL, what: "dimensions", found, expected })
        };
        if found.num_dims > MOST_DIMENSIONS {
            return bad(format!("{} of them", found.num_dims), "254 at most");
        }
        // SAFETY: the plug-in says that there are so many; they belong to the buffer, which is
        // alive.
        let dims = unsafe { list(CALL, "dimensions", found.dims, found.num_dims) }?;
        if dims.iter().any(|&dim| dim < 0) {
            return bad(format!("{dims:?}"), "none that is negative");
        }
        Ok(dims.to_vec())
    }

    /// How long it is on the host, in bytes: dense, at least a byte an element.
    ///
    /// # Errors
    /// As [`Self::element_type`] and [`Self::dims`]; [`PjrtError::BadAnswer`] if it is longer than
    /// any memory.
    pub fn host_bytes(&self) -> Result<usize, PjrtError> {
        let (element_type, dims) = (self.element_type()?, self.dims()?);
        let bytes = element_count(&dims)
            .and_then(|count| count.checked_mul(element_type.host_bytes()))
            .filter(|&bytes| bytes <= isize::MAX as usize);
        bytes.ok_or_else(|| PjrtError::BadAnswer {
            call: "PJRT_Buffer_Dimensions",
            what: "dimensions",
            found: format!("{dims:?}"),
            expected: "an array that fits into memory",
        })
    }

    /// How long it is on the device, in bytes: packed, with whatever the device puts between.
    ///
    /// # Errors
    /// As the plug-in's.
    pub fn device_bytes(&self) -> Result<usize, PjrtError> {
        Ok(of_buffer!(self, PJRT_Buffer_OnDeviceSizeInBytes_Args)?.on_device_size_in_bytes)
    }

    /// Reads all of it, dense and row-major, and waits for it.
    ///
    /// # Errors
    /// As [`Self::host_bytes`] and [`Self::read_into`].
    pub fn read(&self) -> Result<Vec<u8>, PjrtError> {
        let bytes = self.host_bytes()?;
        let mut data = Vec::new();
        data.try_reserve_exact(bytes).map_err(|_| PjrtError::BadAnswer {
            call: "PJRT_Buffer_Dimensions",
            what: "dimensions",
            found: format!("{bytes} bytes"),
            expected: "an array that fits into memory",
        })?;
        data.resize(bytes, 0);
        self.read_into(&mut data)?;
        Ok(data)
    }

    /// Fills `data`, which is [`host_bytes`](Self::host_bytes) long, with all of it, dense and
    /// row-major, and waits for it.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] if `data` has another length; [`PjrtError::Status`] as the
    /// plug-in's, such as that the buffer was deleted.
    pub fn read_into(&self, data: &mut [u8]) -> Result<(), PjrtError> {
        let expected = self.host_bytes()?;
        if data.len() != expected {
            return Err(PjrtError::InvalidArgument {
                what: "the memory that is read into",
                found: format!("{} bytes", data.len()),
                expected: expected.to_string(),
            });
        }
        let rank = i64::try_from(self.dims()?.len()).unwrap_or_default();
        // A device may keep its own order; the host asks for its.
        let order: Vec<i64> = (0..rank).rev().collect();
        let mut layout = PJRT_Buffer_MemoryLayout::of_order(&order);
        let mut arguments = Handed::<PJRT_Buffer_ToHostBuffer_Args>::new();
        arguments.src = self.raw();
        if rank > 1 {
            arguments.host_layout = &raw mut layout;
        }
        arguments.dst = data.as_mut_ptr().cast();
        arguments.dst_size = data.len();
        // SAFETY: the buffer is alive, the layout is there for the call, and the memory, which has
        // the length that is said, until the event has happened: it is waited for here.
        unsafe { self.client.table().call(&mut arguments) }?;
        // SAFETY: a call that succeeds hands over this event, or none.
        match unsafe { Event::taken(&self.client, arguments.event) } {
            Some(event) => event.wait(),
            None => Ok(()),
        }
    }

    /// Fills `data` with the device's own bytes from `offset` on, and waits for it. What they mean
    /// is the device's business: they are packed, padded and in its order.
    ///
    /// # Errors
    /// [`PjrtError::OutOfRange`] for bytes that are not inside the buffer; [`PjrtError::Missing`]
    /// for a plug-in before 0.57.
    pub fn read_raw(&self, offset: usize, data: &mut [u8]) -> Result<(), PjrtError> {
        let size = self.device_bytes()?;
        if offset.checked_add(data.len()).is_none_or(|end| end > size) {
            return Err(PjrtError::OutOfRange {
                what: "buffer",
                offset: offset as i128,
                bytes: data.len() as u128,
                size: size as u64,
            });
        }
        let mut arguments = Handed::<PJRT_Buffer_CopyRawToHost_Args>::new();
        arguments.buffer = self.raw();
        arguments.dst = data.as_mut_ptr().cast();
        // Neither is longer than a slice can be.
        arguments.offset = offset as i64;
        arguments.transfer_size = data.len() as i64;
        // SAFETY: the buffer is alive, and has these bytes as it says; the memory is there until
        // the event has happened, which is waited for here.
        unsafe { self.client.table().call(&mut arguments) }?;
        // SAFETY: a call that succeeds hands over this event, or none.
        match unsafe { Event::taken(&self.client, arguments.event) } {
            Some(event) => event.wait(),
            None => Ok(()),
        }
    }

    /// Copies it to another place of the same client.
    ///
    /// # Errors
    /// [`PjrtError::OtherClient`]; [`PjrtError::Status`] as the plug-in's.
    pub fn copy_to(&self, target: Target<'_>) -> Result<Self, PjrtError> {
        target.check(&self.client)?;
        match target {
            Target::Device(device) => {
                let mut arguments = Handed::<PJRT_Buffer_CopyToDevice_Args>::new();
                arguments.buffer = self.raw();
                arguments.dst_device = device.raw();
                // SAFETY: both are alive, and of one client.
                unsafe { self.client.table().call(&mut arguments) }?;
                let call = "PJRT_Buffer_CopyToDevice";
                // SAFETY: a call that succeeds hands over this buffer.
                unsafe { Self::taken(call, &self.client, arguments.dst_buffer) }
            }
            Target::Memory(memory) => {
                let mut arguments = Handed::<PJRT_Buffer_CopyToMemory_Args>::new();
                arguments.buffer = self.raw();
                arguments.dst_memory = memory.raw();
                // SAFETY: both are alive, and of one client.
                unsafe { self.client.table().call(&mut arguments) }?;
                let call = "PJRT_Buffer_CopyToMemory";
                // SAFETY: a call that succeeds hands over this buffer.
                unsafe { Self::taken(call, &self.client, arguments.dst_buffer) }
            }
        }
    }

    /// What happens when its data is there; `None`, if it is.
    ///
    /// # Errors
    /// As the plug-in's.
    pub fn ready(&self) -> Result<Option<Event>, PjrtError> {
        let found = of_buffer!(self, PJRT_Buffer_ReadyEvent_Args)?;
        // SAFETY: a call that succeeds hands over this event, or none.
        Ok(unsafe { Event::taken(&self.client, found.event) })
    }

    /// Frees its memory; the buffer itself stays. May be done again.
    ///
    /// # Errors
    /// As the plug-in's.
    pub fn delete(&self) -> Result<(), PjrtError> {
        of_buffer!(self, PJRT_Buffer_Delete_Args).map(drop)
    }

    /// Whether its memory is gone: it was deleted, or given to a program.
    ///
    /// # Errors
    /// As the plug-in's.
    pub fn is_deleted(&self) -> Result<bool, PjrtError> {
        Ok(of_buffer!(self, PJRT_Buffer_IsDeleted_Args)?.is_deleted != 0)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut arguments = Handed::<PJRT_Buffer_Destroy_Args>::new();
        arguments.buffer = self.raw();
        // SAFETY: it is alive, and this is its only owner's last word. An error changes nothing.
        let _ = unsafe { self.client.table().call(&mut arguments) };
    }
}
