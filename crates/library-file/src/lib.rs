//! Shared libraries that are plug-ins, as every host of them needs them: read as files, called with a
//! time limit, quoted in messages, and tried.
//!
//! - [`elf`] reads the file of a library without loading or running it.
//! - [`with_time_limit`] waits for calls into a library, and names the one that does not return.
//! - [`printable`] makes a message of a library fit to be shown.
//! - [`conformance`] runs the behaviours of a suite and compares what comes of them.
//!
//! This crate must never know an interface of plug-ins, but for the names by which a file shows which
//! it is one of.

#![cfg_attr(docsrs, feature(doc_cfg))]
// No file and no library makes the crate panic: what could is an exception with its reason.
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

pub mod conformance;
pub mod elf;
mod printable;
pub mod status_functions;
mod time_limit;

pub use printable::{LONGEST_MESSAGE, printable};
pub use time_limit::{CallGuard, TimeLimitError, enter, with_time_limit};
