//! The conformance suite, which checks that a plug-in does what the C API requires.
//!
//! Each behaviour is tried separately, on its own thread and with a time limit. A behaviour is
//! `unsupported` only if the plug-in omits an optional function, or reports "not available" as the
//! C API permits; every other deviation is a failure.
//!
//! The module does not depend on other uses of a plug-in.

#![expect(
    clippy::indexing_slicing,
    reason = "places in memory that the suite made itself, as long as it says"
)]

mod behaviour;
mod callbacks;
mod concurrency;
mod copies;
mod guidance;
mod memory;
mod probes;
mod registration;
mod streams;
mod suite;

pub use guidance::guidance;
pub use serdes_library_file::conformance::{
    Class, Conformance, ConformanceOptions, Guidance, Outcome,
};
pub use suite::{behaviours, demands, verify};
