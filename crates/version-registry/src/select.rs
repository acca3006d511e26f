//! Selection of a line's number by age on a day: current, four weeks old, or any number of weeks
//! old.
//!
//! The one implementation behind the build-time rules, the accessors and the listing. It does not
//! read the clock: the day is always an argument.

use crate::Date;

/// The input of the selection: a number, its day, and its withdrawal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dated {
    /// The number.
    pub number: i32,
    /// The day from which builds read and write it.
    pub introduced: Date,
    /// True if it was withdrawn, and is never selected.
    pub withdrawn: bool,
}

/// A number that was selected on a day, with its age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Selected {
    /// The number.
    pub number: i32,
    /// The day from which builds read and write it.
    pub introduced: Date,
    /// The number of days from its introduction to the day of the selection.
    pub age_days: i64,
    /// The requested age in days.
    pub asked_days: i64,
}

impl Selected {
    /// Returns `true` if it is younger than requested, because no older number is still written:
    /// builds from before its introduction cannot read it.
    pub const fn is_younger_than_asked(&self) -> bool {
        self.age_days < self.asked_days
    }
}

/// Returns the newest entry that is at least `days` days old on `day`, never below `minimum`.
///
/// Skips entries that are withdrawn, below the minimum, or introduced after `day`. If no entry is
/// old enough, selects the oldest usable one, so that a young line can be written at all;
/// [`Selected::is_younger_than_asked`] reports this. Returns `None` if nothing is left: the line
/// has no version yet on that day.
///
/// ```
/// use serdes_version_registry::{Date, Dated, select};
///
/// let day = |text: &str| text.parse::<Date>().unwrap();
/// let entries = [Dated { number: 0, introduced: day("2026-03-01"), withdrawn: false }];
/// let selected = select(entries, 0, day("2026-03-03"), 28).unwrap();
/// assert_eq!((selected.number, selected.age_days), (0, 2));
/// assert!(selected.is_younger_than_asked());
/// assert!(!select(entries, 0, day("2026-03-29"), 28).unwrap().is_younger_than_asked());
/// ```
pub fn select(
    entries: impl IntoIterator<Item = Dated>,
    minimum: i32,
    day: Date,
    days: i64,
) -> Option<Selected> {
    let mut selected = None;
    for entry in entries {
        let age_days = day.days_since(entry.introduced);
        if entry.withdrawn || entry.number < minimum || age_days < 0 {
            continue;
        }
        // The oldest usable entry is selected at any age, because nothing older is readable.
        if selected.is_none() || age_days >= days {
            let Dated { number, introduced, .. } = entry;
            selected = Some(Selected { number, introduced, age_days, asked_days: days });
        }
    }
    selected
}

/// Returns the number that [`select`] selects.
///
/// ```
/// use serdes_version_registry::{Date, Dated, newest_of_age};
///
/// let day = |text: &str| text.parse::<Date>().unwrap();
/// let entries = [
///     Dated { number: 0, introduced: day("2026-01-01"), withdrawn: false },
///     Dated { number: 1, introduced: day("2026-03-01"), withdrawn: false },
/// ];
/// let select = |on, days| newest_of_age(entries, 0, day(on), days);
/// assert_eq!(select("2026-03-28", 28), Some(0)); // number 1 is 27 days old
/// assert_eq!(select("2026-03-29", 28), Some(1));
/// assert_eq!(select("2025-12-31", 0), None);
/// ```
pub fn newest_of_age(
    entries: impl IntoIterator<Item = Dated>,
    minimum: i32,
    day: Date,
    days: i64,
) -> Option<i32> {
    select(entries, minimum, day, days).map(|selected| selected.number)
}

/// The age and the roles of an entry on a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Standing {
    /// The number of days from its introduction to the day; negative if it is introduced later.
    pub age_days: i64,
    /// True if it is the newest version on that day.
    pub current: bool,
    /// True if it is the selection for builds as old as the line's window, by default four weeks.
    pub week_4_old: bool,
    /// True if it is that selection although it is younger than the window.
    pub younger_than_window: bool,
    /// True if it is the oldest version that is read and written.
    pub minimum: bool,
}

/// Returns the age and the roles of each entry on `day`, in the order of the entries; entries
/// introduced later have no flags.
pub(crate) fn standings(
    entries: impl Iterator<Item = Dated> + Clone,
    minimum: i32,
    window_days: i64,
    day: Date,
) -> Vec<Standing> {
    let current = newest_of_age(entries.clone(), minimum, day, 0);
    let old = select(entries.clone(), minimum, day, window_days);
    let standing = |entry: Dated| {
        let week_4_old = old.filter(|selected| selected.number == entry.number);
        Standing {
            age_days: day.days_since(entry.introduced),
            current: current == Some(entry.number),
            week_4_old: week_4_old.is_some(),
            younger_than_window: week_4_old.is_some_and(|old| old.is_younger_than_asked()),
            minimum: current.is_some() && entry.number == minimum,
        }
    };
    entries.map(standing).collect()
}
