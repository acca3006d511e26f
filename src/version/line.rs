//! Lines of versions, each of which is a type of its own, and their versions.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    marker::PhantomData,
};

use serdes_version_registry::{Consumer, FOUR_WEEKS, Selected, select};

use super::{Date, Entry, TypeFormats};

/// A sequence of dated versions with a minimum; the line is part of the type of its versions.
///
/// [`lines!`](crate::lines) generates lines from a versions.toml after checking its rules.
pub trait Line: Copy + fmt::Debug + Eq + Hash + Send + Sync + 'static {
    /// The name in versions.toml.
    const NAME: &'static str;
    /// The words before a number in messages: "IFRT SerDes" in "IFRT SerDes version 3".
    const TITLE: &'static str;
    /// The entries, oldest first.
    const ENTRIES: &'static [Entry];
    /// The formats of each type that the entries name.
    const TYPES: &'static [TypeFormats] = &[];
    /// The oldest number that this build reads and writes.
    const MINIMUM: i32;
    /// The day for which the accessors select versions.
    const AS_OF: Date;
    /// The consumers that must not read what this build writes.
    const BAD_CONSUMERS: &'static [i32] = &[];
    /// The consumers that must not read what this build writes with a certain content, as pairs of
    /// content and consumers.
    const BAD_CONSUMERS_WITH: &'static [(&'static str, &'static [i32])] = &[];
    /// The age, in days, of the oldest builds that read data written for older builds, and whose
    /// data this build reads: `window_days` of the line, by default four weeks.
    const WINDOW_DAYS: i64 = FOUR_WEEKS;
    /// The oldest producer whose data this build accepts.
    const MIN_PRODUCER: i32 = 0;
    /// The word for data of the line in messages: "graph", "checkpoint".
    const DATA: &'static str = Self::TITLE;

    /// Returns this build as a consumer of the line.
    fn consumer() -> Consumer {
        let version = Version::<Self>::of_age(0).number();
        Consumer::new(Self::NAME, Self::DATA, version, Self::MIN_PRODUCER)
    }
}

/// A version of the line `L` for which this build has a format.
///
/// [`number`](Self::number) returns the number; versions of one line are ordered by it. Apart from
/// [`current`](Self::current), versions come from the accessors of this module.
///
/// A version of one line is not a version of another:
///
/// ```
/// use serdes::version::{Ifrt, Version};
/// let version: Version<Ifrt> = Version::current();
/// # let _ = version;
/// ```
/// ```compile_fail,E0308
/// use serdes::version::{DeviceState, Ifrt, Version};
/// let version: Version<Ifrt> = Version::<DeviceState>::current();
/// ```
/// ```compile_fail,E0308
/// use serdes::version::{DeviceState, SerDesAnyVersionAccessor, VersionRange};
/// let theirs = VersionRange::<DeviceState>::supported();
/// let _ = SerDesAnyVersionAccessor::negotiate(VersionRange::supported(), theirs);
/// ```
/// ```compile_fail,E0308
/// use serdes::version::{DeviceState, Ifrt, Version};
/// let _ = Version::<Ifrt>::current() == Version::<DeviceState>::current();
/// ```
///
/// A number is not a version, and the constructors are private:
///
/// ```compile_fail,E0423
/// use serdes::version::{Ifrt, Version};
/// let _: Version<Ifrt> = Version(3, std::marker::PhantomData);
/// ```
/// ```compile_fail,E0624
/// use serdes::version::{Ifrt, Version};
/// let _ = Version::<Ifrt>::from_number(3);
/// ```
/// ```compile_fail,E0277
/// use serdes::version::{Ifrt, Version};
/// let _: Version<Ifrt> = 3.into();
/// ```
/// ```compile_fail,E0599
/// let _ = serdes::version::Version::<serdes::version::Ifrt>::default();
/// ```
///
/// The selections are private too, except through an accessor:
///
/// ```compile_fail,E0599
/// let _ = serdes::version::Version::<serdes::version::Ifrt>::week_4_old();
/// ```
/// ```compile_fail,E0599
/// let _ = serdes::version::Version::<serdes::version::Ifrt>::minimum();
/// ```
pub struct Version<L: Line>(i32, PhantomData<L>);

impl<L: Line> Version<L> {
    pub(super) const fn from_number(number: i32) -> Self {
        Self(number, PhantomData)
    }

    /// Returns the selection for an age of `days` days on `day`; `None` if the line has no version
    /// yet.
    pub(super) fn selected(day: Date, days: i64) -> Option<Selected> {
        select(L::ENTRIES.iter().map(Entry::dated), L::MINIMUM, day, days)
    }

    /// Returns the newest version that is at least `days` days old on `day`; `None` if the line has
    /// no version yet.
    pub(super) fn newest_of_age(day: Date, days: i64) -> Option<Self> {
        Self::selected(day, days).map(|selected| Self::from_number(selected.number))
    }

    /// Like [`newest_of_age`](Self::newest_of_age), on the line's own day, on which the minimum
    /// always exists.
    pub(super) fn of_age(days: i64) -> Self {
        Self::newest_of_age(L::AS_OF, days).unwrap_or(Self::from_number(L::MINIMUM))
    }

    /// Returns the newest version.
    pub fn current() -> Self {
        Self::of_age(0)
    }

    /// Returns the day from which builds read and write this version; the line's own day for a
    /// number without an entry, which no accessor returns.
    pub fn introduced(self) -> Date {
        let entry = L::ENTRIES.iter().find(|entry| entry.number == self.0);
        entry.map_or(L::AS_OF, |entry| entry.introduced)
    }

    /// Returns the first day on which every build as old as the line's window reads this version:
    /// until then, data at this version is for newer builds only. `None` outside the calendar.
    ///
    /// ```
    /// use serdes::version::{SerDesAnyVersionAccessor, SerDesWeek4OldVersionAccessor};
    ///
    /// let version = SerDesAnyVersionAccessor::get(6)?; // of 2026-09-17
    /// let first = version.writable_from().expect("a day");
    /// assert_eq!(first.to_string(), "2026-10-15");
    /// assert_eq!(SerDesWeek4OldVersionAccessor::get_on(first)?, version);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn writable_from(self) -> Option<Date> {
        self.introduced().plus_days(L::WINDOW_DAYS)
    }

    /// Returns the number that data records and that peers exchange.
    pub const fn number(self) -> i32 {
        self.0
    }
}

impl<L: Line> Clone for Version<L> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<L: Line> Copy for Version<L> {}
impl<L: Line> PartialEq for Version<L> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<L: Line> Eq for Version<L> {}
/// The newer version is the greater one.
impl<L: Line> Ord for Version<L> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}
impl<L: Line> PartialOrd for Version<L> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<L: Line> Hash for Version<L> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
impl<L: Line> fmt::Debug for Version<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version<{}>({})", L::NAME, self.0)
    }
}
impl<L: Line> fmt::Display for Version<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} version {}", L::TITLE, self.0)
    }
}
