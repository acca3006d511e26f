//! Reads files past the page cache.

use std::{
    fs::File,
    io,
    path::Path,
    sync::{Mutex, PoisonError, atomic::Ordering},
};

use super::{Access, STAGE_BYTES, Stage, StillDirect, is_aligned, open_direct, refuses};
use crate::ReadAt;

/// A file that is read past the page cache for as long as the file system permits.
pub struct DirectSource {
    /// Reader for direct I/O, and the block length.
    direct: Option<(Box<dyn ReadAt>, usize)>,
    /// Reader through the page cache.
    cached: File,
    still_direct: StillDirect,
    /// Unused stages; at most one per reading thread.
    stages: Mutex<Vec<Stage>>,
}

impl DirectSource {
    /// Opens a source for `file` at `path`. Clears `still_direct` when the file system refuses
    /// direct I/O.
    pub fn open(file: File, path: &Path, still_direct: StillDirect) -> Self {
        let direct = match open_direct(&file, path, Access::Read) {
            Ok((direct, block)) => Some((Box::new(direct) as Box<dyn ReadAt>, block)),
            Err(_) => {
                still_direct.store(false, Ordering::Relaxed);
                None
            }
        };
        Self { direct, cached: file, still_direct, stages: Mutex::default() }
    }

    /// Fills the beginning of `buffer` with direct I/O; returns `None` if the file system refuses.
    #[expect(
        clippy::indexing_slicing,
        reason = "`whole` is at most that of the buffer, `length` that of a stage"
    )]
    fn read_direct(
        &self,
        direct: &dyn ReadAt,
        block: usize,
        buffer: &mut [u8],
        offset: u64,
    ) -> Option<io::Result<usize>> {
        let within = (offset % block as u64) as usize;
        let begin = offset - within as u64;
        if within == 0 && buffer.len() >= block && is_aligned(buffer, block) {
            let whole = buffer.len() - buffer.len() % block;
            return taken(direct.read_at(&mut buffer[..whole], begin));
        }
        let stage = self.stages.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut stage = stage.unwrap_or_else(|| Stage::new(block));
        let length = (within + buffer.len()).next_multiple_of(block).min(STAGE_BYTES);
        let read = taken(direct.read_at(&mut stage.memory_mut()[..length], begin));
        let read = read.map(|read| {
            let found = stage.memory_mut().get(within..read?).unwrap_or_default();
            let count = found.len().min(buffer.len());
            if let (Some(to), Some(from)) = (buffer.get_mut(..count), found.get(..count)) {
                to.copy_from_slice(from);
            }
            Ok(count)
        });
        self.stages.lock().unwrap_or_else(PoisonError::into_inner).push(stage);
        read
    }
}

/// Returns `None` if the error is a refusal of direct I/O.
fn taken(read: io::Result<usize>) -> Option<io::Result<usize>> {
    match read {
        Err(error) if refuses(&error) => None,
        read => Some(read),
    }
}

impl ReadAt for DirectSource {
    fn size(&self) -> io::Result<u64> {
        ReadAt::size(&self.cached)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if let Some((direct, block)) = &self.direct
            && self.still_direct.load(Ordering::Relaxed)
        {
            match self.read_direct(&**direct, *block, buffer, offset) {
                Some(read) => return read,
                None => self.still_direct.store(false, Ordering::Relaxed),
            }
        }
        self.cached.read_at(buffer, offset)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::Write as _,
        sync::{
            Arc,
            atomic::{AtomicBool, AtomicUsize},
        },
    };

    use super::{super::MIN_BLOCK, *};
    use crate::tests::noise;

    const BLOCK: usize = MIN_BLOCK as usize;

    /// A file system with the strictest rules for direct I/O, which refuses it after a number of
    /// reads.
    struct Particular {
        bytes: Vec<u8>,
        reads: AtomicUsize,
    }

    impl ReadAt for Particular {
        fn size(&self) -> io::Result<u64> {
            self.bytes.size()
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            assert!(is_aligned(buffer, BLOCK) && buffer.len().is_multiple_of(BLOCK));
            assert!(!buffer.is_empty() && offset.is_multiple_of(MIN_BLOCK));
            let left = self
                .reads
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |reads| reads.checked_sub(1));
            match left {
                Ok(_) => self.bytes.read_at(buffer, offset),
                Err(_) => Err(io::ErrorKind::InvalidInput.into()),
            }
        }
    }

    #[test]
    fn every_extent_is_read_as_it_is_also_after_a_refusal() {
        let bytes = noise(2 * STAGE_BYTES + 3 * BLOCK + 17, 5);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        for reads in [usize::MAX, 2, 0] {
            let still_direct: StillDirect = Arc::new(AtomicBool::new(true));
            let direct = Particular { bytes: bytes.clone(), reads: AtomicUsize::new(reads) };
            let source = DirectSource {
                direct: Some((Box::new(direct), BLOCK)),
                cached: file.try_clone().unwrap(),
                still_direct: Arc::clone(&still_direct),
                stages: Mutex::default(),
            };
            // Aligned and unaligned memory, of all kinds of lengths and offsets.
            let mut stage = Stage::new(BLOCK);
            for (offset, length) in [
                (0, 64),
                (0, BLOCK),
                (BLOCK, STAGE_BYTES - BLOCK),
                (100, 200),
                (BLOCK - 1, 2),
                (3 * BLOCK, 2 * BLOCK + 1),
                (5 * BLOCK + 64, STAGE_BYTES - BLOCK),
                (bytes.len() - 64, 64),
                (2 * STAGE_BYTES, 3 * BLOCK + 17),
                (7, 0),
            ] {
                for shift in [0, 64] {
                    let buffer = &mut stage.memory_mut()[shift..shift + length];
                    buffer.fill(0);
                    source.read_exact_at(buffer, offset as u64).unwrap();
                    assert!(*buffer == bytes[offset..offset + length], "{offset} {length} {shift}");
                }
            }
            let mut all = vec![0; bytes.len()];
            source.read_exact_at(&mut all, 0).unwrap();
            assert!(all == bytes);
            assert_eq!(still_direct.load(Ordering::Relaxed), reads == usize::MAX);
            let error = source.read_exact_at(&mut [0; 2], bytes.len() as u64 - 1).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    #[test]
    fn a_real_file_is_read_with_and_without_the_cache() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        for length in [0, 1, BLOCK, STAGE_BYTES + BLOCK + 5] {
            let bytes = noise(length, 3);
            fs::write(&path, &bytes).unwrap();
            let still_direct: StillDirect = Arc::new(AtomicBool::new(true));
            let file = File::open(&path).unwrap();
            let takes = open_direct(&file, &path, Access::Read).is_ok();
            let source = DirectSource::open(file, &path, Arc::clone(&still_direct));
            assert_eq!(source.size().unwrap(), length as u64);
            let mut found = vec![0; length];
            source.read_exact_at(&mut found, 0).unwrap();
            assert!(found == bytes);
            assert_eq!(source.read_at(&mut [0; 9], length as u64).unwrap(), 0);
            assert_eq!(still_direct.load(Ordering::Relaxed), takes);
        }
    }
}
