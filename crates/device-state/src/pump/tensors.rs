//! Whole tensors between a device and a stream of bytes: what uploading a source and reading back
//! into a file need.

use std::io::{self, Read};

use serdes_files::ProgressMonitor;

use super::{
    BUFFER_BYTES, ChunkSums, Contents, Filled, FromDevice, Incoming, Memory, Pool, Returns,
    Streams, ToDevice,
};
use crate::Error;

/// Puts tensors onto a device as their bytes come out of readers.
pub struct Uploads<'a, M: Memory> {
    device: &'a M::Device,
    monitor: &'a ProgressMonitor,
    pool: Pool,
    returns: Returns,
    to: ToDevice<M>,
    /// The length of the chunks whose checksums are wanted.
    chunk_bytes: Option<u32>,
    /// Checksums of the array that was put last.
    sums: Vec<u32>,
}

impl<'a, M: Memory> Uploads<'a, M> {
    /// Creates uploads onto `device`.
    pub fn new(device: &'a M::Device, monitor: &'a ProgressMonitor) -> Self {
        let (pool, returns) = Pool::new(BUFFER_BYTES);
        let to = ToDevice::new(returns.clone());
        Self { device, monitor, pool, returns, to, chunk_bytes: None, sums: Vec::new() }
    }

    /// Computes the checksums of chunks of `chunk_bytes` on the way.
    pub fn summing(mut self, chunk_bytes: u32) -> Self {
        self.chunk_bytes = Some(chunk_bytes);
        self
    }

    /// Returns the checksums of the array that was put last, if they are taken.
    pub fn take_sums(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.sums)
    }

    /// Puts an array, which is what comes next of `data`, onto the device; an error of `data` is
    /// the inner one.
    pub fn put(
        &mut self,
        name: &str,
        data: &mut dyn Read,
        contents: &Contents,
    ) -> Result<Result<M, io::Error>, Error> {
        let failed = |error| M::failed("writing", name, error);
        let mut memory = M::allocate(self.device, contents).map_err(failed)?;
        let (mut offset, bytes) = (0, contents.bytes());
        let mut sums = self.chunk_bytes.map(ChunkSums::new);
        while offset < bytes {
            let now = (bytes - offset).min(BUFFER_BYTES as u64) as usize;
            let buffer = self.pool.take(now, |bytes| {
                M::allocate_host(self.device, bytes).map(Into::into).map_err(failed)
            })?;
            let mut filled = Filled::new(buffer, now)?;
            if let Err(error) = data.read_exact(&mut filled) {
                self.returns.give(filled.into_buffer());
                return Ok(Err(error));
            }
            if let Some(sums) = &mut sums {
                sums.update(&filled);
            }
            self.to.push(name, &mut memory, offset, filled)?;
            offset += now as u64;
            self.monitor.advance(now as u64)?;
        }
        self.to.finish()?;
        self.sums = sums.map(ChunkSums::finish).unwrap_or_default();
        memory.finish().map(Ok).map_err(failed)
    }
}

/// Gives the bytes of tensors on a device, one after the other.
pub struct Downloads<M: Memory> {
    streams: Streams<M>,
    pool: Pool,
    returns: Returns,
}

impl<M: Memory> Default for Downloads<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Memory> Downloads<M> {
    /// Streams of any devices.
    pub fn new() -> Self {
        let (pool, returns) = Pool::new(BUFFER_BYTES);
        Self { streams: Streams::new(), pool, returns }
    }

    /// Returns the bytes of `memory`, in order, copied ahead of the reader. Errors of the device
    /// come as [`io::Error`]s with the [`Error`] inside.
    pub fn reader<'a>(&'a mut self, name: &'a str, memory: &'a M) -> Download<'a, M> {
        let Self { streams, pool, returns } = self;
        Download {
            from: FromDevice::new(name, memory, streams, pool),
            returns,
            current: None,
            position: 0,
        }
    }
}

/// The bytes of device memory as a reader.
pub struct Download<'a, M: Memory> {
    from: FromDevice<'a, M>,
    returns: &'a Returns,
    current: Option<Filled>,
    position: usize,
}

impl<M: Memory> Read for Download<'_, M> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(filled) = &self.current
                && let Some(mut rest) = filled.get(self.position..)
                && !rest.is_empty()
            {
                let count = rest.read(out)?;
                self.position += count;
                return Ok(count);
            }
            self.give_back();
            match self.from.next() {
                None => return Ok(0),
                Some(next) => {
                    self.current = Some(next.map_err(|e| io::Error::other(Error::from(e)))?)
                }
            }
        }
    }
}

impl<M: Memory> Download<'_, M> {
    fn give_back(&mut self) {
        self.position = 0;
        if let Some(filled) = self.current.take() {
            self.returns.give(filled.into_buffer());
        }
    }
}

impl<M: Memory> Drop for Download<'_, M> {
    fn drop(&mut self) {
        self.give_back();
    }
}
