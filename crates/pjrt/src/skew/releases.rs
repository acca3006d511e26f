//! The versions with which releases of jaxlib and torch_xla were built. The rows are in
//! `generated`, made from `jaxlib.json` and `plugins.json` in `crates/releases/data`.
//!
//! Measured with the packages from PyPI: a plug-in that declares another version than theirs is
//! loaded, and the error names both; with 0.10 it names the minimum. StableHLO's versions are those
//! that `jaxlib.mlir.dialects.stablehlo` returns. The minor of a torch_xla is read in the code of
//! its library that makes the same error; this method gives the measured values for jaxlib. A
//! release that is not here has not been measured.

use serdes_abi::pjrt::Minor;

use super::gate::{Gate, StableHlo};

/// A release of a framework.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    /// The version number of the package.
    pub(super) number: &'static str,
    /// The minor that the release was built with.
    pub(super) minor: u32,
    /// The check of a plug-in's minor.
    pub(super) gate: Gate,
    /// The oldest StableHLO that the release can write, and its own version; `None` if unknown.
    pub(super) stablehlo: Option<[StableHlo; 2]>,
}

/// The gate of releases that accept plug-ins of other days; before 0.4.33 they did so only with a
/// setting in the environment.
pub(super) const SINCE_29: Gate = Gate::AtLeast(Minor::OLDEST_SUPPORTED);

/// The oldest StableHLO that every release of jaxlib in the table can write.
const OLDEST_STABLEHLO: StableHlo = [0, 9, 0];

pub(super) const fn release(
    number: &'static str,
    minor: u32,
    gate: Gate,
    stablehlo: StableHlo,
) -> Release {
    Release { number, minor, gate, stablehlo: Some([OLDEST_STABLEHLO, stablehlo]) }
}

/// Creates a release with an unknown StableHLO.
pub(super) const fn without_programs(number: &'static str, minor: u32, gate: Gate) -> Release {
    Release { number, minor, gate, stablehlo: None }
}
