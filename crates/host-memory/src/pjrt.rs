//! Host memory as a PJRT plug-in, for arrays and copies: its devices compile no programs.
//!
//! Each device has three memories, like an accelerator: `device`, `pinned_host` and
//! `unpinned_host`. All of them are memory of the process; the device's limit applies to the first.

use std::{
    collections::BTreeMap,
    ffi::c_void,
    ptr::{self, NonNull},
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use serdes_plugin::{
    AllocatorStats, HostSource, HostTarget, Result, Status,
    pjrt::{Buffer, Client, Device, Memory, Options, Plugin, Value},
};

use crate::{
    DEVICE_KIND,
    pool::{Ledger, Pool},
};

/// The name under which frameworks find the devices.
pub const PLATFORM_NAME: &str = "serdes_host";

/// Devices over host memory, as a PJRT plug-in.
///
/// A client takes the options `devices` (their number) and `memory` (the bytes of each). Missing
/// options come from the environment variable `SERDES_HOST_PLUGIN`.
#[derive(Clone, Copy, Debug)]
pub struct HostMemoryPjrt;

/// A client of [`HostMemoryPjrt`].
#[derive(Debug)]
pub struct HostClient {
    pools: Vec<Arc<Pool>>,
    /// Registered host memory: start address, and number of bytes.
    mapped: Mutex<BTreeMap<usize, usize>>,
}

/// A device of a [`HostClient`].
#[derive(Debug)]
pub struct HostPjrtDevice(Arc<Pool>);

/// A memory of a device.
#[derive(Debug)]
pub struct HostPjrtMemory {
    pool: Arc<Pool>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Device,
    PinnedHost,
    UnpinnedHost,
}

/// A buffer in a memory.
#[derive(Debug)]
pub struct HostPjrtBuffer {
    pool: Arc<Pool>,
    kind: Kind,
    start: NonNull<c_void>,
    size: usize,
    /// Held while the bytes are read or written.
    bytes: RwLock<()>,
}

// SAFETY: the bytes are read under the lock that readers share, and written under the lock of one
// writer; the address itself does not change.
unsafe impl Send for HostPjrtBuffer {}
// SAFETY: as above.
unsafe impl Sync for HostPjrtBuffer {}

impl Plugin for HostMemoryPjrt {
    type Client = HostClient;

    fn attributes() -> Vec<(String, Value)> {
        // Some frameworks query a version of the compiler, although no program is compiled.
        vec![("xla_version".to_owned(), Value::Integer(0))]
    }

    fn create_client(options: &Options) -> Result<HostClient> {
        options.only(&["devices", "memory"])?;
        let defaults = crate::Options::from_environment();
        let mut chosen = defaults.map_err(|error| Status::invalid_argument(error.to_string()))?;
        if let Some(devices) = options.integer("devices")? {
            let known = u32::try_from(devices)
                .ok()
                .filter(|devices| *devices <= crate::options::MAX_DEVICES);
            chosen.devices = known.ok_or_else(|| {
                Status::invalid_argument(format!(
                    "found {devices} devices, expected 0 to {}",
                    crate::options::MAX_DEVICES
                ))
            })?;
        }
        if let Some(memory) = options.integer("memory")? {
            chosen.memory = Some(u64::try_from(memory).map_err(|_| {
                Status::invalid_argument(format!(
                    "found {memory} bytes of memory, expected 0 or more"
                ))
            })?);
        }
        let machine = Arc::new(Ledger::of_machine());
        let pools = (0..chosen.devices)
            .map(|_| Arc::new(Pool::new(chosen.memory, Arc::clone(&machine))))
            .collect();
        Ok(HostClient { pools, mapped: Mutex::default() })
    }
}

impl Client for HostClient {
    type Device = HostPjrtDevice;

    fn platform_name(&self) -> &str {
        PLATFORM_NAME
    }

    fn platform_version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn devices(&self) -> Result<Vec<HostPjrtDevice>> {
        Ok(self.pools.iter().map(|pool| HostPjrtDevice(Arc::clone(pool))).collect())
    }

    /// Only records the memory: devices can access all memory of the process.
    fn map_host_memory(&self, memory: &HostTarget) -> Result<()> {
        let start = memory.as_ptr().addr();
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        if mapped.contains_key(&start) {
            return Err(Status::new(
                serdes_plugin::abi::TF_Code::ALREADY_EXISTS,
                format!("memory of the host at {start:#x} is mapped already"),
            ));
        }
        mapped.insert(start, memory.len());
        Ok(())
    }

    fn unmap_host_memory(&self, start: NonNull<c_void>) -> Result<()> {
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        let address = start.addr().get();
        mapped.remove(&address).map(drop).ok_or_else(|| {
            Status::not_found(format!("memory of the host at {address:#x} is not mapped"))
        })
    }
}

impl Device for HostPjrtDevice {
    type Memory = HostPjrtMemory;

    fn kind(&self) -> &str {
        DEVICE_KIND
    }

    fn memories(&self) -> Result<Vec<HostPjrtMemory>> {
        let kinds = [Kind::Device, Kind::PinnedHost, Kind::UnpinnedHost];
        Ok(kinds.map(|kind| HostPjrtMemory { pool: Arc::clone(&self.0), kind }).into())
    }

    fn memory_stats(&self) -> Option<AllocatorStats> {
        Some(self.0.stats())
    }
}

impl Memory for HostPjrtMemory {
    type Buffer = HostPjrtBuffer;

    fn kind(&self) -> &str {
        match self.kind {
            Kind::Device => "device",
            Kind::PinnedHost => "pinned_host",
            Kind::UnpinnedHost => "unpinned_host",
        }
    }

    fn is_host(&self) -> bool {
        self.kind != Kind::Device
    }

    fn allocate(&self, size: u64) -> Result<HostPjrtBuffer> {
        let start = match self.kind {
            Kind::Device => self.pool.allocate(size, 1),
            Kind::PinnedHost | Kind::UnpinnedHost => self.pool.allocate_host(size),
        };
        let found = start.zip(usize::try_from(size).ok());
        let (start, size) = found.ok_or_else(|| {
            let kind = self.kind();
            Status::resource_exhausted(format!("there are no {size} bytes left in memory {kind:?}"))
        })?;
        let pool = Arc::clone(&self.pool);
        Ok(HostPjrtBuffer { pool, kind: self.kind, start, size, bytes: RwLock::new(()) })
    }
}

impl Drop for HostPjrtBuffer {
    fn drop(&mut self) {
        let address = self.start.addr().get();
        // SAFETY: the buffer is being dropped, and is the last user of the memory.
        unsafe {
            match self.kind {
                Kind::Device => self.pool.deallocate(address),
                Kind::PinnedHost | Kind::UnpinnedHost => self.pool.deallocate_host(address),
            }
        }
    }
}

impl HostPjrtBuffer {
    /// Returns the address of `length` bytes at `offset`.
    fn part(&self, offset: u64, length: usize) -> Result<*mut u8> {
        let start = usize::try_from(offset).ok();
        let end = start.and_then(|start| start.checked_add(length));
        match start.filter(|_| end.is_some_and(|end| end <= self.size)) {
            // SAFETY: the offset is inside the buffer, which is one allocation.
            Some(start) => Ok(unsafe { self.start.as_ptr().cast::<u8>().add(start) }),
            None => Err(Status::invalid_argument(format!(
                "{length} bytes at {offset} of a buffer of {} bytes",
                self.size
            ))),
        }
    }
}

impl Buffer for HostPjrtBuffer {
    fn write(&self, offset: u64, source: &HostSource) -> Result<()> {
        let target = self.part(offset, source.len())?;
        let _alone = self.bytes.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: both are `source.len()` bytes: by `part`, and by the promise of `HostSource`. The
        // lock excludes other users of the buffer's bytes. They may overlap: `copy` allows that.
        unsafe { ptr::copy(source.as_ptr(), target, source.len()) };
        Ok(())
    }

    fn read(&self, offset: u64, target: &mut HostTarget) -> Result<()> {
        let source = self.part(offset, target.len())?;
        let _readers = self.bytes.read().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: as in `write`, the other way round.
        unsafe { ptr::copy(source, target.as_mut_ptr(), target.len()) };
        Ok(())
    }

    fn copy_from(&self, source: &Self) -> Result<bool> {
        if ptr::eq(self, source) {
            return Ok(true);
        }
        if self.size != source.size {
            return Err(Status::invalid_argument(format!(
                "a copy of {} bytes to {}",
                source.size, self.size
            )));
        }
        // Locks in the order of addresses: otherwise two buffers that are copied to each other at
        // once would wait for each other.
        let is_first = ptr::from_ref(self) < ptr::from_ref(source);
        let own = || self.bytes.write().unwrap_or_else(PoisonError::into_inner);
        let other = || source.bytes.read().unwrap_or_else(PoisonError::into_inner);
        let (_alone, _readers);
        if is_first {
            (_alone, _readers) = (own(), other());
        } else {
            let readers = other();
            (_alone, _readers) = (own(), readers);
        }
        let (from, to) = (source.start.as_ptr().cast::<u8>(), self.start.as_ptr().cast::<u8>());
        // SAFETY: two allocations of `size` bytes, and both locks are held.
        unsafe { ptr::copy_nonoverlapping(from, to, self.size) };
        Ok(true)
    }

    fn address(&self) -> Option<NonNull<c_void>> {
        Some(self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memories(options: Vec<(String, Value)>) -> Result<Vec<HostPjrtMemory>> {
        let client = HostMemoryPjrt::create_client(&Options::new(options))?;
        let devices = client.devices()?;
        let memories = devices.iter().map(HostPjrtDevice::memories);
        Ok(memories.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    fn option(name: &str, number: i64) -> Vec<(String, Value)> {
        vec![(name.to_owned(), Value::Integer(number))]
    }

    #[test]
    fn client_has_the_asked_devices_with_three_memories_each() {
        let kinds: Vec<String> = memories(option("devices", 2))
            .unwrap()
            .iter()
            .map(|memory| memory.kind().to_owned())
            .collect();
        let three = ["device", "pinned_host", "unpinned_host"];
        assert_eq!(kinds, [three, three].concat());
    }

    #[test]
    fn options_that_cannot_be_are_refused_with_what_can() {
        for (options, part) in [
            (option("devices", -1), "expected 0 to 1024"),
            (option("devices", 1025), "expected 0 to 1024"),
            (option("memory", -1), "expected 0 or more"),
            (option("cpu_device_count", 1), "[\"devices\", \"memory\"]"),
        ] {
            let error = memories(options).unwrap_err();
            assert!(error.message().contains(part), "{error}");
        }
    }

    #[test]
    fn limit_counts_device_memory_until_a_buffer_is_dropped() {
        let memories = memories(option("memory", 100)).unwrap();
        let [device, pinned, _] = memories.as_slice() else { panic!("three memories") };
        let held = device.allocate(60).unwrap();
        let error = device.allocate(41).unwrap_err();
        assert!(error.message().contains("41 bytes left in memory \"device\""), "{error}");
        assert!(pinned.allocate(1000).is_ok());
        drop(held);
        assert!(device.allocate(100).is_ok());
    }

    #[test]
    fn bytes_are_kept_inside_of_a_buffer_and_copied_to_another() {
        let memories = memories(option("devices", 2)).unwrap();
        let [first, second] = [0, 4].map(|index: usize| memories[index].allocate(4).unwrap());
        let given = [1_u8, 2, 3];
        // SAFETY: `given` outlives the value, and is not written.
        let source = unsafe { HostSource::from_raw(given.as_ptr().cast(), 3) };
        assert_eq!(first.write(1, &source), Ok(()));
        assert!(first.write(2, &source).is_err());
        assert!(first.write(u64::MAX, &source).is_err());
        assert_eq!(second.copy_from(&first), Ok(true));
        assert_eq!(second.copy_from(&second), Ok(true));
        let mut got = [0_u8; 3];
        // SAFETY: `got` outlives the value, and has no other user.
        let mut target = unsafe { HostTarget::from_raw(got.as_mut_ptr().cast(), 3) };
        assert_eq!(second.read(1, &mut target), Ok(()));
        assert!(second.read(2, &mut target).is_err());
        assert_eq!(got, given);
    }

    #[test]
    fn mapped_memory_is_known_until_it_is_unmapped() {
        let client = HostMemoryPjrt::create_client(&Options::default()).unwrap();
        let mut bytes = [0_u8; 8];
        let start = NonNull::from(&mut bytes).cast();
        // SAFETY: `bytes` outlives the value, and has no other user.
        let memory = unsafe { HostTarget::from_raw(start.as_ptr(), 8) };
        assert_eq!(client.map_host_memory(&memory), Ok(()));
        assert!(client.map_host_memory(&memory).is_err());
        assert_eq!(client.unmap_host_memory(start), Ok(()));
        assert!(client.unmap_host_memory(start).is_err());
    }
}
