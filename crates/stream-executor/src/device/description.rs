//! Descriptions of devices.

/// The description of a device from its plug-in. Missing parts are `None`.
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
    /// The NUMA node of the host closest to the device; -1 if unknown.
    pub numa_node: i32,
    /// Bytes per second to and from the device's memory.
    pub memory_bandwidth: Option<i64>,
    /// Estimated billions of floating-point operations per second.
    pub gflops: Option<f64>,
}

/// Statistics of a device's allocator, in bytes except for `num_allocs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllocatorStats {
    /// The number of allocations so far.
    pub num_allocs: i64,
    /// Bytes in use.
    pub bytes_in_use: i64,
    /// The largest number of bytes that were in use.
    pub peak_bytes_in_use: i64,
    /// The largest allocation so far.
    pub largest_alloc_size: i64,
    /// The largest number of bytes that may be in use.
    pub bytes_limit: Option<i64>,
    /// Bytes reserved.
    pub bytes_reserved: i64,
    /// The largest number of bytes that were reserved.
    pub peak_bytes_reserved: i64,
    /// The largest number of bytes that may be reserved.
    pub bytes_reservable_limit: Option<i64>,
    /// The largest free block.
    pub largest_free_block_bytes: i64,
}

/// Free and total memory of a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Free bytes.
    pub free: i64,
    /// The total number of bytes.
    pub total: i64,
}
