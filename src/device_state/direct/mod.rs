//! Files past the system's page cache (`O_DIRECT`), in whole blocks of aligned memory.
//!
//! What fills no block goes through the cache, and so does everything from the moment at which the
//! file system refuses, which is no failure: the bytes are the same either way. This part must never
//! know what they mean, nor decide when they are safe: whoever owns a file syncs it.

mod sink;
mod source;

use std::{
    fs::File,
    io,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

pub(super) use sink::DirectSink;
pub(super) use source::DirectSource;

/// What every disk and file system that takes direct I/O is content with: no sector and no page of
/// the systems in use is larger.
const LEAST_BLOCK: u64 = 4 << 10;
/// File systems that name a larger block mean what they like best, not what they need.
#[cfg(target_os = "linux")]
const MOST_BLOCK: u64 = 64 << 10;
/// Bytes of a stage: what is gathered where memory cannot be written or read into as it lies.
const STAGE_BYTES: usize = 1 << 20;

/// Whether bytes still go past the cache; shared with whoever wants to know.
pub(super) type StillDirect = Arc<AtomicBool>;

/// Whether the file system says that it does not do this at all.
fn refuses(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

/// What is to be done with a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Read,
    Write,
}

/// Whether memory begins where a block may.
fn is_aligned(bytes: &[u8], block: usize) -> bool {
    bytes.as_ptr().addr().is_multiple_of(block)
}

/// Memory of which whole blocks are aligned.
#[derive(Default)]
struct Stage {
    memory: Vec<u8>,
    /// Where the first block begins.
    begin: usize,
    filled: usize,
}

impl Stage {
    fn new(block: usize) -> Self {
        let memory = vec![0_u8; STAGE_BYTES + block];
        let address = memory.as_ptr().addr();
        Self { begin: address.next_multiple_of(block) - address, memory, filled: 0 }
    }

    fn bytes(&self) -> &[u8] {
        self.memory.get(self.begin..self.begin + self.filled).unwrap_or_default()
    }

    /// All of it, to be filled from elsewhere.
    fn room(&mut self) -> &mut [u8] {
        self.memory.get_mut(self.begin..self.begin + STAGE_BYTES).unwrap_or_default()
    }

    fn is_full(&self) -> bool {
        self.filled == STAGE_BYTES
    }

    /// Takes as many bytes as there is room for.
    fn fill(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(STAGE_BYTES - self.filled);
        let begin = self.begin + self.filled;
        if let (Some(to), Some(from)) =
            (self.memory.get_mut(begin..begin + count), bytes.get(..count))
        {
            to.copy_from_slice(from);
        }
        self.filled += count;
        count
    }

    fn drop_first(&mut self, count: usize) {
        let end = self.begin + self.filled;
        self.memory.copy_within(self.begin + count..end, self.begin);
        self.filled -= count;
    }
}

/// Opens a file once more, for direct I/O; answers it and the length of a block.
#[cfg(target_os = "linux")]
fn open_direct(file: &File, path: &Path, way: Way) -> io::Result<(File, usize)> {
    use std::{
        fs::OpenOptions,
        os::unix::fs::{MetadataExt, OpenOptionsExt},
    };

    let direct = OpenOptions::new()
        .read(way == Way::Read)
        .write(way == Way::Write)
        .custom_flags(libc::O_DIRECT)
        .open(path)?;
    let (theirs, ours) = (direct.metadata()?, file.metadata()?);
    if (theirs.dev(), theirs.ino()) != (ours.dev(), ours.ino()) {
        return Err(io::Error::other("another file has taken its place"));
    }
    Ok((direct, block_of(ours.blksize())))
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_: &File, _: &Path, _: Way) -> io::Result<(File, usize)> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The block to use where the file system names `named`.
#[cfg(target_os = "linux")]
fn block_of(named: u64) -> usize {
    let plain = named.is_power_of_two() && named <= MOST_BLOCK;
    (if plain { named.max(LEAST_BLOCK) } else { LEAST_BLOCK }) as usize
}
