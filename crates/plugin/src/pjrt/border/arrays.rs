//! Calls on arrays: creation from host memory, reads, copies and deletion.

use std::{ffi::c_void, ptr, sync::Arc};

use serdes_abi::pjrt::args::*;

use super::{
    errors, events, handles, pointers,
    values::{self, HostLayout},
};
use crate::{
    HostSource, HostTarget, Result, Status,
    pjrt::{
        Event, Memory, Plugin, Shape,
        array::{Array, Lent},
        event::Completer,
        host_array::HostArray,
    },
};

/// The semantics of host memory that may be reused when the call returns.
const ONLY_DURING_CALL: i32 = 0;
/// The number of the newest semantics of host memory.
const NEWEST_SEMANTICS: i32 = 3;

/// Refuses every layout on a device other than the order of the dimensions.
///
/// # Safety
/// `layout` is NULL or a layout.
pub(super) unsafe fn check_device_layout(
    shape: &Shape,
    layout: *const PJRT_Buffer_MemoryLayout,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let is_own = match unsafe { values::layout(layout) }? {
        HostLayout::Dense => true,
        HostLayout::Order(order) => order == shape.minor_to_major(),
        HostLayout::Strides(_) => false,
    };
    match is_own {
        true => Ok(()),
        false => Err(Status::unimplemented(
            "arrays of this plug-in lie in the order of their dimensions, and in no other",
        )),
    }
}

/// Returns the host memory from the lowest byte that the array touches.
fn lowest(start: *mut c_void, layout: &HostArray) -> Result<*mut c_void> {
    if start.is_null() && layout.extent() > 0 {
        return Err(Status::invalid_argument("found NULL, expected an array's memory"));
    }
    Ok(start.wrapping_byte_sub(layout.first()))
}

calls! {
    from_host<P>(PJRT_Client_BufferFromHostBuffer_Args: arguments, client: client::<P>) {
        let memory = client.target(arguments.device, arguments.memory)?;
        // SAFETY: the caller's promise.
        let shape =
            unsafe { values::shape(arguments.r#type, arguments.dims, arguments.num_dims) }?;
        // SAFETY: the caller's promise.
        unsafe { check_device_layout(&shape, arguments.device_layout) }?;
        // SAFETY: the caller's promise.
        let strides =
            unsafe { values::list(arguments.byte_strides, arguments.num_byte_strides, "strides") }?;
        let layout = match strides {
            [] => HostArray::dense(shape.clone()),
            strides => HostArray::strided(shape.clone(), strides)?,
        };
        let lent = match arguments.host_buffer_semantics {
            ONLY_DURING_CALL => Lent::DuringCall,
            1..=NEWEST_SEMANTICS => Lent::UntilDone,
            other => return Err(Status::invalid_argument(format!(
                "found {other} as the semantics of host memory, expected 0 to {NEWEST_SEMANTICS}"
            ))),
        };
        let start = lowest(arguments.data.cast_mut(), &layout)?;
        // SAFETY: by the C API all elements that the strides reach exist, and are not written until
        // the call returns or the event is done.
        let source = unsafe { HostSource::from_raw(start, layout.extent()) };
        let (array, done) = Array::put(client, memory, layout, shape, source, lent)?;
        arguments.done_with_host_buffer = events::give(done);
        arguments.buffer = pointers::give(Arc::new(array));
    }

    uninitialized<P>(PJRT_Client_CreateUninitializedBuffer_Args: arguments, client: client::<P>) {
        let memory = client.target(arguments.device, arguments.memory)?;
        // SAFETY: the caller's promise.
        let shape = unsafe {
            values::shape(arguments.shape_element_type, arguments.shape_dims, arguments.shape_num_dims)
        }?;
        // SAFETY: the caller's promise.
        unsafe { check_device_layout(&shape, arguments.shape_layout) }?;
        let array = Array::allocate(client, memory, shape, Event::done(Ok(())))?;
        arguments.buffer = pointers::give(Arc::new(array));
    }

    failed<P>(PJRT_Client_CreateErrorBuffer_Args: arguments, client: client::<P>) {
        let memory = client.memory_index(arguments.memory)?;
        // SAFETY: the caller's promise.
        let shape = unsafe {
            values::shape(arguments.shape_element_type, arguments.shape_dims, arguments.shape_num_dims)
        }?;
        // SAFETY: the caller's promise.
        let failure = unsafe {
            errors::read(arguments.error_code, arguments.error_message, arguments.error_message_size)
        };
        let failure = failure.err().ok_or_else(|| {
            Status::invalid_argument("found 0 as the code of the error of a failed array")
        })?;
        arguments.buffer = pointers::give(Arc::new(Array::failed(client, memory, shape, failure)));
    }

    destroy<P>(PJRT_Buffer_Destroy_Args: arguments) {
        // SAFETY: the host destroys a buffer once.
        drop(unsafe { pointers::take::<Arc<Array<P>>, _>(arguments.buffer, "a buffer") }?);
    }

    element_type<P>(PJRT_Buffer_ElementType_Args: arguments, buffer: array::<P>) {
        arguments.r#type = buffer.shape().element_type().number();
    }

    dimensions<P>(PJRT_Buffer_Dimensions_Args: arguments, buffer: array::<P>) {
        let dimensions = buffer.shape().dimensions();
        (arguments.dims, arguments.num_dims) = (dimensions.as_ptr(), dimensions.len());
    }

    unpadded_dimensions<P>(PJRT_Buffer_UnpaddedDimensions_Args: arguments, buffer: array::<P>) {
        let dimensions = buffer.shape().dimensions();
        (arguments.unpadded_dims, arguments.num_dims) = (dimensions.as_ptr(), dimensions.len());
    }

    /// Returns none: no dimension is dynamic.
    dynamic_dimensions<P>(PJRT_Buffer_DynamicDimensionIndices_Args: arguments, buffer: array::<P>) {
        let _ = buffer;
        (arguments.dynamic_dim_indices, arguments.num_dynamic_dims) = (ptr::dangling(), 0);
    }

    layout<P>(PJRT_Buffer_GetMemoryLayout_Args: arguments, buffer: array::<P>) {
        arguments.layout = PJRT_Buffer_MemoryLayout::of_order(buffer.minor_to_major());
    }

    on_device_size<P>(PJRT_Buffer_OnDeviceSizeInBytes_Args: arguments, buffer: array::<P>) {
        arguments.on_device_size_in_bytes = buffer.shape().device_bytes();
    }

    device<P>(PJRT_Buffer_Device_Args: arguments, buffer: array::<P>) {
        let device = buffer.client().device_handles().get(buffer.memory()?.device);
        arguments.device = device.ok_or_else(|| Status::internal("there is no such device"))?;
    }

    memory<P>(PJRT_Buffer_Memory_Args: arguments, buffer: array::<P>) {
        let memory = buffer.client().memory_handles().get(buffer.memory()?.index);
        arguments.memory = memory.ok_or_else(|| Status::internal("there is no such memory"))?;
    }

    is_on_cpu<P>(PJRT_Buffer_IsOnCpu_Args: arguments, buffer: array::<P>) {
        arguments.is_on_cpu = u8::from(buffer.memory()?.memory.is_host());
    }

    ready<P>(PJRT_Buffer_ReadyEvent_Args: arguments, buffer: array::<P>) {
        arguments.event = events::give(buffer.ready().clone());
    }

    delete<P>(PJRT_Buffer_Delete_Args: arguments, buffer: array::<P>) {
        buffer.delete();
    }

    is_deleted<P>(PJRT_Buffer_IsDeleted_Args: arguments, buffer: array::<P>) {
        arguments.is_deleted = u8::from(buffer.is_deleted());
    }

    address<P>(PJRT_Buffer_UnsafePointer_Args: arguments, buffer: array::<P>) {
        arguments.buffer_pointer = buffer.address()?.as_ptr().expose_provenance();
    }

    data_pointer<P>(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args: arguments, buffer: array::<P>) {
        arguments.device_memory_ptr = buffer.address()?.as_ptr();
    }

    hold<P>(PJRT_Buffer_IncreaseExternalReferenceCount_Args: arguments, buffer: array::<P>) {
        buffer.hold()?;
    }

    release<P>(PJRT_Buffer_DecreaseExternalReferenceCount_Args: arguments, buffer: array::<P>) {
        buffer.release()?;
    }

    to_host<P>(PJRT_Buffer_ToHostBuffer_Args: arguments, src: array::<P>) {
        let shape = src.shape().clone();
        // SAFETY: the caller's promise.
        let layout = match unsafe { values::layout(arguments.host_layout) }? {
            HostLayout::Dense => HostArray::dense(shape),
            HostLayout::Order(order) => HostArray::in_order(shape, order)?,
            HostLayout::Strides(strides) => HostArray::strided(shape, strides)?,
        };
        if layout.first() > 0 {
            return Err(Status::invalid_argument("a layout for memory of the host that goes back"));
        }
        arguments.event = events::NONE;
        if arguments.dst.is_null() {
            // The host only queries how much memory it needs.
            arguments.dst_size = layout.extent();
        } else if arguments.dst_size < layout.extent() {
            return Err(Status::invalid_argument(format!(
                "found {} bytes of memory of the host, expected {} for the array {}",
                arguments.dst_size, layout.extent(), src.shape()
            )));
        } else {
            // SAFETY: by the C API the memory exists, exclusively for the plug-in, until the event
            // is done.
            let target = unsafe { HostTarget::from_raw(arguments.dst, layout.extent()) };
            arguments.event = events::give(src.read(layout, target)?);
        }
    }

    raw_to_host<P>(PJRT_Buffer_CopyRawToHost_Args: arguments, buffer: array::<P>) {
        let bytes = buffer.range(arguments.offset, arguments.transfer_size)?;
        if arguments.dst.is_null() && !bytes.is_empty() {
            return Err(Status::invalid_argument("found NULL, expected memory to copy to"));
        }
        // SAFETY: by the C API the memory exists, exclusively for the plug-in, until the event is
        // done.
        let target = unsafe { HostTarget::from_raw(arguments.dst, bytes.len()) };
        arguments.event = events::give(buffer.read_raw(arguments.offset, target)?);
    }

    raw_to_host_future<P>(PJRT_Buffer_CopyRawToHostFuture_Args: arguments, buffer: array::<P>) {
        let bytes = buffer.range(arguments.offset, arguments.transfer_size)?;
        let (completer, event) = Event::pending();
        let (array, offset) = (Arc::clone(buffer), arguments.offset);
        let copy = RawCopy { array, offset, bytes: bytes.len(), completer };
        arguments.event = events::give(event);
        arguments.callback_data = pointers::give::<_, c_void>(copy);
        arguments.future_ready_callback = Some(memory_is_there::<P>);
    }

    to_device<P>(PJRT_Buffer_CopyToDevice_Args: arguments, buffer: array::<P>) {
        // SAFETY: the caller's promise.
        let device = unsafe { handles::device::<P>(arguments.dst_device) }?;
        let client = device.client.upgrade();
        let client = client.ok_or_else(|| Status::failed_precondition("the client was destroyed"))?;
        let copy = buffer.copy_to(&client, device.memories.start)?;
        arguments.dst_buffer = pointers::give(Arc::new(copy));
    }

    to_memory<P>(PJRT_Buffer_CopyToMemory_Args: arguments, buffer: array::<P>) {
        // SAFETY: the caller's promise.
        let memory = unsafe { handles::memory::<P>(arguments.dst_memory) }?;
        let client = memory.client.upgrade();
        let client = client.ok_or_else(|| Status::failed_precondition("the client was destroyed"))?;
        let copy = buffer.copy_to(&client, memory.index)?;
        arguments.dst_buffer = pointers::give(Arc::new(copy));
    }
}

/// A copy of raw bytes that still waits for its memory.
struct RawCopy<P: Plugin> {
    array: Arc<Array<P>>,
    offset: i64,
    bytes: usize,
    completer: Completer,
}

/// Starts the copy, or cancels it.
///
/// # Safety
/// As the C API says: called once with the value that [`raw_to_host_future`] handed out, and with
/// an error or memory of that many bytes, which exists until the event is done.
unsafe extern "C" fn memory_is_there<P: Plugin>(
    raw: *mut PJRT_Buffer_CopyRawToHostFuture_Callback_Args,
) {
    let begin = || {
        // SAFETY: NULL or the call's own arguments; this struct has not grown since it was
        // introduced.
        let Some(given) = (unsafe { raw.as_ref() }) else { return Ok(()) };
        // SAFETY: the value was created for this call, which happens once.
        let copy = unsafe { pointers::take::<RawCopy<P>, _>(given.callback_data, "a copy") }?;
        // SAFETY: the caller's promise.
        let refused = unsafe {
            errors::read(given.error_code, given.error_message, given.error_message_size)
        };
        let RawCopy { array, offset, bytes, completer } = *copy;
        let begun = refused.and_then(|()| {
            if given.dst.is_null() && bytes > 0 {
                return Err(Status::invalid_argument("found NULL, expected memory to copy to"));
            }
            // SAFETY: the caller's promise.
            array.read_raw(offset, unsafe { HostTarget::from_raw(given.dst, bytes) })
        });
        match begun {
            Ok(event) => event.on_done(move |outcome| completer.complete(outcome)),
            Err(failure) => completer.complete(Err(failure)),
        }
        Ok(())
    };
    // There is no caller to report to; a failure completes the event.
    let _ = crate::panic::contain(begin);
}
