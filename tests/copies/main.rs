//! Tests that compile copies of the sources: the edits that the pages describe, crates outside the
//! workspace, and a younger build of the library.
//!
//! They take minutes, so `cargo test` leaves them out; `.ci/run copies` and `cargo test -p serdes
//! --test copies -- --ignored` run them.

mod contributing;
mod downstream;
mod evolving;
mod states;
mod two_builds;

use std::path::Path;

/// Returns cargo's folder for files that tests write.
fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}
