//! The accessors, each of which is a rule by which a caller selects a version.

use std::{env, marker::PhantomData, sync::LazyLock};

use serdes_abi::ErrorKind;

use super::{Date, Line, NegotiationError, Selection, UnknownVersion, Version, VersionRange};

/// The error that a line has no version yet on the requested day.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line} has no version yet on {day}; ask for {first} or later")]
#[non_exhaustive]
pub struct NoVersionYet {
    /// The name of the line.
    pub line: &'static str,
    /// The requested day.
    pub day: Date,
    /// The first day with a version that this build reads and writes.
    pub first: Date,
}

impl NoVersionYet {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidInput
    }
}

fn on<L: Line>(day: Date, days: i64) -> Result<Version<L>, NoVersionYet> {
    selection_on(day, days).map(|selection| selection.version())
}

fn selection_on<L: Line>(day: Date, days: i64) -> Result<Selection<L>, NoVersionYet> {
    let selected = Version::<L>::selected(day, days);
    selected.map(|selected| Selection::new(day, selected)).ok_or_else(|| NoVersionYet {
        line: L::NAME,
        day,
        first: L::ENTRIES
            .iter()
            .find(|entry| entry.number >= L::MINIMUM && !entry.withdrawn)
            .map_or(L::AS_OF, |entry| entry.introduced),
    })
}

/// Returns `true` if the testing switch is on, under which there is no default version.
///
/// The environment is read once, and only in builds with debug assertions.
pub(crate) fn is_default_refused() -> bool {
    static IS_ASKED_FOR: LazyLock<bool> = LazyLock::new(|| {
        env::var_os("IFRT_TESTING_BAD_DEFAULT_SERDES_VERSION").is_some_and(|text| !text.is_empty())
    });
    cfg!(ifrt_testing_bad_default_serdes_version) || (cfg!(debug_assertions) && *IS_ASKED_FOR)
}

/// Selects the current version; the only accessor that serialization code itself uses as a default.
#[derive(Debug)]
pub struct DefaultVersionAccessor<L: Line>(PhantomData<L>);

impl<L: Line> DefaultVersionAccessor<L> {
    /// Returns the current version.
    ///
    /// # Panics
    ///
    /// Always while the testing switch is on, and never otherwise. The switch finds code that lost
    /// the version it was asked for. In a build with debug assertions, it is the environment
    /// variable `IFRT_TESTING_BAD_DEFAULT_SERDES_VERSION` with any text; in every build, it is
    /// `--cfg ifrt_testing_bad_default_serdes_version`.
    #[track_caller]
    #[expect(clippy::panic, reason = "the testing switch is there to panic")]
    pub fn get() -> Version<L> {
        if is_default_refused() {
            panic!("the default {} version was taken where one was asked for", L::TITLE);
        }
        Version::of_age(0)
    }

    /// Returns the version that was current on `day`.
    pub fn get_on(day: Date) -> Result<Version<L>, NoVersionYet> {
        on(day, 0)
    }
}

/// Selects the newest version that is at least as old as the line's window: four weeks, unless its
/// versions.toml sets `window_days`.
///
/// For a line without a version of that age it selects the oldest one; [`select`](Self::select)
/// reports this.
#[derive(Debug)]
pub struct Week4OldVersionAccessor<L: Line>(PhantomData<L>);

impl<L: Line> Week4OldVersionAccessor<L> {
    /// Returns the newest version introduced at least [`Line::WINDOW_DAYS`] (28) days before the
    /// line's day, never below the minimum. If there is none of that age, returns the oldest
    /// version that is written.
    pub fn get() -> Version<L> {
        Version::of_age(L::WINDOW_DAYS)
    }

    /// Like [`get`](Self::get), for another day.
    ///
    /// # Errors
    /// [`NoVersionYet`] if the line has no version on that day.
    pub fn get_on(day: Date) -> Result<Version<L>, NoVersionYet> {
        on(day, L::WINDOW_DAYS)
    }

    /// Like [`get`](Self::get), with the age of the version: a caller that promises four weeks
    /// should report a younger version.
    ///
    /// # Errors
    /// [`NoVersionYet`] if the line has no version on its own day; no valid versions.toml has such
    /// a line.
    pub fn select() -> Result<Selection<L>, NoVersionYet> {
        Self::select_on(L::AS_OF)
    }

    /// Like [`select`](Self::select), for another day.
    ///
    /// # Errors
    /// [`NoVersionYet`] if the line has no version on that day.
    pub fn select_on(day: Date) -> Result<Selection<L>, NoVersionYet> {
        selection_on(day, L::WINDOW_DAYS)
    }
}

/// Selects the newest version that is at least a given number of weeks old.
///
/// ```
/// use serdes::version::{SerDesWeek4OldVersionAccessor, SerDesWeeksOldVersionAccessor};
/// assert_eq!(SerDesWeeksOldVersionAccessor::get(4), SerDesWeek4OldVersionAccessor::get());
/// ```
#[derive(Debug)]
pub struct WeeksOldVersionAccessor<L: Line>(PhantomData<L>);

impl<L: Line> WeeksOldVersionAccessor<L> {
    /// Returns the newest version introduced at least `weeks` weeks before the line's day, never
    /// below the minimum. If there is none of that age, returns the oldest version that is written.
    /// The line's window is not considered.
    pub fn get(weeks: u32) -> Version<L> {
        Version::of_age(i64::from(weeks) * 7)
    }

    /// Like [`get`](Self::get), for another day.
    ///
    /// # Errors
    /// [`NoVersionYet`] if the line has no version on that day.
    pub fn get_on(weeks: u32, day: Date) -> Result<Version<L>, NoVersionYet> {
        on(day, i64::from(weeks) * 7)
    }

    /// Like [`get_on`](Self::get_on), with the age of the version.
    ///
    /// # Errors
    /// [`NoVersionYet`] if the line has no version on that day.
    pub fn select_on(weeks: u32, day: Date) -> Result<Selection<L>, NoVersionYet> {
        selection_on(day, i64::from(weeks) * 7)
    }
}

/// Selects any version, for layers that own the choice.
#[derive(Debug)]
pub struct AnyVersionAccessor<L: Line>(PhantomData<L>);

impl<L: Line> AnyVersionAccessor<L> {
    /// Returns the version `number`, if this build reads and writes it: the number is in the
    /// supported range, not withdrawn, and not a gap in the line.
    pub fn get(number: i32) -> Result<Version<L>, UnknownVersion> {
        if usable::<L>(number) {
            return Ok(Version::from_number(number));
        }
        let withdrawn = L::ENTRIES.iter().any(|entry| entry.number == number && entry.withdrawn);
        let supported = VersionRange::<L>::supported().to_string();
        Err(UnknownVersion { line: L::NAME, found: number, supported, withdrawn })
    }

    /// Returns the oldest version that this build reads and writes.
    pub fn minimum() -> Version<L> {
        Version::from_number(L::MINIMUM)
    }

    /// Returns the highest version in both ranges; withdrawn numbers and gaps are skipped.
    pub fn negotiate(
        ours: VersionRange<L>,
        theirs: VersionRange<L>,
    ) -> Result<Version<L>, NegotiationError> {
        let common = L::ENTRIES.iter().rev().map(|entry| entry.number).find(|number| {
            usable::<L>(*number) && ours.contains(*number) && theirs.contains(*number)
        });
        common.map(Version::from_number).ok_or_else(|| NegotiationError::between(ours, theirs))
    }
}

/// Returns `true` if this build writes the number.
fn usable<L: Line>(number: i32) -> bool {
    number >= L::MINIMUM
        && L::ENTRIES
            .iter()
            .any(|entry| entry.number == number && !entry.withdrawn && entry.introduced <= L::AS_OF)
}
