//! Generated from `crates/releases/data` by `cargo xtask releases`; never edit it.

use super::{
    gate::Gate,
    releases::{Release, SINCE_29, release, without_programs},
};

/// Releases of jaxlib, oldest first.
#[rustfmt::skip]
pub(super) const JAXLIB: &[Release] = &[
    release("0.4.23", 40, Gate::Equal, [0, 16, 1]),
    release("0.4.24", 40, Gate::Equal, [0, 17, 6]),
    release("0.4.25", 42, Gate::Equal, [0, 18, 2]),
    release("0.4.26", 47, Gate::Equal, [0, 19, 4]),
    release("0.4.28", 51, Gate::Equal, [0, 19, 10]),
    release("0.4.30", 54, Gate::Equal, [1, 1, 3]),
    release("0.4.31", 54, Gate::Equal, [1, 4, 2]),
    release("0.4.33", 54, SINCE_29, [1, 7, 1]),
    release("0.4.34", 54, SINCE_29, [1, 7, 5]),
    release("0.4.35", 55, SINCE_29, [1, 7, 8]),
    release("0.4.36", 57, SINCE_29, [1, 8, 5]),
    release("0.4.38", 58, SINCE_29, [1, 8, 7]),
    release("0.5.0", 64, SINCE_29, [1, 8, 9]),
    release("0.5.1", 67, SINCE_29, [1, 9, 3]),
    release("0.5.3", 67, SINCE_29, [1, 10, 0]),
    release("0.6.0", 68, SINCE_29, [1, 10, 4]),
    release("0.6.1", 68, SINCE_29, [1, 10, 9]),
    release("0.6.2", 70, SINCE_29, [1, 11, 0]),
    release("0.7.0", 73, SINCE_29, [1, 12, 1]),
    release("0.7.1", 75, SINCE_29, [1, 13, 0]),
    release("0.7.2", 76, SINCE_29, [1, 13, 0]),
    release("0.8.0", 80, SINCE_29, [1, 13, 1]),
    release("0.8.1", 81, SINCE_29, [1, 13, 3]),
    release("0.8.2", 85, SINCE_29, [1, 13, 5]),
    release("0.8.3", 85, SINCE_29, [1, 13, 5]),
    release("0.9.0", 90, SINCE_29, [1, 13, 7]),
    release("0.9.0.1", 90, SINCE_29, [1, 13, 7]),
    release("0.9.1", 96, SINCE_29, [1, 13, 8]),
    release("0.9.2", 100, SINCE_29, [1, 14, 0]),
    release("0.10.0", 104, SINCE_29, [1, 16, 0]),
    release("0.10.1", 108, SINCE_29, [1, 17, 0]),
    release("0.10.2", 112, SINCE_29, [1, 17, 0]),
    release("0.11.0", 114, SINCE_29, [1, 18, 0]),
    release("0.11.1", 114, SINCE_29, [1, 19, 0]),
    release("0.11.2", 115, SINCE_29, [1, 20, 0]),
    release("0.12.0", 116, SINCE_29, [1, 22, 0]),
    release("0.12.0.1", 116, SINCE_29, [1, 22, 0]),
];

/// Releases of torch_xla, oldest first.
#[rustfmt::skip]
pub(super) const TORCH_XLA: &[Release] = &[
    without_programs("2.1.0", 23, Gate::Equal),
    without_programs("2.2.0", 40, Gate::Equal),
    without_programs("2.3.0", 46, Gate::Equal),
    without_programs("2.4.0", 54, Gate::Equal),
    without_programs("2.5.0", 54, SINCE_29),
    without_programs("2.5.1", 54, SINCE_29),
    without_programs("2.6.0", 57, SINCE_29),
    without_programs("2.6.1", 57, SINCE_29),
    without_programs("2.7.0", 67, SINCE_29),
    without_programs("2.8.0", 70, SINCE_29),
    without_programs("2.8.1", 70, SINCE_29),
    without_programs("2.9.0", 75, SINCE_29),
];
