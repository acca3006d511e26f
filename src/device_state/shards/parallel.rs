//! Shards from several devices into one file at the same time.
//!
//! The places of all pieces are known before their bytes are, so that each device has a thread that
//! writes its own pieces where they belong.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, Seek, SeekFrom},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use super::{
    super::{
        Error, Watch, Writer,
        buffer::BUFFER_BYTES,
        chunks::ChunkSums,
        format::piece::{self, PieceLayout},
        output::Output,
        staging::BUFFERS,
    },
    Block, Shard,
};
use crate::{
    ifrt::{ArraySpec, Shape},
    stream_executor::{Device, DeviceMemory, Stream},
};

/// Copies from each device that are under way at a time.
const IN_FLIGHT: usize = 3;
/// Devices that are saved from at a time, so that buffers stay few.
const MOST_THREADS: usize = 12;
/// Smaller arrays are not worth the threads.
const WORTH_IT: u64 = 8 << 20;

/// A piece whose place is known.
struct Job<'a> {
    memory: &'a DeviceMemory,
    number: u32,
    layout: PieceLayout,
    /// The header of the piece, without padding.
    header: Vec<u8>,
}

impl Writer {
    /// Writes the shards of the array that was begun last from all devices at the same time; false
    /// if that is not worth it, or the state does not go into a file.
    pub(super) fn put_parallel(
        &mut self,
        name: &str,
        spec: &ArraySpec,
        shape: &Shape,
        chosen: &[(Block, &Shard<'_>)],
    ) -> Result<bool, Error> {
        let total: u64 = chosen.iter().map(|(_, shard)| shard.memory.size()).sum();
        let mut devices: Vec<&Device> = Vec::new();
        for (_, shard) in chosen {
            let device = shard.memory.device();
            if !devices.iter().any(|known| known.is(device)) {
                devices.push(device);
            }
        }
        let file = self.file.as_ref().filter(|_| self.options.threaded && cfg!(unix));
        let Some(file) = file.filter(|_| devices.len() > 1 && total >= WORTH_IT) else {
            return Ok(false);
        };
        let mut file = file.try_clone().map_err(|error| Error::io("write", &self.path, error))?;
        self.flush()?;
        let mut jobs = Vec::with_capacity(chosen.len());
        for (block, shard) in chosen {
            let domain = block.to_domain(shape);
            let (layout, number, header) =
                self.place_piece(name, spec, shard.device.0, domain, shard.memory.size())?;
            self.position = layout.end;
            jobs.push(Job { memory: shard.memory, number, layout, header });
        }
        let lane = Lane {
            name,
            file: &file,
            path: &self.path,
            watch: &self.options.watch,
            chunk_bytes: self.options.chunk_bytes,
        };
        let sums = lane.put_all(&devices, &jobs)?;
        for sums in sums {
            self.index.checksums(&sums);
        }
        // What comes next is written behind the pieces.
        let none = Output::new(Box::new(io::sink()), 1, false);
        let sink = std::mem::replace(&mut self.output, none).finish();
        let moved = sink.and_then(|sink| {
            file.seek(SeekFrom::Start(self.position))?;
            Ok(sink)
        });
        let sink = moved.map_err(|error| Error::io("write", &self.path, error))?;
        self.output = Output::new(sink, BUFFERS, self.options.threaded);
        self.broken = false;
        Ok(true)
    }
}

/// The way of pieces into the file.
#[derive(Clone, Copy)]
struct Lane<'a> {
    name: &'a str,
    file: &'a File,
    path: &'a Path,
    watch: &'a Watch,
    chunk_bytes: u32,
}

impl Lane<'_> {
    /// Writes all pieces, those of each device by a thread of its own; answers their checksums.
    fn put_all(&self, devices: &[&Device], jobs: &[Job<'_>]) -> Result<Vec<Vec<u32>>, Error> {
        let stop = AtomicBool::new(false);
        let worker = |first: usize| {
            let mine = |job: &Job<'_>| {
                let device = devices.iter().position(|device| device.is(job.memory.device()));
                device.is_some_and(|device| device % MOST_THREADS == first)
            };
            let mut done = Vec::new();
            for (position, job) in jobs.iter().enumerate().filter(|(_, job)| mine(job)) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                match self.put(job) {
                    Ok(sums) => done.push((position, sums)),
                    Err(error) => {
                        stop.store(true, Ordering::Relaxed);
                        return Err(error);
                    }
                }
            }
            Ok(done)
        };
        let worker = &worker;
        let results = thread::scope(|scope| {
            let threads: Vec<_> = (0..devices.len().min(MOST_THREADS))
                .map(|first| scope.spawn(move || worker(first)))
                .collect();
            let panicked = || Err(Error::invalid("a saving thread panicked".to_owned()));
            let joined = threads.into_iter().map(|thread| thread.join());
            joined.map(|result| result.unwrap_or_else(|_| panicked())).collect::<Vec<_>>()
        });
        let mut sums = vec![Vec::new(); jobs.len()];
        for result in results {
            for (position, found) in result? {
                if let Some(place) = sums.get_mut(position) {
                    *place = found;
                }
            }
        }
        Ok(sums)
    }

    /// Writes a piece and answers its checksums.
    fn put(&self, job: &Job<'_>) -> Result<Vec<u32>, Error> {
        let failed = |error| Error::device("reading", self.name, error);
        let device = job.memory.device();
        let mut header = job.header.clone();
        header.resize((job.layout.data - job.layout.header) as usize, 0);
        self.write(&header, job.layout.header)?;
        let mut sums = ChunkSums::new(self.chunk_bytes);
        let size = job.memory.size();
        let stream: Stream = device.create_stream().map_err(failed)?;
        let mut under_way = VecDeque::with_capacity(IN_FLIGHT);
        let mut free = Vec::with_capacity(IN_FLIGHT);
        let (mut requested, mut written) = (0, 0);
        while written < size {
            self.watch.check()?;
            while requested < size && under_way.len() < IN_FLIGHT {
                let now = (size - requested).min(BUFFER_BYTES as u64) as usize;
                let buffer = match free.pop() {
                    Some(buffer) => buffer,
                    None => device.allocate_host(BUFFER_BYTES).map_err(failed)?,
                };
                let transfer = stream.copy_to_host(job.memory, requested, now, buffer);
                under_way.push_back((transfer.map_err(failed)?, now));
                requested += now as u64;
            }
            let Some((transfer, bytes)) = under_way.pop_front() else { break };
            let buffer = transfer.wait().map_err(failed)?;
            let part = buffer.get(..bytes).unwrap_or_default();
            sums.update(part);
            self.write(part, job.layout.data + written)?;
            written += bytes as u64;
            free.push(buffer);
            self.watch.advance(bytes as u64)?;
        }
        let sums = sums.finish();
        let mut footer = piece::encode_footer(job.number, &sums);
        footer.resize((job.layout.end - job.layout.footer) as usize, 0);
        self.write(&footer, job.layout.footer)?;
        Ok(sums)
    }

    fn write(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        write_all_at(self.file, bytes, offset).map_err(|error| Error::io("write", self.path, error))
    }
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(not(unix))]
fn write_all_at(_: &File, _: &[u8], _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
