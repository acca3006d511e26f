//! The conformance suite: does a plug-in do what the C API says?
//!
//! Each behaviour is tried on its own, on a thread of its own, with a time limit. A behaviour is `unsupported` only if the plug-in leaves the
//! function out (and may), or answers "not available" where the C API has that answer; everything else that is not right is a failure.

mod callbacks;
mod concurrency;
mod copies;
mod memory;
mod registration;
mod streams;

use std::time::Duration;

use super::call::with_time_limit;
use super::device::Device;
use super::error::Error;
use super::plugin::Plugin;

/// What became of a behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Conformance {
    /// It is as the C API says.
    Pass,
    /// It is not.
    Fail,
    /// The plug-in does not have it, and need not.
    Unsupported,
}

impl Conformance {
    /// `pass`, `fail` or `unsupported`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Unsupported => "unsupported",
        }
    }
}

/// One behaviour and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The behaviour's name.
    pub behaviour: &'static str,
    /// What became of it.
    pub result: Conformance,
    /// What was seen.
    pub detail: String,
}

/// Why a behaviour did not pass.
#[derive(Debug)]
enum Failure {
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

type Verdict = Result<String, Failure>;

/// One behaviour.
#[derive(Clone, Copy)]
struct Behaviour {
    name: &'static str,
    /// What is demanded, in one sentence.
    demand: &'static str,
    run: fn(&Plugin) -> Verdict,
}

fn failed<T>(detail: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Failed(detail.into()))
}

/// Fails with what was found and expected unless they are the same.
fn expect<T: PartialEq + std::fmt::Debug>(
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
fn same_bytes(what: &str, found: &[u8], expected: &[u8]) -> Result<(), Failure> {
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
fn pattern(bytes: usize, seed: u8) -> Vec<u8> {
    let mut state = u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut pattern = Vec::with_capacity(bytes + 8);
    while pattern.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        pattern.extend_from_slice(&(state ^ (state >> 29)).to_le_bytes());
    }
    pattern.truncate(bytes);
    pattern
}

/// The first device, whose allocations are calls of the plug-in, also where the host's allocator would stand between the two.
fn first_device(plugin: &Plugin) -> Result<Device, Failure> {
    Ok(plugin.device(0)?.directly())
}

/// How the suite is run.
#[derive(Clone, Copy, Debug)]
pub struct ConformanceOptions {
    /// How long one behaviour may take. A plug-in that has not come back once gets a tenth of it from then on, so that one call that
    /// hangs does not cost this time in every behaviour that needs it.
    pub time_limit: Duration,
    /// How many of [`behaviours`] to leave out: those that were tried before, where one of them ended its process.
    pub skip: usize,
}

impl Default for ConformanceOptions {
    fn default() -> Self {
        Self { time_limit: Duration::from_secs(30), skip: 0 }
    }
}

/// The names of all behaviours, in the order in which they are tried.
pub fn behaviours() -> impl Iterator<Item = &'static str> {
    all().map(|behaviour| behaviour.name)
}

/// What each behaviour demands of a plug-in, by name, in the order of [`behaviours`].
pub fn demands() -> impl Iterator<Item = (&'static str, &'static str)> {
    all().map(|behaviour| (behaviour.name, behaviour.demand))
}

fn all() -> impl Iterator<Item = Behaviour> {
    [
        registration::BEHAVIOURS,
        memory::BEHAVIOURS,
        streams::BEHAVIOURS,
        copies::BEHAVIOURS,
        callbacks::BEHAVIOURS,
        concurrency::BEHAVIOURS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// Tries every behaviour of `plugin`. `report` gets each outcome as soon as it is there.
///
/// Without a device only registration is tried, and `create_device` fails.
pub fn verify(
    plugin: &Plugin,
    options: ConformanceOptions,
    mut report: impl FnMut(&Outcome),
) -> Vec<Outcome> {
    let has_device = plugin.device_count() > 0;
    let behaviours: Vec<Behaviour> =
        if has_device { all().collect() } else { registration::BEHAVIOURS.to_vec() };
    let mut outcomes = Vec::with_capacity(behaviours.len());
    let mut limit = options.time_limit;
    for behaviour in behaviours.into_iter().skip(options.skip) {
        let plugin = plugin.clone();
        let verdict = with_time_limit(limit, move || (behaviour.run)(&plugin));
        if matches!(verdict, Err(Error::TimedOut { .. })) {
            limit = options.time_limit / 10;
        }
        let (result, detail) = match verdict {
            Ok(Ok(detail)) => (Conformance::Pass, detail),
            Ok(Err(Failure::Failed(detail))) => (Conformance::Fail, detail),
            Ok(Err(Failure::Unsupported(detail))) => (Conformance::Unsupported, detail),
            Err(error) => (Conformance::Fail, error.to_string()),
        };
        let outcome = Outcome { behaviour: behaviour.name, result, detail };
        report(&outcome);
        outcomes.push(outcome);
    }
    outcomes
}
