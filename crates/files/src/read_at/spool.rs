//! Buffers the bytes of a stream so that they can be read at any position.

use std::{
    io::{self, Read, Write},
    sync::Arc,
};

use super::ReadAt;

/// Bytes of a stream that are kept in memory; longer streams go to a temporary file.
pub const IN_MEMORY: u64 = 64 << 20;

/// The most bytes of a stream that this library buffers: 64 GiB.
pub const LONGEST_STREAM: u64 = 64 << 30;

/// Reads a stream to its end: into memory up to 64 MiB, beyond that into a temporary file without a
/// name, which is freed with the last reader. `None` if there are more bytes than `limit`.
///
/// # Errors
/// If the stream cannot be read or the temporary file cannot be written.
pub fn spool(mut input: impl Read, limit: u64) -> io::Result<Option<Arc<dyn ReadAt>>> {
    let mut start = Vec::new();
    input.by_ref().take(limit.min(IN_MEMORY).saturating_add(1)).read_to_end(&mut start)?;
    let length = start.len() as u64;
    if length > limit {
        return Ok(None);
    }
    if length <= IN_MEMORY {
        return Ok(Some(Arc::new(start)));
    }
    spill(start, input, limit)
}

/// Reads a stream, whose first bytes are `start`, to its end into a temporary file without a name.
/// `None` if there are more bytes than `limit`, including `start`.
///
/// # Errors
/// As [`spool`].
pub fn spill(start: Vec<u8>, input: impl Read, limit: u64) -> io::Result<Option<Arc<dyn ReadAt>>> {
    let mut file = tempfile::tempfile()?;
    file.write_all(&start)?;
    let rest = limit.saturating_sub(start.len() as u64);
    drop(start);
    if io::copy(&mut input.take(rest.saturating_add(1)), &mut file)? > rest {
        return Ok(None);
    }
    Ok(Some(Arc::new(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(source: &dyn ReadAt) -> Vec<u8> {
        let mut bytes = vec![0; source.size().unwrap() as usize];
        source.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn a_stream_comes_back_from_memory_and_from_a_file() {
        assert_eq!(all(&spool(&b"short"[..], 5).unwrap().unwrap()), b"short");
        let long = IN_MEMORY + 10;
        let kept = spool(io::repeat(7).take(long), long).unwrap().unwrap();
        assert!(all(&kept).iter().all(|byte| *byte == 7));
        assert_eq!(kept.size().unwrap(), long);
    }

    #[test]
    fn a_stream_without_an_end_is_left_at_the_limit() {
        assert!(spool(io::repeat(0), 100).unwrap().is_none());
        assert!(spool(io::repeat(0), IN_MEMORY + 100).unwrap().is_none());
        assert!(spool(&b"123456"[..], 5).unwrap().is_none());
    }
}
