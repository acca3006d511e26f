//! Host memory for transfers: owned, aligned, and if the plug-in supports it mapped, so that
//! devices access it directly.

use std::{
    alloc::{self, Layout},
    ffi::c_void,
    ops::{Deref, DerefMut},
    ptr::NonNull,
    slice,
    sync::Arc,
};

use serdes_abi::pjrt::args::*;

use super::client::{Client, ClientHandle};
use crate::PjrtError;

/// The alignment of host memory in bytes. It is a page on every platform that is supported by
/// default, which is the unit of mapping for devices, and at least the 64 bytes that plug-ins
/// require of memory that they use without a copy.
const ALIGNMENT: usize = 4096;

/// Memory of the host, which a transfer takes and returns.
///
/// It is zero at first, begins at a multiple of 4096, and is mapped for the devices of its client
/// if the plug-in supports that.
#[derive(Debug)]
pub struct HostMemory {
    start: NonNull<u8>,
    layout: Layout,
    bytes: usize,
    /// The client for which it is mapped.
    mapped: Option<Arc<ClientHandle>>,
}

// SAFETY: it owns plain bytes.
unsafe impl Send for HostMemory {}
// SAFETY: as above; nothing is written through a shared reference.
unsafe impl Sync for HostMemory {}

impl Client {
    /// Allocates host memory for transfers, mapped for the client's devices if the plug-in supports
    /// that.
    ///
    /// # Errors
    /// [`PjrtError::OutOfHostMemory`] if there is not enough.
    pub fn allocate_host(&self, bytes: usize) -> Result<HostMemory, PjrtError> {
        let mut memory = HostMemory::plain(bytes)?;
        let handle = self.handle();
        // Memory that cannot be unmapped could never be freed.
        let unmaps = handle.table().require::<PJRT_Client_DmaUnmap_Args>().is_ok();
        if bytes > 0 && unmaps && !handle.mapping.is_refused() {
            let (raw, start) = (handle.raw(), memory.start.as_ptr().cast::<c_void>());
            // SAFETY: the client is alive; the memory exists until it is unmapped, which happens
            // before it is freed.
            let mapped = unsafe {
                handle.table().ask(|call: &mut PJRT_Client_DmaMap_Args| {
                    call.client = raw;
                    call.data = start;
                    call.size = bytes;
                })
            };
            match mapped {
                Ok(_) => memory.mapped = Some(Arc::clone(handle)),
                Err(error) if error.is_unsupported() => handle.mapping.refuse(),
                // For example if the limit of locked memory is reached; this allocation is then not
                // mapped.
                Err(_) => {}
            }
        }
        Ok(memory)
    }
}

impl HostMemory {
    /// Allocates zeroed memory that is not mapped.
    pub(super) fn plain(bytes: usize) -> Result<Self, PjrtError> {
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT);
        let layout = layout.map_err(|_| PjrtError::OutOfHostMemory { bytes })?;
        // SAFETY: the layout has a size that is not zero.
        let start = unsafe { alloc::alloc_zeroed(layout) };
        let start = NonNull::new(start).ok_or(PjrtError::OutOfHostMemory { bytes })?;
        Ok(Self { start, layout, bytes, mapped: None })
    }

    /// Returns true if the memory is mapped for the client's devices.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        self.mapped.is_some()
    }

    pub(super) fn as_start(&self) -> *mut c_void {
        self.start.as_ptr().cast()
    }
}

impl Deref for HostMemory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the memory has `bytes` bytes, all of which are initialised; a mutable reference
        // is exclusive, and a transfer owns the whole.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for HostMemory {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if let Some(client) = self.mapped.take() {
            let (raw, start) = (client.raw(), self.as_start());
            // SAFETY: the client is alive, and the memory was mapped for it.
            let unmapped = unsafe {
                client.table().ask(|call: &mut PJRT_Client_DmaUnmap_Args| {
                    call.client = raw;
                    call.data = start;
                })
            };
            if unmapped.is_err() {
                // A device may still access the memory, so it is leaked.
                return;
            }
        }
        // SAFETY: it was allocated with this layout, and no reference is left.
        unsafe { alloc::dealloc(self.start.as_ptr(), self.layout) };
    }
}
