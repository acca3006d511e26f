use std::{fmt, marker::PhantomData};

use super::{DecodeError, EncodeError};
use crate::version::{Ifrt, Line, SerDesVersion, VersionRange};

/// The formats of one type: numbers of the line `L`, in ascending order.
///
/// One global number is shared by all types; each type has its own, smaller set of formats. What a writer records is the
/// format's own number, never the requested one (seed 001, "Adding a New Format").
///
/// ```
/// use serdes::codec::Formats;
/// use serdes::version::{Ifrt, SerDesAnyVersionAccessor};
///
/// const FORMATS: Formats = Formats::new("Measurements", &[0, 4]);
/// let requested = SerDesAnyVersionAccessor::get(5)?;
/// assert_eq!(FORMATS.for_request(requested)?, 4);
/// assert_eq!(FORMATS.check_recorded(0)?, 0);
/// assert!(FORMATS.check_recorded(3).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Formats<L: Line = Ifrt> {
    type_name: &'static str,
    numbers: &'static [i32],
    negative_passes: bool,
    line: PhantomData<L>,
}

impl<L: Line> Formats<L> {
    /// The formats `numbers` (ascending) of `type_name`.
    pub const fn new(type_name: &'static str, numbers: &'static [i32]) -> Self {
        Self { type_name, numbers, negative_passes: false, line: PhantomData }
    }

    /// The same formats for a type whose upstream reader only checks an upper bound, so that a negative number is read as the
    /// oldest format.
    pub const fn negative_passes(mut self) -> Self {
        self.negative_passes = true;
        self
    }

    /// The type's name in messages.
    pub const fn type_name(self) -> &'static str {
        self.type_name
    }

    /// The numbers, ascending.
    pub const fn numbers(self) -> &'static [i32] {
        self.numbers
    }

    /// The number to record at the requested version: the newest format that is not newer.
    ///
    /// # Errors
    /// [`EncodeError::UnsupportedAtVersion`] if the type's first format is newer.
    pub fn for_request(self, requested: SerDesVersion<L>) -> Result<i32, EncodeError> {
        #[cfg(test)]
        recording::add(self.type_name, requested.number());
        match self.numbers.iter().rev().find(|number| **number <= requested.number()) {
            Some(number) => Ok(*number),
            None => Err(EncodeError::unsupported_at_version(
                self.type_name,
                "this type",
                requested,
                self.numbers.first().copied().unwrap_or(L::MINIMUM),
            )),
        }
    }

    /// The format to read data with that records `found`.
    ///
    /// # Errors
    /// Too new if `found` is above the newest version of this build, too old if it was removed, unknown if it is a version
    /// for which this type has no format.
    pub fn check_recorded(self, found: i32) -> Result<i32, DecodeError> {
        if self.numbers.contains(&found) {
            return Ok(found);
        }
        let supported = VersionRange::<L>::supported();
        if self.negative_passes
            && found < 0
            && let Some(oldest) = self.numbers.first()
        {
            return Ok(*oldest);
        }
        Err(if found > supported.maximum() {
            DecodeError::TooNew {
                type_name: self.type_name,
                line: L::TITLE,
                found,
                newest: supported.maximum(),
            }
        } else if found < supported.minimum() && found >= 0 {
            DecodeError::TooOld {
                type_name: self.type_name,
                line: L::TITLE,
                found,
                minimum: supported.minimum(),
            }
        } else {
            DecodeError::UnknownFormat {
                type_name: self.type_name,
                line: L::TITLE,
                found,
                known: self.to_string(),
            }
        })
    }
}

impl<L: Line> fmt::Display for Formats<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, number) in self.numbers.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{number}")?;
        }
        Ok(())
    }
}

/// Listens to the requests that reach each type, at every nesting.
#[cfg(test)]
pub(crate) mod recording {
    use std::cell::RefCell;

    thread_local! {
        static REQUESTS: RefCell<Option<Vec<(&'static str, i32)>>> = const { RefCell::new(None) };
    }

    pub(super) fn add(type_name: &'static str, requested: i32) {
        REQUESTS.with_borrow_mut(|requests| {
            if let Some(requests) = requests {
                requests.push((type_name, requested));
            }
        });
    }

    /// Runs `write`; gives its result and the requests that were made meanwhile, as type and number.
    pub(crate) fn record<R>(write: impl FnOnce() -> R) -> (R, Vec<(&'static str, i32)>) {
        REQUESTS.set(Some(Vec::new()));
        let result = write();
        (result, REQUESTS.take().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        codec::{DecodeErrorKind, StatusCode},
        version::SerDesAnyVersionAccessor,
    };

    const FORMATS: Formats = Formats::new("Example", &[0, 4]);

    #[test]
    fn what_is_recorded_is_the_newest_format_that_is_not_newer_than_the_request() {
        for (requested, recorded) in [(0, 0), (1, 0), (3, 0), (4, 4), (5, 4), (6, 4)] {
            let version = SerDesAnyVersionAccessor::get(requested).unwrap();
            assert_eq!(FORMATS.for_request(version), Ok(recorded));
        }
    }

    #[test]
    fn a_type_that_came_later_names_the_first_version_that_has_it() {
        let version = SerDesAnyVersionAccessor::get(2).unwrap();
        let error = Formats::<Ifrt>::new("Young", &[5]).for_request(version).unwrap_err();
        assert_eq!(error.code(), StatusCode::FailedPrecondition);
        assert_eq!(
            error.to_string(),
            "serialization of Young: IFRT SerDes version 2 cannot express this type; version 5 is the first that can: request 5 or a newer version"
        );
    }

    #[test]
    fn a_number_above_the_newest_is_too_new_and_one_without_a_format_is_corrupt() {
        let newest = VersionRange::<Ifrt>::supported().maximum();
        let too_new = FORMATS.check_recorded(newest + 1).unwrap_err();
        assert_eq!(too_new.kind(), DecodeErrorKind::TooNew);
        assert_eq!(too_new.code(), StatusCode::FailedPrecondition);
        assert!(too_new.to_string().starts_with("deserialization of Example:"), "{too_new}");
        assert_eq!(FORMATS.check_recorded(i32::MAX).unwrap_err().kind(), DecodeErrorKind::TooNew);
        for corrupt in [1, 3, 5, -1, i32::MIN] {
            let error = FORMATS.check_recorded(corrupt).unwrap_err();
            assert_eq!(error.kind(), DecodeErrorKind::Corrupt, "{corrupt}");
            assert_eq!(error.code(), StatusCode::FailedPrecondition);
        }
    }

    #[test]
    fn a_negative_number_is_read_as_the_oldest_format_only_where_upstream_does() {
        assert_eq!(FORMATS.negative_passes().check_recorded(-7), Ok(0));
        assert!(FORMATS.check_recorded(-7).is_err());
    }
}
