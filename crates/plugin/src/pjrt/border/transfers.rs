//! Calls on transfers in pieces.

use std::{ffi::c_int, sync::Arc};

use serdes_abi::pjrt::args::*;

use super::{errors, events, pointers, values};
use crate::{
    HostSource, Result, Status,
    pjrt::{host_array::HostArray, transfers::Transfers},
};

calls! {
    create<P>(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args: arguments, client: client::<P>) {
        let memory = client.memory_index(arguments.memory)?;
        // SAFETY: the caller's promise.
        let specs = unsafe {
            values::list(arguments.shape_specs.cast_const(), arguments.num_shape_specs, "shapes")
        }?;
        // SAFETY: the caller's promise.
        let layouts = unsafe {
            values::list(arguments.device_layouts, arguments.num_device_layouts, "layouts")
        }?;
        let mut shapes = Vec::with_capacity(specs.len());
        for (index, spec) in specs.iter().enumerate() {
            // SAFETY: the caller's promise.
            let shape = unsafe { values::shape(spec.element_type, spec.dims, spec.num_dims) }?;
            if let Some(&layout) = layouts.get(index) {
                // SAFETY: the caller's promise.
                unsafe { super::arrays::check_device_layout(&shape, layout) }?;
            }
            shapes.push(shape);
        }
        arguments.transfer_manager = pointers::give(Transfers::new(client, memory, shapes)?);
    }

    destroy<P>(PJRT_AsyncHostToDeviceTransferManager_Destroy_Args: arguments) {
        let manager = arguments.transfer_manager;
        // SAFETY: the host destroys a transfer manager once.
        drop(unsafe { pointers::take::<Transfers<P>, _>(manager, "a transfer manager") }?);
    }

    transfer<P>(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args: arguments, transfer_manager: transfers::<P>) {
        let size = usize::try_from(arguments.transfer_size).map_err(|_| {
            Status::invalid_argument(format!("a transfer of {} bytes", arguments.transfer_size))
        })?;
        if arguments.data.is_null() && size > 0 {
            return Err(Status::invalid_argument("found NULL, expected bytes to transfer"));
        }
        // SAFETY: by the C API the bytes exist until the event is done.
        let source = unsafe { HostSource::from_raw(arguments.data, size) };
        let is_last = arguments.is_last_transfer != 0;
        let done =
            transfer_manager.transfer(arguments.buffer_index, arguments.offset, source, is_last)?;
        arguments.done_with_h2d_transfer = events::give(done);
    }

    /// Transfers a whole array in one piece, in the host's layout.
    literal<P>(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args: arguments, transfer_manager: transfers::<P>) {
        // SAFETY: the caller's promise.
        let shape = unsafe {
            values::shape(arguments.shape_element_type, arguments.shape_dims, arguments.shape_num_dims)
        }?;
        let expected = transfer_manager.array(arguments.buffer_index)?.shape();
        if *expected != shape {
            return Err(Status::invalid_argument(format!("found {shape}, expected {expected}")));
        }
        // SAFETY: the caller's promise.
        unsafe { super::arrays::check_device_layout(&shape, arguments.shape_layout) }?;
        if !HostArray::dense(shape.clone()).is_as_on_a_device() {
            return Err(Status::unimplemented(format!(
                "a literal of {shape}: this plug-in takes packed elements in pieces only"
            )));
        }
        if arguments.data.is_null() && shape.elements() > 0 {
            return Err(Status::invalid_argument("found NULL, expected an array's memory"));
        }
        // SAFETY: by the C API the array exists until the event is done.
        let source = unsafe { HostSource::from_raw(arguments.data, shape.host_bytes()) };
        let done = transfer_manager.transfer(arguments.buffer_index, 0, source, true)?;
        arguments.done_with_h2d_transfer = events::give(done);
    }

    buffer<P>(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args: arguments, transfer_manager: transfers::<P>) {
        let array = transfer_manager.array(arguments.buffer_index)?;
        arguments.buffer_out = pointers::give(Arc::clone(array));
    }

    device<P>(PJRT_AsyncHostToDeviceTransferManager_Device_Args: arguments, transfer_manager: transfers::<P>) {
        let client = transfer_manager.client();
        let device = client.device_handles().get(client.device_of(transfer_manager.memory())?.index);
        arguments.device_out = device.ok_or_else(|| Status::internal("there is no such device"))?;
    }

    count<P>(PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args: arguments, transfer_manager: transfers::<P>) {
        arguments.buffer_count = transfer_manager.len();
    }

    size<P>(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args: arguments, transfer_manager: transfers::<P>) {
        let array = transfer_manager.array(arguments.buffer_index)?;
        arguments.buffer_size = array.shape().device_bytes();
    }

    fail<P>(PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args: arguments, transfer_manager: transfers::<P>) {
        let code: c_int = arguments.error_code;
        // SAFETY: the caller's promise.
        let failure = unsafe {
            errors::read(code, arguments.error_message, arguments.error_message_size)
        };
        let failure = failure.err().ok_or_else(|| {
            Status::invalid_argument("found 0 as the code of the error of a transfer")
        })?;
        transfer_manager.fail(arguments.buffer_index, failure)?;
    }

    /// Ignores the metadata of a transfer.
    metadata<P>(PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args: arguments, transfer_manager: transfers::<P>) {
        let _ = transfer_manager;
    }
}
