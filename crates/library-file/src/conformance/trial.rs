//! Results of trying a behaviour, and comparisons that produce them.

#![expect(clippy::indexing_slicing, reason = "at a position in both lists")]

use std::fmt::Debug;

/// The reason why a behaviour did not pass.
#[derive(Debug)]
pub enum Failure {
    /// The plug-in does not behave as the C API requires.
    Failed(String),
    /// The plug-in does not support it, which is permitted.
    Unsupported(String),
    /// There is no hardware to try it on.
    NoHardware(String),
}

/// The result of a trial: an observation, or the reason why it did not pass.
pub type Verdict = Result<String, Failure>;

/// Returns a failure with this detail.
///
/// # Errors
/// Always: [`Failure::Failed`].
pub fn failed<T>(detail: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Failed(detail.into()))
}

/// Compares the value found with the expected one.
///
/// # Errors
/// [`Failure::Failed`], which names both, unless they are the same.
pub fn expect<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Result<(), Failure> {
    if found == expected {
        Ok(())
    } else {
        failed(format!("{what}: found {found:?}, expected {expected:?}"))
    }
}

/// Compares bytes.
///
/// # Errors
/// [`Failure::Failed`], which names the first byte that differs.
pub fn same_bytes(what: &str, found: &[u8], expected: &[u8]) -> Result<(), Failure> {
    if found == expected {
        return Ok(());
    }
    expect(&format!("{what}: number of bytes"), found.len(), expected.len())?;
    match found.iter().zip(expected).position(|(found, expected)| found != expected) {
        None => Ok(()),
        Some(at) => failed(format!(
            "{what}: byte {at} of {} is {:#04x}, expected {:#04x}",
            expected.len(),
            found[at],
            expected[at]
        )),
    }
}

/// Formats a number of items: `1 device`, `2 devices`.
#[must_use]
pub fn counted(number: usize, thing: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{ending}")
}

/// Returns test bytes without a short period.
pub fn pattern(bytes: usize, seed: u8) -> Vec<u8> {
    let mut state = u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut pattern = Vec::with_capacity(bytes + 8);
    while pattern.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        pattern.extend_from_slice(&(state ^ (state >> 29)).to_le_bytes());
    }
    pattern.truncate(bytes);
    pattern
}
