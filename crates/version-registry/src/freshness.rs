//! The age of a registry's day.
//!
//! The module knows two days. It does not change the selection of versions: a build gives the same
//! result on every day.

use std::fmt;

use crate::{Date, FOUR_WEEKS};

/// The warning that `as_of` is more than 28 days behind today: the versions that are selected for
/// older builds are older than necessary, and no minimum can be raised.
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

    /// Returns the number of days from `as_of` to today.
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
