use std::{
    fmt,
    str::FromStr,
    time::{SystemTime, UNIX_EPOCH},
};

use chrono::{Datelike, NaiveDate};

const SECONDS_A_DAY: u64 = 24 * 60 * 60;
const EPOCH: Date = Date(NaiveDate::from_ymd_opt(1970, 1, 1).unwrap());

/// A calendar day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(NaiveDate);

impl Date {
    /// The day `year`-`month`-`day`; `None` if there is no such day.
    pub const fn from_ymd(year: i32, month: u32, day: u32) -> Option<Self> {
        match NaiveDate::from_ymd_opt(year, month, day) {
            Some(date) => Some(Self(date)),
            None => None,
        }
    }

    /// The day as chrono's type.
    pub const fn as_naive_date(self) -> NaiveDate {
        self.0
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
    pub fn to_ymd(self) -> (i32, u32, u32) {
        (self.0.year(), self.0.month(), self.0.day())
    }

    /// Days from `earlier` to this day; negative if `earlier` is later.
    pub fn days_since(self, earlier: Date) -> i64 {
        self.0.signed_duration_since(earlier.0).num_days()
    }

    /// The day `days` later (earlier, if negative); `None` outside the calendar.
    pub fn plus_days(self, days: i64) -> Option<Self> {
        self.0.checked_add_signed(chrono::TimeDelta::try_days(days)?).map(Self)
    }
}

impl From<NaiveDate> for Date {
    fn from(date: NaiveDate) -> Self {
        Self(date)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.format("%Y-%m-%d"))
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
        let shaped = text.len() == 10
            && text.bytes().enumerate().all(|(at, byte)| match at {
                4 | 7 => byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        if !shaped {
            return Err(wrong());
        }
        NaiveDate::parse_from_str(text, "%Y-%m-%d").map(Self).map_err(|_| wrong())
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
