//! Objects of a store as files: read by ranges, written by uploads that are completed last.
//!
//! Stores speak async, files do not: a small runtime of our own carries the requests, and callers
//! wait for them on a channel, so that it does not matter whether they have a runtime themselves.
//! This part knows stores only through the crate `object_store`, never one of them by name.

mod driver;
mod held;
#[cfg(feature = "addresses")]
mod ranges;
mod source;
mod upload;
mod words;

#[cfg(test)]
pub(crate) use self::upload::PART_BYTES;
pub(crate) use self::{
    driver::{Driver, system_error, wait},
    source::Object,
    upload::{Upload, UploadSink},
};
#[cfg(feature = "addresses")]
pub(crate) use self::{ranges::RangeCache, words::with_causes};
