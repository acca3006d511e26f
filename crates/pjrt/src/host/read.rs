//! Reads arrays of devices into host memory.

use serdes_abi::pjrt::args::*;

use super::{
    buffer::Buffer,
    event::Event,
    host_memory::HostMemory,
    layout_conversion::LayoutConversion,
    transfer::{Endpoint, Transfer},
};
use crate::PjrtError;

/// Returns the order of dimensions on the host, whose last dimension changes fastest.
fn row_major(rank: usize) -> Vec<i64> {
    (0..rank as i64).rev().collect()
}

/// # Errors
/// [`PjrtError::OutOfHostMemory`].
fn room_for(bytes: usize) -> Result<Vec<u8>, PjrtError> {
    let mut data = Vec::new();
    data.try_reserve_exact(bytes).map_err(|_| PjrtError::OutOfHostMemory { bytes })?;
    data.resize(bytes, 0);
    Ok(data)
}

impl Buffer {
    /// Reads the whole array, dense and row-major, and waits for it.
    ///
    /// # Errors
    /// As [`Self::host_bytes`] and [`Self::read_into`].
    pub fn read(&self) -> Result<Vec<u8>, PjrtError> {
        let bytes = self.host_bytes()?;
        let mut data = room_for(bytes)?;
        self.read_into(&mut data)?;
        Ok(data)
    }

    /// Fills `data`, whose length must be [`host_bytes`](Self::host_bytes), with the whole array,
    /// dense and row-major, and waits for it.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] if `data` has another length; [`PjrtError::Status`] from the
    /// plug-in, for example if the buffer was deleted.
    pub fn read_into(&self, data: &mut [u8]) -> Result<(), PjrtError> {
        let expected = self.host_bytes()?;
        if data.len() != expected {
            return Err(wrong_length(data.len(), expected.to_string()));
        }
        match self.layout_conversion()? {
            Some(conversion) => self.read_converted(&conversion, data),
            None => self.read_in_order(&row_major(self.dims()?.len()), data),
        }
    }

    /// Reads the array in its order on the device, and fills `data` with it in row-major order.
    fn read_converted(
        &self,
        conversion: &LayoutConversion,
        data: &mut [u8],
    ) -> Result<(), PjrtError> {
        let mut in_device_order = room_for(data.len())?;
        self.read_in_order(&conversion.minor_to_major, &mut in_device_order)?;
        match conversion.write_row_major(&in_device_order, data) {
            Some(()) => Ok(()),
            // The plug-in has reported a different size of the array than before.
            None => self.read_in_order(&row_major(self.dims()?.len()), data),
        }
    }

    /// Fills `data`, which is as long as the array, with its elements in an order of dimensions,
    /// and waits.
    fn read_in_order(&self, minor_to_major: &[i64], data: &mut [u8]) -> Result<(), PjrtError> {
        let (start, bytes) = (data.as_mut_ptr(), data.len());
        // SAFETY: the memory has the declared length, and is valid until the event is done, which
        // is waited for here.
        let event = unsafe { self.start_reading(start, bytes, minor_to_major) }?;
        event.map_or(Ok(()), |event| event.wait())
    }

    /// Begins to fill `target`, which has at least [`host_bytes`](Self::host_bytes) bytes, with the
    /// whole array, dense and row-major. If the device has the array in another order, this waits
    /// for it.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] if `target` is shorter; [`PjrtError::Status`] from the
    /// plug-in.
    pub fn begin_read(&self, target: HostMemory) -> Result<Transfer, PjrtError> {
        let bytes = self.host_bytes()?;
        if target.len() < bytes {
            return Err(wrong_length(target.len(), format!("{bytes} and more")));
        }
        let endpoint = Endpoint::Buffer { _handle: self.handle().clone() };
        if let Some(conversion) = self.layout_conversion()? {
            let mut data = room_for(bytes)?;
            self.read_converted(&conversion, &mut data)?;
            // SAFETY: the target has at least `bytes` bytes, is borrowed exclusively, and does not
            // overlap `data`.
            unsafe {
                target.as_start().cast::<u8>().copy_from_nonoverlapping(data.as_ptr(), bytes)
            };
            return Ok(Transfer::new(None, target, endpoint));
        }
        let order = row_major(self.dims()?.len());
        // SAFETY: the memory is long enough, and the transfer keeps it until the event is done.
        let event = unsafe { self.start_reading(target.as_start().cast(), bytes, &order) }?;
        Ok(Transfer::new(event, target, endpoint))
    }

    /// # Safety
    /// There are `bytes` bytes at `start` until the returned event is done; if there is none, until
    /// this returns.
    unsafe fn start_reading(
        &self,
        start: *mut u8,
        bytes: usize,
        minor_to_major: &[i64],
    ) -> Result<Option<Event>, PjrtError> {
        let mut layout = PJRT_Buffer_MemoryLayout::of_order(minor_to_major);
        let (client, raw) = (self.handle().client(), self.handle().raw());
        // SAFETY: the buffer is alive, the layout is valid for the call, and the caller guarantees
        // the memory.
        let begun = unsafe {
            client.table().ask(|call: &mut PJRT_Buffer_ToHostBuffer_Args| {
                call.src = raw;
                if minor_to_major.len() > 1 {
                    call.host_layout = &raw mut layout;
                }
                call.dst = start.cast();
                call.dst_size = bytes;
            })
        }?;
        // SAFETY: a successful call returns ownership of this event, or none.
        Ok(unsafe { Event::taken(client, begun.event) })
    }

    /// Fills `data` with the device's own bytes from `offset`, and waits for it. They are packed,
    /// padded and ordered in the device's own layout.
    ///
    /// # Errors
    /// [`PjrtError::OutOfRange`] for bytes that are not inside the buffer; [`PjrtError::Missing`]
    /// for a plug-in before 0.57.
    pub fn read_raw(&self, offset: usize, data: &mut [u8]) -> Result<(), PjrtError> {
        // SAFETY: the memory is valid until the event is done, which is waited for here.
        let event = unsafe { self.start_reading_raw(offset, data.as_mut_ptr(), data.len()) }?;
        event.map_or(Ok(()), |event| event.wait())
    }

    /// Begins to fill the first `bytes` bytes of `target` with the device's own bytes from
    /// `offset`, like [`Self::read_raw`].
    ///
    /// # Errors
    /// As [`Self::read_raw`]; [`PjrtError::InvalidArgument`] if `target` is shorter.
    pub fn begin_read_raw(
        &self,
        offset: usize,
        bytes: usize,
        target: HostMemory,
    ) -> Result<Transfer, PjrtError> {
        if target.len() < bytes {
            return Err(wrong_length(target.len(), format!("{bytes} and more")));
        }
        // SAFETY: the memory is long enough, and the transfer keeps it until the event is done.
        let event = unsafe { self.start_reading_raw(offset, target.as_start().cast(), bytes) }?;
        let endpoint = Endpoint::Buffer { _handle: self.handle().clone() };
        Ok(Transfer::new(event, target, endpoint))
    }

    /// # Safety
    /// There are `bytes` bytes at `start` until the returned event is done; if there is none, until
    /// this returns.
    unsafe fn start_reading_raw(
        &self,
        offset: usize,
        start: *mut u8,
        bytes: usize,
    ) -> Result<Option<Event>, PjrtError> {
        let (from, length) = self.raw_range(offset, bytes)?;
        let (client, raw) = (self.handle().client(), self.handle().raw());
        // SAFETY: the buffer is alive, and has these bytes by its own size; the caller guarantees
        // the memory.
        let begun = unsafe {
            client.table().ask(|call: &mut PJRT_Buffer_CopyRawToHost_Args| {
                call.buffer = raw;
                call.dst = start.cast();
                call.offset = from;
                call.transfer_size = length;
            })
        }?;
        // SAFETY: a successful call returns ownership of this event, or none.
        Ok(unsafe { Event::taken(client, begun.event) })
    }

    /// Returns a range of the device's own bytes in the form that plug-ins take.
    pub(super) fn raw_range(&self, offset: usize, bytes: usize) -> Result<(i64, i64), PjrtError> {
        let size = self.device_bytes()?;
        let end = offset.checked_add(bytes).filter(|&end| end <= size);
        match (end, i64::try_from(offset), i64::try_from(bytes)) {
            (Some(_), Ok(from), Ok(length)) => Ok((from, length)),
            _ => Err(PjrtError::OutOfRange {
                what: "buffer",
                offset: offset as i128,
                bytes: bytes as u128,
                size: size as u64,
            }),
        }
    }

    /// Returns true if the plug-in has the functions for [`Self::read_raw`]; they may still return
    /// UNIMPLEMENTED.
    #[must_use]
    pub fn has_raw_reads(&self) -> bool {
        self.handle().client().table().require::<PJRT_Buffer_CopyRawToHost_Args>().is_ok()
    }
}

fn wrong_length(found: usize, expected: String) -> PjrtError {
    PjrtError::InvalidArgument {
        what: "the memory that is read into",
        found: format!("{found} bytes"),
        expected,
    }
}
