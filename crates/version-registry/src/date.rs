//! Days of the calendar: read, written and counted.
//!
//! Must never know a version. Registries need no more of a calendar than this, so that no crate for
//! times and zones is built before everything else.

use std::{
    fmt,
    str::FromStr,
    time::{SystemTime, UNIX_EPOCH},
};

const SECONDS_A_DAY: u64 = 24 * 60 * 60;
const EPOCH: Date = Date { year: 1970, month: 1, day: 1 };
/// The last year that the form `YYYY-MM-DD` can say.
const LAST_YEAR: i32 = 9999;
/// After so many years the calendar repeats itself.
const YEARS_A_CYCLE: i64 = 400;
const DAYS_A_CYCLE: i64 = days_before(400);

/// A day of the Gregorian calendar, from year 0 to year 9999.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    year: i32,
    month: u32,
    day: u32,
}

impl Date {
    /// The day `year`-`month`-`day`; `None` if there is no such day.
    pub const fn from_ymd(year: i32, month: u32, day: u32) -> Option<Self> {
        let in_calendar = year >= 0 && year <= LAST_YEAR;
        if in_calendar && day > 0 && day <= days_of_month(year, month) {
            Some(Self { year, month, day })
        } else {
            None
        }
    }

    /// Today by the system's clock, in UTC. Selections never ask for it by themselves.
    pub fn today() -> Self {
        let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let days = i64::try_from(passed.as_secs() / SECONDS_A_DAY).unwrap_or_default();
        EPOCH.plus_days(days).unwrap_or(EPOCH)
    }

    /// The day of a number of seconds since 1970-01-01 in UTC; `None` outside the calendar.
    ///
    /// ```
    /// use serdes_version_registry::Date;
    /// assert_eq!(Date::from_unix_seconds(1_795_305_599), Date::from_ymd(2026, 11, 21));
    /// ```
    pub fn from_unix_seconds(seconds: i64) -> Option<Self> {
        EPOCH.plus_days(seconds.div_euclid(SECONDS_A_DAY.cast_signed()))
    }

    /// Year, month (1 to 12) and day (1 to 31).
    pub const fn to_ymd(self) -> (i32, u32, u32) {
        (self.year, self.month, self.day)
    }

    /// Days from `earlier` to this day; negative if `earlier` is later.
    pub fn days_since(self, earlier: Date) -> i64 {
        self.number() - earlier.number()
    }

    /// The day `days` later (earlier, if negative); `None` outside the calendar.
    pub fn plus_days(self, days: i64) -> Option<Self> {
        Self::from_number(self.number().checked_add(days)?)
    }

    /// Days since 0000-01-01.
    fn number(self) -> i64 {
        let months = (1..self.month).map(|month| days_of_month(self.year, month)).sum::<u32>();
        days_before(self.year) + i64::from(months + self.day - 1)
    }

    /// The day that is `number` days after 0000-01-01.
    fn from_number(number: i64) -> Option<Self> {
        if !(0..days_before(LAST_YEAR + 1)).contains(&number) {
            return None;
        }
        // Right, or next to it: the years of a cycle are not all of the same length.
        let guess = i32::try_from(number * YEARS_A_CYCLE / DAYS_A_CYCLE).ok()?;
        let holds = |year: &i32| (days_before(*year)..days_before(year + 1)).contains(&number);
        let year = (guess - 1..=guess + 1).find(holds)?;
        let mut left = u32::try_from(number - days_before(year)).ok()?;
        let mut month = 1;
        while left >= days_of_month(year, month) {
            left -= days_of_month(year, month);
            month += 1;
        }
        Self::from_ymd(year, month, left + 1)
    }
}

/// Days of the years from 0 to the one before `year`.
const fn days_before(year: i32) -> i64 {
    let years = year as i64;
    years * 365 + (years + 3) / 4 - (years + 99) / 100 + (years + 399) / 400
}

/// Days of a month; 0 if there is no such month.
const fn days_of_month(year: i32, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => 0,
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day } = self;
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

/// `Date(2026-11-20)`
impl fmt::Debug for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Date({self})")
    }
}

/// A text that is not a day in the form `YYYY-MM-DD`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not a day; write it as YYYY-MM-DD, for example 2026-11-20")]
pub struct ParseDateError {
    /// The text found.
    pub found: String,
}

impl FromStr for Date {
    type Err = ParseDateError;

    fn from_str(text: &str) -> Result<Self, ParseDateError> {
        let wrong = || ParseDateError { found: text.chars().take(40).collect() };
        // `parse` alone would take a sign.
        let number = |digits: &str| {
            let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<u32>().ok().filter(|_| all_digits)
        };
        let day = || {
            let (year, rest) = text.split_at_checked(4)?;
            let (month, day) = rest.strip_prefix('-')?.split_at_checked(2)?;
            let day = day.strip_prefix('-').filter(|day| day.len() == 2)?;
            Self::from_ymd(number(year)?.cast_signed(), number(month)?, number(day)?)
        };
        day().ok_or_else(wrong)
    }
}

#[cfg(feature = "serde")]
mod serialized {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use super::Date;

    /// As the text `YYYY-MM-DD`.
    impl Serialize for Date {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self)
        }
    }

    impl<'de> Deserialize<'de> for Date {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = String::deserialize(deserializer)?;
            text.parse().map_err(D::Error::custom)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_read_in_one_form_only() {
        assert_eq!("2026-03-19".parse(), Ok(Date::from_ymd(2026, 3, 19).unwrap()));
        for text in
            ["", "2026-3-19", "2026-02-30", "19.03.2026", "2026-03-19T00", "+026-03-19", "２０２６"]
        {
            let error = text.parse::<Date>().unwrap_err();
            assert!(error.to_string().contains("YYYY-MM-DD"), "{error}");
        }
    }

    #[test]
    fn a_day_follows_the_day_before_from_the_first_of_the_calendar_to_the_last() {
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
    fn february_has_29_days_every_fourth_year_but_not_every_hundredth_and_again_every_400th() {
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
        assert_eq!(date(i64::MAX), None);
        assert!(Date::today() > Date::from_ymd(2026, 1, 1).unwrap());
    }
}
