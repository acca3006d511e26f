//! Carries the bytes of a source to a [`Scanner`], a window at a time.
//!
//! Reads with positioned reads into one bounded buffer instead of mapping the file: pages of a map
//! count as resident memory of the process, and copying a window that stays in the cache costs less
//! than the faults of a map. After a jump over a payload the window is small and grows while the
//! reading is sequential, so that a graph of few large nodes costs a few small reads.

use std::io;

use serdes_files::ReadAt;

use super::{
    MessageId, Progress, Scanner, Schema, Visitor, WHOLE_STRING, WireError, scanner::FIELD_HEADER,
};

/// The first read, and the first after a jump, in bytes.
const SMALLEST: usize = 512;

/// The largest read in bytes: it fits into the second-level cache beside what the reader keeps.
const LARGEST: usize = 256 * 1024;

const _: () = assert!(LARGEST >= WHOLE_STRING + FIELD_HEADER);

/// Why a message could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The bytes are not what a parser accepts.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The system could not read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Walks over the message of `schema` that `source` holds from its first byte to its last.
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
