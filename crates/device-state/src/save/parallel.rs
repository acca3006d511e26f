//! Writes pieces from several devices to one file concurrently.
//!
//! The positions of all pieces are known before their bytes are, so that one thread per device
//! writes its pieces to their positions.

use std::{
    fs::File,
    io::{self, Seek, SeekFrom},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use serdes_files::ProgressMonitor;

use super::{
    Writer,
    writer::{OpenArray, PlacedPiece},
};
use crate::{
    Error, HostedMemory,
    format::{index::Placement, piece},
    pump::{BUFFER_BYTES, ChunkSums, FromDevice, Memory, Pool, Returns, Streams},
};

/// Maximum number of devices that are saved concurrently, to limit the buffers.
const MOST_THREADS: usize = 12;
/// Minimum size in bytes of an array that is worth the threads.
const WORTH_IT: u64 = 8 << 20;

impl Writer {
    /// Writes the pieces of a started array from all devices concurrently; returns false if that is
    /// not worth it, or the state is not a file.
    pub(super) fn put_parallel<M: HostedMemory>(
        &mut self,
        array: &OpenArray<'_>,
        pieces: &[(Placement, &M)],
    ) -> Result<bool, Error> {
        let total: u64 = pieces.iter().map(|(_, memory)| memory.bytes()).sum();
        let mut devices: Vec<&M::Device> = Vec::new();
        for (_, memory) in pieces {
            if !devices.iter().any(|known| M::is_same(known, memory.device())) {
                devices.push(memory.device());
            }
        }
        let worth = devices.len() > 1 && total >= WORTH_IT;
        let allowed = self.options().threaded && cfg!(unix);
        let Some((file, path)) = self.file().filter(|_| worth && allowed) else {
            return Ok(false);
        };
        let path = path.to_owned();
        let mut file = file.try_clone().map_err(|error| Error::io("write", &path, error))?;
        let places = pieces.iter().map(|(placement, memory)| (placement.clone(), memory.bytes()));
        let placed = self.place_pieces(array, places)?;
        let Some(end) = placed.last().map(|last| last.layout.end) else { return Ok(false) };
        let jobs: Vec<_> = placed
            .into_iter()
            .zip(pieces)
            .map(|(placed, (_, memory))| Job { memory: *memory, placed })
            .collect();
        let (monitor, chunk_bytes) = (&self.options().monitor, self.options().chunk_bytes);
        let work = Work { name: array.name(), file: &file, path: &path, monitor, chunk_bytes };
        let sums = work.put_all(&devices, &jobs)?;
        // The next bytes are written after the pieces.
        self.end_pieces(end, &sums, |end| file.seek(SeekFrom::Start(end)).map(drop))?;
        Ok(true)
    }
}

/// A piece with a known position.
struct Job<'a, M> {
    memory: &'a M,
    placed: PlacedPiece,
}

/// Buffers and streams of a thread.
struct Buffers<M: Memory> {
    streams: Streams<M>,
    pool: Pool,
    returns: Returns,
}

/// State shared by the threads.
struct Work<'a> {
    name: &'a str,
    file: &'a File,
    path: &'a Path,
    monitor: &'a ProgressMonitor,
    chunk_bytes: u32,
}

impl Work<'_> {
    /// Writes all pieces, with one thread per device; returns their checksums.
    fn put_all<M: Memory>(
        &self,
        devices: &[&M::Device],
        jobs: &[Job<'_, M>],
    ) -> Result<Vec<Vec<u32>>, Error> {
        let count = devices.len().min(MOST_THREADS);
        // Jobs of each thread, with their positions.
        let mut shares: Vec<Vec<(usize, &Job<'_, M>)>> = vec![Vec::new(); count];
        for (position, job) in jobs.iter().enumerate() {
            let device = devices.iter().position(|device| M::is_same(device, job.memory.device()));
            let share = device.and_then(|device| shares.get_mut(device % count));
            share.into_iter().for_each(|share| share.push((position, job)));
        }
        let stop = &AtomicBool::new(false);
        let results: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = shares
                .into_iter()
                .map(|share| scope.spawn(move || self.put_share(&share, stop)))
                .collect();
            let panicked = |_| Err(Error::invalid("a saving thread panicked".to_owned()));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
        });
        let mut done = results.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
        done.sort_unstable_by_key(|(position, _)| *position);
        Ok(done.into_iter().map(|(_, sums)| sums).collect())
    }

    /// Writes pieces in order until another thread fails; returns their positions and checksums.
    fn put_share<M: Memory>(
        &self,
        share: &[(usize, &Job<'_, M>)],
        stop: &AtomicBool,
    ) -> Result<Vec<(usize, Vec<u32>)>, Error> {
        let (pool, returns) = Pool::new(BUFFER_BYTES);
        let mut buffers = Buffers { streams: Streams::new(), pool, returns };
        let mut done = Vec::with_capacity(share.len());
        for (position, job) in share {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let sums = self.put(job, &mut buffers);
            let sums = sums.inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
            done.push((*position, sums));
        }
        Ok(done)
    }

    /// Writes a piece and returns its checksums.
    fn put<M: Memory>(
        &self,
        job: &Job<'_, M>,
        Buffers { streams, pool, returns }: &mut Buffers<M>,
    ) -> Result<Vec<u32>, Error> {
        let PlacedPiece { layout, number, header } = &job.placed;
        self.monitor.check()?;
        self.write(&padded(header.clone(), layout.data - layout.header), layout.header)?;
        let mut sums = ChunkSums::new(self.chunk_bytes);
        let mut position = layout.data;
        for filled in FromDevice::new(self.name, job.memory, streams, pool) {
            let filled = filled?;
            sums.update(&filled);
            self.write(&filled, position)?;
            let bytes = filled.len() as u64;
            position += bytes;
            returns.give(filled.into_buffer());
            self.monitor.advance(bytes)?;
        }
        let sums = sums.finish();
        let footer = piece::encode_footer(*number, &sums);
        self.write(&padded(footer, layout.end - layout.footer), layout.footer)?;
        Ok(sums)
    }

    fn write(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        write_all_at(self.file, bytes, offset).map_err(|error| Error::io("write", self.path, error))
    }
}

/// Pads bytes with zeros to `bytes` bytes.
fn padded(mut words: Vec<u8>, bytes: u64) -> Vec<u8> {
    words.resize(bytes as usize, 0);
    words
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(not(unix))]
fn write_all_at(_: &File, _: &[u8], _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
