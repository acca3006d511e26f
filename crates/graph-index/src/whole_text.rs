//! Strings assembled from pieces.

use crate::scan::Piece;

/// Limit on the length of a string that is assembled, in bytes: no real graph has such a name.
const LONGEST: usize = 1 << 20;

/// The string that is being read.
#[derive(Clone, Debug, Default)]
pub struct WholeText {
    bytes: Vec<u8>,
    /// True if a string was too long since this was last reset.
    pub oversized: bool,
}

impl WholeText {
    /// Adds a piece; returns the whole string if it was the last one.
    #[inline]
    pub fn take<'t>(&'t mut self, piece: &'t [u8], is: Piece) -> Option<&'t [u8]> {
        if is.first && is.last {
            return Some(piece);
        }
        self.append(piece, is)
    }

    #[cold]
    fn append(&mut self, piece: &[u8], is: Piece) -> Option<&[u8]> {
        if is.first {
            self.bytes.clear();
        }
        if self.bytes.len() + piece.len() > LONGEST {
            self.oversized = true;
            return None;
        }
        self.bytes.extend_from_slice(piece);
        is.last.then_some(&self.bytes)
    }
}
