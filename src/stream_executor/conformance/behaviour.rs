//! One behaviour, and what its trial is made of.

use std::fmt::Debug;

use crate::stream_executor::{device::Device, error::Error, plugin::Plugin};

/// Why a behaviour did not pass.
#[derive(Debug)]
pub(crate) enum Failure {
    Failed(String),
    Unsupported(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        if error.is_unsupported() {
            Self::Unsupported(error.to_string())
        } else {
            Self::Failed(error.to_string())
        }
    }
}

/// Result of a trial: an observation, or the reason why it did not pass.
pub(crate) type Verdict = Result<String, Failure>;

/// One behaviour.
#[derive(Clone, Copy)]
pub(super) struct Behaviour {
    pub(super) name: &'static str,
    /// The demand on the plug-in, in one sentence.
    pub(super) demand: &'static str,
    pub(super) run: fn(&Plugin) -> Verdict,
}

pub(crate) fn failed<T>(detail: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Failed(detail.into()))
}

/// Fails with what was found and expected unless they are the same.
pub(crate) fn expect<T: PartialEq + Debug>(
    what: &str,
    found: T,
    expected: T,
) -> Result<(), Failure> {
    if found == expected {
        Ok(())
    } else {
        failed(format!("{what}: found {found:?}, expected {expected:?}"))
    }
}

/// Fails naming the first byte that differs.
pub(crate) fn same_bytes(what: &str, found: &[u8], expected: &[u8]) -> Result<(), Failure> {
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

/// Bytes without a short period.
pub(crate) fn pattern(bytes: usize, seed: u8) -> Vec<u8> {
    let mut state = u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut pattern = Vec::with_capacity(bytes + 8);
    while pattern.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        pattern.extend_from_slice(&(state ^ (state >> 29)).to_le_bytes());
    }
    pattern.truncate(bytes);
    pattern
}

/// The first device, whose allocations are calls of the plug-in, also where the host's allocator
/// would stand between the two.
pub(super) fn first_device(plugin: &Plugin) -> Result<Device, Failure> {
    Ok(plugin.device(0)?.directly())
}
