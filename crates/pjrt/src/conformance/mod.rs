//! The conformance suite of PJRT plug-ins: does one do what the C API says?
//!
//! Each behaviour is tried on its own, on a thread of its own, with a time limit; the suite is to
//! be run in a process of its own, since real plug-ins end the process in some of them. A behaviour
//! is `unsupported` only if the plug-in does not have the function, or answers that it is not
//! implemented, or that it does not take a type; everything else that is not right is a failure.
//!
//! This folder must never know what is done with a plug-in besides.

#![expect(
    clippy::indexing_slicing,
    reason = "places in memory that the suite made itself, as long as it says"
)]

mod arrays;
mod buffers;
mod clients;
mod element_types;
mod events;
mod guidance;
mod interface;
mod programs;
mod subject;
mod suite;
mod transfers;

pub use guidance::guidance;
pub use serdes_library_file::conformance::{
    Class, Conformance, ConformanceOptions, Guidance, Outcome,
};
pub use suite::{behaviours, demands, verify};
