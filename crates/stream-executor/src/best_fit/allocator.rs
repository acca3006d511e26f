//! The allocator of a device: a [`BestFit`] under a lock, and the regions that the device
//! allocated.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::chunks::{BestFit, GRANULE, Given, rounded};
use crate::{
    device::{AllocatorStats, Device, DeviceMemory},
    error::Error,
};

/// The options of an allocator: the way in which it reserves its regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BfcOptions {
    limit: Option<u64>,
    growth: bool,
    first_region: u64,
}

impl Default for BfcOptions {
    fn default() -> Self {
        Self { limit: None, growth: true, first_region: 1 << 20 }
    }
}

impl BfcOptions {
    /// Creates options without a limit; the allocator grows from a region of 1 MiB.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the largest number of bytes to request from the device; without a limit, as many as the
    /// device has.
    #[must_use]
    pub fn with_limit(mut self, bytes: u64) -> Self {
        self.limit = Some(bytes);
        self
    }

    /// Sets `true` to grow region by region, each twice as large as the one before. Otherwise the
    /// first allocation reserves the limit at once (without a limit: the device's free memory).
    #[must_use]
    pub fn with_growth(mut self, growth: bool) -> Self {
        self.growth = growth;
        self
    }

    /// Sets the number of bytes of the first region, if the allocator grows.
    #[must_use]
    pub fn with_first_region(mut self, bytes: u64) -> Self {
        self.first_region = bytes;
        self
    }
}

/// An allocator of a device's memory. Clones are the same allocator.
#[derive(Clone, Debug)]
pub struct BfcAllocator {
    inner: Arc<AllocatorInner>,
}

/// A weak handle of an allocator.
#[derive(Debug, Default)]
pub(crate) struct WeakBfcAllocator {
    inner: Weak<AllocatorInner>,
}

impl WeakBfcAllocator {
    pub(crate) fn upgrade(&self) -> Option<BfcAllocator> {
        self.inner.upgrade().map(|inner| BfcAllocator { inner })
    }
}

#[derive(Debug)]
struct AllocatorInner {
    device: Device,
    options: BfcOptions,
    regions: Mutex<Regions>,
}

#[derive(Debug)]
struct Regions {
    fit: BestFit,
    /// The memory of each region; `None` for a region that was released.
    memories: Vec<Option<DeviceMemory>>,
    next_region: u64,
    stats: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    allocations: u64,
    in_use: u64,
    peak_in_use: u64,
    largest: u64,
    reserved: u64,
    peak_reserved: u64,
}

impl AllocatorInner {
    fn regions(&self) -> MutexGuard<'_, Regions> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A chunk of a region, returned on drop.
#[derive(Debug)]
pub(crate) struct TakenChunk {
    inner: Arc<AllocatorInner>,
    chunk: u32,
}

impl TakenChunk {
    pub(crate) fn device(&self) -> &Device {
        &self.inner.device
    }
}

impl Drop for TakenChunk {
    fn drop(&mut self) {
        let mut regions = self.inner.regions();
        let size = regions.fit.give_back(self.chunk);
        regions.stats.in_use -= size;
    }
}

impl BfcAllocator {
    /// Creates an allocator over `device`. It requests nothing from the device before the first
    /// allocation.
    #[must_use]
    pub fn new(device: &Device, options: BfcOptions) -> Self {
        let regions = Regions {
            fit: BestFit::new(),
            memories: Vec::new(),
            next_region: options.first_region.max(GRANULE),
            stats: Counts::default(),
        };
        let inner =
            AllocatorInner { device: device.clone(), options, regions: Mutex::new(regions) };
        Self { inner: Arc::new(inner) }
    }

    /// Returns a handle that does not keep the allocator alive.
    pub(crate) fn downgrade(&self) -> WeakBfcAllocator {
        WeakBfcAllocator { inner: Arc::downgrade(&self.inner) }
    }

    /// Creates a separate allocator like TensorFlow does for the device's platform: it grows if the
    /// platform forces growth or the device cannot report its free memory.
    ///
    /// # Errors
    /// The error that the plug-in reports.
    pub fn for_device(device: &Device) -> Result<Self, Error> {
        let forced = device.registration().facts.force_memory_growth;
        let usage = match device.memory_usage() {
            Err(error) if error.is_unsupported() => None,
            usage => usage?,
        };
        let growth = forced || usage.is_none();
        let limit = usage.and_then(|usage| u64::try_from(usage.free).ok()).filter(|&free| free > 0);
        Ok(Self::new(device, BfcOptions { limit, growth, ..BfcOptions::default() }))
    }

    /// Returns the device whose memory the allocator distributes.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Allocates `bytes` bytes, aligned to 256 bytes within a region. The memory returns to the
    /// allocator on drop.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the limit or the device allows no more.
    pub fn allocate(&self, bytes: u64) -> Result<DeviceMemory, Error> {
        let inner = &self.inner;
        if bytes == 0 {
            return DeviceMemory::allocate(&inner.device, 0);
        }
        let full = || Error::OutOfMemory { call: "the best-fit allocator", bytes };
        let size = rounded(bytes).ok_or_else(full)?;
        let mut regions = inner.regions();
        let given = match regions.fit.take(size) {
            Some(given) => given,
            None => {
                regions.extend(&inner.device, &inner.options, size).map_err(
                    |error| match error {
                        Error::OutOfMemory { .. } => full(),
                        other => other,
                    },
                )?;
                regions.fit.take(size).ok_or_else(full)?
            }
        };
        regions.count(given);
        let region = regions.memories.get(given.region as usize).and_then(Option::as_ref);
        let base = region.map(|region| region.base_of_part(given.offset, bytes));
        drop(regions);
        let taken = TakenChunk { inner: Arc::clone(inner), chunk: given.chunk };
        Ok(DeviceMemory::of_chunk(base.ok_or_else(full)?, taken))
    }

    /// Returns unused regions to the device. Returns their number of bytes.
    pub fn release_unused(&self) -> u64 {
        let mut regions = self.inner.regions();
        let before = regions.stats.reserved;
        let released = regions.release_unused();
        let bytes = before - regions.stats.reserved;
        drop(regions);
        drop(released);
        bytes
    }

    /// Returns the statistics.
    #[must_use]
    pub fn stats(&self) -> AllocatorStats {
        let regions = self.inner.regions();
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let counts = regions.stats;
        AllocatorStats {
            num_allocs: signed(counts.allocations),
            bytes_in_use: signed(counts.in_use),
            peak_bytes_in_use: signed(counts.peak_in_use),
            largest_alloc_size: signed(counts.largest),
            bytes_limit: self.inner.options.limit.map(signed),
            bytes_reserved: signed(counts.reserved),
            peak_bytes_reserved: signed(counts.peak_reserved),
            bytes_reservable_limit: self.inner.options.limit.map(signed),
            largest_free_block_bytes: signed(regions.fit.largest_free()),
        }
    }
}

impl Regions {
    fn count(&mut self, given: Given) {
        let stats = &mut self.stats;
        stats.allocations += 1;
        stats.in_use += given.size;
        stats.peak_in_use = stats.peak_in_use.max(stats.in_use);
        stats.largest = stats.largest.max(given.size);
    }

    /// Requests a region that holds `size` bytes.
    fn extend(&mut self, device: &Device, options: &BfcOptions, size: u64) -> Result<(), Error> {
        match self.try_extend(device, options, size) {
            Err(Error::OutOfMemory { .. }) if self.stats.reserved > 0 => {
                // Unused regions may be too short for this request, and take the memory that a
                // longer one needs.
                drop(self.release_unused());
                self.try_extend(device, options, size)
            }
            result => result,
        }
    }

    fn try_extend(
        &mut self,
        device: &Device,
        options: &BfcOptions,
        size: u64,
    ) -> Result<(), Error> {
        let full = Error::OutOfMemory { call: "the best-fit allocator", bytes: size };
        let available =
            options.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.stats.reserved));
        let available = available / GRANULE * GRANULE;
        if size > available {
            return Err(full);
        }
        let wanted = if options.growth {
            self.next_region.max(size)
        } else if options.limit.is_some() {
            available
        } else {
            let free =
                device.memory_usage()?.map_or(0, |usage| u64::try_from(usage.free).unwrap_or(0));
            free.max(size)
        };
        let mut bytes = wanted.min(available) / GRANULE * GRANULE;
        loop {
            match DeviceMemory::allocate(device, bytes) {
                Ok(memory) => {
                    let region = u32::try_from(self.memories.len()).map_err(|_| full)?;
                    self.fit.add_region(region, bytes);
                    self.memories.push(Some(memory));
                    self.stats.reserved += bytes;
                    self.stats.peak_reserved = self.stats.peak_reserved.max(self.stats.reserved);
                    // The next region is twice as large as this one was meant to be.
                    while self.next_region <= bytes && self.next_region < 1 << 40 {
                        self.next_region *= 2;
                    }
                    return Ok(());
                }
                // A smaller region may be available.
                Err(Error::OutOfMemory { .. }) if bytes > size => {
                    bytes = (bytes / 10 * 9 / GRANULE * GRANULE).max(size);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes the regions in which nothing is in use.
    fn release_unused(&mut self) -> Vec<DeviceMemory> {
        let free = self.fit.remove_free_regions();
        let released: Vec<DeviceMemory> = free
            .into_iter()
            .filter_map(|region| self.memories.get_mut(region as usize)?.take())
            .collect();
        for region in &released {
            self.stats.reserved -= region.size();
        }
        released
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LayoutChoice, Plugin};

    fn device(options: &str) -> Device {
        Plugin::open(options, LayoutChoice::Detect).unwrap().device(0).unwrap()
    }

    #[test]
    fn parts_of_regions_are_memory_like_any_other() {
        let device = device("host");
        let allocator = BfcAllocator::new(&device, BfcOptions::default());
        let mut live = Vec::new();
        for index in 0..100usize {
            let memory = allocator.allocate(index as u64 * 100 + 1).unwrap();
            assert_eq!(memory.size(), index as u64 * 100 + 1);
            device.copy_to_device(&vec![index as u8; index * 100 + 1], &memory, 0).unwrap();
            live.push(memory);
        }
        for (index, memory) in live.iter().enumerate() {
            assert_eq!(device.download(memory).unwrap(), vec![index as u8; index * 100 + 1]);
        }
        let stats = allocator.stats();
        assert_eq!(stats.num_allocs, 100);
        assert!(
            stats.bytes_in_use >= 100 * 99 / 2 * 100 && stats.bytes_reserved >= stats.bytes_in_use
        );
        drop(live);
        let stats = allocator.stats();
        assert_eq!(stats.bytes_in_use, 0);
        assert_eq!(stats.largest_free_block_bytes, stats.bytes_reserved);
        assert_eq!(allocator.release_unused(), stats.bytes_reserved as u64);
        assert_eq!(device.allocator_stats().unwrap().unwrap().bytes_in_use, 0);
    }

    #[test]
    fn memory_outlives_the_allocators_handle() {
        let device = device("host");
        let memory = BfcAllocator::new(&device, BfcOptions::default()).allocate(10).unwrap();
        device.copy_to_device(&[1; 10], &memory, 0).unwrap();
        assert!(device.copy_to_device(&[1; 11], &memory, 0).is_err());
        drop(memory);
        assert_eq!(device.allocator_stats().unwrap().unwrap().bytes_in_use, 0);
    }

    #[test]
    fn the_limit_and_the_device_bound_it() {
        let device = device("host:memory=4000000");
        let limited =
            BfcAllocator::new(&device, BfcOptions::new().with_limit(1 << 20).with_growth(false));
        let first = limited.allocate(1 << 19).unwrap();
        assert_eq!(limited.stats().bytes_reserved, 1 << 20);
        assert!(matches!(
            limited.allocate(600_000),
            Err(Error::OutOfMemory { bytes: 600_000, .. })
        ));
        let second = limited.allocate(1 << 19).unwrap();
        assert!(limited.allocate(1).is_err());
        drop((first, second));
        limited.allocate(1 << 20).unwrap();
        drop(limited);

        // The device has less memory than the next region needs: the allocator takes all of it.
        let growing = BfcAllocator::new(&device, BfcOptions::default());
        let live: Vec<_> = std::iter::from_fn(|| growing.allocate(100_000).ok()).collect();
        assert!(live.len() >= 30, "{}", live.len());
        assert!(growing.allocate(u64::MAX).is_err());
        drop(live);
        // Short unused regions are freed for a long one.
        growing.allocate(3_900_000).unwrap();
    }

    #[test]
    fn an_allocator_is_made_as_the_platform_asks() {
        let device = device("host:memory=1000000,allocator=bfc");
        let allocator = BfcAllocator::for_device(&device).unwrap();
        let memory = allocator.allocate(1000).unwrap();
        assert_eq!(allocator.stats().bytes_limit, Some(1_000_000));
        assert_eq!(device.download(&memory).unwrap().len(), 1000);
    }

    #[test]
    fn a_platform_that_asks_for_best_fit_gets_it_from_every_door() {
        let device = device("host:memory=4000000,allocator=bfc");
        let allocator = device.allocator().expect("the platform asks for one");
        let memories: Vec<_> = (0..100).map(|_| device.upload(&[7; 1000]).unwrap()).collect();
        // Another handle of the device has the same allocator, which is also reached through its
        // memory.
        let again = memories[0].device().allocate(10).unwrap();
        assert_eq!(allocator.stats().num_allocs, 101);
        let inside = memories[0].device().allocator().unwrap();
        assert_eq!(inside.stats().num_allocs, 101);
        drop(inside);
        // One call of the plug-in for all of them.
        let plugins = || device.allocator_stats().unwrap().unwrap();
        assert_eq!(plugins().num_allocs, 1);
        assert!(plugins().bytes_in_use >= 1 << 20);
        for memory in &memories {
            assert_eq!(device.download(memory).unwrap(), [7; 1000]);
        }
        drop((memories, again));
        assert_eq!(allocator.release_unused(), 1 << 20);
        assert_eq!(plugins().bytes_in_use, 0);
    }

    #[test]
    fn allocator_goes_with_its_last_user_and_keeps_no_plugin() {
        let plugin = Plugin::open("host:allocator=bfc", LayoutChoice::Detect).unwrap();
        let memory = plugin.device(0).unwrap().upload(&[1, 2, 3]).unwrap();
        // Only the memory holds the allocator now; a new handle finds it.
        let device = plugin.device(0).unwrap();
        assert_eq!(device.allocator().unwrap().stats().num_allocs, 1);
        assert_eq!(device.download(&memory).unwrap(), [1, 2, 3]);
        drop(device);
        drop(memory);
        // The unused region was returned, so the next one is new.
        let device = plugin.device(0).unwrap();
        assert_eq!(device.allocator_stats().unwrap().unwrap().bytes_in_use, 0);
        assert_eq!(device.allocator().unwrap().stats().num_allocs, 0);
    }

    #[test]
    fn a_platform_that_does_not_ask_is_asked_itself_each_time() {
        let device = device("host");
        assert!(device.allocator().is_none());
        let _memories: Vec<_> = (0..10).map(|_| device.allocate(100).unwrap()).collect();
        assert_eq!(device.allocator_stats().unwrap().unwrap().num_allocs, 10);
    }
}
