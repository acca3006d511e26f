//! Memory as a plug-in sees it: the allocations that it returns, and the arguments of copies.
//!
//! The author's allocator returns an [`Allocation`], which contains only numbers. The arguments of
//! a copy that come back through the C API are a [`DeviceMemory`], a [`HostSource`] or a
//! [`HostTarget`]. Safe code cannot create these values, because each is the host's promise that
//! the bytes exist until the operation is done.

use std::{ffi::c_void, ptr};

use serdes_abi::SP_DeviceMemoryBase;

use crate::{Result, Status};

/// A host's request for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationRequest {
    /// The number of bytes; may be 0, which is not a failure.
    pub size: u64,
    /// The alignment of the address, a power of two; 1 if the host does not specify it.
    pub alignment: u64,
    /// Reserved by the C API; hosts pass 0.
    pub memory_space: i64,
}

/// Device memory that was just allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The address, or any number that identifies the memory. Hosts add offsets to it and never
    /// dereference it. Must not be NULL.
    pub opaque: *mut c_void,
    /// The size in bytes, at least the requested one.
    pub size: u64,
    /// A number for the plug-in's use, which is returned with the memory.
    pub payload: u64,
}

impl Allocation {
    /// Creates an allocation at `address`, for plug-ins that number their memory themselves.
    #[must_use]
    pub fn at(address: u64, size: u64) -> Self {
        // To the host, an address on the device is a number; a number wider than a pointer cannot
        // be represented.
        let opaque = usize::try_from(address).map_or(ptr::null_mut(), ptr::without_provenance_mut);
        Self { opaque, size, payload: 0 }
    }
}

/// Device memory of this plug-in, or a part of it, for the duration of one operation.
///
/// Only hosts create these; the host guarantees that this plug-in allocated the memory and that it
/// is not freed before the operation is done.
#[derive(Debug)]
pub struct DeviceMemory {
    opaque: *mut c_void,
    size: u64,
    payload: u64,
}

// SAFETY: the pointer is an address of device memory. Reading or writing through it is up to the
// plug-in, which the host calls from any thread: the promise behind the value (see `from_raw`) is
// not bound to one.
unsafe impl Send for DeviceMemory {}
// SAFETY: as above; the value itself is never changed through a shared reference.
unsafe impl Sync for DeviceMemory {}

impl DeviceMemory {
    /// Creates a reference to memory of this plug-in.
    ///
    /// # Safety
    /// `opaque` is the start of an allocation of the plug-in that will get the value, or is inside
    /// one; `size` bytes from there belong to it; and it is not freed before the operation that
    /// gets the value is done. `size` may be 0 (with any `opaque`) for an operation that frees.
    #[must_use]
    pub unsafe fn from_raw(opaque: *mut c_void, size: u64, payload: u64) -> Self {
        Self { opaque, size, payload }
    }

    /// Returns the first `size` bytes of the memory that the host describes.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there is no description, no memory, or less than `size` bytes of it.
    ///
    /// # Safety
    /// `memory` is NULL or points to a description for whose memory the promise of
    /// [`DeviceMemory::from_raw`] holds.
    pub(crate) unsafe fn from_c(
        memory: *const SP_DeviceMemoryBase,
        size: u64,
        role: &str,
    ) -> Result<Self> {
        // SAFETY: the caller guarantees that it is NULL or valid.
        let Some(memory) = (unsafe { memory.as_ref() }) else {
            return Err(Status::invalid_argument(format!(
                "the {role} is NULL, not an SP_DeviceMemoryBase"
            )));
        };
        if size > memory.size {
            return Err(Status::invalid_argument(format!(
                "{size} bytes are asked for, and the {role} (SP_DeviceMemoryBase) has {}",
                memory.size
            )));
        }
        if memory.opaque.is_null() && size > 0 {
            return Err(Status::invalid_argument(format!(
                "the {role} (SP_DeviceMemoryBase) has a NULL opaque: it is not allocated"
            )));
        }
        // SAFETY: the caller's promise covers `memory.size` bytes, and `size` is no more.
        Ok(unsafe { Self::from_raw(memory.opaque, size, memory.payload) })
    }

    /// Returns the value of [`Allocation::opaque`], plus the offset of this part.
    #[must_use]
    pub fn opaque(&self) -> *mut c_void {
        self.opaque
    }

    /// Returns [`DeviceMemory::opaque`] as a number.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.opaque.addr() as u64
    }

    /// Returns the number of bytes of the operation. For an operation that frees, this may be 0,
    /// because RFC #257's custom allocators do not pass it.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the value of [`Allocation::payload`].
    #[must_use]
    pub fn payload(&self) -> u64 {
        self.payload
    }

    /// Returns a part of this memory, if it is inside.
    #[must_use]
    pub fn part(&self, offset: u64, size: u64) -> Option<Self> {
        let end = offset.checked_add(size)?;
        if end > self.size {
            return None;
        }
        let opaque = self.opaque.wrapping_byte_add(usize::try_from(offset).ok()?);
        Some(Self { opaque, size, payload: self.payload })
    }
}

/// Host memory that an operation reads.
#[derive(Debug)]
pub struct HostSource {
    start: *const u8,
    size: usize,
}

// SAFETY: the host promises that the bytes can be read until the operation is done, from any thread
// (see `from_raw`).
unsafe impl Send for HostSource {}
// SAFETY: shared references only read.
unsafe impl Sync for HostSource {}

impl HostSource {
    /// Creates a reference to host memory to read.
    ///
    /// # Safety
    /// `size` bytes from `start` can be read, and are not written, until the operation that gets
    /// the value is done, on any thread. `start` may be anything if `size` is 0.
    #[must_use]
    pub unsafe fn from_raw(start: *const c_void, size: usize) -> Self {
        Self { start: start.cast(), size }
    }

    /// Like [`HostSource::from_raw`], for a pointer and a size of the C API.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the pointer is NULL or the size is more than an address space.
    ///
    /// # Safety
    /// As for [`HostSource::from_raw`], unless `start` is NULL.
    pub(crate) unsafe fn from_c(start: *const c_void, size: u64) -> Result<Self> {
        let size = host_size(start, size, "source")?;
        // SAFETY: the caller's promise.
        Ok(unsafe { Self::from_raw(start, size) })
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.size
    }

    /// Returns true if there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// Returns the address of the first byte.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.start
    }

    /// Copies the bytes from `offset` into `bytes`.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` if they are not all inside.
    pub fn read_at(&self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        check_range(self.size, offset, bytes.len())?;
        // SAFETY: the range lies within the memory that `from_raw` promises to be readable; `bytes`
        // is borrowed exclusively, so that it cannot overlap memory that the host promises not to
        // be written.
        unsafe {
            ptr::copy_nonoverlapping(self.start.add(offset), bytes.as_mut_ptr(), bytes.len())
        };
        Ok(())
    }

    /// Copies all bytes into `bytes`.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` unless `bytes` has exactly the same length.
    pub fn read(&self, bytes: &mut [u8]) -> Result<()> {
        check_length(self.size, bytes.len())?;
        self.read_at(0, bytes)
    }
}

/// Host memory that an operation writes.
#[derive(Debug)]
pub struct HostTarget {
    start: *mut u8,
    size: usize,
}

// SAFETY: the host promises that the bytes can be written until the operation is done, from any
// thread (see `from_raw`).
unsafe impl Send for HostTarget {}
// SAFETY: nothing is written through a shared reference.
unsafe impl Sync for HostTarget {}

impl HostTarget {
    /// Creates a reference to host memory to write.
    ///
    /// # Safety
    /// `size` bytes from `start` can be written, and are neither read nor written by others, until
    /// the operation that gets the value is done, on any thread. `start` may be anything if `size`
    /// is 0.
    #[must_use]
    pub unsafe fn from_raw(start: *mut c_void, size: usize) -> Self {
        Self { start: start.cast(), size }
    }

    /// Like [`HostTarget::from_raw`], for a pointer and a size of the C API.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the pointer is NULL or the size is more than an address space.
    ///
    /// # Safety
    /// As for [`HostTarget::from_raw`], unless `start` is NULL.
    pub(crate) unsafe fn from_c(start: *mut c_void, size: u64) -> Result<Self> {
        let size = host_size(start, size, "target")?;
        // SAFETY: the caller's promise.
        Ok(unsafe { Self::from_raw(start, size) })
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.size
    }

    /// Returns true if there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// Returns the address of the first byte.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.start
    }

    /// Returns the address of the first byte.
    #[must_use]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start
    }

    /// Copies `bytes` to `offset`.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` if they do not all fit.
    pub fn write_at(&mut self, offset: usize, bytes: &[u8]) -> Result<()> {
        check_range(self.size, offset, bytes.len())?;
        // SAFETY: the range lies within the memory that `from_raw` promises to be writable and
        // exclusive, so that it does not overlap `bytes`.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(offset), bytes.len()) };
        Ok(())
    }

    /// Copies `bytes` over the whole memory.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` unless `bytes` has exactly the same length.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        check_length(self.size, bytes.len())?;
        self.write_at(0, bytes)
    }
}

fn host_size(start: *const c_void, size: u64, role: &str) -> Result<usize> {
    if start.is_null() && size > 0 {
        return Err(Status::invalid_argument(format!(
            "the {role} of a copy of {size} bytes is NULL in host memory"
        )));
    }
    usize::try_from(size).ok().filter(|size| isize::try_from(*size).is_ok()).ok_or_else(|| {
        Status::invalid_argument(format!("a copy of {size} bytes is more than an address space"))
    })
}

fn check_range(size: usize, offset: usize, length: usize) -> Result<()> {
    match offset.checked_add(length) {
        Some(end) if end <= size => Ok(()),
        _ => Err(Status::new(
            serdes_abi::TF_Code::OUT_OF_RANGE,
            format!("{length} bytes at {offset} do not lie in {size} bytes of host memory"),
        )),
    }
}

fn check_length(size: usize, length: usize) -> Result<()> {
    if size == length {
        Ok(())
    } else {
        Err(Status::new(
            serdes_abi::TF_Code::OUT_OF_RANGE,
            format!("{length} bytes are given for {size} bytes of host memory"),
        ))
    }
}

/// The memory of a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Bytes that can still be allocated.
    pub free: u64,
    /// The total number of bytes.
    pub total: u64,
}

/// The statistics of a device's allocator, in bytes except for the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocatorStats {
    /// The number of allocations so far.
    pub allocations: u64,
    /// Bytes in use.
    pub bytes_in_use: u64,
    /// The largest number of bytes that were in use.
    pub peak_bytes_in_use: u64,
    /// The largest allocation so far.
    pub largest_allocation: u64,
    /// The largest number of bytes that may be in use, if there is a limit.
    pub limit: Option<u64>,
    /// Bytes taken from the system.
    pub bytes_reserved: u64,
    /// The largest number of bytes that were taken from the system.
    pub peak_bytes_reserved: u64,
    /// The largest number of bytes that may be taken from the system, if there is a limit.
    pub reservable_limit: Option<u64>,
    /// The largest free block.
    pub largest_free_block: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_outside_of_host_memory_is_refused() {
        let mut bytes = [1_u8, 2, 3, 4];
        // SAFETY: `bytes` outlives the value, and nothing else touches it meanwhile.
        let mut target = unsafe { HostTarget::from_raw(bytes.as_mut_ptr().cast(), 4) };
        assert!(target.write(&[9; 3]).is_err());
        assert!(target.write_at(2, &[9; 3]).is_err());
        assert!(target.write_at(usize::MAX, &[9; 3]).is_err());
        assert_eq!(target.write_at(2, &[7, 8]), Ok(()));
        assert_eq!(bytes, [1, 2, 7, 8]);
    }

    #[test]
    fn a_source_is_read_in_parts() {
        let bytes = [1_u8, 2, 3, 4];
        // SAFETY: `bytes` outlives the value and is not written.
        let source = unsafe { HostSource::from_raw(bytes.as_ptr().cast(), 4) };
        let mut two = [0; 2];
        assert_eq!(source.read_at(1, &mut two), Ok(()));
        assert_eq!(two, [2, 3]);
        assert!(source.read_at(3, &mut two).is_err());
        assert!(source.read(&mut two).is_err());
    }

    #[test]
    fn nothing_can_be_copied_from_or_to_null() {
        // SAFETY: NULL is allowed.
        let source = unsafe { HostSource::from_c(ptr::null(), 1) };
        assert_eq!(source.unwrap_err().code(), serdes_abi::TF_Code::INVALID_ARGUMENT);
        // SAFETY: NULL is allowed.
        assert!(unsafe { HostTarget::from_c(ptr::null_mut(), 0) }.is_ok());
        // SAFETY: NULL is allowed.
        assert!(unsafe { HostTarget::from_c(ptr::without_provenance_mut(8), u64::MAX) }.is_err());
    }

    #[test]
    fn a_part_never_leaves_its_memory() {
        // SAFETY: the numbers are never followed.
        let memory = unsafe { DeviceMemory::from_raw(ptr::without_provenance_mut(4096), 100, 5) };
        let part = memory.part(40, 60).unwrap();
        assert_eq!((part.address(), part.size(), part.payload()), (4136, 60, 5));
        assert!(memory.part(41, 60).is_none());
        assert!(memory.part(u64::MAX, 2).is_none());
    }

    #[test]
    fn more_bytes_than_the_memory_has_are_refused() {
        let memory = SP_DeviceMemoryBase {
            struct_size: SP_DeviceMemoryBase::STRUCT_SIZE,
            ext: ptr::null_mut(),
            opaque: ptr::without_provenance_mut(64),
            size: 10,
            payload: 0,
        };
        // SAFETY: the description is valid and its memory is never followed.
        let error = unsafe { DeviceMemory::from_c(&memory, 11, "source") }.unwrap_err();
        assert!(
            error.message().contains("11 bytes") && error.message().contains("has 10"),
            "{error}"
        );
    }
}
