//! A device with 64 MiB of memory. `cargo build --release` makes `libtemplate_plugin.so`, which
//! TensorFlow and `serdes` load.

use std::{collections::BTreeMap, sync::Mutex};

use serdes_plugin::*;

#[derive(Default)]
struct Template {
    /// The blocks, by their addresses on the device.
    blocks: Mutex<BTreeMap<u64, Vec<u8>>>,
}

const TOTAL: u64 = 64 << 20;

impl Template {
    /// Runs an operation on the bytes of a memory, which may be a part of a block.
    fn with<T>(&self, memory: &DeviceMemory, operation: impl FnOnce(&mut [u8]) -> T) -> Result<T> {
        let mut blocks = self.blocks.lock().unwrap();
        let block = blocks.range_mut(..=memory.address()).next_back();
        let (start, block) = block.ok_or_else(|| Status::not_found("no memory there"))?;
        let first = (memory.address() - start) as usize;
        let bytes = block.get_mut(first..first + memory.size() as usize);
        bytes.map(operation).ok_or_else(|| Status::not_found("beyond the end of a block"))
    }
}

impl MemoryDevice for Template {
    fn allocate(&self, request: AllocationRequest) -> Option<Allocation> {
        let mut blocks = self.blocks.lock().unwrap();
        let used: u64 = blocks.values().map(|block| block.len() as u64).sum();
        if used.checked_add(request.size)? > TOTAL {
            return None;
        }
        let end = blocks.last_key_value().map_or(0, |(start, block)| start + block.len() as u64);
        let address = (end + 1).next_multiple_of(request.alignment.max(256));
        blocks.insert(address, vec![0; request.size as usize]);
        Some(Allocation::at(address, request.size))
    }
    fn deallocate(&self, memory: DeviceMemory) {
        self.blocks.lock().unwrap().remove(&memory.address());
    }
    fn read(&self, source: &DeviceMemory, target: &mut HostTarget) -> Result<()> {
        self.with(source, |bytes| target.write(bytes))?
    }
    fn write(&self, target: &DeviceMemory, source: &HostSource) -> Result<()> {
        self.with(target, |bytes| source.read(bytes))?
    }
    fn memory_usage(&self) -> Option<MemoryUsage> {
        let used: usize = self.blocks.lock().unwrap().values().map(Vec::len).sum();
        Some(MemoryUsage { free: TOTAL - used as u64, total: TOTAL })
    }
}

export!(|| Ok(SingleDevice::new("TEMPLATE", Template::default)));
