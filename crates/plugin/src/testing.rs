//! A device for tests, whose memory addresses cannot be dereferenced.

use std::{collections::BTreeMap, sync::Mutex};

use crate::{
    Allocation, AllocationRequest, DeviceMemory, HostSource, HostTarget, MemoryDevice, MemoryUsage,
    Result, Status,
};

/// Blocks by address.
pub(crate) struct Slab {
    blocks: Mutex<BTreeMap<u64, Vec<u8>>>,
    total: u64,
}

impl Slab {
    pub(crate) fn new(total: u64) -> Self {
        Self { blocks: Mutex::new(BTreeMap::new()), total }
    }

    pub(crate) fn peek(&self, allocation: &Allocation) -> Vec<u8> {
        self.blocks.lock().unwrap()[&(allocation.opaque.addr() as u64)].clone()
    }

    pub(crate) fn poke(&self, allocation: &Allocation, bytes: &[u8]) {
        let mut blocks = self.blocks.lock().unwrap();
        blocks.get_mut(&(allocation.opaque.addr() as u64)).unwrap()[..bytes.len()]
            .copy_from_slice(bytes);
    }

    fn with<T>(&self, memory: &DeviceMemory, operation: impl FnOnce(&mut [u8]) -> T) -> Result<T> {
        let mut blocks = self.blocks.lock().unwrap();
        let (start, block) = blocks
            .range_mut(..=memory.address())
            .next_back()
            .ok_or_else(|| Status::not_found("no block at this address"))?;
        let offset = (memory.address() - start) as usize;
        let bytes = block
            .get_mut(offset..offset + memory.size() as usize)
            .ok_or_else(|| Status::invalid_argument("outside of the block"))?;
        Ok(operation(bytes))
    }
}

impl MemoryDevice for Slab {
    fn allocate(&self, request: AllocationRequest) -> Option<Allocation> {
        let mut blocks = self.blocks.lock().unwrap();
        let used: u64 = blocks.values().map(|block| block.len() as u64).sum();
        if request.size > self.total - used {
            return None;
        }
        let end = blocks
            .last_key_value()
            .map_or(0x1_0000, |(start, block)| start + block.len() as u64 + 1);
        let address = end.next_multiple_of(request.alignment.max(256));
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
        Some(MemoryUsage { free: self.total, total: self.total })
    }
}
