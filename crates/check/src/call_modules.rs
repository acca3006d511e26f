//! JAX modules in TensorFlow models: whether a release can run them.
//!
//! Loaders do not check the modules, so all findings are warnings.

use serdes_files::ReadAt;
use serdes_graphs::graph::{Form, Message, call_modules};
use serdes_jax_artifacts::xla_call_module;

use super::{Consumer, Findings, Warning, each::Each, rule::messages};

/// Limit on the warnings that are given for one model; a model has one module for each JAX
/// function.
const LISTED: usize = 16;

/// Adds a warning to the findings of each consumer for the modules of a SavedModel that it refuses
/// to run.
pub(super) fn warn(
    source: &dyn ReadAt,
    form: Form,
    consumers: &Each<&Consumer>,
    findings: Each<Findings>,
) -> Each<Findings> {
    let Ok(found) = call_modules(source, Message::SavedModel, form) else { return findings };
    if found.is_empty() {
        return findings;
    }
    let mut findings = consumers.map(|consumer| *consumer).zip(findings);
    for call in found.into_iter().take(LISTED) {
        let module = call.module(source).ok().flatten().unwrap_or_default();
        let place = match &call.function {
            Some(function) => format!("node {} of function {function}", call.node),
            None => format!("node {}", call.node),
        };
        let add = |(consumer, findings): &mut (&Consumer, Findings)| {
            let judged = consumer
                .release()
                .and_then(|release| xla_call_module(call.version, &module, release));
            for reason in judged.map(|(_, reasons)| reasons).unwrap_or_default() {
                let message = messages::module_is_not_run(reason.message, reason.remedy);
                findings.warn(Warning::from(message).at(place.clone()));
            }
        };
        add(&mut findings.first);
        findings.others.iter_mut().for_each(add);
    }
    findings.map_into(|(_, findings)| findings)
}
