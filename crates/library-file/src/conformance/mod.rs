//! The harness of conformance suites: trials, their outcomes, and what they compare.
//!
//! It must never know what a plug-in is asked.

mod guidance;
mod suite;
mod trial;

pub use guidance::{Class, Guidance, Row, guidance_among};
pub use suite::{Conformance, ConformanceOptions, Outcome, attempt};
pub use trial::{Failure, Verdict, counted, expect, failed, pattern, same_bytes};
