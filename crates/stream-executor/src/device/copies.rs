//! Synchronous copies between the host and a device, and on a device.

use super::{
    handle::Device,
    memory::{DeviceMemory, host_size},
};
use crate::error::Error;

impl Device {
    /// Allocates device memory and copies `bytes` into it.
    ///
    /// # Errors
    /// As [`Self::allocate`] and [`Self::copy_to_device`].
    pub fn upload(&self, bytes: &[u8]) -> Result<DeviceMemory, Error> {
        let memory = self.allocate(bytes.len() as u64)?;
        self.copy_to_device(bytes, &memory, 0)?;
        Ok(memory)
    }

    /// Copies the whole of `memory` to the host.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the host does not have enough memory; as [`Self::copy_to_host`].
    pub fn download(&self, memory: &DeviceMemory) -> Result<Vec<u8>, Error> {
        let bytes = memory.size();
        let mut host = Vec::new();
        let length = host_size(bytes)?;
        host.try_reserve_exact(length)
            .map_err(|_| Error::OutOfMemory { call: "the host's allocator", bytes })?;
        host.resize(length, 0);
        self.copy_to_host(memory, 0, &mut host)?;
        Ok(host)
    }

    /// Copies `source` into `target` at byte `offset`, and waits until it is done.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; [`Error::OtherDevice`]; what the plug-in reports.
    pub fn copy_to_device(
        &self,
        source: &[u8],
        target: &DeviceMemory,
        offset: u64,
    ) -> Result<(), Error> {
        let mut part = target.part(self, offset, source.len() as u64)?;
        if source.is_empty() {
            return Ok(());
        }
        // SAFETY: the device is alive; the part lies in its memory; the source is valid until the
        // call returns.
        unsafe {
            self.calls().sync_memcpy_htod(
                part.as_mut_ptr(),
                source.as_ptr().cast(),
                source.len() as u64,
            )
        }
    }

    /// Copies from `source`, beginning at byte `offset`, into `target`, and waits until it is done.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; [`Error::OtherDevice`]; what the plug-in reports.
    pub fn copy_to_host(
        &self,
        source: &DeviceMemory,
        offset: u64,
        target: &mut [u8],
    ) -> Result<(), Error> {
        let part = source.part(self, offset, target.len() as u64)?;
        if target.is_empty() {
            return Ok(());
        }
        // SAFETY: the device is alive; the part lies in its memory; the target is ours alone until
        // the call returns.
        unsafe {
            self.calls().sync_memcpy_dtoh(
                target.as_mut_ptr().cast(),
                part.as_ptr(),
                target.len() as u64,
            )
        }
    }

    /// Copies `bytes` bytes of device memory to device memory, and waits until it is done. The
    /// source may be on another device of the same plug-in.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; [`Error::OtherDevice`]; [`Error::Unsupported`]; what the plug-in
    /// reports.
    pub fn copy_on_device(
        &self,
        source: &DeviceMemory,
        source_offset: u64,
        target: &DeviceMemory,
        target_offset: u64,
        bytes: u64,
    ) -> Result<(), Error> {
        let from = source.part_beside(self, source_offset, bytes)?;
        let mut to = target.part(self, target_offset, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the device is alive; both parts lie in living memory.
        unsafe { self.calls().sync_memcpy_dtod(to.as_mut_ptr(), from.as_ptr(), bytes) }
    }
}
