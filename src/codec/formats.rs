//! The formats of a type: the number that data records for each request, and the numbers that are
//! read.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "constants are made here: the compiler evaluates them, and a panic is its error"
)]

use std::{fmt, marker::PhantomData};

use super::{DecodeError, EncodeError};
use crate::version::{Ifrt, Line, Version, VersionRange, is_same};

/// The formats of one type on the line `L`: the number that data records for each request, and the
/// numbers that are read.
///
/// All types share one global number; each type has its own, smaller set of formats. A writer
/// records the number of the format, never the requested one (seed 001, "Adding a New Format"). The
/// formats come from versions.toml: see [`of`](Self::of).
///
/// ```
/// use serdes::codec::Formats;
/// use serdes::version::{Ifrt, SerDesAnyVersionAccessor};
///
/// const FORMATS: Formats = Formats::of("RemapPlan");
/// let requested = SerDesAnyVersionAccessor::get(5)?;
/// assert_eq!(FORMATS.for_request(requested)?, 0);
/// assert_eq!(FORMATS.check_recorded(6)?, 6);
/// assert!(FORMATS.check_recorded(3).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Formats<L: Line = Ifrt> {
    type_name: &'static str,
    /// Requests in ascending order; each is granted the format at the same index of `recorded`.
    granted: &'static [i32],
    recorded: &'static [i32],
    read: &'static [i32],
    features: &'static [(&'static str, i32)],
    negative_passes: bool,
    older_where_it_will_do: bool,
    line: PhantomData<L>,
}

impl<L: Line> Formats<L> {
    /// Returns the formats of the named type, as the entries of the line's versions.toml declare
    /// them.
    ///
    /// In a constant, a type that no entry names does not compile:
    ///
    /// ```compile_fail,E0080
    /// use serdes::codec::Formats;
    ///
    /// const FORMATS: Formats = Formats::of("Temperature");
    /// # let _ = FORMATS;
    /// ```
    ///
    /// # Panics
    ///
    /// If no entry names the type.
    pub const fn of(type_name: &'static str) -> Self {
        let mut at = 0;
        while at < L::TYPES.len() {
            let found = &L::TYPES[at];
            if is_same(found.name, type_name) {
                return Self {
                    granted: found.granted,
                    recorded: found.recorded,
                    read: found.read,
                    features: found.features,
                    ..Self::new(type_name, &[])
                };
            }
            at += 1;
        }
        panic!("no entry of the line's versions.toml names this type under `formats`")
    }

    /// Creates the formats `numbers` (ascending) of `type_name`, each granted from the request of
    /// its own number. For lines that are not generated from a versions.toml.
    pub const fn new(type_name: &'static str, numbers: &'static [i32]) -> Self {
        Self {
            type_name,
            granted: numbers,
            recorded: numbers,
            read: numbers,
            features: &[],
            negative_passes: false,
            older_where_it_will_do: false,
            line: PhantomData,
        }
    }

    /// Accepts negative recorded numbers as the oldest format, for a type whose upstream reader
    /// only checks an upper bound.
    pub const fn negative_passes(mut self) -> Self {
        self.negative_passes = true;
        self
    }

    /// Keeps older formats readable for a type that is written in an older format at every version
    /// where that can express the value, so that no minimum makes the older format too old.
    pub const fn older_where_it_will_do(mut self) -> Self {
        self.older_where_it_will_do = true;
        self
    }

    /// Returns the type's name in messages.
    pub const fn type_name(self) -> &'static str {
        self.type_name
    }

    /// Returns the recorded numbers that are read, ascending.
    pub const fn numbers(self) -> &'static [i32] {
        self.read
    }

    /// Returns `number` if the type has a format of this number; code that writes the format names
    /// it this way. In a constant, a number that versions.toml does not list does not compile.
    ///
    /// # Panics
    ///
    /// If data of the type never records the number.
    pub const fn number(self, number: i32) -> i32 {
        let mut at = 0;
        while at < self.recorded.len() {
            if self.recorded[at] == number {
                return number;
            }
            at += 1;
        }
        panic!("no entry of the line's versions.toml gives the type a format of this number")
    }

    /// Returns the first request that is granted the named feature, which was added without a
    /// format of its own. In a constant, a feature that versions.toml does not list does not
    /// compile.
    ///
    /// # Panics
    ///
    /// If no entry lists the feature.
    pub const fn feature(self, name: &str) -> i32 {
        let mut at = 0;
        while at < self.features.len() {
            if is_same(self.features[at].0, name) {
                return self.features[at].1;
            }
            at += 1;
        }
        panic!("no entry of the line's versions.toml lists this feature of the type")
    }

    /// Returns the number to record at the requested version: the number of the newest format that
    /// the version is granted.
    ///
    /// # Errors
    /// [`EncodeError::UnsupportedAtVersion`] if the type's first format is granted to newer
    /// requests only.
    pub fn for_request(self, requested: Version<L>) -> Result<i32, EncodeError> {
        self.for_request_of("this type", requested)
    }

    /// Like [`for_request`](Self::for_request), with a description of the value for the error.
    ///
    /// # Errors
    /// As [`for_request`](Self::for_request).
    pub fn for_request_of(
        self,
        value: impl fmt::Display,
        requested: Version<L>,
    ) -> Result<i32, EncodeError> {
        let recorded = self.recorded_at(requested.number());
        #[cfg(any(test, feature = "testing"))]
        super::testing::add::<L>(self.type_name, requested.number(), recorded);
        recorded.ok_or_else(|| {
            EncodeError::unsupported_at_version(
                self.type_name,
                value.to_string(),
                requested,
                self.granted.first().copied().unwrap_or(L::MINIMUM),
            )
        })
    }

    /// Written as a loop because it runs for every message, and a chain of iterators compiles to
    /// calls.
    #[inline]
    fn recorded_at(self, request: i32) -> Option<i32> {
        let mut formats = self.granted.len();
        while let Some(last) = formats.checked_sub(1) {
            if *self.granted.get(last)? <= request {
                return self.recorded.get(last).copied();
            }
            formats = last;
        }
        None
    }

    /// Returns the oldest number that is read: the one that a request for the line's minimum
    /// records. `None` for a type without formats.
    pub fn oldest(self) -> Option<i32> {
        if self.older_where_it_will_do {
            return self.read.first().copied();
        }
        // All formats of a type that was added after the minimum are newer than the minimum.
        self.recorded_at(L::MINIMUM).or_else(|| self.recorded.iter().min().copied())
    }

    /// Returns the format with which data that records `found` is read.
    ///
    /// # Errors
    /// Too new if `found` is above the newest version of this build; too old if it was removed, or
    /// if no request since the line's minimum records it; unknown if it is a version for which this
    /// type has no format.
    #[inline]
    pub fn check_recorded(self, found: i32) -> Result<i32, DecodeError> {
        // The only format of a type is never too old.
        if let ([recorded], [read]) = (self.recorded, self.read)
            && (*recorded, *read) == (found, found)
        {
            return Ok(found);
        }
        self.check_recorded_among(found)
    }

    fn check_recorded_among(self, found: i32) -> Result<i32, DecodeError> {
        let oldest = self.oldest();
        let format = match self.read.first() {
            Some(first) if self.negative_passes && found < 0 => *first,
            _ => found,
        };
        let is_old = oldest.is_some_and(|oldest| format < oldest);
        if !is_old && self.read.contains(&format) {
            return Ok(format);
        }
        let supported = VersionRange::<L>::supported();
        Err(if found > supported.maximum() {
            DecodeError::TooNew {
                type_name: self.type_name,
                line: L::TITLE,
                found,
                newest: supported.maximum(),
            }
        } else if is_old && self.read.contains(&format) || (0..supported.minimum()).contains(&found)
        {
            DecodeError::TooOld {
                type_name: self.type_name,
                line: L::TITLE,
                found,
                minimum: oldest.unwrap_or(supported.minimum()),
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
        for (index, number) in self.read.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{number}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        codec::{ErrorKind, StatusCode},
        version::{AnyVersionAccessor, Date, Entry, SerDesAnyVersionAccessor, TypeFormats},
    };

    const FORMATS: Formats = Formats::new("Example", &[0, 4]);

    #[test]
    fn recorded_number_is_the_newest_format_up_to_the_request() {
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
    fn number_above_the_newest_is_too_new_and_unknown_ones_corrupt() {
        let newest = VersionRange::<Ifrt>::supported().maximum();
        let too_new = FORMATS.check_recorded(newest + 1).unwrap_err();
        assert_eq!(too_new.kind(), ErrorKind::TooNew);
        assert_eq!(too_new.code(), StatusCode::FailedPrecondition);
        assert!(too_new.to_string().starts_with("deserialization of Example:"), "{too_new}");
        assert_eq!(FORMATS.check_recorded(i32::MAX).unwrap_err().kind(), ErrorKind::TooNew);
        for corrupt in [1, 3, 5, -1, i32::MIN] {
            let error = FORMATS.check_recorded(corrupt).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{corrupt}");
            assert_eq!(error.code(), StatusCode::FailedPrecondition);
        }
    }

    #[test]
    fn negative_number_is_the_oldest_format_only_as_upstream() {
        assert_eq!(FORMATS.negative_passes().check_recorded(-7), Ok(0));
        assert!(FORMATS.check_recorded(-7).is_err());
    }

    #[test]
    fn the_registry_says_what_is_granted_and_what_is_read() {
        let version = |number| SerDesAnyVersionAccessor::get(number).unwrap();
        let abstract_spec = Formats::<Ifrt>::of("AbstractArraySpec");
        assert!(abstract_spec.for_request(version(4)).is_err());
        assert_eq!(abstract_spec.for_request(version(5)), Ok(0));
        assert_eq!(abstract_spec.numbers(), [0]);
        let param = Formats::<Ifrt>::of("ShardingParam");
        assert_eq!(param.for_request(version(6)), Ok(1));
        assert_eq!(param.numbers(), [0, 1, 2]);
        assert_eq!(Formats::<Ifrt>::of("DType").feature("6-bit floats"), 4);
    }

    /// A line that no longer reads data that only its first two numbers write.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    struct Aged;

    impl Line for Aged {
        const NAME: &'static str = "aged";
        const TITLE: &'static str = "aged";
        const MINIMUM: i32 = 2;
        const AS_OF: Date = Date::from_ymd(2026, 11, 1).unwrap();
        const ENTRIES: &'static [Entry] = &[
            Entry::new(0, Date::from_ymd(2026, 1, 1).unwrap()),
            Entry::new(1, Date::from_ymd(2026, 2, 1).unwrap()),
            Entry::new(2, Date::from_ymd(2026, 3, 1).unwrap()),
            Entry::new(3, Date::from_ymd(2026, 4, 1).unwrap()),
            Entry::new(4, Date::from_ymd(2026, 5, 1).unwrap()),
        ];
        const TYPES: &'static [TypeFormats] = &[
            TypeFormats::new("Late", &[4], &[0], &[0]),
            TypeFormats::new("All", &[0], &[0], &[0]),
        ];
    }

    #[test]
    fn data_below_the_minimum_is_too_old_while_its_number_is_listed() {
        let changed = Formats::<Aged>::new("Changed", &[0, 2, 4]);
        for (found, kind) in [
            (0, ErrorKind::TooOld),
            (1, ErrorKind::TooOld),
            (3, ErrorKind::Corrupt),
            (5, ErrorKind::TooNew),
            (-1, ErrorKind::Corrupt),
        ] {
            assert_eq!(changed.check_recorded(found).unwrap_err().kind(), kind, "{found}");
        }
        assert_eq!(changed.check_recorded(2), Ok(2));
        let error = changed.check_recorded(0).unwrap_err();
        assert_eq!(error.code(), StatusCode::FailedPrecondition);
        assert_eq!(
            error.to_string(),
            "deserialization of Changed: the data records aged version 0, this build reads from 2 on; read it with an older build and write it again"
        );
        assert_eq!(
            changed.negative_passes().check_recorded(-1).unwrap_err().kind(),
            ErrorKind::TooOld
        );
    }

    #[test]
    fn format_written_at_the_minimum_is_read_at_any_number() {
        let all = Formats::<Aged>::of("All");
        assert_eq!(all.for_request(AnyVersionAccessor::minimum()), Ok(0));
        assert_eq!(all.check_recorded(0), Ok(0));
        // Format 1 serves requests 1 to 3.
        let slow = Formats::<Aged>::new("Slow", &[0, 1, 4]);
        assert_eq!(slow.check_recorded(0).unwrap_err().kind(), ErrorKind::TooOld);
        assert_eq!(slow.check_recorded(1), Ok(1));
        assert_eq!(Formats::<Aged>::of("Late").check_recorded(0), Ok(0));
        assert_eq!(slow.older_where_it_will_do().check_recorded(0), Ok(0));
    }
}
