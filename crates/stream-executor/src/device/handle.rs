//! A device of a plug-in: its memory, its streams, and its description.

use std::{
    ffi::c_char,
    ptr,
    sync::{Arc, Mutex, PoisonError},
};

use serdes_abi::{SE_CreateDeviceParams, SP_AllocatorStats, SP_Device};

use super::description::{AllocatorStats, DeviceDescription, MemoryUsage};
use crate::{
    best_fit::{BfcAllocator, BfcOptions, WeakBfcAllocator},
    border::{Calls, Status, StructMemory, StructView, enter},
    error::Error,
    load::{Registration, bounded_string},
    plugin_inner::PluginInner,
};

/// The SP_Device that the plug-in filled in.
#[derive(Debug)]
pub(crate) struct DeviceInner {
    pub(crate) filled: StructMemory,
    pub(crate) ordinal: i32,
    /// The best-fit allocator of the device, while it is in use.
    allocator: Mutex<WeakBfcAllocator>,
}

impl DeviceInner {
    /// Lets the plug-in create the device.
    pub(crate) fn create(registration: &Registration, ordinal: i32) -> Result<Self, Error> {
        let unsupported = Error::Unsupported { function: "create_device" };
        let (Some(create), Some(structure)) = (
            registration.functions.platform.create_device,
            registration.layout.structure("SP_Device"),
        ) else {
            return Err(unsupported);
        };
        let filled = StructMemory::new(structure.struct_size);
        let ordinal_at = structure.field("ordinal").map_or(0, |field| field.offset);
        filled.write(ordinal_at, ordinal);
        let mut parameters = SE_CreateDeviceParams {
            struct_size: SE_CreateDeviceParams::STRUCT_SIZE,
            ext: ptr::null_mut(),
            ordinal,
            device: filled.as_ptr(),
        };
        let mut status = Status::new();
        {
            let _call = enter(&"create_device");
            // SAFETY: the platform is the plug-in's own; parameters, struct and status live through
            // the call.
            unsafe { create(registration.platform(), &raw mut parameters, status.as_mut_ptr()) };
        }
        status.into_result("create_device")?;
        let device = Self { filled, ordinal, allocator: Mutex::default() };
        if device.filled.struct_size() == 0 {
            device.destroy(registration);
            return Err(Error::BadStruct {
                call: "create_device",
                structure: "SP_Device",
                field: "struct_size",
                found: "0".to_owned(),
                expected: "SP_DEVICE_STRUCT_SIZE",
            });
        }
        Ok(device)
    }

    /// Returns the device's best-fit allocator: the present one, or a new one over `inside`.
    ///
    /// The allocator grows, even if the platform would let it reserve all memory at once, because a
    /// library that moves state shares the device with computations.
    pub(super) fn allocator(&self, inside: &Device) -> BfcAllocator {
        let mut known = self.allocator.lock().unwrap_or_else(PoisonError::into_inner);
        known.upgrade().unwrap_or_else(|| {
            let allocator = BfcAllocator::new(inside, BfcOptions::default());
            *known = allocator.downgrade();
            allocator
        })
    }

    /// Lets the plug-in free the device's resources. The device must not be used afterwards.
    pub(crate) fn destroy(&self, registration: &Registration) {
        if let Some(destroy) = registration.functions.platform.destroy_device {
            let _call = enter(&"destroy_device");
            // SAFETY: filled in by create_device of this platform and destroyed once: the plug-in's
            // own drop does it, when no object of the device is left, or `create` does, when there
            // never was one.
            unsafe { destroy(registration.platform(), self.filled.as_ptr()) };
        }
    }
}

/// A device. Clones are the same device.
#[derive(Clone, Debug)]
pub struct Device {
    pub(crate) inner: Arc<DeviceInner>,
    pub(crate) plugin: Arc<PluginInner>,
    pub(crate) strategy: Strategy,
}

/// The allocator of a device's memory.
#[derive(Clone, Debug)]
pub(crate) enum Strategy {
    /// The plug-in: each allocation calls it.
    Plugin,
    /// The host's best-fit allocator, because the platform asks for it.
    BestFit(BfcAllocator),
    /// The best-fit allocator as seen by its own parts. The allocator and its memory reach their
    /// device this way, because a handle would keep them alive.
    InsideBestFit,
}

impl Device {
    pub(crate) fn new(plugin: Arc<PluginInner>, inner: Arc<DeviceInner>) -> Self {
        let mut device = Self { inner, plugin, strategy: Strategy::Plugin };
        if device.plugin.registration.facts.use_bfc_allocator {
            device.strategy = Strategy::InsideBestFit;
            device.strategy = Strategy::BestFit(device.inner.allocator(&device));
        }
        device
    }

    /// Returns the calls on this device.
    #[inline]
    pub(crate) fn calls(&self) -> Calls<'_> {
        Calls { functions: &self.plugin.registration.functions, device: self.inner.filled.as_ptr() }
    }

    pub(crate) fn registration(&self) -> &Registration {
        &self.plugin.registration
    }

    /// Returns true if both are the same device.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Returns true if both are devices of the same plug-in.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.plugin, &other.plugin)
    }

    /// Returns the index of the device.
    #[must_use]
    pub fn ordinal(&self) -> i32 {
        self.inner.ordinal
    }

    /// Returns the description of the device from the plug-in.
    #[must_use]
    pub fn description(&self) -> DeviceDescription {
        let registration = &self.plugin.registration;
        let filled = &self.inner.filled;
        let view = registration
            .layout
            .structure("SP_Device")
            .map(|structure| StructView::new(filled, structure, filled.struct_size()));
        let text = |field: &str| {
            let pointer = view?.scalar::<*const c_char>(field)?;
            // SAFETY: the plug-in's own string, which it keeps until destroy_device.
            let text = unsafe { bounded_string(pointer, 4096) }?;
            Some(text.to_string_lossy().into_owned())
        };
        let functions = &registration.functions.devices;
        let device = filled.as_ptr::<SP_Device>().cast_const();
        DeviceDescription {
            ordinal: self.inner.ordinal,
            hardware_name: text("hardware_name"),
            device_vendor: text("device_vendor"),
            pci_bus_id: text("pci_bus_id"),
            numa_node: functions.get_numa_node.map_or(-1, |get| {
                let _call = enter(&"get_numa_node");
                // SAFETY: the device is alive.
                unsafe { get(device) }.max(-1)
            }),
            memory_bandwidth: functions
                .get_memory_bandwidth
                .map(|get| {
                    let _call = enter(&"get_memory_bandwidth");
                    // SAFETY: the device is alive.
                    unsafe { get(device) }
                })
                .filter(|&bandwidth| bandwidth >= 0),
            gflops: functions.get_gflops.map(|get| {
                let _call = enter(&"get_gflops");
                // SAFETY: the device is alive.
                unsafe { get(device) }
            }),
        }
    }

    /// Returns the allocator that [`Self::allocate`] uses, if the platform asks for one; it is the
    /// same for every handle of the device.
    ///
    /// Its regions return to the plug-in when neither a handle of the device nor memory of it is
    /// left, or by [`BfcAllocator::release_unused`]. It grows region by region, regardless of
    /// [`Platform::forces_memory_growth`](crate::Platform::forces_memory_growth).
    #[must_use]
    pub fn allocator(&self) -> Option<BfcAllocator> {
        match &self.strategy {
            Strategy::Plugin => None,
            Strategy::BestFit(allocator) => Some(allocator.clone()),
            Strategy::InsideBestFit => Some(self.inner.allocator(self)),
        }
    }

    /// Waits for all work of the device.
    ///
    /// # Errors
    /// The error that the plug-in reports.
    pub fn synchronize(&self) -> Result<(), Error> {
        // SAFETY: the device is alive.
        unsafe { self.calls().synchronize_all_activity() }
    }

    /// Returns the statistics of the device's allocator; `None` if they are not available at the
    /// moment.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn allocator_stats(&self) -> Result<Option<AllocatorStats>, Error> {
        let filled = StructMemory::new(SP_AllocatorStats::STRUCT_SIZE);
        // SAFETY: the device is alive; the struct's memory is zeroed and long enough.
        let available = unsafe { self.calls().statistics(filled.as_ptr()) }?;
        // TensorFlow ignores statistics without a size.
        if !available || filled.struct_size() == 0 {
            return Ok(None);
        }
        let structure = const { &SP_AllocatorStats::LAYOUT };
        let view = StructView::new(&filled, structure, filled.struct_size());
        let number = |field: &str| view.scalar::<i64>(field).unwrap_or_default();
        let limit = |has: &str, field: &str| {
            view.scalar::<u8>(has).filter(|&has| has != 0).and_then(|_| view.scalar::<i64>(field))
        };
        Ok(Some(AllocatorStats {
            num_allocs: number("num_allocs"),
            bytes_in_use: number("bytes_in_use"),
            peak_bytes_in_use: number("peak_bytes_in_use"),
            largest_alloc_size: number("largest_alloc_size"),
            bytes_limit: limit("has_bytes_limit", "bytes_limit"),
            bytes_reserved: number("bytes_reserved"),
            peak_bytes_reserved: number("peak_bytes_reserved"),
            bytes_reservable_limit: limit("has_bytes_reservable_limit", "bytes_reservable_limit"),
            largest_free_block_bytes: number("largest_free_block_bytes"),
        }))
    }

    /// Returns the free and total memory of the device; `None` if the plug-in has no numbers at the
    /// moment.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn memory_usage(&self) -> Result<Option<MemoryUsage>, Error> {
        // SAFETY: the device is alive.
        let usage = unsafe { self.calls().memory_usage() }?;
        Ok(usage.map(|(free, total)| MemoryUsage { free, total }))
    }
}
