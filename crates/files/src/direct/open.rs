//! Opening of files for direct I/O, and their block size.

use std::{
    fs::File,
    io,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

/// Block size in bytes that every disk and file system with direct I/O accepts: no sector and no
/// page of the systems in use is larger.
pub(super) const LEAST_BLOCK: u64 = 4 << 10;
/// File systems that name a larger block mean what they like best, not what they need.
#[cfg(target_os = "linux")]
pub(super) const MOST_BLOCK: u64 = 64 << 10;
/// True while bytes still go past the cache; shared with the callers that report it.
pub type StillDirect = Arc<AtomicBool>;

/// True if the file system does not support this at all.
pub(super) fn refuses(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

/// Access to a file: reading or writing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Read,
    Write,
}

/// True if the memory has the alignment of a block.
pub(super) fn is_aligned(bytes: &[u8], block: usize) -> bool {
    bytes.as_ptr().addr().is_multiple_of(block)
}

/// Opens a file once more, for direct I/O; answers it and the length of a block.
#[cfg(target_os = "linux")]
pub(super) fn open_direct(file: &File, path: &Path, way: Way) -> io::Result<(File, usize)> {
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
pub(super) fn open_direct(_: &File, _: &Path, _: Way) -> io::Result<(File, usize)> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The block to use where the file system names `named`.
#[cfg(target_os = "linux")]
pub(super) fn block_of(named: u64) -> usize {
    let plain = named.is_power_of_two() && named <= MOST_BLOCK;
    (if plain { named.max(LEAST_BLOCK) } else { LEAST_BLOCK }) as usize
}
