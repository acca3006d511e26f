//! Which number of a line is current, four weeks old, or any number of weeks old on a day.
//!
//! The one implementation behind the build-time rules, the accessors and the listing.

use crate::Date;

/// What the selection looks at: a number, its day, and whether it was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dated {
    /// The number.
    pub number: i32,
    /// The day from which builds read and write it.
    pub introduced: Date,
    /// Whether it was taken back: it is never selected.
    pub withdrawn: bool,
}

/// The newest number that is at least `days` days old on `day`, never below `minimum`.
///
/// Entries that are withdrawn, older than the minimum, or introduced after `day` are passed over.
/// `None` if nothing is left: the line has no version yet on that day.
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
    let mut selected = None;
    for entry in entries {
        let age = day.days_since(entry.introduced);
        if entry.withdrawn || entry.number < minimum || age < 0 {
            continue;
        }
        // The oldest usable entry is taken whatever its age: nothing older is readable.
        if selected.is_none() || age >= days {
            selected = Some(entry.number);
        }
    }
    selected
}
