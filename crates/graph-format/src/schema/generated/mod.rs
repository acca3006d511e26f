//! Written by `cargo xtask schema`; not by hand.

pub mod fields;
pub(super) mod tables;
