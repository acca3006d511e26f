//! Arrays whose data arrives in pieces.

use serdes_abi::pjrt::args::{
    Arguments, PJRT_AsyncHostToDeviceTransferManager,
    PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args,
    PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args,
    PJRT_AsyncHostToDeviceTransferManager_Destroy_Args,
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args,
    PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, PJRT_Buffer, PJRT_Buffer_Destroy_Args,
    PJRT_Buffer_ToHostBuffer_Args, PJRT_Client_CreateBuffersForAsyncHostToDevice_Args,
    PJRT_ShapeSpec,
};
use serdes_library_file::conformance::{Failure, Verdict, expect, failed, pattern, same_bytes};

use super::{
    buffers::wait,
    subject::{Behaviour, Subject},
};
use crate::ElementType;

pub(super) const BEHAVIOURS: &[Behaviour] = &[Behaviour {
    name: "pjrt_transfer_manager",
    demand: "an array's data can come in pieces, and is there when the last one is",
    run: transfer,
}];

const DIMS: [i64; 1] = [3000];
const BYTES: usize = 3000;

fn transfer(subject: &Subject) -> Verdict {
    let (client, devices) = subject.devices()?;
    let Some(memory) = devices[0].default_memory()? else {
        return Err(Failure::Unsupported("it does not tell memories apart".to_owned()));
    };
    let minor = subject.plugin.minor();
    let Some(element_type) = ElementType::U8.number_in(minor) else {
        return failed("bytes have no number in its version");
    };
    let mut shape = PJRT_ShapeSpec {
        struct_size: PJRT_ShapeSpec::HISTORY.handover(minor).map_or(0, |given| given.struct_size),
        extension_start: std::ptr::null_mut(),
        dims: DIMS.as_ptr(),
        num_dims: DIMS.len(),
        element_type,
    };
    let mut arguments = PJRT_Client_CreateBuffersForAsyncHostToDevice_Args::new();
    arguments.client = client.raw();
    arguments.shape_specs = &raw mut shape;
    arguments.num_shape_specs = 1;
    arguments.memory = memory.raw();
    // SAFETY: the client and its memory are alive, and there is one shape.
    unsafe { subject.slots.call_with(&mut arguments) }?;
    if arguments.transfer_manager.is_null() {
        return failed("its manager is NULL");
    }
    let manager = Manager { subject, raw: arguments.transfer_manager };
    let buffer = manager.buffer()?;
    manager.fill(&pattern(BYTES, 15))?;
    let data = buffer.read()?;
    same_bytes("what was read", &data, &pattern(BYTES, 15))?;
    Ok(format!("{BYTES} bytes in four pieces"))
}

/// A transfer manager, which is destroyed on drop.
struct Manager<'a> {
    subject: &'a Subject,
    raw: *mut PJRT_AsyncHostToDeviceTransferManager,
}

impl Drop for Manager<'_> {
    fn drop(&mut self) {
        let mut arguments = PJRT_AsyncHostToDeviceTransferManager_Destroy_Args::new();
        arguments.transfer_manager = self.raw;
        // SAFETY: it is alive, and is not used after this call.
        let _ = unsafe { self.subject.slots.call_with(&mut arguments) };
    }
}

impl<'a> Manager<'a> {
    /// Returns the array that it fills, which is available before any data arrives.
    fn buffer(&self) -> Result<RawBuffer<'a>, Failure> {
        let slots = &self.subject.slots;
        let mut count = PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args::new();
        count.transfer_manager = self.raw;
        // SAFETY: the manager is alive.
        unsafe { slots.call_with(&mut count) }?;
        expect("the number of its arrays", count.buffer_count, 1)?;
        let mut size = PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args::new();
        size.transfer_manager = self.raw;
        // SAFETY: as above, and there is one array.
        unsafe { slots.call_with(&mut size) }?;
        expect("the length of its array", size.buffer_size, BYTES)?;
        let mut arguments = PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args::new();
        arguments.transfer_manager = self.raw;
        // SAFETY: as above.
        unsafe { slots.call_with(&mut arguments) }?;
        if arguments.buffer_out.is_null() {
            return failed("its array is NULL");
        }
        Ok(RawBuffer { subject: self.subject, raw: arguments.buffer_out })
    }

    /// Passes the data in pieces of different lengths.
    fn fill(&self, data: &[u8]) -> Result<(), Failure> {
        let ends = [1, 1000, 2047, data.len()];
        let starts = [0].into_iter().chain(ends);
        for (start, end) in starts.zip(ends) {
            let piece = &data[start..end];
            let mut arguments = PJRT_AsyncHostToDeviceTransferManager_TransferData_Args::new();
            arguments.transfer_manager = self.raw;
            arguments.data = piece.as_ptr().cast();
            arguments.offset = start as i64;
            arguments.transfer_size = piece.len() as i64;
            arguments.is_last_transfer = u8::from(end == data.len());
            // SAFETY: the manager is alive, and the piece exists until its event is done.
            unsafe { self.subject.slots.call_with(&mut arguments) }?;
            wait(self.subject, arguments.done_with_h2d_transfer)?;
        }
        Ok(())
    }
}

/// An array that a call returned, which is destroyed on drop.
pub(super) struct RawBuffer<'a> {
    subject: &'a Subject,
    raw: *mut PJRT_Buffer,
}

impl<'a> RawBuffer<'a> {
    /// Takes ownership of an array that a call returned.
    ///
    /// # Safety
    /// It is alive, and owned by no other handle.
    pub(super) unsafe fn taken(subject: &'a Subject, raw: *mut PJRT_Buffer) -> Self {
        Self { subject, raw }
    }

    /// Returns its bytes on the host.
    pub(super) fn read(&self) -> Result<Vec<u8>, Failure> {
        let mut size = PJRT_Buffer_ToHostBuffer_Args::new();
        size.src = self.raw;
        // SAFETY: the buffer is alive; without memory the function only returns the required size.
        unsafe { self.subject.slots.call_with(&mut size) }?;
        wait(self.subject, size.event)?;
        // Arrays of the suite have a few thousand bytes.
        if size.dst_size > 1 << 20 {
            return failed(format!("it says that it has {} bytes", size.dst_size));
        }
        let mut data = vec![0_u8; size.dst_size];
        let mut arguments = PJRT_Buffer_ToHostBuffer_Args::new();
        arguments.src = self.raw;
        arguments.dst = data.as_mut_ptr().cast();
        arguments.dst_size = data.len();
        // SAFETY: the buffer is alive, and the memory exists until the event below is done.
        unsafe { self.subject.slots.call_with(&mut arguments) }?;
        wait(self.subject, arguments.event)?;
        Ok(data)
    }
}

impl Drop for RawBuffer<'_> {
    fn drop(&mut self) {
        let mut arguments = PJRT_Buffer_Destroy_Args::new();
        arguments.buffer = self.raw;
        // SAFETY: it is alive, and is not used after this call.
        let _ = unsafe { self.subject.slots.call_with(&mut arguments) };
    }
}
