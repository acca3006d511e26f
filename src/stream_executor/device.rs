//! A device of a plug-in: its memory, its streams, and what it says of itself.

use std::ffi::c_char;
use std::sync::{Arc, Mutex, PoisonError};

use serdes_abi::{SE_CreateDeviceParams, SP_AllocatorStats, SP_Device, SP_Platform};

use super::bfc::{BfcAllocator, BfcOptions, WeakBfcAllocator};
use super::block::{Block, View};
use super::call::enter;
use super::error::Error;
use super::event::Event;
use super::memory::{DeviceMemory, HostMemory, UnifiedMemory, host_size};
use super::plugin::PluginInner;
use super::raw::Calls;
use super::registration::{Registration, bounded_string};
use super::status::Status;
use super::stream::Stream;
use super::timer::Timer;

/// The SP_Device that the plug-in filled in.
#[derive(Debug)]
pub(crate) struct DeviceState {
    block: Block,
    ordinal: i32,
    /// The best-fit allocator of the device, while anybody uses it.
    allocator: Mutex<WeakBfcAllocator>,
}

impl DeviceState {
    /// Has the plug-in make the device.
    pub(crate) fn create(registration: &Registration, ordinal: i32) -> Result<Self, Error> {
        let unsupported = Error::Unsupported { function: "create_device" };
        let (Some(create), Some(structure)) = (
            registration.table.functions.create_device,
            registration.layout.structure("SP_Device"),
        ) else {
            return Err(unsupported);
        };
        let block = Block::new(structure.struct_size);
        let ordinal_at = structure.field("ordinal").map_or(0, |field| field.offset);
        block.write(ordinal_at, ordinal);
        let mut parameters = SE_CreateDeviceParams {
            struct_size: SE_CreateDeviceParams::STRUCT_SIZE,
            ext: std::ptr::null_mut(),
            ordinal,
            device: block.as_ptr(),
        };
        let mut status = Status::new();
        {
            let _call = enter(&"create_device");
            let platform = registration.platform.as_ptr::<SP_Platform>().cast_const();
            // SAFETY: the platform is the plug-in's own; parameters, block and status live through the call.
            unsafe { create(platform, &raw mut parameters, status.as_mut_ptr()) };
        }
        status.into_result("create_device")?;
        let device = Self { block, ordinal, allocator: Mutex::default() };
        if device.block.struct_size() == 0 {
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

    /// The device's best-fit allocator: the one that is there, or a new one over `inside`.
    ///
    /// It grows, also where the platform would let it reserve all memory at once: a library that moves state shares the device with those
    /// who compute on it.
    fn allocator(&self, inside: &Device) -> BfcAllocator {
        let mut known = self.allocator.lock().unwrap_or_else(PoisonError::into_inner);
        known.upgrade().unwrap_or_else(|| {
            let allocator = BfcAllocator::new(inside, BfcOptions::default());
            *known = allocator.downgrade();
            allocator
        })
    }

    /// Has the plug-in free what it put into the device, which must not be used afterwards.
    pub(crate) fn destroy(&self, registration: &Registration) {
        if let Some(destroy) = registration.table.functions.destroy_device {
            let _call = enter(&"destroy_device");
            let platform = registration.platform.as_ptr::<SP_Platform>().cast_const();
            // SAFETY: filled in by create_device of this platform and destroyed once: the plug-in's own drop does it, when no object of
            // the device is left, or `create` does, when there never was one.
            unsafe { destroy(platform, self.block.as_ptr()) };
        }
    }
}

/// A device. Clones are the same device.
#[derive(Clone, Debug)]
pub struct Device {
    state: Arc<DeviceState>,
    plugin: Arc<PluginInner>,
    strategy: Strategy,
}

/// Who gives out parts of a device's memory.
#[derive(Clone, Debug)]
enum Strategy {
    /// The plug-in: each allocation is a call of it.
    Plugin,
    /// The host's best-fit allocator, because the platform asks for it.
    BestFit(BfcAllocator),
    /// The same, looked up: the allocator and its memory reach their device by this, and would keep themselves alive by a handle.
    InsideBestFit,
}

/// What a device says of itself. Parts that the plug-in does not tell are `None`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeviceDescription {
    /// The device's index.
    pub ordinal: i32,
    /// Name of the hardware.
    pub hardware_name: Option<String>,
    /// Name of the vendor.
    pub device_vendor: Option<String>,
    /// PCI bus id.
    pub pci_bus_id: Option<String>,
    /// NUMA node of the host that the device is near to; -1 if it is not known.
    pub numa_node: i32,
    /// Bytes per second to and from the device's memory.
    pub memory_bandwidth: Option<i64>,
    /// Estimated billions of floating-point operations per second.
    pub gflops: Option<f64>,
}

/// Statistics of a device's allocator, in bytes but for `num_allocs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllocatorStats {
    /// Allocations so far.
    pub num_allocs: i64,
    /// Bytes in use.
    pub bytes_in_use: i64,
    /// Most bytes that were in use.
    pub peak_bytes_in_use: i64,
    /// The largest allocation so far.
    pub largest_alloc_size: i64,
    /// Most bytes that may be in use.
    pub bytes_limit: Option<i64>,
    /// Bytes reserved.
    pub bytes_reserved: i64,
    /// Most bytes that were reserved.
    pub peak_bytes_reserved: i64,
    /// Most bytes that may be reserved.
    pub bytes_reservable_limit: Option<i64>,
    /// The largest free block.
    pub largest_free_block_bytes: i64,
}

/// How full a device is, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Free bytes.
    pub free: i64,
    /// All bytes.
    pub total: i64,
}

impl Device {
    pub(crate) fn new(plugin: Arc<PluginInner>, state: Arc<DeviceState>) -> Self {
        let mut device = Self { state, plugin, strategy: Strategy::Plugin };
        if device.plugin.registration.asks_for_best_fit() {
            device.strategy = Strategy::InsideBestFit;
            device.strategy = Strategy::BestFit(device.state.allocator(&device));
        }
        device
    }

    /// The same device, whose allocations are calls of the plug-in whatever the platform asks for: for the conformance suite, which looks at
    /// these calls.
    pub(crate) fn directly(&self) -> Self {
        Self { strategy: Strategy::Plugin, ..self.clone() }
    }

    /// The calls on this device.
    #[inline]
    pub(crate) fn calls(&self) -> Calls<'_> {
        Calls { registration: &self.plugin.registration, device: self.state.block.as_ptr() }
    }

    pub(crate) fn registration(&self) -> &Registration {
        &self.plugin.registration
    }

    /// Whether both are the same device.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    /// Whether both are devices of the same plug-in.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.plugin, &other.plugin)
    }

    /// Its index.
    #[must_use]
    pub fn ordinal(&self) -> i32 {
        self.state.ordinal
    }

    /// The index that the plug-in left in the device, for the conformance suite.
    pub(crate) fn written_ordinal(&self) -> i32 {
        let layout = self.plugin.registration.layout.field("SP_Device", "ordinal");
        layout.map_or(self.state.ordinal, |field| self.state.block.read(field.offset))
    }

    /// What it says of itself.
    #[must_use]
    pub fn description(&self) -> DeviceDescription {
        let registration = &self.plugin.registration;
        let block = &self.state.block;
        let view = registration
            .layout
            .structure("SP_Device")
            .map(|structure| View::new(block, structure, block.struct_size()));
        let text = |field: &str| {
            let pointer = view?.scalar::<*const c_char>(field)?;
            // SAFETY: the plug-in's own string, which it keeps until destroy_device.
            let text = unsafe { bounded_string(pointer, 4096) }?;
            Some(text.to_string_lossy().into_owned())
        };
        let functions = &registration.devices;
        let device = block.as_ptr::<SP_Device>().cast_const();
        DeviceDescription {
            ordinal: self.state.ordinal,
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

    /// Allocates device memory of `bytes` bytes; its contents are whatever was there.
    ///
    /// Where the platform asks for the host's best-fit allocator ([`Platform::uses_bfc_allocator`](super::Platform::uses_bfc_allocator)) it
    /// comes from that ([`Self::allocator`]), else from the plug-in itself.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::Unsupported`].
    pub fn allocate(&self, bytes: u64) -> Result<DeviceMemory, Error> {
        match &self.strategy {
            Strategy::Plugin => DeviceMemory::allocate(self, bytes),
            Strategy::BestFit(allocator) => allocator.allocate(bytes),
            Strategy::InsideBestFit => self.state.allocator(self).allocate(bytes),
        }
    }

    /// The allocator through which [`Self::allocate`] goes, if the platform asks for one; the same for every handle of the device.
    ///
    /// Its regions go back to the plug-in when neither a handle of the device nor memory of it is left, or by
    /// [`BfcAllocator::release_unused`]. It grows region by region, whatever
    /// [`Platform::forces_memory_growth`](super::Platform::forces_memory_growth) says.
    #[must_use]
    pub fn allocator(&self) -> Option<BfcAllocator> {
        match &self.strategy {
            Strategy::Plugin => None,
            Strategy::BestFit(allocator) => Some(allocator.clone()),
            Strategy::InsideBestFit => Some(self.state.allocator(self)),
        }
    }

    /// Allocates device memory and copies `bytes` into it.
    ///
    /// # Errors
    /// As [`Self::allocate`] and [`Self::copy_to_device`].
    pub fn upload(&self, bytes: &[u8]) -> Result<DeviceMemory, Error> {
        let memory = self.allocate(bytes.len() as u64)?;
        self.copy_to_device(bytes, &memory, 0)?;
        Ok(memory)
    }

    /// Copies all of `memory` to the host.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the host has not that much; as [`Self::copy_to_host`].
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

    /// Copies `source` into `target` from byte `offset` on, and waits until it is done.
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
        // SAFETY: the device is alive; the part lies in its memory; the source is valid until the call returns.
        unsafe {
            self.calls().sync_memcpy_htod(
                part.as_mut_ptr(),
                source.as_ptr().cast(),
                source.len() as u64,
            )
        }
    }

    /// Copies from `source`, from byte `offset` on, into `target`, and waits until it is done.
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
        // SAFETY: the device is alive; the part lies in its memory; the target is ours alone until the call returns.
        unsafe {
            self.calls().sync_memcpy_dtoh(
                target.as_mut_ptr().cast(),
                part.as_ptr(),
                target.len() as u64,
            )
        }
    }

    /// Copies `bytes` bytes of device memory to device memory, and waits until it is done. The source may be on another device of the
    /// same plug-in.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; [`Error::OtherDevice`]; [`Error::Unsupported`]; what the plug-in reports.
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

    /// Allocates host memory that asynchronous copies can use: the plug-in's (pinned), or the host's own where the plug-in has none.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::MemoryInUse`].
    pub fn allocate_host(&self, bytes: usize) -> Result<HostMemory, Error> {
        HostMemory::allocate(self, bytes)
    }

    /// Allocates memory that host and device address alike.
    ///
    /// # Errors
    /// [`Error::Unsupported`], also where the functions are there and the platform says that they do not work; [`Error::OutOfMemory`];
    /// [`Error::MemoryInUse`].
    pub fn allocate_unified(&self, bytes: usize) -> Result<UnifiedMemory, Error> {
        UnifiedMemory::allocate(self, bytes)
    }

    /// Makes a stream.
    ///
    /// # Errors
    /// What the plug-in reports.
    pub fn create_stream(&self) -> Result<Stream, Error> {
        Stream::create(self)
    }

    /// Makes an event.
    ///
    /// # Errors
    /// What the plug-in reports.
    pub fn create_event(&self) -> Result<Event, Error> {
        Event::create(self)
    }

    /// Makes a timer.
    ///
    /// # Errors
    /// [`Error::Unsupported`]; what the plug-in reports.
    pub fn create_timer(&self) -> Result<Timer, Error> {
        Timer::create(self)
    }

    /// Waits for all work of the device.
    ///
    /// # Errors
    /// What the plug-in reports.
    pub fn synchronize(&self) -> Result<(), Error> {
        // SAFETY: the device is alive.
        unsafe { self.calls().synchronize_all_activity() }
    }

    /// Statistics of the device's allocator; `None` if the plug-in has them not available now.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn allocator_stats(&self) -> Result<Option<AllocatorStats>, Error> {
        let block = Block::new(SP_AllocatorStats::STRUCT_SIZE);
        let registration = &self.plugin.registration;
        let device = self.state.block.as_ptr::<SP_Device>().cast_const();
        // SAFETY: the device is alive; the block is zeroed and long enough.
        let available = unsafe {
            registration.allocation.statistics(&registration.executor, device, block.as_ptr())
        }?;
        // TensorFlow drops statistics without a size.
        if !available || block.struct_size() == 0 {
            return Ok(None);
        }
        let structure = const { &SP_AllocatorStats::LAYOUT };
        let view = View::new(&block, structure, block.struct_size());
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

    /// How full the device is; `None` if the plug-in cannot tell now.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn memory_usage(&self) -> Result<Option<MemoryUsage>, Error> {
        let (mut free, mut total) = (0, 0);
        let registration = &self.plugin.registration;
        let device = self.state.block.as_ptr::<SP_Device>().cast_const();
        // SAFETY: the device is alive.
        let available = unsafe {
            registration.allocation.usage(&registration.executor, device, &mut free, &mut total)
        }?;
        Ok(available.then_some(MemoryUsage { free, total }))
    }
}
