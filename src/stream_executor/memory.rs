//! Memory of a device, memory of the host that it copies from and to, and memory that both address.
//!
//! Device memory is only ever reached through copies. Types say that it is alive; they do not order accesses to it: two streams that write
//! to the same bytes at once leave whatever they leave there, as on every device. Host memory that a copy is using is out of the program's
//! reach until the copy is done.

use std::alloc::{Layout as AllocationLayout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use serdes_abi::SP_DeviceMemoryBase;

use super::bfc::BfcBlock;
use super::block::Block;
use super::device::Device;
use super::error::Error;
use super::live::LiveRange;

/// Memory on a device. Freed when it is dropped and no stream is using it any more.
#[derive(Debug)]
pub struct DeviceMemory {
    inner: Arc<DeviceAllocation>,
}

/// What keeps device memory allocated: the handle, and the streams that are using it.
#[derive(Debug)]
pub(crate) struct DeviceAllocation {
    base: SP_DeviceMemoryBase,
    owner: Owner,
}

/// Whom memory goes back to. Its device is reached through it, so that a part of a region counts one reference and not three.
#[derive(Debug)]
enum Owner {
    /// The plug-in.
    Device(Device),
    /// An allocator, by the drop of the block.
    Block(BfcBlock),
}

impl DeviceAllocation {
    #[inline]
    fn device(&self) -> &Device {
        match &self.owner {
            Owner::Device(device) => device,
            Owner::Block(block) => block.device(),
        }
    }
}

// SAFETY: the struct is plain data that is only read; its pointers mean something to the plug-in alone, whose allocation and copy
// functions the C API lets any thread call.
unsafe impl Send for DeviceAllocation {}
// SAFETY: see above.
unsafe impl Sync for DeviceAllocation {}

impl Drop for DeviceAllocation {
    fn drop(&mut self) {
        // Nothing was allocated for no bytes.
        if let Owner::Device(device) = &self.owner
            && !self.base.opaque.is_null()
        {
            let mut part = Part::new(self.base);
            let registration = device.registration();
            let calls = device.calls();
            // SAFETY: the device is alive; the memory came from its allocator; the last user is this drop.
            unsafe {
                registration.allocation.deallocate(
                    &registration.executor,
                    calls.device,
                    part.as_mut_ptr(),
                );
            }
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
        let inner = DeviceAllocation { base, owner: Owner::Device(device.clone()) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// A part of a region of an allocator.
    pub(crate) fn of_block(base: SP_DeviceMemoryBase, block: BfcBlock) -> Self {
        Self { inner: Arc::new(DeviceAllocation { base, owner: Owner::Block(block) }) }
    }

    /// The description of `bytes` bytes from `offset` on, which lie inside this memory.
    pub(crate) fn base_of_part(&self, offset: u64, bytes: u64) -> SP_DeviceMemoryBase {
        let base = self.inner.base;
        // Inside of an allocation that fits into the address space, so that the offset does.
        let opaque = base.opaque.cast::<u8>().wrapping_add(offset as usize).cast();
        SP_DeviceMemoryBase { opaque, size: bytes, ..base }
    }

    /// Its size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.inner.base.size
    }

    /// The device that it is on.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.inner.device()
    }

    /// The number that stands for its first byte on the device; it may not be an address of this process.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.inner.base.opaque as u64
    }

    /// Keeps the memory allocated.
    pub(crate) fn keep(&self) -> Arc<DeviceAllocation> {
        Arc::clone(&self.inner)
    }

    /// The bytes from `offset` on, of which `bytes` will be used, on that device.
    pub(crate) fn part(&self, device: &Device, offset: u64, bytes: u64) -> Result<Part, Error> {
        if !self.inner.device().is(device) {
            return Err(Error::OtherDevice { what: "device memory" });
        }
        self.checked_part(offset, bytes)
    }

    /// As [`Self::part`], on any device of the same plug-in.
    pub(crate) fn part_beside(
        &self,
        device: &Device,
        offset: u64,
        bytes: u64,
    ) -> Result<Part, Error> {
        if !self.inner.device().is_beside(device) {
            return Err(Error::OtherDevice { what: "device memory" });
        }
        self.checked_part(offset, bytes)
    }

    fn checked_part(&self, offset: u64, bytes: u64) -> Result<Part, Error> {
        let base = self.inner.base;
        let size = base.size;
        if offset.checked_add(bytes).is_none_or(|end| end > size) {
            return Err(Error::OutOfRange { what: "device memory", offset, bytes, size });
        }
        // An address on the device: arithmetic only, as hosts do it for parts of an allocation.
        let opaque = base.opaque.cast::<u8>().wrapping_add(host_size(offset)?).cast();
        Ok(Part::new(SP_DeviceMemoryBase { opaque, size: size - offset, ..base }))
    }
}

/// Asks the plug-in for memory and checks what it gives.
fn allocate_base(device: &Device, bytes: u64) -> Result<SP_DeviceMemoryBase, Error> {
    let registration = device.registration();
    let block = Block::new(SP_DeviceMemoryBase::STRUCT_SIZE);
    let memory = block.as_ptr::<SP_DeviceMemoryBase>();
    let calls = device.calls();
    // SAFETY: the device is alive; the block is zeroed and longer than the struct.
    unsafe {
        registration.allocation.allocate(&registration.executor, calls.device, bytes, memory)
    }?;
    // SAFETY: the block holds a whole struct, all of whose fields hold any bytes; nobody else uses it now.
    let mut base = unsafe { memory.read() };
    if base.opaque.is_null() {
        return Err(Error::OutOfMemory { call: "allocate", bytes });
    }
    base.struct_size = SP_DeviceMemoryBase::STRUCT_SIZE;
    let size = std::mem::replace(&mut base.size, bytes);
    // A plug-in that writes no size has given what was asked for.
    if size != 0 && size < bytes {
        let mut part = Part::new(SP_DeviceMemoryBase { size, ..base });
        // SAFETY: the memory was allocated just now and is used by nobody.
        unsafe {
            registration.allocation.deallocate(
                &registration.executor,
                calls.device,
                part.as_mut_ptr(),
            );
        }
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

/// The struct that describes (a part of) device memory to a plug-in for one call.
///
/// Behind it is room for what a newer header may have there.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Part {
    base: SP_DeviceMemoryBase,
    room: MaybeUninit<[u8; 256]>,
}

impl Part {
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

/// A number of bytes as a size on the host.
pub(crate) fn host_size(bytes: u64) -> Result<usize, Error> {
    usize::try_from(bytes).map_err(|_| Error::OutOfMemory { call: "the host's allocator", bytes })
}

/// Host memory that asynchronous copies of a device can use. Its bytes are zero at first.
///
/// A copy takes it and gives it back when it is done; see [`Transfer`](super::Transfer).
#[derive(Debug)]
pub struct HostMemory {
    inner: Arc<HostAllocation>,
}

/// What keeps host memory allocated: the handle, or the streams that are using it.
#[derive(Debug)]
pub(crate) struct HostAllocation {
    start: NonNull<u8>,
    bytes: usize,
    source: Source,
}

/// Where host memory comes from and goes back to.
#[derive(Debug)]
enum Source {
    /// The host's own allocator.
    Host,
    /// The device's plug-in, by `host_memory_allocate`.
    Pinned(Device, LiveRange),
    /// The device's plug-in, by `unified_memory_allocate`.
    Unified(Device, LiveRange),
}

// SAFETY: it is memory that this value alone frees; whoever may read or write it is decided by `HostMemory` and the streams.
unsafe impl Send for HostAllocation {}
// SAFETY: see above; nothing is reached through a shared reference to this struct itself.
unsafe impl Sync for HostAllocation {}

impl HostAllocation {
    /// The alignment of memory from the host's own allocator, in bytes: a page, which devices and the system's direct I/O like best.
    const ALIGNMENT: usize = 4096;
}

impl Drop for HostAllocation {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let start = self.start.as_ptr();
        match std::mem::replace(&mut self.source, Source::Host) {
            Source::Host => {
                if let Ok(layout) = AllocationLayout::from_size_align(self.bytes, Self::ALIGNMENT) {
                    // SAFETY: allocated with this layout in `HostMemory::allocate`, and freed once.
                    unsafe { dealloc(start, layout) };
                }
            }
            Source::Pinned(device, range) => {
                // Once it has gone back, another thread may get it.
                drop(range);
                let (registration, calls) = (device.registration(), device.calls());
                // SAFETY: the device is alive; the memory came from its plug-in; the last user is this drop.
                unsafe {
                    registration.allocation.deallocate_host(
                        &registration.executor,
                        calls.device,
                        start.cast(),
                    );
                }
            }
            Source::Unified(device, range) => {
                drop(range);
                let (registration, calls) = (device.registration(), device.calls());
                // SAFETY: the device is alive; the memory came from its plug-in; the last user is this drop.
                unsafe {
                    registration.allocation.deallocate_unified(
                        &registration.executor,
                        calls.device,
                        start.cast(),
                    );
                }
            }
        }
    }
}

impl HostMemory {
    pub(crate) fn allocate(device: &Device, bytes: usize) -> Result<Self, Error> {
        let failed = |call| Error::OutOfMemory { call, bytes: bytes as u64 };
        if bytes == 0 {
            return Ok(Self::nothing());
        }
        if bytes > LONGEST_SLICE {
            return Err(failed("host_memory_allocate"));
        }
        let registration = device.registration();
        // SAFETY: the device is alive.
        let given = unsafe {
            registration.allocation.allocate_host(
                &registration.executor,
                device.calls().device,
                bytes as u64,
            )
        };
        let (start, source) = match given {
            Ok(memory) => {
                let (start, range) = claim("host_memory_allocate", memory, bytes)?;
                (start, Source::Pinned(device.clone(), range))
            }
            Err(_unsupported) => {
                let layout = AllocationLayout::from_size_align(bytes, HostAllocation::ALIGNMENT)
                    .map_err(|_| failed("the host's allocator"))?;
                // SAFETY: the layout is not of size zero.
                let start = NonNull::new(unsafe { alloc_zeroed(layout) });
                (start.ok_or_else(|| failed("the host's allocator"))?, Source::Host)
            }
        };
        Ok(Self { inner: Arc::new(HostAllocation { start, bytes, source }) })
    }

    /// No bytes, for which nobody is asked.
    fn nothing() -> Self {
        let allocation =
            HostAllocation { start: NonNull::dangling(), bytes: 0, source: Source::Host };
        Self { inner: Arc::new(allocation) }
    }

    /// Whether the plug-in allocated it, so that copies need not go through another buffer.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        !matches!(self.inner.source, Source::Host)
    }

    /// Keeps the memory allocated.
    pub(crate) fn keep(&self) -> Arc<HostAllocation> {
        Arc::clone(&self.inner)
    }

    /// Where it begins, for a copy.
    pub(crate) fn start(&self) -> *mut c_void {
        self.inner.start.as_ptr().cast()
    }
}

/// The longest slice that there can be, in bytes: offsets into it are signed.
const LONGEST_SLICE: usize = isize::MAX as usize;

/// Takes `bytes` bytes, no more than [`LONGEST_SLICE`], that a plug-in gave: nobody else has them, and they are zero.
fn claim(
    call: &'static str,
    memory: *mut c_void,
    bytes: usize,
) -> Result<(NonNull<u8>, LiveRange), Error> {
    let start = NonNull::new(memory.cast::<u8>())
        .ok_or(Error::OutOfMemory { call, bytes: bytes as u64 })?;
    // What somebody else has is not given back either: that would free it under its owner.
    let range = LiveRange::claim(call, start, bytes)?;
    // SAFETY: the plug-in gave `bytes` bytes, and no other value has any of them. Zeroed, because plug-ins need not initialise them.
    unsafe { start.as_ptr().write_bytes(0, bytes) };
    Ok((start, range))
}

impl Deref for HostMemory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `bytes` initialised bytes; copies that write to them hold the `HostMemory` itself until they are done, so that while
        // this reference exists nobody writes.
        unsafe { std::slice::from_raw_parts(self.inner.start.as_ptr(), self.inner.bytes) }
    }
}

impl DerefMut for HostMemory {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; copies that read hold the `HostMemory`, too, so that this reference is the only one.
        unsafe { std::slice::from_raw_parts_mut(self.inner.start.as_ptr(), self.inner.bytes) }
    }
}

/// Memory that the host and all devices of a platform address alike. Its bytes are zero at first.
///
/// Computations of a device use it where it lies; to copy it to or from other memory of a device by a stream, make it host memory
/// ([`Self::into_host_memory`]).
#[derive(Debug)]
pub struct UnifiedMemory {
    memory: HostMemory,
}

impl UnifiedMemory {
    pub(crate) fn allocate(device: &Device, bytes: usize) -> Result<Self, Error> {
        const CALL: &str = "unified_memory_allocate";
        let registration = device.registration();
        let platform = registration.facts.supports_unified_memory;
        if !registration.allocation.supports_unified_memory(platform) {
            // Functions that are set all the same are not called: the platform has said what they are worth (004:254).
            return Err(Error::Unsupported { function: CALL });
        }
        if bytes == 0 {
            return Ok(Self { memory: HostMemory::nothing() });
        }
        if bytes > LONGEST_SLICE {
            return Err(Error::OutOfMemory { call: CALL, bytes: bytes as u64 });
        }
        // SAFETY: the device is alive.
        let given = unsafe {
            registration.allocation.allocate_unified(
                &registration.executor,
                device.calls().device,
                bytes as u64,
            )
        }?;
        let (start, range) = claim(CALL, given, bytes)?;
        let source = Source::Unified(device.clone(), range);
        let memory = HostMemory { inner: Arc::new(HostAllocation { start, bytes, source }) };
        Ok(Self { memory })
    }

    /// The same memory as host memory, which copies of streams take and give back. It goes back to the plug-in as what it was.
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
