//! Versions of one line that determine the version of another line, whose values they hold.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "constants are made here: the compiler evaluates them, and a panic is its error"
)]

use serdes_abi::ErrorKind;

use super::{Entry, Line, Version};

/// The error that a version of a line is too old to hold values of another line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{title} version {requested} holds no {embedded} data; version {first} is the first that does: request {first} or a newer version"
)]
#[non_exhaustive]
pub struct NotEmbedded {
    /// The title of the enclosing line.
    pub title: &'static str,
    /// The word for data of the enclosing line.
    pub data: &'static str,
    /// The requested version of the enclosing line.
    pub requested: i32,
    /// The title of the embedded line.
    pub embedded: &'static str,
    /// The first version that holds such values.
    pub first: i32,
}

impl NotEmbedded {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::Unsupported
    }
}

impl<L: Line> Version<L> {
    /// Returns the version for values of the line `Inner` inside data of this version: the one that
    /// versions.toml gives under `embeds`, in this entry or in the newest earlier entry that has
    /// it.
    ///
    /// Peers that agree on a version of the enclosing line have thereby agreed on the embedded one,
    /// and a file for builds of four weeks ago holds values for builds of four weeks ago. A line
    /// that embeds no values of `Inner`, or embeds a version of it that this build no longer
    /// writes, does not compile.
    ///
    /// ```
    /// use serdes::codec::{EncodeError, ToProto};
    /// use serdes::ifrt::Shape;
    /// # use serdes::version::{AnyVersionAccessor, Date, Entry, Ifrt, Line, Version};
    /// # #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    /// # struct Snapshots;
    /// # impl Line for Snapshots {
    /// #     const NAME: &'static str = "snapshots";
    /// #     const TITLE: &'static str = "snapshot";
    /// #     const MINIMUM: i32 = 0;
    /// #     const AS_OF: Date = Date::from_ymd(2026, 11, 20).unwrap();
    /// #     const ENTRIES: &'static [Entry] = &[
    /// #         Entry::new(0, Date::from_ymd(2026, 2, 2).unwrap()),
    /// #         Entry::new(1, Date::from_ymd(2026, 9, 1).unwrap()).embedding(&[("ifrt_serdes", 4)]),
    /// #         Entry::new(2, Date::from_ymd(2026, 10, 1).unwrap()),
    /// #         Entry::new(3, Date::from_ymd(2026, 11, 1).unwrap()).embedding(&[("ifrt_serdes", 6)]),
    /// #     ];
    /// # }
    ///
    /// /// On the line `snapshots`, whose entry 1 says `embeds = { ifrt_serdes = 4 }` and entry 3 `embeds = { ifrt_serdes = 6 }`.
    /// struct Snapshot { shape: Shape }
    ///
    /// impl ToProto<Snapshots> for Snapshot {
    ///     type Proto = <Shape as ToProto>::Proto;
    ///     fn to_proto(&self, version: Version<Snapshots>) -> Result<Self::Proto, EncodeError> {
    ///         self.shape.to_proto(version.embedded::<Ifrt>()?)
    ///     }
    /// }
    ///
    /// let inside = |number| AnyVersionAccessor::<Snapshots>::get(number).unwrap().embedded::<Ifrt>();
    /// assert_eq!(inside(2)?.number(), 4);
    /// assert_eq!(inside(3)?.number(), 6);
    /// let error = Snapshot { shape: Shape::scalar() }.to_proto(AnyVersionAccessor::minimum());
    /// assert!(error.unwrap_err().to_string().contains("version 1 is the first that can"));
    /// # Ok::<(), serdes::version::NotEmbedded>(())
    /// ```
    /// ```compile_fail,E0080
    /// use serdes::version::{DeviceState, Ifrt, Version};
    /// let _ = Version::<DeviceState>::current().embedded::<Ifrt>();
    /// ```
    ///
    /// # Errors
    /// [`NotEmbedded`] if only newer versions hold such values.
    pub fn embedded<Inner: Line>(self) -> Result<Version<Inner>, NotEmbedded> {
        let first = const { first_that_embeds::<L, Inner>() };
        let number = embedded_number::<L>(Inner::NAME, self.number());
        number.map(Version::from_number).ok_or(NotEmbedded {
            title: L::TITLE,
            data: L::DATA,
            requested: self.number(),
            embedded: Inner::TITLE,
            first,
        })
    }
}

/// Returns the number of the line `inner` that data with the number `number` of the line `L`
/// embeds.
pub(crate) fn embedded_number<L: Line>(inner: &str, number: i32) -> Option<i32> {
    let entries =
        L::ENTRIES.iter().rev().filter(|entry| entry.number <= number && !entry.withdrawn);
    let mut embedded = entries.flat_map(|entry| entry.embeds).filter(|(name, _)| *name == inner);
    embedded.next().map(|(_, embedded)| *embedded)
}

/// Returns the first number of `L` that embeds values of `Inner`. Evaluated at compile time, so
/// that an impossible embedding does not compile.
const fn first_that_embeds<L: Line, Inner: Line>() -> i32 {
    let mut first = None;
    let mut at = 0;
    while at < L::ENTRIES.len() {
        let entry = &L::ENTRIES[at];
        if let Some(number) = of_entry(entry, Inner::NAME)
            && !entry.withdrawn
        {
            if first.is_none() {
                first = Some(entry.number);
            }
            assert!(
                is_written::<Inner>(number) || is_history::<L>(at, Inner::NAME),
                "versions.toml embeds a version that this build of the line inside does not write: raise the minimum, or correct `embeds`"
            );
        }
        at += 1;
    }
    first.expect("no entry of versions.toml embeds values of this line: add `embeds = { LINE = NUMBER }` to the entry that does")
}

const fn of_entry(entry: &Entry, inner: &str) -> Option<i32> {
    let mut at = 0;
    while at < entry.embeds.len() {
        if is_same(entry.embeds[at].0, inner) {
            return Some(entry.embeds[at].1);
        }
        at += 1;
    }
    None
}

/// Returns `true` if this build writes the number: it is an entry at or above the minimum that was
/// not withdrawn.
const fn is_written<L: Line>(number: i32) -> bool {
    let mut at = 0;
    while at < L::ENTRIES.len() {
        let entry = &L::ENTRIES[at];
        if entry.number == number {
            return number >= L::MINIMUM && !entry.withdrawn;
        }
        at += 1;
    }
    false
}

/// Returns `true` if no version that this build writes uses the embedded version of the entry at
/// index `at`: a later entry replaces it at or below the minimum.
const fn is_history<L: Line>(at: usize, inner: &str) -> bool {
    let mut at = at + 1;
    while at < L::ENTRIES.len() {
        let entry = &L::ENTRIES[at];
        if entry.number <= L::MINIMUM && !entry.withdrawn && of_entry(entry, inner).is_some() {
            return true;
        }
        at += 1;
    }
    false
}

/// Compares two names in a constant expression.
pub(crate) const fn is_same(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    if left.len() != right.len() {
        return false;
    }
    let mut at = 0;
    while at < left.len() {
        if left[at] != right[at] {
            return false;
        }
        at += 1;
    }
    true
}
