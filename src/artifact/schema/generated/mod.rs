//! Written by `cargo xtask schema`; not by hand.

pub(crate) mod fields;
pub(super) mod tables;
