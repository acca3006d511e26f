//! The harness of conformance suites: trials, their outcomes, and what they compare.
//!
//! It must never know what a plug-in is asked.

mod suite;
mod trial;

pub use suite::{Conformance, ConformanceOptions, Outcome, attempt};
pub use trial::{Failure, Verdict, expect, failed, pattern, same_bytes};
