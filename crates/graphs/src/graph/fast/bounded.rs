//! Lists and strings of hostile files, kept within bounds.

use crate::scan::Piece;

/// Number of versions in a list before repetitions are dropped, so that a hostile list needs less
/// memory than its bytes.
const LISTED: usize = 1 << 16;

/// Adds a version to a list whose order and repetitions do not matter.
pub(super) fn add_bad_consumer(list: &mut Vec<i32>, version: i32) {
    if list.len() >= LISTED && list.len() == list.capacity() {
        list.sort_unstable();
        list.dedup();
    }
    list.push(version);
}

/// Collects a string that may come in pieces, up to a bound.
pub(super) fn collect(text: &mut Vec<u8>, piece: &[u8], is: Piece, bound: usize) {
    if is.first {
        text.clear();
    }
    let room = bound.saturating_sub(text.len());
    text.extend_from_slice(piece.get(..piece.len().min(room)).unwrap_or_default());
}
