//! Reads small files completely: tokens, certificates, keys.
//!
//! They may be pipes, such as `<(…)` of a shell. An endless file, or a pipe that stays open, is
//! refused instead of exhausting memory or blocking forever.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use crate::failure::Failure;

/// Time limit for reading a pipe to its end.
#[cfg(unix)]
const PIPE_LIMIT: std::time::Duration = std::time::Duration::from_secs(10);

/// Reads a file of at most `most` bytes; `what` names its contents.
///
/// # Errors
/// The error that the system reports; if the file is longer, a device, or a pipe that does not end.
pub(super) fn read(path: &Path, what: &str, most: u64) -> Result<Vec<u8>, Failure> {
    let failed =
        |error: io::Error| Failure::new(format_args!("cannot read {}: {error}", path.display()));
    let refused = |found: &str| {
        let failure = Failure::new(format_args!("{} {found}; expected {what}", path.display()));
        failure.with_hint("name a file of at most that length, or a pipe that ends")
    };
    let file = open(path).map_err(failed)?;
    let bytes = match kind(&file).map_err(failed)? {
        Kind::Other => {
            return Err(refused("is a device or a socket"));
        }
        Kind::File => {
            let mut bytes = Vec::new();
            file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
            bytes
        }
        #[cfg(unix)]
        Kind::Pipe => match read_pipe(file, most).map_err(failed)? {
            Some(bytes) => bytes,
            None => {
                let seconds = PIPE_LIMIT.as_secs();
                return Err(refused(&format!(
                    "is a pipe and did not end within {seconds} seconds"
                )));
            }
        },
    };
    if bytes.len() as u64 > most {
        return Err(refused(&format!("has more than {most} bytes")));
    }
    Ok(bytes)
}

/// Kind of a file that can be read.
enum Kind {
    /// A regular file.
    File,
    /// A pipe, whose writers may still be open.
    #[cfg(unix)]
    Pipe,
    /// Anything that may be endless.
    Other,
}

/// Opens a file, without blocking on a pipe.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;

    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    File::options().read(true).custom_flags(flags).open(path)
}

#[cfg(unix)]
fn kind(file: &File) -> io::Result<Kind> {
    use std::os::unix::fs::FileTypeExt as _;

    let found = file.metadata()?.file_type();
    Ok(match found.is_file() || found.is_dir() {
        // For a folder, the system returns the error.
        true => Kind::File,
        false if found.is_fifo() => Kind::Pipe,
        false => Kind::Other,
    })
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(not(unix))]
fn kind(file: &File) -> io::Result<Kind> {
    Ok(if file.metadata()?.is_file() { Kind::File } else { Kind::Other })
}

/// Reads a pipe to its end, or until it exceeds `most` bytes; returns `None` after the time limit.
#[cfg(unix)]
fn read_pipe(mut pipe: File, most: u64) -> io::Result<Option<Vec<u8>>> {
    use std::time::Instant;

    use rustix::{
        event::{PollFd, PollFlags, Timespec, poll},
        io::Errno,
    };

    let until = Instant::now() + PIPE_LIMIT;
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    while bytes.len() as u64 <= most {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        // A pipe without a writer reads like one at its end.
        let mut fds = [PollFd::new(&pipe, PollFlags::IN)];
        match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
            Err(Errno::INTR) | Ok(0) => continue,
            found => found?,
        };
        match pipe.read(&mut part) {
            Ok(0) => return Ok(Some(bytes)),
            Ok(count) => bytes.extend(part.iter().take(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(bytes))
}
