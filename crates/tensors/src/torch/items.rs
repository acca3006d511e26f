//! The items of containers.

use super::{id::ValueId, words::Words};

/// The items of a tuple, a list or a dict.
#[derive(Clone, Copy, Debug)]
pub(super) struct Items<'v> {
    words: &'v Words,
    /// The next item, and the number of items that follow it in this stretch.
    at: usize,
    left: usize,
    /// The next stretch and the last one; both are the same in the last stretch.
    next: usize,
    last: usize,
}

impl<'v> Items<'v> {
    pub(super) const fn none(words: &'v Words) -> Self {
        Self { words, at: 0, left: 0, next: 0, last: 0 }
    }

    pub(super) const fn flat(words: &'v Words, at: usize, left: usize) -> Self {
        Self { words, at, left, next: 0, last: 0 }
    }

    /// Returns the items of a list whose last stretch is at an index.
    pub(super) fn stretches(words: &'v Words, last: usize) -> Self {
        let mut items = Self { last, next: last, ..Self::none(words) };
        if last != 0 {
            items.next = words.get(last).unwrap_or_default() as usize;
            items.begin_stretch();
        }
        items
    }

    /// Advances to the next stretch.
    fn begin_stretch(&mut self) {
        let stretch = self.next;
        self.at = stretch + 2;
        self.left = self.words.get(stretch + 1).unwrap_or_default() as usize;
        self.next = match stretch == self.last {
            true => 0,
            false => self.words.get(stretch).unwrap_or_default() as usize,
        };
    }

    /// Returns the items as an array; `None` unless their number is exactly that of the array.
    pub(super) fn array<const N: usize>(mut self) -> Option<[ValueId; N]> {
        let mut array = [ValueId::NONE; N];
        for item in &mut array {
            *item = self.next()?;
        }
        self.next().is_none().then_some(array)
    }
}

impl Iterator for Items<'_> {
    type Item = ValueId;

    fn next(&mut self) -> Option<ValueId> {
        while self.left == 0 {
            if self.next == 0 {
                return None;
            }
            self.begin_stretch();
        }
        let word = self.words.get(self.at)?;
        self.at += 1;
        self.left -= 1;
        Some(ValueId::of_word(word))
    }
}
