//! Ranges of versions, from which two peers negotiate one.

use std::{fmt, marker::PhantomData};

use serdes_abi::ErrorKind;

use super::{Line, Version, lines::Ifrt};

/// An inclusive range of version numbers, without their line.
///
/// [`NegotiationError`] holds two of them and the name of the line, so that it is one type for all
/// lines. Where the line is known at compile time, use [`VersionRange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NumberRange {
    minimum: i32,
    maximum: i32,
}

impl NumberRange {
    /// Returns the lowest number.
    pub const fn minimum(self) -> i32 {
        self.minimum
    }

    /// Returns the highest number.
    pub const fn maximum(self) -> i32 {
        self.maximum
    }

    /// Returns `true` if `number` lies inside.
    pub const fn contains(self, number: i32) -> bool {
        self.minimum <= number && number <= self.maximum
    }
}

impl<L: Line> From<VersionRange<L>> for NumberRange {
    fn from(range: VersionRange<L>) -> Self {
        range.numbers
    }
}

impl fmt::Display for NumberRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.minimum, self.maximum)
    }
}

/// An inclusive range of version numbers of the line `L`. A peer's range may contain numbers that
/// this build does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VersionRange<L: Line = Ifrt> {
    numbers: NumberRange,
    line: PhantomData<L>,
}

impl<L: Line> VersionRange<L> {
    /// Returns the range that this build reads and writes: minimum to current.
    pub fn supported() -> Self {
        let maximum = Version::<L>::of_age(0).number();
        Self { numbers: NumberRange { minimum: L::MINIMUM, maximum }, line: PhantomData }
    }

    /// Creates the range from `minimum` to `maximum`, both included; `None` if it is empty.
    pub fn new(minimum: i32, maximum: i32) -> Option<Self> {
        let numbers = NumberRange { minimum, maximum };
        (minimum <= maximum).then_some(Self { numbers, line: PhantomData })
    }

    /// Returns the lowest number.
    pub const fn minimum(self) -> i32 {
        self.numbers.minimum
    }

    /// Returns the highest number.
    pub const fn maximum(self) -> i32 {
        self.numbers.maximum
    }

    /// Returns `true` if `number` lies inside.
    pub const fn contains(self, number: i32) -> bool {
        self.numbers.contains(number)
    }
}

/// The error of a range that contains no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the range {minimum}..{maximum} is empty; name the lower number first")]
#[non_exhaustive]
pub struct EmptyRange {
    /// The lowest number that was given.
    pub minimum: i32,
    /// The highest number that was given.
    pub maximum: i32,
}

impl EmptyRange {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidInput
    }
}

/// Converts the lowest and the highest number, both included.
impl<L: Line> TryFrom<(i32, i32)> for VersionRange<L> {
    type Error = EmptyRange;

    fn try_from((minimum, maximum): (i32, i32)) -> Result<Self, EmptyRange> {
        Self::new(minimum, maximum).ok_or(EmptyRange { minimum, maximum })
    }
}

impl<L: Line> fmt::Display for VersionRange<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.numbers.fmt(f)
    }
}

/// One of the two sides of a negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// This side.
    Ours,
    /// The peer.
    Theirs,
}

/// The error of a negotiation whose two ranges have no version in common.
///
/// ```
/// use serdes::version::{SerDesAnyVersionAccessor, Side, VersionRange};
///
/// let theirs = VersionRange::try_from((7, 9))?;
/// let error = SerDesAnyVersionAccessor::negotiate(VersionRange::supported(), theirs).unwrap_err();
/// assert_eq!((error.line(), error.upgrade()), ("ifrt_serdes", Side::Ours));
/// assert_eq!((error.ours().maximum(), error.theirs().minimum()), (6, 7));
/// assert_eq!(
///     error.to_string(),
///     "no common ifrt_serdes version: ours is 0..6, theirs is 7..9; upgrade this side"
/// );
/// # Ok::<(), serdes::version::EmptyRange>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no common {line} version: ours is {ours}, theirs is {theirs}; upgrade {}", match .upgrade { Side::Ours => "this side", Side::Theirs => "the peer" })]
pub struct NegotiationError {
    line: &'static str,
    ours: NumberRange,
    theirs: NumberRange,
    upgrade: Side,
}

impl NegotiationError {
    /// Creates the error for two ranges of one line. The side with the lower maximum has to be
    /// upgraded, and this side if the maxima are equal.
    pub(super) fn between<L: Line>(ours: VersionRange<L>, theirs: VersionRange<L>) -> Self {
        let upgrade = if ours.maximum() <= theirs.maximum() { Side::Ours } else { Side::Theirs };
        Self { line: L::NAME, ours: ours.into(), theirs: theirs.into(), upgrade }
    }

    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::Refused
    }

    /// Returns the name of the line.
    pub const fn line(&self) -> &'static str {
        self.line
    }

    /// Returns the range of this side.
    pub const fn ours(&self) -> NumberRange {
        self.ours
    }

    /// Returns the range of the peer.
    pub const fn theirs(&self) -> NumberRange {
        self.theirs
    }

    /// Returns the side that must be upgraded.
    pub const fn upgrade(&self) -> Side {
        self.upgrade
    }
}

/// The error of a number that is not a version of the line, or that this build does not read and
/// write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{line} version {found} {} ({supported})",
    if *withdrawn { "is withdrawn; choose another one that this build reads and writes" }
    else { "is not one that this build reads and writes" }
)]
#[non_exhaustive]
pub struct UnknownVersion {
    /// The name of the line.
    pub line: &'static str,
    /// The number found.
    pub found: i32,
    /// The supported range, as text.
    pub supported: String,
    /// True if the number is listed in `versions.toml` as withdrawn.
    pub withdrawn: bool,
}

impl UnknownVersion {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidInput
    }
}
