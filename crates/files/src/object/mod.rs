//! Objects of a store as files: read by ranges, written by uploads that are completed last.
//!
//! Stores speak async, files do not: a small runtime of our own carries the requests, and callers
//! wait for them on a channel, so that it does not matter whether they have a runtime themselves.
//! This part knows stores only through the crate `object_store`, never one of them by name.

mod changed;
mod driver;
mod held;
mod messages;
mod ranges;
mod source;
mod upload;

pub use self::{
    changed::{changed, header_text, is_changed},
    driver::{Driver, Outcome, system_error, wait},
    messages::with_causes,
    ranges::RangeCache,
    source::Object,
    upload::{PART_BYTES, Upload, UploadSink},
};
