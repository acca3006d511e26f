use std::fmt;

use chrono::NaiveDate;

/// A calendar day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(NaiveDate);

impl Date {
    /// The day `year`-`month`-`day`; a day that does not exist fails the build where the call is constant.
    pub(crate) const fn from_ymd(year: i32, month: u32, day: u32) -> Self {
        match NaiveDate::from_ymd_opt(year, month, day) {
            Some(date) => Self(date),
            None => panic!("no such day"),
        }
    }

    /// The day as chrono's type.
    pub const fn as_naive_date(self) -> NaiveDate {
        self.0
    }

    /// Days from `earlier` to this day; negative if `earlier` is later.
    pub fn days_since(self, earlier: Date) -> i64 {
        self.0.signed_duration_since(earlier.0).num_days()
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.format("%Y-%m-%d"))
    }
}
