//! The harness of conformance suites: trials, their outcomes, and comparisons.
//!
//! The module does not depend on the behaviours that are tried.

mod guidance;
mod suite;
mod trial;

pub use guidance::{Class, Guidance, Row, guidance_among};
pub use suite::{Conformance, ConformanceOptions, Outcome, attempt};
pub use trial::{Failure, Verdict, counted, expect, failed, pattern, same_bytes};
