//! The list of all behaviours, and the function that tries them.

use std::path::Path;

use serdes_library_file::{
    conformance::{Conformance, ConformanceOptions, Outcome, attempt},
    with_time_limit,
};

use super::{
    arrays, buffers, clients, element_types, events, interface, programs,
    subject::{Behaviour, Subject},
    transfers,
};
use crate::{PjrtError, PjrtPlugin, Value, report::Slots};

/// The name of the first behaviour: without it no other can be tried.
const LOAD: (&str, &str) =
    ("pjrt_load", "the library is loaded, and answers a table of a version that hosts can call");

/// Returns the names of all behaviours, in the order in which they are tried.
pub fn behaviours() -> impl Iterator<Item = &'static str> {
    demands().map(|(name, _)| name)
}

/// Returns the requirement of each behaviour, by name, in the order of [`behaviours`].
pub fn demands() -> impl Iterator<Item = (&'static str, &'static str)> {
    [LOAD].into_iter().chain(all().map(|behaviour| (behaviour.name, behaviour.demand)))
}

fn all() -> impl Iterator<Item = Behaviour> {
    [
        interface::BEHAVIOURS,
        clients::BEHAVIOURS,
        arrays::BEHAVIOURS,
        element_types::BEHAVIOURS,
        buffers::BEHAVIOURS,
        events::BEHAVIOURS,
        transfers::BEHAVIOURS,
        programs::BEHAVIOURS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// Loads the plug-in at `path` into this process and tries every behaviour, with clients that are
/// created with `options`. `report` gets each outcome immediately. Behaviours that
/// [`ConformanceOptions::with_skip`] omits are counted including the one of loading. If the plug-in
/// creates no client (because there is no hardware for it), the first behaviour that needs one is
/// reported as skipped, and the suite ends.
///
/// # Errors
/// [`PjrtError::NotLoadable`], [`PjrtError::NotAPlugin`] and [`PjrtError::UnsupportedTarget`] for
/// what cannot be loaded here.
pub fn verify(
    path: impl AsRef<Path>,
    options: &[(String, Value)],
    conformance: ConformanceOptions,
    mut report: impl FnMut(&Outcome),
) -> Result<Vec<Outcome>, PjrtError> {
    // A plug-in may change the working directory.
    let path = std::path::absolute(&path).unwrap_or_else(|_| path.as_ref().to_owned());
    let library = path.clone();
    let loaded = with_time_limit(conformance.time_limit(), move || {
        let plugin = PjrtPlugin::load(&library)?;
        let slots = Slots::of(&library, &plugin)?;
        Ok((plugin, slots))
    });
    let (loaded, detail) = match loaded {
        Ok(Ok((plugin, slots))) => {
            let said =
                format!("PJRT {}, a table of {} bytes", plugin.minor(), plugin.struct_size());
            (Some(Subject::new(path, plugin, slots, options.to_vec())), said)
        }
        Ok(Err(
            error @ (PjrtError::NotLoadable { .. }
            | PjrtError::NotAPlugin { .. }
            | PjrtError::UnsupportedTarget { .. }),
        )) => return Err(error),
        Ok(Err(error)) => (None, error.to_string()),
        Err(error) => (None, error.to_string()),
    };
    let result = if loaded.is_some() { Conformance::Pass } else { Conformance::Fail };
    let mut outcomes = Vec::new();
    let reports_loading = conformance.has(LOAD.0);
    if (conformance.skip() == 0 && reports_loading) || loaded.is_none() {
        outcomes.push(Outcome { behaviour: LOAD.0, result, detail });
        outcomes.iter().for_each(&mut report);
    }
    let Some(subject) = loaded else { return Ok(outcomes) };
    let mut limit = conformance.time_limit();
    let tried = conformance.skip().saturating_sub(usize::from(reports_loading));
    for behaviour in all().filter(|behaviour| conformance.has(behaviour.name)).skip(tried) {
        let subject = subject.clone();
        let trial = move || (behaviour.run)(&subject);
        let (outcome, came_back) = attempt(behaviour.name, limit, trial);
        if !came_back {
            limit = conformance.time_limit_of_one_that_hung();
        }
        report(&outcome);
        let is_skipped = outcome.result == Conformance::Skipped;
        outcomes.push(outcome);
        if is_skipped {
            break;
        }
    }
    Ok(outcomes)
}
