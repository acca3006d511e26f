//! Lines of dated versions, the accessors that select one, negotiation, and the VersionDef rule.
//!
//! This module knows numbers, dates and ranges. It does not depend on messages, files or devices.
//!
//! The lines are generated from `versions.toml` at the root of the crate; other crates declare
//! lines of their own with [`lines!`](crate::lines). The accessors:
//!
//! | accessor | gives | for |
//! |---|---|---|
//! | [`DefaultVersionAccessor`] | the current version | peers of the same build |
//! | [`Week4OldVersionAccessor`] | the newest version that is at least four weeks old | artifacts that an older build reads |
//! | [`WeeksOldVersionAccessor`] | the same for any number of weeks | the same, where four weeks are not enough |
//! | [`AnyVersionAccessor`] | a number, the minimum, or what two peers have in common | layers that own the choice |
//!
//! Ages are counted on the line's own day, `as_of` of its versions.toml. A line may have a window
//! other than four weeks ([`Line::WINDOW_DAYS`]), which [`Week4OldVersionAccessor`] then uses. A
//! line younger than its window has nothing older than its first version, which [`Selection`]
//! reports. [`proxy`] negotiates both lines of the IFRT proxy together.
//!
//! ```
//! use serdes::version::{SerDesAnyVersionAccessor, SerDesVersion, SerDesWeek4OldVersionAccessor, VersionRange};
//!
//! let for_older_builds = SerDesWeek4OldVersionAccessor::get();
//! let newest: SerDesVersion = SerDesVersion::current();
//! assert!(for_older_builds.number() <= newest.number());
//!
//! let peer = VersionRange::new(2, 4).unwrap();
//! let common = SerDesAnyVersionAccessor::negotiate(VersionRange::supported(), peer)?;
//! assert_eq!(common.number(), 4);
//! # Ok::<(), serdes::version::NegotiationError>(())
//! ```

mod accessor;
mod embedded;
pub mod evolution;
mod line;
mod lines;
#[cfg(test)]
mod property_tests;
pub mod proxy;
mod range;
mod selection;
#[cfg(feature = "serde")]
mod serialized;
pub mod tensorflow;
#[cfg(test)]
mod tests;
mod version_def;

#[cfg(test)]
pub(crate) use accessor::is_default_refused;
pub use accessor::{
    AnyVersionAccessor, DefaultVersionAccessor, NoVersionYet, Week4OldVersionAccessor,
    WeeksOldVersionAccessor,
};
pub use embedded::NotEmbedded;
#[cfg(any(test, feature = "testing"))]
pub(crate) use embedded::embedded_number;
pub(crate) use embedded::is_same;
pub use line::{Line, Version};
pub use lines::*;
pub use range::{EmptyRange, NegotiationError, NumberRange, Side, UnknownVersion, VersionRange};
pub use selection::Selection;
pub use serdes_version_registry::{
    Consumer, Date, Entry, EntryStatus, LayoutFamily, LineRecord, NamedLayout, ParseDateError,
    Product, Registry, Rejection, Release, ReleaseNumber, StaleRegistry, TypeFormats, VersionDef,
    VersionRule,
};
pub use version_def::{Producer, consumer};

/// A version of the IFRT line.
pub type SerDesVersion = Version<Ifrt>;
/// The accessor of the IFRT line for default arguments.
pub type SerDesDefaultVersionAccessor = DefaultVersionAccessor<Ifrt>;
/// The accessor of the IFRT line for artifacts that a build of four weeks ago reads.
pub type SerDesWeek4OldVersionAccessor = Week4OldVersionAccessor<Ifrt>;
/// The accessor of the IFRT line for artifacts that builds of any number of weeks ago read.
pub type SerDesWeeksOldVersionAccessor = WeeksOldVersionAccessor<Ifrt>;
/// The accessor of the IFRT line for code that owns the choice of the version.
pub type SerDesAnyVersionAccessor = AnyVersionAccessor<Ifrt>;
