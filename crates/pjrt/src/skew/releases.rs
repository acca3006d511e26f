//! A release of jaxlib or torch_xla: what it was built with. The rows are in `generated`, made of
//! `jaxlib.json` and `plugins.json` in `crates/releases/data`.
//!
//! Measured with the packages from PyPI: a plug-in that says another version than theirs is loaded,
//! and the error names both; with 0.10 it names the minimum. StableHLO's versions are those that
//! `jaxlib.mlir.dialects.stablehlo` gives. The minor of a torch_xla is read in the code of its
//! library, where the same error is made; read so, jaxlib gives what was measured. A release that is not here has not been measured.

use serdes_abi::pjrt::Minor;

use super::gate::{Gate, StableHlo};

/// A release of a framework.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    /// Its number as the package has it.
    pub(super) number: &'static str,
    /// The minor that it was built with.
    pub(super) minor: u32,
    /// Its check of a plug-in's minor.
    pub(super) gate: Gate,
    /// The oldest StableHLO that it can write, and its own; `None` if that is not known.
    pub(super) stablehlo: Option<[StableHlo; 2]>,
}

/// Releases that take plug-ins of other days; before 0.4.33 they did only when the environment said
/// so.
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

/// Returns a release of which the StableHLO is not known.
pub(super) const fn without_programs(number: &'static str, minor: u32, gate: Gate) -> Release {
    Release { number, minor, gate, stablehlo: None }
}
