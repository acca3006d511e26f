//! Functions for shared libraries of plug-ins that every host needs: inspection of files, calls
//! with a time limit, printable messages, and conformance suites.
//!
//! - [`elf`] reads the file of a library without loading or running it.
//! - [`with_time_limit`] waits for calls into a library, and names the one that does not return.
//! - [`printable`] makes a library's message safe to display.
//! - [`conformance`] runs the behaviours of a suite and compares their results.
//!
//! This crate does not depend on an interface of plug-ins, except for the names by which a file
//! shows its interface.

#![cfg_attr(docsrs, feature(doc_cfg))]
// Files and libraries must not make the crate panic; each exception states its reason.
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
