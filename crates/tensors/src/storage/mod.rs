//! Storage of files: the file system, object storage, the web.
//!
//! A [`Storage`] takes paths in the form of the command line. An address (`s3://bucket/key`,
//! `gs://bucket/key`, `az://container/key`, `file:///path`, and, read-only, `https://host/path`) is
//! opened with the credentials of the environment, as the crate `object_store` reads them, or with
//! the AWS profile that it names; everything else is a path of the file system. Without the feature
//! `addresses` all paths are.
//!
//! A path resolves to a `Location`, with one implementation per kind of place: `system.rs`,
//! `addresses/object.rs`, `addresses/page.rs`.
//!
//! An object is read by ranges, without unneeded bytes; it is written by an upload that is
//! completed last, and a failed or cancelled upload leaves nothing.
//!
//! Does not depend on the purpose of files, apart from the place of a state's parts. Its messages
//! contain no secrets.

#[cfg(feature = "addresses")]
mod addresses;
#[cfg(not(feature = "addresses"))]
#[path = "no_addresses.rs"]
mod addresses;
mod location;
mod paths;
mod system;

pub use paths::Storage;
