//! Host memory that a device copies from and to, and memory that both address.
//!
//! The program cannot access host memory that a copy is using until the copy is done.

use std::{
    alloc::{Layout as AllocationLayout, alloc_zeroed, dealloc},
    ffi::c_void,
    ops::{Deref, DerefMut},
    ptr::NonNull,
    sync::Arc,
};

use super::{handle::Device, live_ranges::LiveRange};
use crate::error::Error;

/// Host memory that asynchronous copies of a device can use. Its bytes are zero at first.
///
/// A copy takes it and returns it when it is done; see [`Transfer`](super::Transfer).
#[derive(Debug)]
pub struct HostMemory {
    inner: Arc<HostAllocation>,
}

/// Shared ownership of host memory: by its handle, or by the streams that are using it.
#[derive(Debug)]
pub(crate) struct HostAllocation {
    start: NonNull<u8>,
    bytes: usize,
    source: HostMemorySource,
}

/// The origin of host memory, to which it is returned.
#[derive(Debug)]
enum HostMemorySource {
    /// The host's own allocator.
    Host,
    /// The device's plug-in, by `host_memory_allocate`.
    Pinned(Device, LiveRange),
    /// The device's plug-in, by `unified_memory_allocate`.
    Unified(Device, LiveRange),
}

// SAFETY: it is memory that this value alone frees; `HostMemory` and the streams decide who may
// read or write it.
unsafe impl Send for HostAllocation {}
// SAFETY: see above; nothing is reached through a shared reference to this struct itself.
unsafe impl Sync for HostAllocation {}

impl HostAllocation {
    /// The alignment of memory from the host's own allocator, in bytes: a page, which is the
    /// fastest for devices and direct I/O.
    const ALIGNMENT: usize = 4096;
}

impl Drop for HostAllocation {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let start = self.start.as_ptr();
        match std::mem::replace(&mut self.source, HostMemorySource::Host) {
            HostMemorySource::Host => {
                if let Ok(layout) = AllocationLayout::from_size_align(self.bytes, Self::ALIGNMENT) {
                    // SAFETY: allocated with this layout in `HostMemory::allocate`, and freed once.
                    unsafe { dealloc(start, layout) };
                }
            }
            HostMemorySource::Pinned(device, range) => {
                // Once the memory is returned, another thread may get it.
                drop(range);
                // SAFETY: the device is alive; the memory came from its plug-in; the last user is
                // this drop.
                unsafe { device.calls().deallocate_host(start.cast()) };
            }
            HostMemorySource::Unified(device, range) => {
                drop(range);
                // SAFETY: the device is alive; the memory came from its plug-in; the last user is
                // this drop.
                unsafe { device.calls().deallocate_unified(start.cast()) };
            }
        }
    }
}

impl Device {
    /// Allocates host memory that asynchronous copies can use: the plug-in's (pinned), or the
    /// host's own if the plug-in has none.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::MemoryInUse`].
    pub fn allocate_host(&self, bytes: usize) -> Result<HostMemory, Error> {
        HostMemory::allocate(self, bytes)
    }

    /// Allocates memory that host and device address alike.
    ///
    /// # Errors
    /// [`Error::Unsupported`], also if the functions exist and the platform declares that they do
    /// not work; [`Error::OutOfMemory`]; [`Error::MemoryInUse`].
    pub fn allocate_unified(&self, bytes: usize) -> Result<UnifiedMemory, Error> {
        UnifiedMemory::allocate(self, bytes)
    }
}

impl HostMemory {
    fn allocate(device: &Device, bytes: usize) -> Result<Self, Error> {
        let failed = |call| Error::OutOfMemory { call, bytes: bytes as u64 };
        if bytes == 0 {
            return Ok(Self::nothing());
        }
        if bytes > LONGEST_SLICE {
            return Err(failed("host_memory_allocate"));
        }
        // SAFETY: the device is alive.
        let given = unsafe { device.calls().allocate_host(bytes as u64) };
        let (start, source) = match given {
            Ok(memory) => {
                let (start, range) = claim("host_memory_allocate", memory, bytes)?;
                (start, HostMemorySource::Pinned(device.clone(), range))
            }
            Err(_unsupported) => {
                let layout = AllocationLayout::from_size_align(bytes, HostAllocation::ALIGNMENT)
                    .map_err(|_| failed("the host's allocator"))?;
                // SAFETY: the layout is not of size zero.
                let start = NonNull::new(unsafe { alloc_zeroed(layout) });
                (start.ok_or_else(|| failed("the host's allocator"))?, HostMemorySource::Host)
            }
        };
        Ok(Self { inner: Arc::new(HostAllocation { start, bytes, source }) })
    }

    /// Returns memory of no bytes, for which no allocator is called.
    fn nothing() -> Self {
        let allocation =
            HostAllocation { start: NonNull::dangling(), bytes: 0, source: HostMemorySource::Host };
        Self { inner: Arc::new(allocation) }
    }

    /// Returns true if the plug-in allocated it, so that copies need no intermediate buffer.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        !matches!(self.inner.source, HostMemorySource::Host)
    }

    /// Keeps the memory allocated.
    pub(crate) fn keep(&self) -> Arc<HostAllocation> {
        Arc::clone(&self.inner)
    }

    /// Address of the first byte, for a copy.
    pub(crate) fn start(&self) -> *mut c_void {
        self.inner.start.as_ptr().cast()
    }
}

/// The largest possible slice, in bytes: offsets into it are signed.
const LONGEST_SLICE: usize = isize::MAX as usize;

/// Takes ownership of `bytes` bytes, at most [`LONGEST_SLICE`], that a plug-in allocated, and
/// zeroes them.
fn claim(
    call: &'static str,
    memory: *mut c_void,
    bytes: usize,
) -> Result<(NonNull<u8>, LiveRange), Error> {
    let start = NonNull::new(memory.cast::<u8>())
        .ok_or(Error::OutOfMemory { call, bytes: bytes as u64 })?;
    // A range that has an owner already is not returned: that would free memory in use.
    let range = LiveRange::claim(call, start, bytes)?;
    // SAFETY: the plug-in gave `bytes` bytes, and no other value has any of them. Zeroed, because
    // plug-ins need not initialise them.
    unsafe { start.as_ptr().write_bytes(0, bytes) };
    Ok((start, range))
}

impl Deref for HostMemory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `bytes` initialised bytes; copies that write to them hold the `HostMemory` itself
        // until they are done, so that there are no writes while this reference exists.
        unsafe { std::slice::from_raw_parts(self.inner.start.as_ptr(), self.inner.bytes) }
    }
}

impl DerefMut for HostMemory {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; copies that read hold the `HostMemory`, too, so that this
        // reference is the only one.
        unsafe { std::slice::from_raw_parts_mut(self.inner.start.as_ptr(), self.inner.bytes) }
    }
}

/// Memory that the host and all devices of a platform address alike. Its bytes are zero at first.
///
/// Computations on a device use it in place; to copy it to or from other memory of a device with a
/// stream, convert it to host memory ([`Self::into_host_memory`]).
#[derive(Debug)]
pub struct UnifiedMemory {
    memory: HostMemory,
}

impl UnifiedMemory {
    fn allocate(device: &Device, bytes: usize) -> Result<Self, Error> {
        const CALL: &str = "unified_memory_allocate";
        if !device.registration().facts.supports_unified_memory {
            // Functions that exist nevertheless are not called: the platform declares that they do
            // not work (004:254).
            return Err(Error::Unsupported { function: CALL });
        }
        if bytes == 0 {
            return Ok(Self { memory: HostMemory::nothing() });
        }
        if bytes > LONGEST_SLICE {
            return Err(Error::OutOfMemory { call: CALL, bytes: bytes as u64 });
        }
        // SAFETY: the device is alive.
        let given = unsafe { device.calls().allocate_unified(bytes as u64) }?;
        let (start, range) = claim(CALL, given, bytes)?;
        let source = HostMemorySource::Unified(device.clone(), range);
        let memory = HostMemory { inner: Arc::new(HostAllocation { start, bytes, source }) };
        Ok(Self { memory })
    }

    /// Converts it into host memory, which copies of streams take and return. It is returned to the
    /// plug-in as unified memory.
    #[must_use]
    pub fn into_host_memory(self) -> HostMemory {
        self.memory
    }
}

impl Deref for UnifiedMemory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory
    }
}

impl DerefMut for UnifiedMemory {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory
    }
}
