//! The functions by which a device's memory comes and goes, in one form for every plug-in.
//!
//! Behind it are functions of the executor, or of an allocator of RFC #257, which takes one
//! argument more, or those of the RFC's other kind of allocator, which gives addresses instead of
//! structs. Only the registration knows which, and binds them. This file must never know.

use std::{ffi::c_void, fmt};

use serdes_abi::{SP_AllocatorStats, SP_Device, SP_DeviceMemoryBase};

/// Allocates that many bytes of device memory and describes it in the struct; a NULL `opaque` there
/// is failure.
pub(crate) type DeviceAllocate = dyn Fn(*const SP_Device, u64, *mut SP_DeviceMemoryBase);
/// Frees device memory.
pub(crate) type DeviceFree = dyn Fn(*const SP_Device, *mut SP_DeviceMemoryBase);
/// Allocates that many bytes that the host addresses; NULL is failure.
pub(crate) type HostAllocate = dyn Fn(*const SP_Device, u64) -> *mut c_void;
/// Frees memory that the host addresses.
pub(crate) type HostFree = dyn Fn(*const SP_Device, *mut c_void);
/// Fills in statistics; 0: not available.
pub(crate) type Statistics = dyn Fn(*const SP_Device, *mut SP_AllocatorStats) -> u8;
/// Gives free and total bytes; 0: not available.
pub(crate) type Usage = dyn Fn(*const SP_Device, *mut i64, *mut i64) -> u8;

/// A function of a plug-in, with the arguments bound that are the same in each call.
pub(crate) struct Bound<F: ?Sized>(Box<F>);

impl<F: ?Sized> Bound<F> {
    /// Binds. The function may rely on what [`Self::get`] asks of its callers.
    pub(crate) fn new(function: Box<F>) -> Self {
        Self(function)
    }

    /// Returns the function.
    ///
    /// # Safety
    /// Its arguments are as the C API demands: the device (or platform) is a living one of the
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

/// A function that gives memory, and the one that takes it back. Memory that could never be given
/// back is not asked for.
pub(crate) struct Pair<A: ?Sized, F: ?Sized> {
    pub(super) allocate: Bound<A>,
    pub(super) free: Bound<F>,
}

impl<A: ?Sized, F: ?Sized> Pair<A, F> {
    /// Both, or nothing.
    pub(crate) fn new(allocate: Option<Bound<A>>, free: Option<Bound<F>>) -> Option<Self> {
        Some(Self { allocate: allocate?, free: free? })
    }
}

impl<A: ?Sized, F: ?Sized> fmt::Debug for Pair<A, F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Pair")
    }
}

/// The functions by which the memory of a plug-in's devices comes and goes. Those that it does not
/// have are `None`.
#[derive(Debug, Default)]
pub(crate) struct MemoryFunctions {
    /// Memory of the device.
    pub(crate) device: Option<Pair<DeviceAllocate, DeviceFree>>,
    /// Memory of the host that asynchronous copies can use.
    pub(crate) host: Option<Pair<HostAllocate, HostFree>>,
    /// Memory that host and device address alike; none either where the plug-in has the functions
    /// and says that they are worth nothing.
    pub(crate) unified: Option<Pair<HostAllocate, HostFree>>,
    pub(crate) statistics: Option<Bound<Statistics>>,
    pub(crate) usage: Option<Bound<Usage>>,
}
