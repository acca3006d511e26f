//! Days of the calendar.

use std::fmt::{self, Display, Formatter};

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day {
    /// The year.
    pub year: u16,
    /// The month, 1 to 12.
    pub month: u8,
    /// The day of the month, 1 to 31.
    pub day: u8,
}

impl Day {
    /// Creates a day from its numbers.
    #[must_use]
    pub const fn new(year: u16, month: u8, day: u8) -> Self {
        Self { year, month, day }
    }

    /// Returns the same day `months` months later, or the 28th if it is later than that, so that
    /// the day exists.
    #[must_use]
    pub fn after_months(self, months: u8) -> Self {
        let month = u16::from(self.month.saturating_sub(1)).saturating_add(u16::from(months));
        let year = self.year.saturating_add(month / 12);
        // The cast is lossless: the number is less than 12.
        let month = (month % 12) as u8;
        Self { year, month: month.saturating_add(1), day: self.day.min(28) }
    }
}

impl Display for Day {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_months_stays_in_the_calendar() {
        assert_eq!(Day::new(2026, 8, 31).after_months(6), Day::new(2027, 2, 28));
        assert_eq!(Day::new(2025, 12, 1).after_months(12), Day::new(2026, 12, 1));
        assert_eq!(Day::new(2025, 12, 1).after_months(1).to_string(), "2026-01-01");
    }
}
