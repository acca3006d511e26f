//! The version that an accessor selects for older builds, with its age.

use std::fmt;

use serdes_version_registry::Selected;

use super::{Date, Line, Version, lines::Ifrt};

/// The version that an accessor selects for older builds, with its age.
///
/// A line whose first entry is younger than the requested age has nothing older. Its oldest version
/// is then selected, so that it can be written at all; a program that writes for older builds
/// should report this.
///
/// ```
/// use serdes::version::{Date, DeviceState, SerDesWeek4OldVersionAccessor, Week4OldVersionAccessor};
///
/// let day = Date::from_ymd(2026, 11, 22).unwrap();
/// let state = Week4OldVersionAccessor::<DeviceState>::select_on(day)?;
/// assert_eq!((state.version().number(), state.age_days(), state.asked_days()), (0, 2, 28));
/// assert!(state.is_younger_than_asked());
/// assert_eq!(
///     state.to_string(),
///     "device state version 0 is 2 days old on 2026-11-22, not 28, and the oldest that this build \
///      writes: builds from before 2026-11-20 cannot read it"
/// );
/// assert!(!SerDesWeek4OldVersionAccessor::select_on(day)?.is_younger_than_asked());
/// # Ok::<(), serdes::version::NoVersionYet>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection<L: Line = Ifrt> {
    version: Version<L>,
    day: Date,
    introduced: Date,
    asked_days: i64,
}

impl<L: Line> Selection<L> {
    pub(super) fn new(day: Date, selected: Selected) -> Self {
        Self {
            version: Version::from_number(selected.number),
            day,
            introduced: selected.introduced,
            asked_days: selected.asked_days,
        }
    }

    /// Returns the version.
    pub const fn version(&self) -> Version<L> {
        self.version
    }

    /// Returns the day from which builds read and write the version.
    pub const fn introduced(&self) -> Date {
        self.introduced
    }

    /// Returns the age of the version in days, on the day of the selection.
    pub fn age_days(&self) -> i64 {
        self.day.days_since(self.introduced)
    }

    /// Returns the requested age in days.
    pub const fn asked_days(&self) -> i64 {
        self.asked_days
    }

    /// Returns `true` if the version is younger than requested: builds of the requested age cannot
    /// read it.
    pub fn is_younger_than_asked(&self) -> bool {
        self.age_days() < self.asked_days
    }
}

impl<L: Line> fmt::Display for Selection<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (age, day) = (self.age_days(), self.day);
        let days = if age == 1 { "day" } else { "days" };
        write!(f, "{} is {age} {days} old on {day}", self.version)?;
        if self.is_younger_than_asked() {
            write!(
                f,
                ", not {}, and the oldest that this build writes: builds from before {} cannot read it",
                self.asked_days, self.introduced
            )?;
        }
        Ok(())
    }
}
