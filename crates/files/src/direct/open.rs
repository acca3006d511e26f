//! Opening of files for direct I/O, and their block size.

use std::{
    fs::File,
    io,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

/// Block size in bytes that every disk and file system with direct I/O accepts: the largest sector
/// and page size of the systems in use.
pub(super) const MIN_BLOCK: u64 = 4 << 10;
/// Largest block size in bytes that is adopted from a file system: a larger one is a preferred
/// size, not a required one.
#[cfg(target_os = "linux")]
pub(super) const MAX_BLOCK: u64 = 64 << 10;
/// True while bytes still go past the cache; shared with the callers that report it.
pub type StillDirect = Arc<AtomicBool>;

/// Returns true if the error means that the file system does not support direct I/O.
pub(super) fn refuses(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

/// Access to a file: reading or writing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// Returns true if the memory has the alignment of a block.
pub(super) fn is_aligned(bytes: &[u8], block: usize) -> bool {
    bytes.as_ptr().addr().is_multiple_of(block)
}

/// Opens a file once more, for direct I/O; returns it with the size of its blocks in bytes.
///
/// # Errors
/// An error of the system, and an error if the path leads to another file by now.
#[cfg(target_os = "linux")]
pub(super) fn open_direct(file: &File, path: &Path, access: Access) -> io::Result<(File, usize)> {
    use std::{
        fs::OpenOptions,
        os::unix::fs::{MetadataExt, OpenOptionsExt},
    };

    let direct = OpenOptions::new()
        .read(access == Access::Read)
        .write(access == Access::Write)
        .custom_flags(libc::O_DIRECT)
        .open(path)?;
    let (reopened, original) = (direct.metadata()?, file.metadata()?);
    if (reopened.dev(), reopened.ino()) != (original.dev(), original.ino()) {
        return Err(io::Error::other("another file has taken its place"));
    }
    Ok((direct, block_of(original.blksize())))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn open_direct(_: &File, _: &Path, _: Access) -> io::Result<(File, usize)> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the block size to use on a file system that reports `named` bytes.
#[cfg(target_os = "linux")]
pub(super) fn block_of(named: u64) -> usize {
    let is_plausible = named.is_power_of_two() && named <= MAX_BLOCK;
    (if is_plausible { named.max(MIN_BLOCK) } else { MIN_BLOCK }) as usize
}
