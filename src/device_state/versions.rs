//! The versions at which a state is written: two lines that move together.

use std::fmt;

use crate::version::{
    AnyVersionAccessor, DefaultVersionAccessor, DeviceState, Ifrt, Line, NegotiationError,
    UnknownVersion, Version, VersionRange, Week4OldVersionAccessor, WeeksOldVersionAccessor,
};

/// The versions at which a state is written: that of the container, and that of the array specs
/// in it.
///
/// A state has messages of two lines, and a build reads it only if it reads both. So a selection
/// moves both: what [`week_4_old`](Self::week_4_old) gives is read by the builds of four weeks ago.
///
/// ```
/// use serdes::device_state::Versions;
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
    /// Exactly these, for who owns the choice of both.
    pub const fn new(container: Version<DeviceState>, specs: Version<Ifrt>) -> Self {
        Self { container, specs }
    }

    /// The newest of both lines, for builds as new as this one.
    #[expect(clippy::disallowed_methods, reason = "the caller says that it wants the newest")]
    pub fn current() -> Self {
        Self::new(Version::current(), Version::current())
    }

    /// The newest of each line that is at least four weeks old, for the builds of four weeks ago.
    pub fn week_4_old() -> Self {
        Self::new(Week4OldVersionAccessor::get(), Week4OldVersionAccessor::get())
    }

    /// The newest of each line that is at least `weeks` weeks old.
    pub fn weeks_old(weeks: u32) -> Self {
        Self::new(WeeksOldVersionAccessor::get(weeks), WeeksOldVersionAccessor::get(weeks))
    }

    /// The oldest of each line that this build writes.
    pub fn minimum() -> Self {
        Self::new(AnyVersionAccessor::minimum(), AnyVersionAccessor::minimum())
    }

    /// Array specs at `specs`; nothing is said about the container, so it is written at its
    /// default.
    ///
    /// For a reader that is known by its IFRT SerDes number alone, as one that was asked in a
    /// handshake of that line. A reader that is older than the container's current version needs
    /// [`negotiate`](Self::negotiate) or [`new`](Self::new).
    ///
    /// # Panics
    /// As [`DefaultVersionAccessor::get`]: only where the testing switch for forgotten versions is
    /// on.
    #[track_caller]
    pub fn for_specs(specs: Version<Ifrt>) -> Self {
        Self::new(DefaultVersionAccessor::get(), specs)
    }

    /// The newest of each line that this build writes and a reader of these ranges reads.
    ///
    /// # Errors
    /// If a line has none; the error names the line, and who must be upgraded.
    pub fn negotiate(
        container: VersionRange<DeviceState>,
        specs: VersionRange<Ifrt>,
    ) -> Result<Self, NegotiationError> {
        Ok(Self::new(common(container)?, common(specs)?))
    }

    /// The versions of these numbers, as data records them.
    ///
    /// # Errors
    /// If this build does not write one of them; the error names the line.
    pub fn from_numbers(container: i32, specs: i32) -> Result<Self, UnknownVersion> {
        Ok(Self::new(AnyVersionAccessor::get(container)?, AnyVersionAccessor::get(specs)?))
    }

    /// The version of the container: its header, index and trailer.
    pub const fn container(self) -> Version<DeviceState> {
        self.container
    }

    /// The version of the array specs.
    pub const fn specs(self) -> Version<Ifrt> {
        self.specs
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.container, self.specs)
    }
}

fn common<L: Line>(theirs: VersionRange<L>) -> Result<Version<L>, NegotiationError> {
    AnyVersionAccessor::negotiate(VersionRange::supported(), theirs)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_negotiation_fails_for_the_line_that_has_nothing_in_common() {
        let every = VersionRange::new(0, i32::MAX).unwrap();
        let newer = VersionRange::new(1 << 20, i32::MAX).unwrap();
        let all = VersionRange::new(0, i32::MAX).unwrap();
        assert_eq!(Versions::negotiate(every, all), Ok(Versions::current()));
        let error = Versions::negotiate(newer, all).unwrap_err();
        assert_eq!(error.line, "device_state");
        let specs = VersionRange::new(1 << 20, i32::MAX).unwrap();
        let error = Versions::negotiate(every, specs).unwrap_err();
        assert_eq!(error.line, "ifrt_serdes");
    }

    #[test]
    fn numbers_that_this_build_does_not_write_are_no_versions() {
        assert_eq!(Versions::from_numbers(0, 3).unwrap().specs().number(), 3);
        assert_eq!(Versions::from_numbers(1 << 20, 3).unwrap_err().line, "device_state");
        assert_eq!(Versions::from_numbers(0, -1).unwrap_err().line, "ifrt_serdes");
    }
}
