//! Memory of a device.
//!
//! It is only accessed through copies. The types guarantee that it is alive; they do not order
//! accesses to it: if two streams write to the same bytes at once, the result is unspecified, as on
//! every device.

use std::{mem::MaybeUninit, ptr, sync::Arc};

use serdes_abi::SP_DeviceMemoryBase;

use super::handle::{Device, Strategy};
use crate::{best_fit::TakenChunk, border::StructMemory, error::Error};

/// Returns a number of bytes as a size on the host.
pub(crate) fn host_size(bytes: u64) -> Result<usize, Error> {
    usize::try_from(bytes).map_err(|_| Error::OutOfMemory { call: "the host's allocator", bytes })
}

/// Memory on a device. Freed when it is dropped and no stream uses it any more.
#[derive(Debug)]
pub struct DeviceMemory {
    inner: Arc<DeviceAllocation>,
}

/// Shared ownership of device memory: by its handle, and by the streams that are using it.
#[derive(Debug)]
pub(crate) struct DeviceAllocation {
    base: SP_DeviceMemoryBase,
    source: DeviceMemorySource,
}

/// The origin of device memory, to which it is returned. The device is reached through it, so that
/// a part of a region counts one reference instead of three.
#[derive(Debug)]
enum DeviceMemorySource {
    /// The plug-in.
    Device(Device),
    /// A best-fit allocator, by the drop of the chunk.
    BestFit(TakenChunk),
}

impl DeviceAllocation {
    #[inline]
    fn device(&self) -> &Device {
        match &self.source {
            DeviceMemorySource::Device(device) => device,
            DeviceMemorySource::BestFit(chunk) => chunk.device(),
        }
    }
}

// SAFETY: the struct is plain data that is only read; its pointers mean something to the plug-in
// alone, whose allocation and copy functions the C API lets any thread call.
unsafe impl Send for DeviceAllocation {}
// SAFETY: see above.
unsafe impl Sync for DeviceAllocation {}

impl Drop for DeviceAllocation {
    fn drop(&mut self) {
        // For no bytes, nothing was allocated.
        if let DeviceMemorySource::Device(device) = &self.source
            && !self.base.opaque.is_null()
        {
            let mut part = MemoryRange::new(self.base);
            // SAFETY: the device is alive; the memory came from its allocator; the last user is
            // this drop.
            unsafe { device.calls().deallocate(part.as_mut_ptr()) };
        }
    }
}

impl Device {
    /// Allocates device memory of `bytes` bytes with unspecified content.
    ///
    /// If the platform asks for the host's best-fit allocator
    /// ([`Platform::uses_bfc_allocator`](crate::Platform::uses_bfc_allocator)), the memory comes
    /// from it ([`Self::allocator`]), else from the plug-in itself.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::Unsupported`].
    pub fn allocate(&self, bytes: u64) -> Result<DeviceMemory, Error> {
        match &self.strategy {
            Strategy::Plugin => DeviceMemory::allocate(self, bytes),
            Strategy::BestFit(allocator) => allocator.allocate(bytes),
            Strategy::InsideBestFit => self.inner.allocator(self).allocate(bytes),
        }
    }
}

impl DeviceMemory {
    pub(crate) fn allocate(device: &Device, bytes: u64) -> Result<Self, Error> {
        let mut base = SP_DeviceMemoryBase {
            struct_size: SP_DeviceMemoryBase::STRUCT_SIZE,
            ext: ptr::null_mut(),
            opaque: ptr::null_mut(),
            size: 0,
            payload: 0,
        };
        if bytes > 0 {
            base = allocate_base(device, bytes)?;
        }
        let inner = DeviceAllocation { base, source: DeviceMemorySource::Device(device.clone()) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Creates memory that is a part of an allocator's region.
    pub(crate) fn of_chunk(base: SP_DeviceMemoryBase, chunk: TakenChunk) -> Self {
        Self {
            inner: Arc::new(DeviceAllocation { base, source: DeviceMemorySource::BestFit(chunk) }),
        }
    }

    /// Returns the description of `bytes` bytes at `offset`, which are inside this memory.
    pub(crate) fn base_of_part(&self, offset: u64, bytes: u64) -> SP_DeviceMemoryBase {
        let base = self.inner.base;
        // The offset is inside an allocation that fits into the address space.
        let opaque = base.opaque.cast::<u8>().wrapping_add(offset as usize).cast();
        SP_DeviceMemoryBase { opaque, size: bytes, ..base }
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.inner.base.size
    }

    /// Returns the device that the memory is on.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.inner.device()
    }

    /// Returns the number that identifies its first byte on the device; it may not be an address of
    /// this process.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.inner.base.opaque as u64
    }

    /// Keeps the memory allocated.
    pub(crate) fn keep(&self) -> Arc<DeviceAllocation> {
        Arc::clone(&self.inner)
    }

    /// Returns the range at `offset`, of which `bytes` will be used, on this device.
    // Inlined with its callees: a result of the size of a `MemoryRange` is otherwise moved through
    // memory twice, which took as long as the rest of a small copy.
    #[inline]
    pub(crate) fn part(
        &self,
        device: &Device,
        offset: u64,
        bytes: u64,
    ) -> Result<MemoryRange, Error> {
        if !self.inner.device().is(device) {
            return Err(Error::OtherDevice { what: "device memory" });
        }
        self.checked_part(offset, bytes)
    }

    /// Like [`Self::part`], on any device of the same plug-in.
    #[inline]
    pub(crate) fn part_beside(
        &self,
        device: &Device,
        offset: u64,
        bytes: u64,
    ) -> Result<MemoryRange, Error> {
        if !self.inner.device().is_beside(device) {
            return Err(Error::OtherDevice { what: "device memory" });
        }
        self.checked_part(offset, bytes)
    }

    #[inline]
    fn checked_part(&self, offset: u64, bytes: u64) -> Result<MemoryRange, Error> {
        let base = self.inner.base;
        let size = base.size;
        if offset.checked_add(bytes).is_none_or(|end| end > size) {
            return Err(Error::OutOfRange { what: "device memory", offset, bytes, size });
        }
        // An address on the device: only arithmetic, like hosts do for parts of an allocation.
        let opaque = base.opaque.cast::<u8>().wrapping_add(host_size(offset)?).cast();
        Ok(MemoryRange::new(SP_DeviceMemoryBase { opaque, size: size - offset, ..base }))
    }
}

/// Requests memory from the plug-in and checks the result.
fn allocate_base(device: &Device, bytes: u64) -> Result<SP_DeviceMemoryBase, Error> {
    let filled = StructMemory::new(SP_DeviceMemoryBase::STRUCT_SIZE);
    let memory = filled.as_ptr::<SP_DeviceMemoryBase>();
    let calls = device.calls();
    // SAFETY: the device is alive; the struct's memory is zeroed and longer than the struct.
    unsafe { calls.allocate(bytes, memory) }?;
    // SAFETY: it holds a whole struct, all of whose fields hold any bytes; no call uses it now.
    let mut base = unsafe { memory.read() };
    if base.opaque.is_null() {
        return Err(Error::OutOfMemory { call: "allocate", bytes });
    }
    base.struct_size = SP_DeviceMemoryBase::STRUCT_SIZE;
    let size = std::mem::replace(&mut base.size, bytes);
    // A plug-in that writes no size has allocated the requested one.
    if size != 0 && size < bytes {
        let mut part = MemoryRange::new(SP_DeviceMemoryBase { size, ..base });
        // SAFETY: the memory was allocated just now and is not in use.
        unsafe { calls.deallocate(part.as_mut_ptr()) };
        return Err(Error::BadStruct {
            call: "allocate",
            structure: "SP_DeviceMemoryBase",
            field: "size",
            found: size.to_string(),
            expected: "at least the bytes asked for",
        });
    }
    Ok(base)
}

/// The struct that describes device memory, or a part of it, to a plug-in for one call.
///
/// It is followed by space for fields of a newer header.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct MemoryRange {
    base: SP_DeviceMemoryBase,
    room: MaybeUninit<[u8; 256]>,
}

impl MemoryRange {
    #[inline]
    fn new(base: SP_DeviceMemoryBase) -> Self {
        Self { base, room: MaybeUninit::uninit() }
    }

    pub(crate) fn as_ptr(&self) -> *const SP_DeviceMemoryBase {
        ptr::from_ref(self).cast()
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut SP_DeviceMemoryBase {
        ptr::from_mut(self).cast()
    }
}
