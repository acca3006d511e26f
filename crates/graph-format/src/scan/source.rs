//! Feeds the bytes of a source to a [`Scanner`], window by window.
//!
//! Reads with positioned reads into one bounded buffer instead of mapping the file: pages of a map
//! count as resident memory of the process, and copying a window that stays in the cache is faster
//! than the page faults of a map. After a jump over a payload the window is small and grows while
//! the reading is sequential, so that a graph of few large nodes takes a few small reads.

use std::io;

use serdes_files::ReadAt;

use super::{
    MessageId, Progress, Scanner, Schema, Visitor, WHOLE_STRING, WireError, scanner::FIELD_HEADER,
};

/// Size in bytes of the first read, and of the first one after a jump.
const SMALLEST: usize = 512;

/// Size in bytes of the largest read: it fits into the second-level cache beside the reader's own
/// data.
const LARGEST: usize = 256 * 1024;

const _: () = assert!(LARGEST >= WHOLE_STRING + FIELD_HEADER);

/// The reason why a message could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The bytes violate the wire format.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The system could not read the source.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Scans the message of `schema` that fills all of `source`.
///
/// # Errors
/// [`ScanError`].
pub fn scan<V: Visitor>(
    source: &(impl ReadAt + ?Sized),
    schema: Schema,
    message: MessageId,
    visitor: &mut V,
) -> Result<(), ScanError> {
    let size = source.size()?;
    let mut scanner = Scanner::new(schema, message, size);
    let mut buffer = Vec::new();
    let (mut start, mut filled, mut read_size) = (0_u64, 0_usize, SMALLEST);
    loop {
        let window = buffer.get(..filled).unwrap_or_default();
        let (at, bytes) = match scanner.run(window, start, visitor)? {
            Progress::Done => return Ok(()),
            Progress::Need { at, bytes } => (at, bytes),
        };
        let gap = at.saturating_sub(start.saturating_add(filled as u64));
        read_size = if gap > read_size as u64 { SMALLEST } else { (read_size * 2).min(LARGEST) };
        let wanted = read_size.max(bytes);
        let wanted = usize::try_from(size.saturating_sub(at)).unwrap_or(usize::MAX).min(wanted);
        if buffer.len() < wanted {
            buffer.resize(wanted, 0);
        }
        source.read_exact_at(buffer.get_mut(..wanted).unwrap_or_default(), at)?;
        (start, filled) = (at, wanted);
    }
}
