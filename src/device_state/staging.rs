//! How the bytes of a state get into the buffers that are written: through calls that wait,
//! through a stream of the device, or from a reader.

use std::{collections::VecDeque, io::Read};

use super::{
    Error, Writer,
    buffer::{Buffer, capacity_at},
    chunks::ChunkSums,
};
use crate::stream_executor::{DeviceMemory, Transfer};

/// Copies from a device that are under way at a time.
const IN_FLIGHT: usize = 3;
/// Buffers on the way: those that the device fills, those that are or wait to be written.
pub(super) const BUFFERS: usize = 2 * IN_FLIGHT;
/// Tensors from this size on are copied by a stream, into buffers of their own; smaller ones share
/// buffers, and a call that waits costs less than an event each.
const STREAMED_FROM: u64 = 1 << 20;

/// A buffer that is being filled.
pub(super) struct Filling {
    buffer: Buffer,
    used: usize,
    /// Where the next buffer begins.
    limit: usize,
}

impl Filling {
    /// What is free of it, at most `most` bytes.
    fn vacant(&mut self, most: u64) -> &mut [u8] {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let end = self.limit.min(self.used.saturating_add(most));
        self.buffer.get_mut(self.used..end).unwrap_or_default()
    }
}

impl Writer {
    /// Hands the buffer that is being filled to the file.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        let Some(Filling { buffer, used, .. }) = self.current.take() else { return Ok(()) };
        self.give(buffer, used)
    }

    fn give(&mut self, buffer: Buffer, used: usize) -> Result<(), Error> {
        self.output.give(buffer, used).map_err(|error| Error::io("write", &self.path, error))
    }

    /// An empty buffer, of the device's memory where there is a device.
    fn take(&mut self) -> Result<Buffer, Error> {
        let device = self.device.as_ref();
        self.output
            .take(|| match device {
                Some(device) => Buffer::pinned(device)
                    .map_err(|error| Error::device("allocating host memory for", "", error)),
                None => Ok(Buffer::pageable()),
            })
            .map_err(|error| Error::io("write", &self.path, error))?
    }

    /// The buffer that is being filled, with room in it.
    fn room(&mut self) -> Result<&mut Filling, Error> {
        if self.current.as_ref().is_some_and(|filling| filling.used >= filling.limit) {
            self.flush()?;
        }
        let limit = capacity_at(self.position);
        if self.current.is_none() {
            let buffer = self.take()?;
            return Ok(self.current.insert(Filling { buffer, used: 0, limit }));
        }
        // Never `None` here; the insertion is for the type.
        let none = || Filling { buffer: Buffer::pageable(), used: 0, limit };
        Ok(self.current.get_or_insert_with(none))
    }

    /// The data of a piece out of device memory.
    pub(super) fn put_memory(
        &mut self,
        name: &str,
        memory: &DeviceMemory,
        sums: ChunkSums,
    ) -> Result<ChunkSums, Error> {
        if memory.size() >= STREAMED_FROM {
            self.put_streamed(name, memory, sums)
        } else {
            self.put_copied(name, memory, 0, sums)
        }
    }

    /// Data from byte `offset` on through calls that wait, into the buffer that is being filled.
    fn put_copied(
        &mut self,
        name: &str,
        memory: &DeviceMemory,
        mut offset: u64,
        mut sums: ChunkSums,
    ) -> Result<ChunkSums, Error> {
        while offset < memory.size() {
            let filling = self.room()?;
            let part = filling.vacant(memory.size() - offset);
            let now = part.len();
            memory
                .device()
                .copy_to_host(memory, offset, part)
                .map_err(|error| Error::device("reading", name, error))?;
            sums.update(part);
            filling.used += now;
            self.position += now as u64;
            offset += now as u64;
            self.options.watch.advance(now as u64)?;
        }
        Ok(sums)
    }

    /// Data through a stream, several copies ahead of what is summed and written.
    fn put_streamed(
        &mut self,
        name: &str,
        memory: &DeviceMemory,
        mut sums: ChunkSums,
    ) -> Result<ChunkSums, Error> {
        let failed = |error| Error::device("reading", name, error);
        self.flush()?;
        let begin = self.position;
        let known = self.streams.iter().position(|stream| stream.device().is(memory.device()));
        let stream = match known {
            Some(position) => self.streams.swap_remove(position),
            None => memory.device().create_stream().map_err(failed)?,
        };
        let mut under_way = VecDeque::with_capacity(IN_FLIGHT);
        let mut offset = 0;
        while offset < memory.size() || !under_way.is_empty() {
            if offset < memory.size() && under_way.len() < IN_FLIGHT {
                let room = capacity_at(begin + offset);
                let now = (memory.size() - offset).min(room as u64) as usize;
                match self.take()? {
                    Buffer::Pinned(target) => {
                        let transfer =
                            stream.copy_to_host(memory, offset, now, target).map_err(failed)?;
                        under_way.push_back((transfer, now));
                    }
                    // A buffer from before the first device; it must not come between the others.
                    Buffer::Pageable(mut bytes) => {
                        self.complete(name, &mut under_way, 0, &mut sums)?;
                        let part = bytes.get_mut(..now).unwrap_or_default();
                        memory.device().copy_to_host(memory, offset, part).map_err(failed)?;
                        sums.update(part);
                        self.position += now as u64;
                        self.give(Buffer::Pageable(bytes), now)?;
                        self.options.watch.advance(now as u64)?;
                    }
                }
                offset += now as u64;
                continue;
            }
            let left = under_way.len().saturating_sub(1);
            self.complete(name, &mut under_way, left, &mut sums)?;
        }
        self.streams.push(stream);
        Ok(sums)
    }

    /// Waits for the oldest copies until `left` are under way, sums and writes what they brought.
    fn complete(
        &mut self,
        name: &str,
        under_way: &mut VecDeque<(Transfer, usize)>,
        left: usize,
        sums: &mut ChunkSums,
    ) -> Result<(), Error> {
        while under_way.len() > left {
            let Some((transfer, bytes)) = under_way.pop_front() else { return Ok(()) };
            let memory = transfer.wait().map_err(|error| Error::device("reading", name, error))?;
            sums.update(memory.get(..bytes).unwrap_or_default());
            self.position += bytes as u64;
            self.give(Buffer::Pinned(memory), bytes)?;
            self.options.watch.advance(bytes as u64)?;
        }
        Ok(())
    }

    /// The next bytes of the file.
    pub(super) fn put(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let filling = self.room()?;
            let part = filling.vacant(bytes.len() as u64);
            let (now, later) = bytes.split_at(part.len());
            part.copy_from_slice(now);
            filling.used += now.len();
            self.position += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    pub(super) fn put_zeros(&mut self, mut count: u64) -> Result<(), Error> {
        while count > 0 {
            let now = count.min(64);
            self.put(&[0; 64][..now as usize])?;
            count -= now;
        }
        Ok(())
    }

    /// The next `count` bytes of a piece's data, read straight into the buffers.
    pub(super) fn put_reader(
        &mut self,
        reader: &mut dyn Read,
        mut count: u64,
        mut sums: ChunkSums,
    ) -> Result<ChunkSums, Error> {
        let path = self.path.clone();
        while count > 0 {
            let filling = self.room()?;
            let part = filling.vacant(count);
            let now = part.len();
            reader.read_exact(part).map_err(|error| Error::io("read data for", &path, error))?;
            sums.update(part);
            filling.used += now;
            self.position += now as u64;
            count -= now as u64;
            self.options.watch.advance(now as u64)?;
        }
        Ok(sums)
    }
}
