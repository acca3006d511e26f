//! The releases of jaxlib: what each was built with.
//!
//! Measured with the packages from PyPI: a plug-in that says another version than theirs is loaded,
//! and the error names both; with 0.10 it names the minimum. StableHLO's versions are those that
//! `jaxlib.mlir.dialects.stablehlo` gives. A release that is not here has not been measured.

use serdes_abi::pjrt::Minor;

use super::gate::{Gate, StableHlo};

/// A release of jaxlib.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    /// Its number as the package has it.
    pub(super) number: &'static str,
    /// The minor that it was built with.
    pub(super) minor: u32,
    /// Its check of a plug-in's minor.
    pub(super) gate: Gate,
    /// The oldest StableHLO that it can write, and its own.
    pub(super) stablehlo: [StableHlo; 2],
}

/// Releases that take plug-ins of other days; before 0.4.33 they did only when the environment said
/// so.
const SINCE_29: Gate = Gate::AtLeast(Minor::OLDEST_SUPPORTED);

/// The oldest StableHLO that every release of the table can write.
const OLDEST_STABLEHLO: StableHlo = [0, 9, 0];

const fn release(number: &'static str, minor: u32, gate: Gate, stablehlo: StableHlo) -> Release {
    Release { number, minor, gate, stablehlo: [OLDEST_STABLEHLO, stablehlo] }
}

/// Oldest first.
pub(super) const RELEASES: &[Release] = &[
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
