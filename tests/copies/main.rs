//! Tests that compile copies of the sources: what the pages tell a contributor to edit, crates
//! outside of the workspace, and a younger build of the library.
//!
//! They take minutes, so that `cargo test` leaves them out: `.ci/run copies` runs them, as does
//! `cargo test -p serdes --test copies -- --ignored`.

mod contributing;
mod downstream;
mod evolving;
mod states;
mod two_builds;

use std::path::Path;

/// The folder of cargo's for what tests write.
fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}
