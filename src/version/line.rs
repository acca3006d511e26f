use std::{
    fmt,
    hash::{Hash, Hasher},
    marker::PhantomData,
};

use super::{Date, Ifrt};

/// One dated version of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The number that is recorded in data.
    pub number: i32,
    /// The day from which builds read and write it.
    pub introduced: Date,
}

impl Entry {
    /// An entry of a line.
    pub const fn new(number: i32, introduced: Date) -> Self {
        Self { number, introduced }
    }
}

/// A sequence of dated versions with a minimum; the line is part of the type of its versions.
pub trait Line: Copy + fmt::Debug + Eq + Hash + Send + Sync + 'static {
    /// The name in versions.toml.
    const NAME: &'static str;
    /// The words before a number in messages: "IFRT SerDes" in "IFRT SerDes version 3".
    const TITLE: &'static str;
    /// The entries, oldest first.
    const ENTRIES: &'static [Entry];
    /// The oldest number that this build reads and writes.
    const MINIMUM: i32;
    /// The day for which the selectors are computed.
    const AS_OF: Date;
}

/// A version of the line `L`, for which this build has a format.
///
/// Numbers are reached through [`number`](Self::number); versions themselves are only equal or not.
pub struct SerDesVersion<L: Line = Ifrt>(i32, PhantomData<L>);

impl<L: Line> SerDesVersion<L> {
    pub(super) const fn from_number(number: i32) -> Self {
        Self(number, PhantomData)
    }

    /// The newest version.
    pub fn current() -> Self {
        Self::from_number(L::ENTRIES.last().map_or(L::MINIMUM, |entry| entry.number))
    }

    /// The number that data records and that peers exchange.
    pub const fn number(self) -> i32 {
        self.0
    }
}

impl<L: Line> Clone for SerDesVersion<L> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<L: Line> Copy for SerDesVersion<L> {}
impl<L: Line> PartialEq for SerDesVersion<L> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<L: Line> Eq for SerDesVersion<L> {}
impl<L: Line> Hash for SerDesVersion<L> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
impl<L: Line> fmt::Debug for SerDesVersion<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SerDesVersion<{}>({})", L::NAME, self.0)
    }
}
impl<L: Line> fmt::Display for SerDesVersion<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} version {}", L::TITLE, self.0)
    }
}
