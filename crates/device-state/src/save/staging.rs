//! Stages the bytes of a state for its output: headers and small data share buffers, large data of
//! a device have their own, and large data in memory of this process are written in place.

use std::{
    io,
    path::{Path, PathBuf},
    thread,
};

use serdes_files::ProgressMonitor;

use super::output::{Output, Sink};
use crate::{
    Error,
    pump::{
        BUFFER_BYTES, Buffer, ChunkSums, Filling, FromDevice, Memory, PoolError, STREAMED_FROM,
        Streams, capacity_at,
    },
};

/// Bytes in memory of this process that are summed, and then written, at a time: they and the
/// system's copy fit into a core's cache together, so that writing finds them there.
const SUMMED_BYTES: u64 = 512 << 10;
/// Bytes at a time if a second core computes their checksums while this one writes: shared caches
/// hold them until they are written, and starting a thread costs little in comparison.
const SHARED_BYTES: usize = 16 << 20;
/// Minimum size in bytes for a second thread: for less, starting it takes longer than it saves.
const SHARED_FROM: usize = 4 << 20;

/// Allocates buffers of a device's memory.
type MakeBuffer = Box<dyn Fn() -> Result<Buffer, Error> + Send>;

/// The output of a save, with the position of the next byte.
pub(super) struct Staging {
    output: Output,
    /// True if there is a second core for a helper thread.
    threaded: bool,
    /// Name of the output in messages.
    path: PathBuf,
    /// Reports the written data.
    monitor: ProgressMonitor,
    /// Number of bytes of the file so far.
    position: u64,
    /// The buffer being filled.
    current: Option<Filling>,
    /// Allocates buffers of the first device's memory; before there is one, they are memory of this
    /// process.
    make: Option<MakeBuffer>,
}

impl Staging {
    /// Creates the staging for `sink`, starting with its first byte.
    pub(super) fn new(sink: Sink, threaded: bool, path: PathBuf, monitor: ProgressMonitor) -> Self {
        let output = Output::new(sink, threaded);
        Self { output, threaded, path, monitor, position: 0, current: None, make: None }
    }

    /// Returns the position of the next byte in the file.
    pub(super) const fn position(&self) -> u64 {
        self.position
    }

    /// Returns the name of the output in messages.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Uses buffers of the memory's device from now on, unless another device's are in use.
    pub(super) fn use_memory_of<M: Memory + 'static>(&mut self, memory: &M) {
        if self.make.is_none() {
            let device = memory.device().clone();
            self.make = Some(Box::new(move || {
                let buffer = M::allocate_host(&device, BUFFER_BYTES);
                let failed = |error| M::failed("allocating host memory for", "", error);
                buffer.map(Into::into).map_err(failed)
            }));
        }
    }

    /// Writes the next bytes of the file.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let count = self.fill(rest.len() as u64, |part| {
                let (now, later) = rest.split_at(part.len());
                part.copy_from_slice(now);
                rest = later;
                Ok(())
            })?;
            debug_assert!(count > 0);
        }
        Ok(())
    }

    /// Writes this number of zeros.
    pub(super) fn put_zeros(&mut self, mut count: u64) -> Result<(), Error> {
        while count > 0 {
            let filled = self.fill(count, |part| {
                part.fill(0);
                Ok(())
            })?;
            count -= filled as u64;
        }
        Ok(())
    }

    /// Writes the next `count` bytes of data, which `fill` copies into place, some at a time.
    pub(super) fn put_data(
        &mut self,
        mut count: u64,
        mut fill: impl FnMut(&mut [u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        while count > 0 {
            let now = self.fill(count, &mut fill)? as u64;
            count -= now;
            self.monitor.advance(now)?;
        }
        Ok(())
    }

    /// Writes data in memory of this process, and sums them in `sums`. Large data are passed to the
    /// system in place. A second core sums them meanwhile, if there is one: the system lets only
    /// one thread at a time write to a file. Otherwise, and if there is too little data for that,
    /// each part is written right after it was summed, while it is in the cache.
    pub(super) fn put_bytes(&mut self, bytes: &[u8], sums: &mut ChunkSums) -> Result<(), Error> {
        let mut rest = bytes;
        if (bytes.len() as u64) < STREAMED_FROM {
            return self.put_data(bytes.len() as u64, |part| {
                let (now, later) = rest.split_at(part.len());
                part.copy_from_slice(now);
                sums.update(part);
                rest = later;
                Ok(())
            });
        }
        let buffer = self.write_started()?;
        for bytes in bytes.chunks(SHARED_BYTES) {
            let shared = self.threaded && bytes.len() >= SHARED_FROM;
            if !(shared && self.write_while_summed(bytes, sums)?) {
                self.write(bytes, |part| sums.update(part))?;
            }
        }
        self.current = buffer.map(|buffer| Filling::new(buffer, capacity_at(self.position)));
        Ok(())
    }

    /// Writes bytes while another thread sums them; returns false, without doing anything, if the
    /// system has no thread for that.
    fn write_while_summed(&mut self, bytes: &[u8], sums: &mut ChunkSums) -> Result<bool, Error> {
        thread::scope(|scope| {
            let builder = thread::Builder::new().name("serdes sums".to_owned());
            let Ok(summing) = builder.spawn_scoped(scope, || sums.update(bytes)) else {
                return Ok(false);
            };
            let written = self.write(bytes, |_| ());
            let panicked = |_| Error::invalid("the summing thread panicked".to_owned());
            summing.join().map_err(panicked).and(written).map(|()| true)
        })
    }

    /// Passes bytes to the system in place, a part at a time; calls `before` with each part before
    /// it is written.
    fn write(&mut self, mut bytes: &[u8], mut before: impl FnMut(&[u8])) -> Result<(), Error> {
        while !bytes.is_empty() {
            // Parts end at page boundaries of the system's cache, for pages of any size.
            let most = (SUMMED_BYTES - self.position % SUMMED_BYTES) as usize;
            let (part, later) = bytes.split_at(bytes.len().min(most));
            before(part);
            let written = self.output.ends().1.write(part);
            written.map_err(|error| Error::io("write", &self.path, error))?;
            self.position += part.len() as u64;
            self.monitor.advance(part.len() as u64)?;
            bytes = later;
        }
        Ok(())
    }

    /// Writes the contents of the buffer being filled; returns the buffer.
    fn write_started(&mut self) -> Result<Option<Buffer>, Error> {
        let Some(filling) = self.current.take() else { return Ok(None) };
        let written = self.output.ends().1.write(filling.bytes());
        written.map_err(|error| Error::io("write", &self.path, error))?;
        Ok(Some(filling.finish().into_buffer()))
    }

    /// Writes all bytes of `memory`, summed in `sums`.
    pub(super) fn put_memory<M: Memory + 'static>(
        &mut self,
        name: &str,
        memory: &M,
        streams: &mut Streams<M>,
        sums: &mut ChunkSums,
    ) -> Result<(), Error> {
        if memory.bytes() < STREAMED_FROM {
            return self.put_small(name, memory, sums);
        }
        self.write_current()?;
        let failed = |error| Error::io("write", &self.path, error);
        let (pool, drain) = self.output.ends();
        for filled in FromDevice::new(name, memory, streams, pool).at(self.position) {
            let filled = match filled {
                Ok(filled) => filled,
                Err(PoolError::Closed) => return Err(failed(drain.failure())),
                Err(PoolError::Failed(error)) => return Err(error),
            };
            sums.update(&filled);
            let bytes = filled.len() as u64;
            self.position += bytes;
            drain.give(filled).map_err(failed)?;
            if memory.is_read_whole() && bytes > BUFFER_BYTES as u64 {
                // More than one buffer of this size would be too much.
                drain.flush().map_err(failed)?;
            }
            self.monitor.advance(bytes)?;
        }
        Ok(())
    }

    /// Writes all bytes of a `memory` that is shorter than a buffer.
    fn put_small<M: Memory>(
        &mut self,
        name: &str,
        memory: &M,
        sums: &mut ChunkSums,
    ) -> Result<(), Error> {
        let failed = |error| M::failed("reading", name, error);
        let bytes = memory.bytes();
        if memory.is_read_whole() {
            // The end of a buffer may split it.
            let mut all = vec![0; bytes as usize];
            memory.read(0, &mut all).map_err(failed)?;
            sums.update(&all);
            let mut rest = &all[..];
            return self.put_data(bytes, |part| {
                let (now, later) = rest.split_at(part.len());
                part.copy_from_slice(now);
                rest = later;
                Ok(())
            });
        }
        let mut offset = 0;
        self.put_data(bytes, |part| {
            memory.read(offset, part).map_err(failed)?;
            sums.update(part);
            offset += part.len() as u64;
            Ok(())
        })
    }

    /// Continues at `position`, up to which other threads have written; `seek` moves the file
    /// there, after all earlier bytes were written.
    pub(super) fn skip_to(
        &mut self,
        position: u64,
        seek: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), Error> {
        self.write_current()?;
        let flushed = self.output.ends().1.flush();
        flushed.and_then(|()| seek()).map_err(|error| Error::io("write", &self.path, error))?;
        self.position = position;
        Ok(())
    }

    /// Hands the buffer that is being filled to the output.
    pub(super) fn write_current(&mut self) -> Result<(), Error> {
        let Some(filling) = self.current.take() else { return Ok(()) };
        let given = self.output.ends().1.give(filling.finish());
        given.map_err(|error| Error::io("write", &self.path, error))
    }

    /// Waits until the system has all bytes, and closes the output.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        self.write_current()?;
        let Self { output, path, .. } = self;
        output.finish().map_err(|error| Error::io("write", &path, error))
    }

    /// Calls `fill` to write the next bytes of the file, at most `most`; returns their number.
    fn fill(
        &mut self,
        most: u64,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Error>,
    ) -> Result<usize, Error> {
        if self.current.as_ref().is_some_and(Filling::is_full) {
            self.write_current()?;
        }
        let filling = match &mut self.current {
            Some(filling) => filling,
            none => {
                let make = self.make.as_ref();
                let (pool, drain) = self.output.ends();
                let buffer = pool.take(BUFFER_BYTES, |_| match make {
                    Some(make) => make(),
                    None => Ok(Buffer::pageable()),
                });
                let buffer = buffer.map_err(|error| match error {
                    PoolError::Closed => Error::io("write", &self.path, drain.failure()),
                    PoolError::Failed(error) => error,
                })?;
                none.insert(Filling::new(buffer, capacity_at(self.position)))
            }
        };
        let filled = filling.fill(most, fill)?;
        self.position += filled as u64;
        Ok(filled)
    }
}
