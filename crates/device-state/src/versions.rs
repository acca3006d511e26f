//! The versions at which a state is written: two lines that advance together.

use std::fmt;

use serdes::version::{
    AnyVersionAccessor, Date, DefaultVersionAccessor, DeviceState, Ifrt, Line, NegotiationError,
    UnknownVersion, Version, VersionRange, Week4OldVersionAccessor, WeeksOldVersionAccessor,
};

/// The versions at which a state is written: of the container, and of the array specs in it.
///
/// A state has messages of two lines, and a build reads it only if it reads both. So a selection
/// covers both: builds of four weeks ago read [`week_4_old`](Self::week_4_old).
///
/// ```
/// use serdes_device_state::Versions;
/// use serdes::version::{SerDesVersion, VersionRange};
///
/// let for_older_builds = Versions::week_4_old();
/// assert!(for_older_builds.container().number() <= Versions::current().container().number());
/// assert!(for_older_builds.specs().number() <= Versions::current().specs().number());
///
/// // A peer said what it reads.
/// let container = VersionRange::new(0, 7).expect("not empty");
/// let specs = VersionRange::new(2, 4).expect("not empty");
/// assert_eq!(Versions::negotiate(container, specs)?.specs().number(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Versions {
    container: Version<DeviceState>,
    specs: Version<Ifrt>,
}

impl Versions {
    /// Creates a request for exactly these versions, for callers that choose both.
    pub const fn new(container: Version<DeviceState>, specs: Version<Ifrt>) -> Self {
        Self { container, specs }
    }

    /// Returns the newest version of both lines, for builds as new as this one.
    #[expect(clippy::disallowed_methods, reason = "the caller says that it wants the newest")]
    pub fn current() -> Self {
        Self::new(Version::current(), Version::current())
    }

    /// Returns the newest version of each line that is at least four weeks old, for the builds of
    /// four weeks ago.
    pub fn week_4_old() -> Self {
        Self::new(Week4OldVersionAccessor::get(), Week4OldVersionAccessor::get())
    }

    /// Returns the newest version of each line that is at least `weeks` weeks old.
    pub fn weeks_old(weeks: u32) -> Self {
        Self::new(WeeksOldVersionAccessor::get(weeks), WeeksOldVersionAccessor::get(weeks))
    }

    /// Returns the oldest version of each line that this build writes.
    pub fn minimum() -> Self {
        Self::new(AnyVersionAccessor::minimum(), AnyVersionAccessor::minimum())
    }

    /// Creates a request for array specs at `specs`; the container is not specified, so it is
    /// written at its default.
    ///
    /// For a reader whose IFRT SerDes number is known from a handshake of that line only. A reader
    /// that is older than the container's current version needs
    /// [`for_reader_of`](Self::for_reader_of), [`negotiate`](Self::negotiate) or
    /// [`new`](Self::new).
    ///
    /// # Panics
    /// As [`DefaultVersionAccessor::get`]: only where the testing switch for forgotten versions is
    /// on.
    #[track_caller]
    pub fn for_specs(specs: Version<Ifrt>) -> Self {
        Self::new(DefaultVersionAccessor::get(), specs)
    }

    /// Returns the versions for a reader of which only the IFRT SerDes number is known: array specs
    /// at `specs`, and the container that builds of that number's day read, or the oldest that this
    /// build writes if there was none on that day.
    ///
    /// So a number from a user, such as `--serdes-version 4`, sets both lines.
    ///
    /// ```
    /// use serdes_device_state::Versions;
    /// use serdes::version::SerDesAnyVersionAccessor;
    ///
    /// let versions = Versions::for_reader_of(SerDesAnyVersionAccessor::get(4)?);
    /// assert_eq!((versions.specs().number(), versions.container().number()), (4, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_reader_of(specs: Version<Ifrt>) -> Self {
        Self::new(of_day(specs.introduced()), specs)
    }

    /// Returns the default of each line, for callers without a requested version.
    ///
    /// # Panics
    /// As [`DefaultVersionAccessor::get`]: only where the testing switch for forgotten versions is
    /// on.
    #[track_caller]
    pub fn by_default() -> Self {
        Self::new(DefaultVersionAccessor::get(), DefaultVersionAccessor::get())
    }

    /// Returns the newest version of each line that this build writes and a reader of these ranges
    /// reads.
    ///
    /// # Errors
    /// If a line has no such version; the error names the line, and the side to upgrade.
    pub fn negotiate(
        container: VersionRange<DeviceState>,
        specs: VersionRange<Ifrt>,
    ) -> Result<Self, NegotiationError> {
        Ok(Self::new(common(container)?, common(specs)?))
    }

    /// Returns the versions with these numbers, as recorded in data.
    ///
    /// # Errors
    /// If this build does not write one of them; the error names the line.
    pub fn from_numbers(container: i32, specs: i32) -> Result<Self, UnknownVersion> {
        Ok(Self::new(AnyVersionAccessor::get(container)?, AnyVersionAccessor::get(specs)?))
    }

    /// Returns the version of the container: its header, index and trailer.
    pub const fn container(self) -> Version<DeviceState> {
        self.container
    }

    /// Returns the version of the array specs.
    pub const fn specs(self) -> Version<Ifrt> {
        self.specs
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.container, self.specs)
    }
}

/// Returns the newest version of a line on a day; the oldest that is written if there was none.
fn of_day<L: Line>(day: Date) -> Version<L> {
    WeeksOldVersionAccessor::get_on(0, day).unwrap_or_else(|_| AnyVersionAccessor::minimum())
}

fn common<L: Line>(theirs: VersionRange<L>) -> Result<Version<L>, NegotiationError> {
    AnyVersionAccessor::negotiate(VersionRange::supported(), theirs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serdes::version::Entry;

    #[test]
    fn a_selection_moves_both_lines() {
        let week_4_old = Versions::week_4_old();
        assert_eq!(week_4_old.container(), Week4OldVersionAccessor::get());
        assert_eq!(week_4_old.specs(), Week4OldVersionAccessor::get());
        assert_eq!(Versions::weeks_old(4), week_4_old);
        assert_eq!(Versions::weeks_old(0), Versions::current());
        let minimum = Versions::minimum();
        assert_eq!(
            (minimum.container().number(), minimum.specs().number()),
            (DeviceState::MINIMUM, Ifrt::MINIMUM)
        );
    }

    /// A line whose second entry is later than most numbers of the other line.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    struct Younger;

    impl Line for Younger {
        const NAME: &'static str = "younger";
        const TITLE: &'static str = "younger";
        const ENTRIES: &'static [Entry] = &[
            Entry::new(0, Date::from_ymd(2026, 3, 1).unwrap()),
            Entry::new(1, Date::from_ymd(2026, 6, 1).unwrap()),
        ];
        const MINIMUM: i32 = 0;
        const AS_OF: Date = Date::from_ymd(2026, 12, 1).unwrap();
    }

    #[test]
    fn versions_for_a_reader_move_the_container_to_its_day() {
        for (day, number) in [
            ("2025-01-01", 0),
            ("2026-03-01", 0),
            ("2026-05-31", 0),
            ("2026-06-01", 1),
            ("2027-01-01", 1),
        ] {
            assert_eq!(of_day::<Younger>(day.parse().unwrap()).number(), number, "{day}");
        }
        for entry in Ifrt::ENTRIES {
            let Ok(specs) = AnyVersionAccessor::<Ifrt>::get(entry.number) else { continue };
            let versions = Versions::for_reader_of(specs);
            assert_eq!(versions.specs(), specs);
            assert_eq!(versions.container(), of_day(entry.introduced));
        }
    }

    #[test]
    fn a_negotiation_fails_for_the_line_that_has_nothing_in_common() {
        let every = VersionRange::new(0, i32::MAX).unwrap();
        let newer = VersionRange::new(1 << 20, i32::MAX).unwrap();
        let all = VersionRange::new(0, i32::MAX).unwrap();
        assert_eq!(Versions::negotiate(every, all), Ok(Versions::current()));
        let error = Versions::negotiate(newer, all).unwrap_err();
        assert_eq!(error.line(), "device_state");
        let specs = VersionRange::new(1 << 20, i32::MAX).unwrap();
        let error = Versions::negotiate(every, specs).unwrap_err();
        assert_eq!(error.line(), "ifrt_serdes");
    }

    #[test]
    fn numbers_that_this_build_does_not_write_are_no_versions() {
        assert_eq!(Versions::from_numbers(0, 3).unwrap().specs().number(), 3);
        assert_eq!(Versions::from_numbers(1 << 20, 3).unwrap_err().line, "device_state");
        assert_eq!(Versions::from_numbers(0, -1).unwrap_err().line, "ifrt_serdes");
    }
}
