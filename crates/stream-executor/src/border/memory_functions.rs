//! The functions that allocate and free a device's memory, in one form for every plug-in.
//!
//! They wrap functions of the executor, or of an allocator of RFC #257, which take one argument
//! more, or of the RFC's other kind of allocator, which return addresses instead of structs. The
//! registration binds them. This module does not depend on the kind.

use std::{ffi::c_void, fmt};

use serdes_abi::{SP_AllocatorStats, SP_Device, SP_DeviceMemoryBase};

/// Allocates device memory of the given size in bytes and describes it in the struct; a NULL
/// `opaque` there is failure.
pub(crate) type DeviceAllocate = dyn Fn(*const SP_Device, u64, *mut SP_DeviceMemoryBase);
/// Frees device memory.
pub(crate) type DeviceFree = dyn Fn(*const SP_Device, *mut SP_DeviceMemoryBase);
/// Allocates memory of the given size in bytes that the host can address; NULL is failure.
pub(crate) type HostAllocate = dyn Fn(*const SP_Device, u64) -> *mut c_void;
/// Frees memory that the host addresses.
pub(crate) type HostFree = dyn Fn(*const SP_Device, *mut c_void);
/// Fills in statistics; 0: not available.
pub(crate) type Statistics = dyn Fn(*const SP_Device, *mut SP_AllocatorStats) -> u8;
/// Returns free and total bytes; 0: not available.
pub(crate) type Usage = dyn Fn(*const SP_Device, *mut i64, *mut i64) -> u8;

/// A function of a plug-in, bound to the arguments that are the same in each call.
pub(crate) struct Bound<F: ?Sized>(Box<F>);

impl<F: ?Sized> Bound<F> {
    /// Wraps a function, which may rely on the conditions of [`Self::get`].
    pub(crate) fn new(function: Box<F>) -> Self {
        Self(function)
    }

    /// Returns the function.
    ///
    /// # Safety
    /// The arguments are as the C API requires: the device (or platform) is a live one of the
    /// plug-in that the function belongs to; a struct is whole and borrowed exclusively; memory to
    /// be freed came from the function's counterpart, is no longer used, and is freed once (or
    /// there is none: NULL). The plug-in stays registered as long as the function is used.
    pub(crate) unsafe fn get(&self) -> &F {
        &self.0
    }
}

impl<F: ?Sized> fmt::Debug for Bound<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Bound")
    }
}

/// A function that allocates memory, and the one that frees it. Memory that could never be freed is
/// not allocated.
pub(crate) struct Pair<A: ?Sized, F: ?Sized> {
    pub(super) allocate: Bound<A>,
    pub(super) free: Bound<F>,
}

impl<A: ?Sized, F: ?Sized> Pair<A, F> {
    /// Returns the pair if both functions exist.
    pub(crate) fn new(allocate: Option<Bound<A>>, free: Option<Bound<F>>) -> Option<Self> {
        Some(Self { allocate: allocate?, free: free? })
    }
}

impl<A: ?Sized, F: ?Sized> fmt::Debug for Pair<A, F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Pair")
    }
}

/// The functions that allocate and free the memory of a plug-in's devices. Those that it does not
/// have are `None`.
#[derive(Debug, Default)]
pub(crate) struct MemoryFunctions {
    /// Memory of the device.
    pub(crate) device: Option<Pair<DeviceAllocate, DeviceFree>>,
    /// Memory of the host that asynchronous copies can use.
    pub(crate) host: Option<Pair<HostAllocate, HostFree>>,
    /// Memory that host and device address alike; also `None` if the plug-in has the functions but
    /// its platform does not support unified memory.
    pub(crate) unified: Option<Pair<HostAllocate, HostFree>>,
    pub(crate) statistics: Option<Bound<Statistics>>,
    pub(crate) usage: Option<Bound<Usage>>,
}
