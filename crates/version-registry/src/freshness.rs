//! The age of a registry's day.
//!
//! It knows two days. It must never change what is selected: a build says the same on every day.

use std::fmt;

use crate::{Date, FOUR_WEEKS};

/// A registry whose `as_of` is more than 28 days behind today: what it selects for older builds is
/// older than it need be, and no minimum can be raised.
///
/// ```
/// use serdes_version_registry::{Date, StaleRegistry};
///
/// let day = |text: &str| text.parse::<Date>().unwrap();
/// assert_eq!(StaleRegistry::find(day("2026-11-20"), day("2026-12-18")), None);
/// let stale = StaleRegistry::find(day("2026-11-20"), day("2026-12-19")).unwrap();
/// assert_eq!(stale.days(), 29);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleRegistry {
    as_of: Date,
    today: Date,
}

impl StaleRegistry {
    /// Returns the warning if `as_of` is more than 28 days before `today`.
    pub fn find(as_of: Date, today: Date) -> Option<Self> {
        (today.days_since(as_of) > FOUR_WEEKS).then_some(Self { as_of, today })
    }

    /// Returns the days from `as_of` to today.
    pub fn days(&self) -> i64 {
        self.today.days_since(self.as_of)
    }
}

impl fmt::Display for StaleRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "as_of = {} is {} days behind {}, so that versions are selected as if it were that day; \
             move it with the next release (`serdes versions release`)",
            self.as_of,
            self.days(),
            self.today
        )
    }
}
