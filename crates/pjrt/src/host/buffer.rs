//! Arrays on a device: their properties, copies and deletion.

use std::{ffi::c_void, ptr::NonNull, sync::Arc};

use serdes_abi::pjrt::{ElementType, args::*};

use super::{
    border::{list, pointer},
    client::{Client, ClientHandle},
    device::{Device, Memory},
    element_type::of_answer,
    event::Event,
    host_array::{MOST_DIMENSIONS, element_count},
    target::Target,
};
use crate::PjrtError;

/// The handle of a buffer, which every user of the buffer holds.
#[derive(Debug)]
pub(super) struct BufferHandle {
    client: Arc<ClientHandle>,
    raw: NonNull<PJRT_Buffer>,
}

// SAFETY: the C API lets any thread use any buffer, several at once except for destroying it, which
// happens once no handle is left.
unsafe impl Send for BufferHandle {}
// SAFETY: as above.
unsafe impl Sync for BufferHandle {}

impl BufferHandle {
    pub(super) fn client(&self) -> &Arc<ClientHandle> {
        &self.client
    }

    pub(super) fn raw(&self) -> *mut PJRT_Buffer {
        self.raw.as_ptr()
    }
}

impl Drop for BufferHandle {
    fn drop(&mut self) {
        let raw = self.raw();
        // SAFETY: it is alive, and no handle is left. An error has no consequence.
        let _ = unsafe {
            self.client.table().ask(|call: &mut PJRT_Buffer_Destroy_Args| call.buffer = raw)
        };
    }
}

/// An array on a device. Freed when it is dropped and no operation uses it any more.
#[derive(Debug)]
pub struct Buffer {
    handle: Arc<BufferHandle>,
}

/// Makes a call whose only input is the buffer.
macro_rules! of_buffer {
    ($handle:expr, $arguments:ident) => {{
        let raw = $handle.raw();
        // SAFETY: the buffer is alive as long as a handle exists.
        unsafe { $handle.client().table().ask(|call: &mut $arguments| call.buffer = raw) }
    }};
}
pub(super) use of_buffer;

impl Buffer {
    /// Takes ownership of a buffer that a plug-in returned.
    ///
    /// # Safety
    /// It is NULL or alive, belongs to this client, and is owned by no other handle.
    pub(super) unsafe fn taken(
        call: &'static str,
        client: &Arc<ClientHandle>,
        raw: *mut PJRT_Buffer,
    ) -> Result<Self, PjrtError> {
        let raw = pointer(call, "a buffer", raw)?;
        Ok(Self { handle: Arc::new(BufferHandle { client: Arc::clone(client), raw }) })
    }

    pub(super) fn handle(&self) -> &Arc<BufferHandle> {
        &self.handle
    }

    /// Returns the client that owns the buffer.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::of(&self.handle.client)
    }

    /// Returns the type of the elements.
    ///
    /// # Errors
    /// The plug-in's errors; [`PjrtError::BadAnswer`] for a number that is not a type with data.
    pub fn element_type(&self) -> Result<ElementType, PjrtError> {
        let number = of_buffer!(self.handle, PJRT_Buffer_ElementType_Args)?.r#type;
        let minor = self.handle.client.table().minor();
        of_answer("PJRT_Buffer_ElementType", number, minor)
    }

    /// Returns its dimensions.
    ///
    /// # Errors
    /// The plug-in's errors; [`PjrtError::BadAnswer`] for more than 254 of them, or a negative one.
    pub fn dims(&self) -> Result<Vec<i64>, PjrtError> {
        const CALL: &str = "PJRT_Buffer_Dimensions";
        let found = of_buffer!(self.handle, PJRT_Buffer_Dimensions_Args)?;
        // SAFETY: the plug-in declares this number of entries; they belong to the buffer.
        unsafe { dimensions(CALL, found.dims, found.num_dims) }
    }

    /// Returns its dimensions without the padding that the device adds to arrays of unknown size.
    ///
    /// # Errors
    /// As for [`Self::dims`].
    pub fn unpadded_dims(&self) -> Result<Vec<i64>, PjrtError> {
        const CALL: &str = "PJRT_Buffer_UnpaddedDimensions";
        let found = of_buffer!(self.handle, PJRT_Buffer_UnpaddedDimensions_Args)?;
        // SAFETY: the plug-in declares this number of entries; they belong to the buffer.
        unsafe { dimensions(CALL, found.unpadded_dims, found.num_dims) }
    }

    /// Returns the indices of the dimensions whose extent is unknown before a program runs.
    ///
    /// # Errors
    /// The plug-in's errors; [`PjrtError::BadAnswer`] for more than 254 of them.
    pub fn dynamic_dimensions(&self) -> Result<Vec<usize>, PjrtError> {
        const CALL: &str = "PJRT_Buffer_DynamicDimensionIndices";
        let found = of_buffer!(self.handle, PJRT_Buffer_DynamicDimensionIndices_Args)?;
        check_rank(CALL, found.num_dynamic_dims)?;
        let (start, count) = (found.dynamic_dim_indices, found.num_dynamic_dims);
        // SAFETY: the plug-in declares this number of entries; they belong to the buffer.
        unsafe { list(CALL, "dimensions", start, count) }.map(<[usize]>::to_vec)
    }

    /// Returns the size on the host in bytes: dense, with at least one byte per element.
    ///
    /// # Errors
    /// As [`Self::element_type`] and [`Self::dims`]; [`PjrtError::BadAnswer`] if it exceeds any
    /// memory.
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

    /// Returns the size on the device in bytes, including the padding of the device's layout.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn device_bytes(&self) -> Result<usize, PjrtError> {
        let found = of_buffer!(self.handle, PJRT_Buffer_OnDeviceSizeInBytes_Args)?;
        Ok(found.on_device_size_in_bytes)
    }

    /// Returns the device that holds the array.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn device(&self) -> Result<Device, PjrtError> {
        let found = of_buffer!(self.handle, PJRT_Buffer_Device_Args)?;
        let raw = pointer("PJRT_Buffer_Device", "a device", found.device)?;
        Ok(Device::of(&self.handle.client, raw))
    }

    /// Returns the memory that holds the array; `None` if the plug-in does not have separate
    /// memories.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn memory(&self) -> Result<Option<Memory>, PjrtError> {
        match of_buffer!(self.handle, PJRT_Buffer_Memory_Args) {
            Err(error) if error.is_unsupported() => Ok(None),
            found => {
                let raw = pointer("PJRT_Buffer_Memory", "a memory", found?.memory)?;
                Ok(Some(Memory::of(&self.handle.client, raw)))
            }
        }
    }

    /// Returns true if the array is in memory that the host's processor can read.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn is_on_cpu(&self) -> Result<bool, PjrtError> {
        Ok(of_buffer!(self.handle, PJRT_Buffer_IsOnCpu_Args)?.is_on_cpu != 0)
    }

    /// Copies the array to another device or memory of the same client.
    ///
    /// # Errors
    /// [`PjrtError::OtherClient`]; [`PjrtError::Status`] from the plug-in.
    pub fn copy_to(&self, target: Target<'_>) -> Result<Self, PjrtError> {
        let client = &self.handle.client;
        target.check(client)?;
        let raw = self.handle.raw();
        match target {
            Target::Device(device) => {
                // SAFETY: both are alive, and of one client.
                let made = unsafe {
                    client.table().ask(|call: &mut PJRT_Buffer_CopyToDevice_Args| {
                        call.buffer = raw;
                        call.dst_device = device.raw();
                    })
                }?;
                // SAFETY: a successful call returns ownership of this buffer.
                unsafe { Self::taken("PJRT_Buffer_CopyToDevice", client, made.dst_buffer) }
            }
            Target::Memory(memory) => {
                // SAFETY: both are alive, and of one client.
                let made = unsafe {
                    client.table().ask(|call: &mut PJRT_Buffer_CopyToMemory_Args| {
                        call.buffer = raw;
                        call.dst_memory = memory.raw();
                    })
                }?;
                // SAFETY: a successful call returns ownership of this buffer.
                unsafe { Self::taken("PJRT_Buffer_CopyToMemory", client, made.dst_buffer) }
            }
        }
    }

    /// Returns the event for the array's data; `None` if the data is already available.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn ready(&self) -> Result<Option<Event>, PjrtError> {
        let found = of_buffer!(self.handle, PJRT_Buffer_ReadyEvent_Args)?;
        // SAFETY: a successful call returns ownership of this event, or none.
        Ok(unsafe { Event::taken(&self.handle.client, found.event) })
    }

    /// Frees the memory of the array; the buffer object remains. May be called repeatedly.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn delete(&self) -> Result<(), PjrtError> {
        of_buffer!(self.handle, PJRT_Buffer_Delete_Args).map(drop)
    }

    /// Returns true if the memory was freed: the array was deleted, or donated to a program.
    ///
    /// # Errors
    /// The plug-in's errors.
    #[inline]
    pub fn is_deleted(&self) -> Result<bool, PjrtError> {
        Ok(of_buffer!(self.handle, PJRT_Buffer_IsDeleted_Args)?.is_deleted != 0)
    }

    /// Pins the memory of the array: until the reference is dropped, no program takes it over, and
    /// it is not freed.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn external_reference(&self) -> Result<ExternalReference, PjrtError> {
        of_buffer!(self.handle, PJRT_Buffer_IncreaseExternalReferenceCount_Args)?;
        Ok(ExternalReference { handle: Arc::clone(&self.handle) })
    }
}

/// Pins the memory of an array.
#[derive(Debug)]
pub struct ExternalReference {
    handle: Arc<BufferHandle>,
}

impl ExternalReference {
    /// Returns the address of the array on the device. Its meaning, and whether the host can read
    /// it, depend on the device; it is valid as long as this reference.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn address(&self) -> Result<*const c_void, PjrtError> {
        let found = of_buffer!(self.handle, PJRT_Buffer_UnsafePointer_Args)?;
        Ok(std::ptr::without_provenance(found.buffer_pointer))
    }
}

impl Drop for ExternalReference {
    fn drop(&mut self) {
        // An error has no consequence.
        let _ = of_buffer!(self.handle, PJRT_Buffer_DecreaseExternalReferenceCount_Args);
    }
}

fn check_rank(call: &'static str, rank: usize) -> Result<(), PjrtError> {
    if rank <= MOST_DIMENSIONS {
        return Ok(());
    }
    Err(PjrtError::BadAnswer {
        call,
        what: "dimensions",
        found: format!("{rank} of them"),
        expected: "254 at most",
    })
}

/// Returns the dimensions that a plug-in passed.
///
/// # Errors
/// [`PjrtError::BadAnswer`] for more than 254 of them, or a negative one.
///
/// # Safety
/// `start` points to `rank` dimensions, or is NULL.
pub(super) unsafe fn dimensions(
    call: &'static str,
    start: *const i64,
    rank: usize,
) -> Result<Vec<i64>, PjrtError> {
    check_rank(call, rank)?;
    // SAFETY: guaranteed by the caller.
    let dims = unsafe { list(call, "dimensions", start, rank) }?;
    if dims.iter().any(|&dim| dim < 0) {
        return Err(PjrtError::BadAnswer {
            call,
            what: "dimensions",
            found: format!("{dims:?}"),
            expected: "none that is negative",
        });
    }
    Ok(dims.to_vec())
}
