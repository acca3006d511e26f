//! The conformance suite: its behaviours and its run.

use serdes_library_file::conformance::{Conformance, ConformanceOptions, Outcome, attempt};

use super::{behaviour::Behaviour, callbacks, concurrency, copies, memory, registration, streams};
use crate::plugin::Plugin;

/// Returns the names of all behaviours, in the order in which they are tried.
pub fn behaviours() -> impl Iterator<Item = &'static str> {
    all().map(|behaviour| behaviour.name)
}

/// Returns the requirement of each behaviour, by name, in the order of [`behaviours`].
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

/// Tries every behaviour of `plugin`. `report` gets each outcome immediately.
///
/// Without a device only registration is tried, until `device_count` is skipped.
pub fn verify(
    plugin: &Plugin,
    options: ConformanceOptions,
    mut report: impl FnMut(&Outcome),
) -> Vec<Outcome> {
    let has_device = plugin.device_count() > 0;
    let behaviours: Vec<Behaviour> =
        if has_device { all().collect() } else { registration::BEHAVIOURS.to_vec() };
    let mut outcomes = Vec::with_capacity(behaviours.len());
    let mut limit = options.time_limit();
    let wanted = behaviours.into_iter().filter(|behaviour| options.has(behaviour.name));
    for behaviour in wanted.skip(options.skip()) {
        let plugin = plugin.clone();
        let (outcome, came_back) = attempt(behaviour.name, limit, move || (behaviour.run)(&plugin));
        if !came_back {
            limit = options.time_limit_of_one_that_hung();
        }
        report(&outcome);
        let is_skipped = outcome.result == Conformance::Skipped;
        outcomes.push(outcome);
        if is_skipped {
            break;
        }
    }
    outcomes
}
