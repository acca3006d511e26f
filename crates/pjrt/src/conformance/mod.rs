//! The conformance suite of PJRT plug-ins, which checks that a plug-in does what the C API
//! requires.
//!
//! Each behaviour is tried separately, on its own thread and with a time limit. Run the suite in
//! its own process, since some behaviours make real plug-ins end the process. A behaviour is
//! `unsupported` only if the plug-in does not have the function, reports it as unimplemented, or
//! does not support a type; every other deviation is a failure.
//!
//! The module does not depend on other uses of a plug-in.

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
