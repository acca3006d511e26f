//! Arrays that are sent to a device in pieces.

use std::{ffi::c_int, ops::Range, ptr, sync::Arc};

use serdes_abi::pjrt::{ElementType, args::*};

use super::{
    border::pointer,
    buffer::Buffer,
    client::Client,
    device::Memory,
    element_type::number_of,
    event::Event,
    host_array::HostArray,
    host_memory::HostMemory,
    manager::ManagerHandle,
    target::Target,
    transfer::{Endpoint, Transfer},
};
use crate::PjrtError;

/// The maximum number of arrays of one manager.
const MOST_ARRAYS: usize = 1 << 16;
/// The status code of a cancelled transfer.
const CANCELLED: c_int = 1;

/// An array that is sent to a device in pieces, dense and row-major like
/// [`HostArray::new`](super::HostArray::new).
///
/// If it is dropped before the last piece, it is cancelled: the plug-in is informed, and the drop
/// does not wait.
#[derive(Debug)]
pub struct IncomingBuffer {
    manager: Arc<ManagerHandle>,
    /// The index among the manager's arrays.
    index: c_int,
    buffer: Option<Buffer>,
    /// The size of the array on the host, in bytes.
    bytes: usize,
    /// True once the last piece has been passed.
    complete: bool,
}

impl Client {
    /// Creates an array that is sent in pieces.
    ///
    /// # Errors
    /// [`PjrtError::Missing`] before 0.60, or if the plug-in does not have separate memories;
    /// [`PjrtError::InvalidArgument`] for a type that its version does not know, one that devices
    /// pack (below 8 bits, since plug-ins disagree on the bounds of its pieces), or invalid
    /// dimensions; [`PjrtError::BadAnswer`] if the plug-in creates a different array.
    pub fn create_for_transfer(
        &self,
        element_type: ElementType,
        dims: &[i64],
        target: Target<'_>,
    ) -> Result<IncomingBuffer, PjrtError> {
        let mut made = self.create_all_for_transfer(&[(element_type, dims)], target)?;
        // There is exactly one, since one was requested.
        Ok(made.swap_remove(0))
    }

    /// Creates several arrays in one memory that are sent in pieces, with one call; each has a type
    /// and dimensions. They are sent independently of each other.
    ///
    /// # Errors
    /// As [`Self::create_for_transfer`]; [`PjrtError::InvalidArgument`] for no array, or more than
    /// 65,536.
    pub fn create_all_for_transfer(
        &self,
        arrays: &[(ElementType, &[i64])],
        target: Target<'_>,
    ) -> Result<Vec<IncomingBuffer>, PjrtError> {
        let handle = self.handle();
        target.check(handle)?;
        if arrays.is_empty() || arrays.len() > MOST_ARRAYS {
            return Err(PjrtError::InvalidArgument {
                what: "the number of arrays in pieces",
                found: arrays.len().to_string(),
                expected: format!("1 to {MOST_ARRAYS}"),
            });
        }
        let lengths: Vec<usize> =
            arrays.iter().map(|(of, dims)| host_bytes(*of, dims)).collect::<Result<_, _>>()?;
        let mut shapes: Vec<PJRT_ShapeSpec> =
            arrays.iter().map(|(of, dims)| self.shape(*of, dims)).collect::<Result<_, _>>()?;
        let memory = memory_of(target)?;
        let client = handle.raw();
        // SAFETY: the handles are alive and belong to one client; the number of shapes is that of
        // the list, and their dimensions are valid for the call.
        let made = unsafe {
            handle.table().ask(|call: &mut PJRT_Client_CreateBuffersForAsyncHostToDevice_Args| {
                call.client = client;
                call.shape_specs = shapes.as_mut_ptr();
                call.num_shape_specs = shapes.len();
                call.memory = memory.raw();
            })
        }?;
        let call = "PJRT_Client_CreateBuffersForAsyncHostToDevice";
        let raw = pointer(call, "a transfer manager", made.transfer_manager)?;
        let manager = Arc::new(ManagerHandle::new(handle, raw));
        manager.check_count(arrays.len())?;
        let indices: Range<c_int> = 0..c_int::MAX;
        // If one cannot be created, the others are dropped, and thereby cancelled.
        let incoming = indices.zip(lengths).map(|(index, bytes)| {
            let manager = Arc::clone(&manager);
            let mut incoming =
                IncomingBuffer { manager, index, buffer: None, bytes, complete: false };
            incoming.check_size()?;
            incoming.buffer = Some(incoming.retrieve()?);
            Ok(incoming)
        });
        incoming.collect()
    }

    /// Returns the shape of an array in the plug-in's version; it points to `dims`.
    fn shape(&self, element_type: ElementType, dims: &[i64]) -> Result<PJRT_ShapeSpec, PjrtError> {
        if element_type.may_be_packed() {
            return Err(PjrtError::InvalidArgument {
                what: "the element type of an array in pieces",
                found: element_type.name().to_owned(),
                expected: "one of 8 bits and more; put this array as a whole".to_owned(),
            });
        }
        let given = PJRT_ShapeSpec::HISTORY.handover(self.minor());
        Ok(PJRT_ShapeSpec {
            struct_size: given.map_or(size_of::<PJRT_ShapeSpec>(), |given| given.struct_size),
            extension_start: ptr::null_mut(),
            dims: dims.as_ptr(),
            num_dims: dims.len(),
            element_type: number_of(element_type, self.minor())?,
        })
    }
}

fn host_bytes(element_type: ElementType, dims: &[i64]) -> Result<usize, PjrtError> {
    HostArray::new(element_type, dims).extent()
}

/// Returns the memory of the target.
fn memory_of(target: Target<'_>) -> Result<Memory, PjrtError> {
    match target {
        Target::Memory(memory) => Ok(memory.clone()),
        Target::Device(device) => {
            let table = device.client_handle().table();
            device
                .default_memory()?
                .ok_or_else(|| table.without::<PJRT_Device_DefaultMemory_Args>())
        }
    }
}

impl IncomingBuffer {
    /// Returns the size of the array on the host, in bytes.
    #[must_use]
    pub fn host_bytes(&self) -> usize {
        self.bytes
    }

    /// Sends the piece `data`, which belongs at `offset`, and waits until the plug-in has read it.
    /// The pieces may be sent in any order, except that the last one must be marked.
    ///
    /// # Errors
    /// [`PjrtError::OutOfRange`] for a piece that is not inside the array,
    /// [`PjrtError::InvalidArgument`] for one after the last; [`PjrtError::Status`] from the
    /// plug-in.
    pub fn write(&mut self, offset: usize, data: &[u8], is_last: bool) -> Result<(), PjrtError> {
        // SAFETY: the data exists until the event is done, which is waited for here.
        let event = unsafe { self.start(offset, data.as_ptr(), data.len(), is_last) }?;
        event.map_or(Ok(()), |event| event.wait())
    }

    /// Begins to send a piece: the first `bytes` bytes of `source`, which belong at `offset`.
    ///
    /// # Errors
    /// As [`Self::write`]; [`PjrtError::InvalidArgument`] if `source` is shorter.
    pub fn begin_write(
        &mut self,
        offset: usize,
        bytes: usize,
        is_last: bool,
        source: HostMemory,
    ) -> Result<Transfer, PjrtError> {
        if source.len() < bytes {
            return Err(PjrtError::InvalidArgument {
                what: "the memory that is written from",
                found: format!("{} bytes", source.len()),
                expected: format!("{bytes} and more"),
            });
        }
        // SAFETY: the memory is long enough, and the transfer keeps it until the event is done.
        let event = unsafe { self.start(offset, source.as_start().cast(), bytes, is_last) }?;
        let endpoint = Endpoint::Manager { _handle: Arc::clone(&self.manager) };
        Ok(Transfer::new(event, source, endpoint))
    }

    /// Returns the array, once all of it was sent.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] if the last piece was not sent; [`PjrtError::Status`] if the
    /// plug-in does not return the array.
    pub fn into_buffer(mut self) -> Result<Buffer, PjrtError> {
        let incomplete = || PjrtError::InvalidArgument {
            what: "an array in pieces",
            found: "one whose last piece has not come".to_owned(),
            expected: "all of it".to_owned(),
        };
        let buffer = self.buffer.take().filter(|_| self.complete).ok_or_else(incomplete)?;
        if let Some(ready) = buffer.ready()? {
            ready.wait()?;
        }
        Ok(buffer)
    }

    /// # Safety
    /// There are `bytes` bytes at `start` until the returned event is done; if there is none, until
    /// this returns.
    unsafe fn start(
        &mut self,
        offset: usize,
        start: *const u8,
        bytes: usize,
        is_last: bool,
    ) -> Result<Option<Event>, PjrtError> {
        if self.complete {
            return Err(PjrtError::InvalidArgument {
                what: "a piece of an array",
                found: "one after the last".to_owned(),
                expected: "none: plug-ins end the process on it".to_owned(),
            });
        }
        let end = offset.checked_add(bytes).filter(|&end| end <= self.bytes);
        let (Some(_), Ok(at), Ok(length)) = (end, i64::try_from(offset), i64::try_from(bytes))
        else {
            return Err(PjrtError::OutOfRange {
                what: "array",
                offset: offset as i128,
                bytes: bytes as u128,
                size: self.bytes as u64,
            });
        };
        let (raw, index) = (self.manager.raw(), self.index);
        // SAFETY: the manager is alive, has an array with this index, and the piece is inside it;
        // the caller guarantees the data.
        let begun = unsafe {
            self.manager.client().table().ask(
                |call: &mut PJRT_AsyncHostToDeviceTransferManager_TransferData_Args| {
                    call.transfer_manager = raw;
                    call.buffer_index = index;
                    call.data = start.cast();
                    call.offset = at;
                    call.transfer_size = length;
                    call.is_last_transfer = u8::from(is_last);
                },
            )
        }?;
        self.complete = is_last;
        // SAFETY: a successful call returns ownership of this event, or none.
        Ok(unsafe { Event::taken(self.manager.client(), begun.done_with_h2d_transfer) })
    }

    /// Fails if the plug-in reports another length of the array. A plug-in without this function is
    /// trusted.
    fn check_size(&self) -> Result<(), PjrtError> {
        let (raw, index) = (self.manager.raw(), self.index);
        // SAFETY: the manager is alive, and has an array with this index.
        let size = unsafe {
            self.manager.client().table().ask(
                |call: &mut PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args| {
                    call.transfer_manager = raw;
                    call.buffer_index = index;
                },
            )
        };
        match size {
            // A device may need more than the array's size, but never less.
            Ok(found) if found.buffer_size < self.bytes => Err(PjrtError::BadAnswer {
                call: "PJRT_AsyncHostToDeviceTransferManager_BufferSize",
                what: "the size of the array",
                found: found.buffer_size.to_string(),
                expected: "that of its elements",
            }),
            Err(error) if !error.is_unsupported() => Err(error),
            _ => Ok(()),
        }
    }

    fn retrieve(&self) -> Result<Buffer, PjrtError> {
        let (raw, index) = (self.manager.raw(), self.index);
        // SAFETY: the manager is alive, and has an array with this index.
        let found = unsafe {
            self.manager.client().table().ask(
                |call: &mut PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args| {
                    call.transfer_manager = raw;
                    call.buffer_index = index;
                },
            )
        }?;
        let call = "PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer";
        // SAFETY: a successful call returns ownership of this buffer.
        unsafe { Buffer::taken(call, self.manager.client(), found.buffer_out) }
    }
}

impl Drop for IncomingBuffer {
    fn drop(&mut self) {
        if self.complete {
            return;
        }
        const REASON: &str = "the array was given up before its last piece";
        let (raw, index) = (self.manager.raw(), self.index);
        // Users of the array get an error. Without this function, the plug-in cancels the array
        // when its manager is destroyed.
        // SAFETY: the manager is alive, and has an array of this number, which is not complete.
        let _ = unsafe {
            self.manager.client().table().ask(
                |call: &mut PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args| {
                    call.transfer_manager = raw;
                    call.buffer_index = index;
                    call.error_code = CANCELLED;
                    call.error_message = REASON.as_ptr().cast();
                    call.error_message_size = REASON.len();
                },
            )
        };
    }
}
