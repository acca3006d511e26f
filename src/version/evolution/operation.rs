//! The rule that says when a producer may emit a new operation.

use super::{Date, EvolutionError};

/// The number of days for which a consumer is promised to load the data of newer producers: three
/// weeks.
///
/// This is TensorFlow's window for forward compatibility. In its GraphDef numbers, which count
/// days, it is also the distance from which a consumer distrusts a producer.
pub const FORWARD_COMPATIBILITY_DAYS: i64 = 21;

/// An operation that consumers know, and that producers do not emit yet.
///
/// ```
/// use serdes::version::{Date, evolution::OperationAddition};
///
/// let day = |text: &str| text.parse::<Date>();
/// let swish = OperationAddition::new("SwishV2", day("2026-11-02")?);
/// let early = swish.may_emit(day("2026-11-22")?).unwrap_err();
/// assert!(early.to_string().ends_with("emit it from 2026-11-23 on"));
/// assert!(swish.may_emit(day("2026-11-23")?).is_ok());
/// # Ok::<(), serdes::version::ParseDateError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationAddition {
    /// The operation.
    pub operation: String,
    /// The day from which consumers have it.
    pub added: Date,
    /// The number of days for which new data is promised to older consumers: 21.
    pub window_days: i64,
}

impl OperationAddition {
    /// Creates an operation that consumers have had since the day `added`.
    pub fn new(operation: impl Into<String>, added: Date) -> Self {
        Self { operation: operation.into(), added, window_days: FORWARD_COMPATIBILITY_DAYS }
    }

    /// Sets a promise other than three weeks; 0 where forward compatibility is not desired.
    #[must_use]
    pub fn with_window(mut self, days: u32) -> Self {
        self.window_days = days.into();
        self
    }

    /// Returns the first day on which producers may emit the operation; `None` outside the
    /// calendar.
    pub fn writable_from(&self) -> Option<Date> {
        self.added.plus_days(self.window_days)
    }

    /// Checks that producers may emit the operation on `day`: every consumer that is promised their
    /// data has it by then.
    ///
    /// # Errors
    /// [`EvolutionError::TooEarlyToEmit`], with the first day on which they may emit it.
    pub fn may_emit(&self, day: Date) -> Result<(), EvolutionError> {
        if day.days_since(self.added) >= self.window_days {
            return Ok(());
        }
        Err(EvolutionError::TooEarlyToEmit {
            operation: self.operation.clone(),
            added: self.added,
            day,
            window: self.window_days,
            first: self.writable_from().unwrap_or(self.added),
        })
    }
}

/// The refusal of an operation in data of some version and above.
///
/// Verdicts on graphs (`check`) treat a ban like an operation that TensorFlow deprecated:
/// `Consumer::with_ban` takes one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationBan {
    /// The operation.
    pub operation: String,
    /// The first producer version whose data is refused if it has the operation.
    pub from_version: i32,
    /// The operation to use in its place; empty if there is none.
    pub replacement: String,
}

impl OperationBan {
    /// Creates the record of a ban that was made earlier.
    pub fn new(
        operation: impl Into<String>,
        from_version: i32,
        replacement: impl Into<String>,
    ) -> Self {
        Self { operation: operation.into(), from_version, replacement: replacement.into() }
    }

    /// Returns `true` if data of this producer may contain the operation.
    pub const fn allows(&self, producer: i32) -> bool {
        producer < self.from_version
    }
}
