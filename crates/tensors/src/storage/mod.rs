//! Storage of files: the file system, object storage, the web.
//!
//! A [`Storage`] takes paths as people write them. An address (`s3://bucket/key`,
//! `gs://bucket/key`, `az://container/key`, `file:///path`, and to read `https://host/path`) is
//! opened with the credentials of the environment, as the crate `object_store` reads them, or with
//! the profile of AWS that it names; everything else is a path of the file system. Without the
//! feature `addresses` all paths are.
//!
//! A path leads to a `Location`, which has one implementation a kind of
//! place: `system.rs`, `addresses/object.rs`, `addresses/page.rs`.
//!
//! An object is read by ranges, and no more of it than is asked for; it is written by an upload
//! that is completed last, and nothing stays of one that fails or is stopped.
//!
//! This module must never know the purpose of files, apart from the place of a state's parts. No
//! message of it holds anything secret.

#[cfg(feature = "addresses")]
mod addresses;
#[cfg(not(feature = "addresses"))]
#[path = "no_addresses.rs"]
mod addresses;
mod location;
mod paths;
mod system;

pub use paths::Storage;
