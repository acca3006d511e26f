//! A release of jaxlib: what it was built with. The rows are in `generated`, made of
//! `crates/releases/data/jaxlib.json`.
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
pub(super) const SINCE_29: Gate = Gate::AtLeast(Minor::OLDEST_SUPPORTED);

/// The oldest StableHLO that every release of the table can write.
const OLDEST_STABLEHLO: StableHlo = [0, 9, 0];

pub(super) const fn release(
    number: &'static str,
    minor: u32,
    gate: Gate,
    stablehlo: StableHlo,
) -> Release {
    Release { number, minor, gate, stablehlo: [OLDEST_STABLEHLO, stablehlo] }
}
