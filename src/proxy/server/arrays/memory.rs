//! Where the bytes of shards are: on a device or in its pinned host memory; and shards whose bytes
//! are still on their way.

use std::sync::Arc;

use super::zeroed;
use crate::{
    codec::Status,
    proxy::{
        server::{
            budget::Share,
            metrics::{Counted, Gauges},
            promise::Promised,
        },
        status::{of_device, status},
    },
    stream_executor::{Device, DeviceMemory, Error, HostMemory},
};

/// A kind of memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// The device's own.
    Device,
    /// The host's, from the plug-in's allocator where it has one.
    PinnedHost,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Device, Self::PinnedHost];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::PinnedHost => "pinned_host",
        }
    }
}

/// A kind of memory of a certain device, by the device's place in the list of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MemorySpace {
    pub(crate) device: usize,
    pub(crate) kind: Kind,
}

#[derive(Debug)]
enum Bytes {
    Device(DeviceMemory),
    Host(HostMemory),
}

/// The bytes of a shard. They are written once, when it is made.
#[derive(Debug)]
pub(crate) struct Memory {
    bytes: Bytes,
    size: u64,
    device: Device,
    _share: Share,
    _counted: [Counted; 2],
}

/// Memory that is being written, from its first byte on.
#[derive(Debug)]
pub(crate) struct MemoryWriter {
    memory: Memory,
    written: u64,
}

impl MemoryWriter {
    /// New memory of `size` bytes. May wait for the device.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED; what the plug-in reports.
    pub(crate) fn new(
        device: &Device,
        kind: Kind,
        size: u64,
        share: Share,
        gauges: &Arc<Gauges>,
    ) -> Result<Self, Status> {
        let bytes = match kind {
            Kind::Device => {
                Bytes::Device(device.allocate(size).map_err(|error| of_device(&error))?)
            }
            Kind::PinnedHost => Bytes::Host(pinned(device, size)?),
        };
        Ok(Self { memory: Memory::new(bytes, size, device, share, gauges), written: 0 })
    }

    /// Writes the next bytes. Waits for the device.
    ///
    /// # Errors
    /// INTERNAL for more bytes than there is memory; what the plug-in reports.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), Status> {
        let end = self.written.saturating_add(piece.len() as u64);
        if end > self.memory.size {
            return Err(status!(Internal, "{end} bytes are more than {}", self.memory.size));
        }
        match &mut self.memory.bytes {
            Bytes::Device(memory) => self
                .memory
                .device
                .copy_to_device(piece, memory, self.written)
                .map_err(|error| of_device(&error))?,
            Bytes::Host(memory) => {
                let target = usize::try_from(self.written)
                    .ok()
                    .and_then(|start| memory.get_mut(start..)?.get_mut(..piece.len()));
                target
                    .ok_or_else(|| status!(Internal, "more bytes than memory"))?
                    .copy_from_slice(piece);
            }
        }
        self.written = end;
        Ok(())
    }

    /// Writes the next bytes, at most `most`, of a memory of the same size; whether that were the
    /// last ones. Waits for the device.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn copy_next(&mut self, source: &Memory, most: u64) -> Result<bool, Status> {
        let length = self.memory.size.saturating_sub(self.written).min(most);
        if let (Bytes::Device(from), Bytes::Device(to)) = (&source.bytes, &self.memory.bytes) {
            let device = &self.memory.device;
            match device.copy_on_device(from, self.written, to, self.written, length) {
                Ok(()) => {
                    self.written += length;
                    return Ok(self.written == self.memory.size);
                }
                // A plug-in without copies between devices: through the host.
                Err(Error::Unsupported { .. }) => {}
                Err(error) => return Err(of_device(&error)),
            }
        }
        let mut piece = zeroed(length)?;
        source.read_part(self.written, &mut piece)?;
        self.push(&piece)?;
        Ok(self.written == self.memory.size)
    }

    /// The memory.
    ///
    /// # Errors
    /// INTERNAL if bytes are missing.
    pub(crate) fn finish(self) -> Result<Memory, Status> {
        if self.written != self.memory.size {
            return Err(status!(
                Internal,
                "{} of {} bytes were written",
                self.written,
                self.memory.size
            ));
        }
        Ok(self.memory)
    }
}

impl Memory {
    /// New memory that holds `pieces`, which are `size` bytes together. Waits for the device.
    ///
    /// # Errors
    /// As [`MemoryWriter::push`] and [`MemoryWriter::finish`].
    pub(crate) fn write<'a>(
        device: &Device,
        kind: Kind,
        size: u64,
        pieces: impl IntoIterator<Item = &'a [u8]>,
        share: Share,
        gauges: &Arc<Gauges>,
    ) -> Result<Self, Status> {
        let mut writer = MemoryWriter::new(device, kind, size, share, gauges)?;
        for piece in pieces {
            writer.push(piece)?;
        }
        writer.finish()
    }

    fn new(bytes: Bytes, size: u64, device: &Device, share: Share, gauges: &Arc<Gauges>) -> Self {
        let counted = [
            gauges.hold(|gauges| &gauges.shards, 1),
            gauges.hold(|gauges| &gauges.shard_bytes, size),
        ];
        Self { bytes, size, device: device.clone(), _share: share, _counted: counted }
    }

    /// Memory that is on a device already.
    pub(crate) fn of_device(memory: DeviceMemory, share: Share, gauges: &Arc<Gauges>) -> Self {
        let (size, device) = (memory.size(), memory.device().clone());
        Self::new(Bytes::Device(memory), size, &device, share, gauges)
    }

    /// The device's own memory, if it is there.
    pub(crate) fn on_device(&self) -> Option<&DeviceMemory> {
        match &self.bytes {
            Bytes::Device(memory) => Some(memory),
            Bytes::Host(_) => None,
        }
    }

    /// The bytes, on the host. Waits for the device.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED; what the plug-in reports.
    pub(crate) fn read(&self) -> Result<Vec<u8>, Status> {
        match &self.bytes {
            Bytes::Device(memory) => {
                self.device.download(memory).map_err(|error| of_device(&error))
            }
            Bytes::Host(memory) => {
                let mut bytes = Vec::new();
                bytes.try_reserve_exact(memory.len()).map_err(|_| {
                    status!(ResourceExhausted, "the host has no {} bytes left", memory.len())
                })?;
                bytes.extend_from_slice(memory);
                Ok(bytes)
            }
        }
    }

    /// The bytes from `offset` on that fill `target`, on the host. Waits for the device.
    ///
    /// # Errors
    /// INTERNAL if there are not that many; what the plug-in reports.
    pub(crate) fn read_part(&self, offset: u64, target: &mut [u8]) -> Result<(), Status> {
        match &self.bytes {
            Bytes::Device(memory) => {
                self.device.copy_to_host(memory, offset, target).map_err(|error| of_device(&error))
            }
            Bytes::Host(memory) => {
                let source = usize::try_from(offset)
                    .ok()
                    .and_then(|start| memory.get(start..)?.get(..target.len()));
                let source = source.ok_or_else(|| {
                    status!(
                        Internal,
                        "{} bytes at {offset} are outside of {}",
                        target.len(),
                        self.size
                    )
                })?;
                target.copy_from_slice(source);
                Ok(())
            }
        }
    }

    pub(crate) const fn size(&self) -> u64 {
        self.size
    }
}

fn pinned(device: &Device, size: u64) -> Result<HostMemory, Status> {
    let size = usize::try_from(size).map_err(|_| {
        status!(ResourceExhausted, "{size} bytes are more than this machine addresses")
    })?;
    device.allocate_host(size).map_err(|error| of_device(&error))
}

/// The memory of a shard, there already or on its way. Clones are the same memory.
pub(crate) type Buffer = Promised<Arc<Memory>>;
