//! Objects of a store as files: read by ranges, written by uploads that are completed last.
//!
//! The store's API is asynchronous and files are not: a small private runtime sends the requests,
//! and callers wait for them on a channel, so that they may or may not have a runtime themselves.
//! This module uses stores only through the crate `object_store` and treats none of them specially.

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
