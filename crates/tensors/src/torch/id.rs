//! Ids of the values of a pickle, each one word.

/// A value, by its kind and its index among the words of a pickle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ValueId(u32);

/// Number of bits of a word for the index of a value, or for the value itself.
pub(super) const PLACE_BITS: u32 = 28;

/// Mask of the bits for the index.
pub(super) const PLACE: u32 = (1 << PLACE_BITS) - 1;

/// The kinds of values, which are the highest bits of a word.
pub(super) mod kind {
    pub(in super::super) const SPECIAL: u32 = 0;
    pub(in super::super) const SMALL: u32 = 1;
    pub(in super::super) const INTEGER: u32 = 2;
    pub(in super::super) const NUMBER: u32 = 3;
    pub(in super::super) const TEXT: u32 = 4;
    pub(in super::super) const BYTES: u32 = 5;
    pub(in super::super) const LONG: u32 = 6;
    pub(in super::super) const ONE: u32 = 7;
    pub(in super::super) const TWO: u32 = 8;
    pub(in super::super) const THREE: u32 = 9;
    pub(in super::super) const TUPLE: u32 = 10;
    pub(in super::super) const LIST: u32 = 11;
    pub(in super::super) const DICT: u32 = 12;
    pub(in super::super) const GLOBAL: u32 = 13;
    pub(in super::super) const CALL: u32 = 14;
    pub(in super::super) const PERSISTENT: u32 = 15;
}

impl ValueId {
    pub(super) const NONE: Self = Self(0);
    pub(super) const FALSE: Self = Self(1);
    pub(super) const TRUE: Self = Self(2);
    pub(super) const EMPTY_TUPLE: Self = Self(3);
    pub(super) const EMPTY_TEXT: Self = Self(4);
    pub(super) const SET: Self = Self(5);
    pub(super) const FROZEN_SET: Self = Self(6);
    /// No value.
    pub(super) const MISSING: Self = Self(7);

    /// Returns the id of a value of this kind at an index.
    pub(super) const fn of(kind: u32, place: u32) -> Self {
        Self(kind << PLACE_BITS | place)
    }

    /// Returns the id from a word that [`word`](Self::word) returned.
    pub(super) const fn of_word(word: u32) -> Self {
        Self(word)
    }

    /// Returns the id as a word.
    pub(super) const fn word(self) -> u32 {
        self.0
    }

    pub(super) const fn kind(self) -> u32 {
        self.0 >> PLACE_BITS
    }

    pub(super) const fn place(self) -> usize {
        (self.0 & PLACE) as usize
    }
}
