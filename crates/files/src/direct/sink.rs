//! Writes files past the page cache.

use std::{
    fs::File,
    io::{self, Seek, SeekFrom, Write},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    super::file_sink::FileSink, Access, Stage, StillDirect, is_aligned, open_direct, refuses,
};

/// A file that is written sequentially, past the page cache for as long as the file system permits.
pub struct DirectSink {
    /// Writer for direct I/O.
    direct: Box<dyn Write + Send>,
    /// Writer through the page cache.
    cached: FileSink,
    still_direct: StillDirect,
    /// Bytes written with direct I/O.
    position: u64,
    /// Required length and alignment of direct writes, in bytes.
    block: usize,
    stage: Stage,
}

impl DirectSink {
    /// Opens a sink for the empty `file` at `path`. Returns a cached sink if the file system
    /// refuses direct I/O.
    pub fn open(
        file: &File,
        path: &Path,
        cached: FileSink,
    ) -> Result<(Self, StillDirect), FileSink> {
        let Ok((direct, block)) = open_direct(file, path, Access::Write) else {
            return Err(cached);
        };
        let sink = Self::new(Box::new(direct), cached, block);
        let still_direct = Arc::clone(&sink.still_direct);
        Ok((sink, still_direct))
    }

    fn new(direct: Box<dyn Write + Send>, cached: FileSink, block: usize) -> Self {
        Self {
            direct,
            cached,
            still_direct: Arc::new(AtomicBool::new(true)),
            position: 0,
            block,
            stage: Stage::new(block),
        }
    }

    fn is_direct(&self) -> bool {
        self.still_direct.load(Ordering::Relaxed)
    }

    /// Switches to the page cache for the rest of the file.
    fn give_up(&mut self) -> io::Result<()> {
        self.still_direct.store(false, Ordering::Relaxed);
        self.cached.seek(SeekFrom::Start(self.position)).map(drop)
    }

    /// Writes whole blocks of aligned memory.
    fn put_blocks(&mut self, mut blocks: &[u8]) -> io::Result<()> {
        while !blocks.is_empty() && self.is_direct() {
            match self.direct.write(blocks) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.position += count as u64;
                    blocks = blocks.get(count..).unwrap_or_default();
                    // After a partial block, the remaining bytes start in the middle of a block.
                    if !count.is_multiple_of(self.block) {
                        self.give_up()?;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if refuses(&error) => self.give_up()?,
                Err(error) => return Err(error),
            }
        }
        if blocks.is_empty() { Ok(()) } else { self.cached.write_all(blocks) }
    }

    /// Writes the whole blocks in the stage.
    #[expect(clippy::indexing_slicing, reason = "`whole` is at most what the stage is filled with")]
    fn put_stage(&mut self) -> io::Result<()> {
        let mut stage = std::mem::take(&mut self.stage);
        let whole = stage.filled - stage.filled % self.block;
        let result = self.put_blocks(&stage.bytes()[..whole]);
        stage.drop_first(whole);
        self.stage = stage;
        result
    }
}

impl Write for DirectSink {
    #[expect(clippy::indexing_slicing, reason = "`whole` is at most the length of the bytes")]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_direct() && self.stage.filled == 0 {
            return self.cached.write(bytes);
        }
        let missing = self.stage.filled.next_multiple_of(self.block) - self.stage.filled;
        if missing == 0 && bytes.len() >= self.block && is_aligned(bytes, self.block) {
            self.put_stage()?;
            let whole = bytes.len() - bytes.len() % self.block;
            self.put_blocks(&bytes[..whole])?;
            return Ok(whole);
        }
        // After the bytes that complete a block, the rest may be aligned and go out without a copy.
        let rest = bytes.get(missing..).unwrap_or_default();
        let well = missing > 0 && rest.len() >= self.block && is_aligned(rest, self.block);
        let count =
            self.stage.fill(if well { bytes.get(..missing).unwrap_or(bytes) } else { bytes });
        if self.stage.is_full() {
            self.put_stage()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.put_stage()?;
        if self.is_direct() {
            self.cached.seek(SeekFrom::Start(self.position))?;
        }
        let rest = std::mem::take(&mut self.stage);
        self.cached.write_all(rest.bytes())?;
        self.cached.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    #[cfg(target_os = "linux")]
    use super::super::open::block_of;
    use super::{
        super::{MIN_BLOCK, STAGE_BYTES},
        *,
    };
    use crate::{Durability, tests::noise};

    const BLOCK: usize = MIN_BLOCK as usize;

    /// A file system with the strictest rules for direct I/O, which refuses it after a number of
    /// writes.
    struct Particular {
        file: File,
        writes: usize,
        most_bytes: usize,
    }

    impl Write for Particular {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let aligned = bytes.as_ptr().addr().is_multiple_of(BLOCK)
                && bytes.len().is_multiple_of(BLOCK)
                && self.file.stream_position()?.is_multiple_of(BLOCK as u64);
            assert!(aligned, "{:?} and {} bytes", bytes.as_ptr(), bytes.len());
            let Some(writes) = self.writes.checked_sub(1) else {
                return Err(io::ErrorKind::InvalidInput.into());
            };
            self.writes = writes;
            self.file.write(&bytes[..bytes.len().min(self.most_bytes)])
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Writes `bytes` in parts of `lengths` in turn. The file system refuses direct I/O after a
    /// number of writes, and accepts a limited number of bytes per write. Returns the file, and
    /// true if it never refused.
    fn written(
        bytes: &[u8],
        lengths: &[usize],
        writes: usize,
        most_bytes: usize,
    ) -> (Vec<u8>, bool) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let cached = FileSink::new(File::create(&path).unwrap(), Durability::None);
        let file = File::options().write(true).open(&path).unwrap();
        let direct = Particular { file, writes, most_bytes };
        let mut sink = DirectSink::new(Box::new(direct), cached, BLOCK);
        let mut rest = bytes;
        for length in lengths.iter().cycle() {
            let (now, later) = rest.split_at(rest.len().min(*length));
            sink.write_all(now).unwrap();
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        sink.flush().unwrap();
        (fs::read(&path).unwrap(), sink.is_direct())
    }

    #[test]
    fn every_way_of_cutting_gives_the_same_bytes() {
        let all = noise(3 * STAGE_BYTES + 2 * BLOCK + 77, 1);
        let lengths: [&[usize]; 7] = [
            &[usize::MAX],
            &[STAGE_BYTES],
            &[BLOCK, 1, BLOCK - 1],
            &[100_000, 64],
            &[STAGE_BYTES - 64, 64, STAGE_BYTES + 1],
            &[7 * BLOCK, 3],
            &[1 << 16],
        ];
        for bytes in [&all[..], &all[..2 * STAGE_BYTES], &all[..BLOCK - 1], &all[..0]] {
            for lengths in lengths {
                let (found, direct) = written(bytes, lengths, usize::MAX, usize::MAX);
                assert!(found == bytes, "{} in {lengths:?}", bytes.len());
                assert!(direct);
            }
        }
    }

    #[test]
    fn a_refusal_in_the_middle_and_short_writes_cost_no_byte() {
        let bytes = noise(2 * STAGE_BYTES + 3 * BLOCK + 5, 2);
        for lengths in [&[STAGE_BYTES][..], &[BLOCK, 5]] {
            for writes in 0..2 {
                let (found, direct) = written(&bytes, lengths, writes, usize::MAX);
                assert!(found == bytes && !direct, "{writes} in {lengths:?}");
            }
            for (most_bytes, stays) in [(BLOCK, true), (3 * BLOCK - 1, false), (1, false)] {
                let (found, direct) = written(&bytes, lengths, usize::MAX, most_bytes);
                assert!(found == bytes, "{most_bytes} in {lengths:?}");
                assert_eq!(direct, stays, "{most_bytes} in {lengths:?}");
            }
        }
    }

    #[test]
    fn aligned_memory_is_not_copied() {
        let cached = FileSink::new(tempfile::tempfile().unwrap(), Durability::None);
        let mut sink = DirectSink::new(Box::new(io::sink()), cached, BLOCK);
        let memory = Stage::new(BLOCK).memory;
        let begin = memory.as_ptr().addr().next_multiple_of(BLOCK) - memory.as_ptr().addr();
        assert_eq!(sink.write(&memory[begin..begin + 3 * BLOCK + 9]).unwrap(), 3 * BLOCK);
        assert_eq!(sink.stage.filled, 0);
        // A few bytes complete a block, so that the next ones are written without a copy.
        assert_eq!(sink.write(&memory[begin..begin + BLOCK - 9]).unwrap(), BLOCK - 9);
        assert_eq!(sink.write(&memory[begin + BLOCK - 9..][..5 * BLOCK + 9]).unwrap(), 9);
        assert_eq!(sink.write(&memory[begin + BLOCK..][..5 * BLOCK]).unwrap(), 5 * BLOCK);
        assert_eq!(sink.stage.filled, 0);
        assert_eq!(sink.position, 9 * BLOCK as u64);
    }

    #[test]
    fn a_disk_that_is_full_is_no_refusal() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let cached = FileSink::new(tempfile::tempfile().unwrap(), Durability::None);
        let mut sink = DirectSink::new(Box::new(Full), cached, BLOCK);
        let error = sink.write_all(&[0; 2 * STAGE_BYTES]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn odd_blocks_of_a_file_system_are_no_need() {
        let blocks = [512, 4096, 16384, 65536, 1 << 20, 0, 4095].map(block_of);
        assert_eq!(blocks, [4096, 4096, 16384, 65536, 4096, 4096, 4096]);
    }
}
