use std::marker::PhantomData;

use super::{Line, NegotiationError, SerDesVersion, Side, UnknownVersion, VersionRange};

/// Gives the current version; the only accessor that serialization code itself uses as a default.
#[derive(Debug)]
pub struct DefaultVersionAccessor<L: Line>(PhantomData<L>);

impl<L: Line> DefaultVersionAccessor<L> {
    /// The current version.
    pub fn get() -> SerDesVersion<L> {
        SerDesVersion::current()
    }
}

/// Gives the newest version that is at least four weeks old.
#[derive(Debug)]
pub struct Week4OldVersionAccessor<L: Line>(PhantomData<L>);

impl<L: Line> Week4OldVersionAccessor<L> {
    /// The newest version introduced at least 28 days before the line's day.
    pub fn get() -> SerDesVersion<L> {
        let number = L::ENTRIES
            .iter()
            .rev()
            .find(|entry| L::AS_OF.days_since(entry.introduced) >= 28)
            .map_or(L::MINIMUM, |entry| entry.number.max(L::MINIMUM));
        SerDesVersion::from_number(number)
    }
}

/// Gives any version, for layers that own the choice.
#[derive(Debug)]
pub struct AnyVersionAccessor<L: Line>(PhantomData<L>);

impl<L: Line> AnyVersionAccessor<L> {
    /// The version `number`, if this build reads and writes it.
    pub fn get(number: i32) -> Result<SerDesVersion<L>, UnknownVersion> {
        let supported = VersionRange::<L>::supported();
        if supported.contains(number) {
            Ok(SerDesVersion::from_number(number))
        } else {
            Err(UnknownVersion { line: L::NAME, found: number, supported: supported.to_string() })
        }
    }

    /// The oldest version that this build reads and writes.
    pub fn minimum() -> SerDesVersion<L> {
        SerDesVersion::from_number(L::MINIMUM)
    }

    /// The highest version that lies in both ranges.
    pub fn negotiate(
        ours: VersionRange<L>,
        theirs: VersionRange<L>,
    ) -> Result<SerDesVersion<L>, NegotiationError> {
        let highest = ours.maximum().min(theirs.maximum());
        if highest < ours.minimum() || highest < theirs.minimum() {
            let upgrade = if ours.maximum() < theirs.minimum() { Side::Ours } else { Side::Theirs };
            return Err(NegotiationError {
                line: L::NAME,
                ours: ours.to_string(),
                theirs: theirs.to_string(),
                upgrade,
            });
        }
        Ok(SerDesVersion::from_number(highest))
    }
}
