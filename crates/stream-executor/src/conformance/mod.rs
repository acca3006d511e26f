//! The conformance suite: does a plug-in do what the C API says?
//!
//! Each behaviour is tried on its own, on a thread of its own, with a time limit. A behaviour is
//! `unsupported` only if the plug-in leaves the function out (and may), or answers "not available"
//! where the C API has that answer; everything else that is not right is a failure.
//!
//! This folder must never know what is done with a plug-in besides.

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
