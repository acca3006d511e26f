//! Reads and validates `versions.toml`, the registry of dated versions of a crate, and generates
//! the Rust types of its lines.
//!
//! The crate knows numbers, days and names. It does not depend on messages, wire formats or
//! devices.
//!
//! # The file
//!
//! ```toml
//! as_of = 2026-11-20              # the day for which versions are selected; the release step moves it
//!
//! [[line]]
//! name = "checkpoints"            # lower_snake_case, unique
//! type = "Checkpoints"            # the Rust type; left out: listed only, no accessors
//! title = "checkpoint"            # the words before a number in messages
//! data = "checkpoint"             # what such data is called in messages (default: the title)
//! summary = "snapshots of the trainer"
//! minimum = 0                     # the oldest number that is read and written
//! min_producer = 0                # the oldest producer that is accepted (default 0)
//! window_days = 28                # the age of the builds that still read and are read (default 28)
//! bad_consumers = []              # numbers of consumers that must not read new data (default none)
//! bad_consumers_with = {}         # the same for data with a content: { TopK = [2] } (default none)
//! packages = []                   # protobuf packages whose messages are frozen with the line (default none)
//! release = "1.4.0"               # the release that the line is of, MAJOR.MINOR.PATCH: the lock then holds it to
//!                                 # what the kind of that release allows (optional)
//!
//! [[line.entry]]
//! number = 0                      # what data records; 0 to 2147483647, rising, holes allowed
//! introduced = 2026-01-12         # the day from which builds read and write it; never going back
//! summary = "first format"
//! formats = ["Snapshot"]          # types that get a new format with this number: requests from it on are
//!                                 # granted it, and data records it (default none)
//! recorded_as = {}                # of those the ones whose data records an earlier number, such as
//!                                 # `{ Snapshot = 0 }` for a type that appears with this one (default none)
//! also_read = []                  # types that read data of this number in their format before (default none)
//! features = {}                   # what came without a format of its own: `{ Snapshot = "seeds" }` (default none)
//! embeds = {}                     # versions of other lines for values that this one's data holds, such as
//!                                 # `{ ifrt_serdes = 4 }`; holds for later entries too (default none)
//! removed = []                    # those of `formats` whose code is gone again (default none)
//! released_in = "1.4.0"           # the first release that has it (optional)
//! date_source = "first release"   # where the day comes from, if not from the change (optional)
//! min_consumer = 0                # the oldest consumer of its data (default 0)
//! withdrawn = false               # taken back: listed, never selected (default false)
//! ```
//!
//! A line may have `counts_days_from = { number = 30, day = 2019-05-09 }`: from this number, each
//! number is a count of days, and each entry's day must fit.
//!
//! Two more tables hold other data. `[[product]]` (`name`, `title`) with `[[product.release]]`
//! (`version`, `date`, `numbers = { LINE = NUMBER }`) has the numbers of releases. `[[layouts]]`
//! (`name`, `version`) with `[[layouts.layout]]` (`name`, `summary`, `headers`,
//! `struct_sizes = { STRUCT = BYTES }`) names binary layouts that share one version number.
//!
//! # The rules
//!
//! Each is a [`Defect`]; an error names the file, the row, the line and the entry.
//!
//! - keys, types and names as above; names of lines, types, products and layouts are unique;
//! - numbers rise, days never go back, no day is after `as_of`;
//! - the minimum is an entry, is not withdrawn, and is at least `window_days` old on `as_of` unless
//!   it is the first entry;
//! - a format is `removed` only when the version of `window_days` ago and the minimum are both
//!   newer than the last number that uses it; and it is `removed` when the minimum is, unless its
//!   entry is withdrawn;
//! - `recorded_as`, `also_read` and `features` name types that have a format by then, and a
//!   recorded number is that of an earlier entry; an embedded version is of another line, never
//!   goes back, and is an entry if the line is in the same file;
//! - banned consumers and the numbers of releases are entries; releases rise; a banned consumer is
//!   not the current number; `min_producer` is not above the current number, and `min_consumer` not
//!   above the entry's own.
//!
//! `window_days` is the promise of a line: a build of this age reads the data that is written for
//! it (the selection called `week_4_old`, after the default), and its data is still read (the
//! minimum). A younger entry is selected only if no older one is still written; the selection
//! reports that ([`Selected::is_younger_than_asked`]).
//!
//! # Warnings
//!
//! The current day is not part of any rule: the same source builds the same on every day. But the
//! selections become outdated with `as_of`, so the build warns ([`StaleRegistry`]) if it is more
//! than 28 days behind today, or behind `SOURCE_DATE_EPOCH` if that is set. A warning never fails a
//! build and does not change the generated code.
//!
//! # In a crate with lines of its own
//!
//! ```toml
//! [dependencies]
//! serdes = "0.1"
//! [build-dependencies]
//! serdes-version-registry = "0.1"
//! [dev-dependencies]
//! serdes-version-registry = { version = "0.1", features = ["lock"] }
//! ```
//!
//! `build.rs`:
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     serdes_version_registry::build("versions.toml")
//! }
//! ```
//!
//! and `serdes::lines!();` in a module of the crate. It declares the types of the lines, for the
//! accessors of `serdes::version`, and `REGISTRY`, which lists everything at run time.
//!
//! # Features
//!
//! `parse` (default): reading and generating. `lock`: the module `lock`, fingerprints of wire
//! formats. `edit`: the module `edit`, the steps that change a versions.toml. Without any there are
//! only the records and the selection. `serde`: `Serialize` and `Deserialize` for [`Date`],
//! `Serialize` for the records.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::get_unwrap,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

mod consumer;
mod date;
#[cfg(feature = "edit")]
pub mod edit;
#[cfg(any(feature = "edit", feature = "lock"))]
mod file;
mod freshness;
#[cfg(feature = "lock")]
pub mod lock;
#[cfg(feature = "parse")]
mod parse;
mod record;
mod release;
mod select;
#[cfg(feature = "serde")]
mod serde_impls;
mod version_def;

pub use consumer::{Consumer, Rejection, VersionRule};
pub use date::{Date, ParseDateError};
pub use freshness::StaleRegistry;
#[cfg(feature = "parse")]
pub use parse::{
    Build, Declarations, Defect, EntryDeclaration, LayoutDeclaration, LayoutFamilyDeclaration,
    LineDeclaration, ProductDeclaration, RegistryError, RegistryErrors, ReleaseDeclaration,
    TypeDeclaration, build, generate, parse, read,
};
pub use record::{
    Entry, EntryStatus, FOUR_WEEKS, LayoutFamily, LineRecord, NamedLayout, Product, Registry,
    Release, TypeFormats,
};
pub use release::{ReleaseError, ReleaseKind, ReleaseNumber};
pub use select::{Dated, Selected, Standing, newest_of_age, select};
pub use version_def::VersionDef;
