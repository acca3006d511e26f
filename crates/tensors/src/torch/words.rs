//! Words of 32 bits in pieces of one size: growing copies nothing, and shrinking frees pieces.

use super::{budget::Budget, error::TorchError};

/// Number of words in a piece.
const PIECE: usize = 1 << 13;

/// Bytes of a piece, and of the pointer to it in a list that doubles as it grows.
const PIECE_BYTES: usize = PIECE * 4 + 48;

/// A sequence of words.
#[derive(Debug, Default)]
pub(super) struct Words {
    pieces: Vec<Box<[u32]>>,
    length: usize,
}

impl Words {
    /// Returns the number of words.
    pub(super) const fn len(&self) -> usize {
        self.length
    }

    /// Returns the word at an index.
    pub(super) fn get(&self, at: usize) -> Option<u32> {
        if at >= self.length {
            return None;
        }
        self.pieces.get(at / PIECE)?.get(at % PIECE).copied()
    }

    /// Changes the word at an existing index.
    pub(super) fn set(&mut self, at: usize, word: u32) {
        let piece = self.pieces.get_mut(at / PIECE);
        if let Some(place) = piece.and_then(|piece| piece.get_mut(at % PIECE)) {
            *place = word;
        }
    }

    /// Appends a word.
    ///
    /// # Errors
    /// If the budget has no bytes left for another piece.
    pub(super) fn push(&mut self, word: u32, budget: &mut Budget) -> Result<(), TorchError> {
        if self.length == self.pieces.len() * PIECE {
            budget.take(PIECE_BYTES)?;
            self.pieces.push(vec![0; PIECE].into());
        }
        let at = self.length;
        self.length += 1;
        self.set(at, word);
        Ok(())
    }

    /// Removes and returns the last word. One empty piece is kept for later words.
    pub(super) fn pop(&mut self, budget: &mut Budget) -> Option<u32> {
        let last = self.length.checked_sub(1)?;
        let word = self.get(last);
        self.truncate(last, budget);
        word
    }

    /// Removes all words behind the first `length`.
    pub(super) fn truncate(&mut self, length: usize, budget: &mut Budget) {
        self.length = self.length.min(length);
        let kept = self.length / PIECE + 2;
        if let Some(freed) = self.pieces.len().checked_sub(kept) {
            self.pieces.truncate(kept);
            budget.give_back(freed * PIECE_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_in_pieces_that_are_freed() {
        let (mut words, mut budget) = (Words::default(), Budget::of_file(0));
        for word in 0..5 * PIECE as u32 {
            words.push(word, &mut budget).unwrap();
        }
        assert_eq!(words.get(3 * PIECE + 7), Some(3 * PIECE as u32 + 7));
        assert_eq!(words.get(5 * PIECE), None);
        words.truncate(10, &mut budget);
        assert_eq!((words.len(), words.pieces.len()), (10, 2));
        assert_eq!(words.pop(&mut budget), Some(9));
        assert_eq!(words.get(9), None);
    }

    #[test]
    fn words_beyond_the_budget_are_refused() {
        let (mut words, mut budget) = (Words::default(), Budget::of_file(0));
        let pushed = (0..20_000_000).try_for_each(|word| words.push(word, &mut budget));
        assert!(pushed.is_err() && words.len() * 4 <= 48 << 20, "{}", words.len());
    }
}
