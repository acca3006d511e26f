//! Tensors on their way between a stream of bytes and a device: what uploading a source and
//! reading back into a target need.

use std::{
    collections::VecDeque,
    io::{self, Read},
};

use super::{Error, Watch, buffer::BUFFER_BYTES};
use crate::stream_executor::{Device, DeviceMemory, HostMemory, Stream, Transfer};

/// Copies that are under way at a time.
const IN_FLIGHT: usize = 3;

/// Puts tensors onto a device as their bytes come out of a reader.
pub(crate) struct Upload<'a> {
    device: &'a Device,
    watch: &'a Watch,
    stream: Option<Stream>,
    free: Vec<HostMemory>,
}

impl<'a> Upload<'a> {
    pub(crate) fn new(device: &'a Device, watch: &'a Watch) -> Self {
        Self { device, watch, stream: None, free: Vec::new() }
    }

    /// Puts the next `bytes` bytes of `data` onto the device.
    pub(crate) fn put(
        &mut self,
        name: &str,
        data: &mut dyn Read,
        bytes: u64,
    ) -> Result<Result<DeviceMemory, io::Error>, Error> {
        let failed = |error| Error::device("writing", name, error);
        let memory = self.device.allocate(bytes).map_err(failed)?;
        let mut under_way: VecDeque<Transfer> = VecDeque::with_capacity(IN_FLIGHT);
        let mut offset = 0;
        while offset < bytes {
            self.watch.check()?;
            let now = (bytes - offset).min(BUFFER_BYTES as u64) as usize;
            let mut buffer = match self.free.pop() {
                Some(buffer) => buffer,
                None if under_way.len() < IN_FLIGHT => {
                    self.device.allocate_host(BUFFER_BYTES).map_err(failed)?
                }
                None => match under_way.pop_front() {
                    Some(transfer) => transfer.wait().map_err(failed)?,
                    None => break,
                },
            };
            let part = buffer.get_mut(..now).unwrap_or_default();
            if let Err(error) = data.read_exact(part) {
                return Ok(Err(error));
            }
            if bytes < BUFFER_BYTES as u64 {
                // One copy that waits costs less than a stream and an event.
                self.device.copy_to_device(part, &memory, 0).map_err(failed)?;
                self.free.push(buffer);
            } else {
                let stream = match &mut self.stream {
                    Some(stream) => stream,
                    none => none.insert(self.device.create_stream().map_err(failed)?),
                };
                let transfer = stream.copy_to_device(buffer, now, &memory, offset);
                under_way.push_back(transfer.map_err(failed)?);
            }
            offset += now as u64;
            self.watch.advance(now as u64)?;
        }
        for transfer in under_way {
            self.free.push(transfer.wait().map_err(failed)?);
        }
        Ok(Ok(memory))
    }
}

/// The bytes of device memory, in order, copied ahead of the reader.
///
/// Errors of the device come as [`io::Error`]s with the [`Error`] inside.
pub(crate) struct Download<'a> {
    name: &'a str,
    memory: &'a DeviceMemory,
    stream: Option<Stream>,
    under_way: VecDeque<(Transfer, usize)>,
    free: Vec<HostMemory>,
    requested: u64,
    current: Option<(HostMemory, usize)>,
    position: usize,
}

impl<'a> Download<'a> {
    pub(crate) fn new(name: &'a str, memory: &'a DeviceMemory) -> Self {
        Self {
            name,
            memory,
            stream: None,
            under_way: VecDeque::with_capacity(IN_FLIGHT),
            free: Vec::new(),
            requested: 0,
            current: None,
            position: 0,
        }
    }

    fn fill(&mut self) -> Result<bool, Error> {
        let failed = |error| Error::device("reading", self.name, error);
        if let Some((buffer, _)) = self.current.take() {
            self.free.push(buffer);
        }
        self.position = 0;
        let device = self.memory.device();
        let size = self.memory.size();
        while self.requested < size && self.under_way.len() < IN_FLIGHT {
            let now = (size - self.requested).min(BUFFER_BYTES as u64) as usize;
            let buffer = match self.free.pop() {
                Some(buffer) => buffer,
                None => {
                    let bytes = size.min(BUFFER_BYTES as u64) as usize;
                    device.allocate_host(bytes).map_err(failed)?
                }
            };
            if size < BUFFER_BYTES as u64 {
                let mut buffer = buffer;
                let part = buffer.get_mut(..now).unwrap_or_default();
                device.copy_to_host(self.memory, 0, part).map_err(failed)?;
                self.requested = size;
                self.current = Some((buffer, now));
                return Ok(true);
            }
            let stream = match &mut self.stream {
                Some(stream) => stream,
                none => none.insert(device.create_stream().map_err(failed)?),
            };
            let transfer = stream.copy_to_host(self.memory, self.requested, now, buffer);
            self.under_way.push_back((transfer.map_err(failed)?, now));
            self.requested += now as u64;
        }
        let Some((transfer, bytes)) = self.under_way.pop_front() else { return Ok(false) };
        self.current = Some((transfer.wait().map_err(failed)?, bytes));
        Ok(true)
    }
}

impl Read for Download<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some((buffer, bytes)) = &self.current
                && self.position < *bytes
            {
                let rest = buffer.get(self.position..*bytes).unwrap_or_default();
                let count = rest.len().min(out.len());
                let (Some(to), Some(from)) = (out.get_mut(..count), rest.get(..count)) else {
                    return Ok(0);
                };
                to.copy_from_slice(from);
                self.position += count;
                return Ok(count);
            }
            if out.is_empty() || !self.fill().map_err(io::Error::other)? {
                return Ok(0);
            }
        }
    }
}
