//! Days of the calendar: parsing, formatting and arithmetic.
//!
//! The calendar is chrono's. The module does not depend on versions.

use std::{fmt, str::FromStr};

use chrono::{DateTime, Datelike as _, NaiveDate, TimeDelta, Utc};

/// A day from year 0 to year 9999 of the Gregorian calendar, as `versions.toml` can express it.
///
/// Wraps a [`chrono::NaiveDate`], limited to the years that the form `YYYY-MM-DD` can express.
///
/// ```
/// use chrono::NaiveDate;
/// use serdes_version_registry::Date;
///
/// let day: Date = "2026-11-20".parse()?;
/// assert_eq!(NaiveDate::from(day), NaiveDate::from_ymd_opt(2026, 11, 20).unwrap());
/// assert_eq!(Date::try_from(NaiveDate::from(day))?, day);
/// assert!(Date::try_from(NaiveDate::MAX).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(NaiveDate);

/// The years that the form `YYYY-MM-DD` can express.
const FIRST_YEAR: i32 = 0;
const LAST_YEAR: i32 = 9999;

impl Date {
    /// Returns the day `year`-`month`-`day`; `None` if there is no such day.
    pub const fn from_ymd(year: i32, month: u32, day: u32) -> Option<Self> {
        if year < FIRST_YEAR || year > LAST_YEAR {
            return None;
        }
        match NaiveDate::from_ymd_opt(year, month, day) {
            Some(date) => Some(Self(date)),
            None => None,
        }
    }

    /// Returns today by the system's clock, in UTC. The selection of versions never calls it.
    pub fn today() -> Self {
        Self::within(Utc::now().date_naive())
            .unwrap_or_else(|| Self(DateTime::UNIX_EPOCH.date_naive()))
    }

    /// Returns the day of a number of seconds since 1970-01-01 in UTC; `None` outside the calendar.
    ///
    /// ```
    /// use serdes_version_registry::Date;
    /// assert_eq!(Date::from_unix_seconds(1_795_305_599), Date::from_ymd(2026, 11, 21));
    /// ```
    pub fn from_unix_seconds(seconds: i64) -> Option<Self> {
        Self::within(DateTime::from_timestamp(seconds, 0)?.date_naive())
    }

    /// Returns the year, month (1 to 12) and day (1 to 31).
    pub fn to_ymd(self) -> (i32, u32, u32) {
        (self.0.year(), self.0.month(), self.0.day())
    }

    /// Returns the number of days from `earlier` to this day; negative if `earlier` is later.
    pub fn days_since(self, earlier: Date) -> i64 {
        self.0.signed_duration_since(earlier.0).num_days()
    }

    /// Returns the day `days` later (earlier, if negative); `None` outside the calendar.
    pub fn plus_days(self, days: i64) -> Option<Self> {
        Self::within(self.0.checked_add_signed(TimeDelta::try_days(days)?)?)
    }

    /// Returns the day, if the form `YYYY-MM-DD` can express it.
    fn within(date: NaiveDate) -> Option<Self> {
        (FIRST_YEAR..=LAST_YEAR).contains(&date.year()).then_some(Self(date))
    }
}

impl From<Date> for NaiveDate {
    fn from(date: Date) -> Self {
        date.0
    }
}

/// Refuses a day before year 0 or after year 9999.
impl TryFrom<NaiveDate> for Date {
    type Error = ParseDateError;

    fn try_from(date: NaiveDate) -> Result<Self, ParseDateError> {
        Self::within(date).ok_or_else(|| ParseDateError { found: date.to_string() })
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// `Date(2026-11-20)`
impl fmt::Debug for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Date({self})")
    }
}

/// The error of a text that is not a day in the form `YYYY-MM-DD`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not a day; write it as YYYY-MM-DD, for example 2026-11-20")]
pub struct ParseDateError {
    /// The text found.
    pub found: String,
}

impl FromStr for Date {
    type Err = ParseDateError;

    fn from_str(text: &str) -> Result<Self, ParseDateError> {
        // The format alone would accept signs, blanks, and months of one digit.
        NaiveDate::parse_from_str(text.get(..10).unwrap_or_default(), "%Y-%m-%d")
            .ok()
            .and_then(Self::within)
            .filter(|date| date.to_string() == text)
            .ok_or_else(|| ParseDateError { found: text.chars().take(40).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_read_in_one_form_only() {
        assert_eq!("2026-03-19".parse(), Ok(Date::from_ymd(2026, 3, 19).unwrap()));
        for text in [
            "",
            "2026-3-19",
            "2026-02-30",
            "19.03.2026",
            "2026-03-19T00",
            "+026-03-19",
            "２０２６",
            "2026-03-19 ",
            " 2026-03-19",
            "2026- 3-19",
            "-001-03-19",
            "+2026-03-19",
            "12026-03-19",
            "0000-00-00",
            "2026-03-1９",
            "2026/03/19",
            "2026-02-29",
            "2100-02-29",
        ] {
            let error = text.parse::<Date>().unwrap_err();
            assert!(error.to_string().contains("YYYY-MM-DD"), "{error}");
        }
    }

    #[test]
    fn dates_follow_each_other_over_the_whole_calendar() {
        for first_year in [0, 1590, 1890, 9590] {
            let first = Date::from_ymd(first_year, 1, 1).unwrap();
            let mut date = first;
            for number in 1..=410 * 365 {
                let Some(next) = date.plus_days(1) else { break };
                assert_eq!(next.days_since(first), number, "{next}");
                let ((year, month, day), last) = (date.to_ymd(), next.to_ymd());
                let follows = last == (year, month, day + 1)
                    || last == (year, month + 1, 1)
                    || (last == (year + 1, 1, 1) && (month, day) == (12, 31));
                assert!(follows, "{date} {next}");
                date = next;
            }
        }
        let (first, last) =
            (Date::from_ymd(0, 1, 1).unwrap(), Date::from_ymd(9999, 12, 31).unwrap());
        assert_eq!(last.days_since(first), 3_652_424);
        assert_eq!((first.plus_days(-1), last.plus_days(1)), (None, None));
        assert_eq!(first.plus_days(3_652_424), Some(last));
    }

    #[test]
    fn leap_years_follow_the_gregorian_rule() {
        for (year, days) in [(2023, 28), (2024, 29), (1900, 28), (2000, 29), (2100, 28)] {
            assert!(Date::from_ymd(year, 2, days).is_some(), "{year}");
            assert_eq!(Date::from_ymd(year, 2, days + 1), None, "{year}");
        }
        for (month, day) in [(0, 1), (13, 1), (1, 0), (1, 32), (4, 31)] {
            assert_eq!(Date::from_ymd(2026, month, day), None, "{month}-{day}");
        }
        assert_eq!(Date::from_ymd(-1, 1, 1), None);
        assert_eq!(Date::from_ymd(10_000, 1, 1), None);
    }

    #[test]
    fn days_are_counted_across_months_and_leap_years() {
        let day = |text: &str| text.parse::<Date>().unwrap();
        assert_eq!(day("2024-03-01").days_since(day("2024-02-28")), 2);
        assert_eq!(day("2026-03-19").plus_days(28), Some(day("2026-04-16")));
        assert_eq!(day("2026-03-19").plus_days(i64::MAX), None);
    }

    #[test]
    fn seconds_before_1970_belong_to_the_day_that_they_lie_in() {
        let date = |seconds| Date::from_unix_seconds(seconds).map(|date| date.to_string());
        assert_eq!(date(0).as_deref(), Some("1970-01-01"));
        assert_eq!(date(-1).as_deref(), Some("1969-12-31"));
        assert_eq!(date(86_400).as_deref(), Some("1970-01-02"));
        assert_eq!(date(-62_167_219_200).as_deref(), Some("0000-01-01"));
        assert_eq!(date(253_402_300_799).as_deref(), Some("9999-12-31"));
        for outside in [-62_167_219_201, 253_402_300_800, i64::MIN, i64::MAX] {
            assert_eq!(date(outside), None, "{outside}");
        }
        assert!(Date::today() > Date::from_ymd(2026, 1, 1).unwrap());
    }

    #[test]
    fn a_day_outside_of_the_form_is_no_day_of_chronos_either() {
        for outside in [NaiveDate::MIN, NaiveDate::MAX] {
            let error = Date::try_from(outside).unwrap_err();
            assert!(error.to_string().contains(&outside.to_string()), "{error}");
        }
        for text in ["0000-01-01", "1969-12-31", "2024-02-29", "9999-12-31"] {
            let date: Date = text.parse().unwrap();
            assert_eq!(
                (date.to_string().as_str(), format!("{date:?}")),
                (text, format!("Date({text})"))
            );
            assert_eq!(Date::try_from(NaiveDate::from(date)), Ok(date));
        }
    }
}
