//! Finds the diagnostics that loaders report in addition to those of the importer, and selects the
//! first diagnostic of each loader in its order.
//!
//! A [`Question`] writes the diagnostics that it finds into the [`Evidence`] of each release; which
//! ones are asked depends on the kind of the file. The order in which a loader reaches diagnostics
//! is the list of [`Checks`] in its file: `import.rs`, `load_v1.rs`, `load.rs`, `cpp.rs`.
//!
//! Depends on the loaders, but not on the checks of nodes.

mod checks;
mod cpp;
mod import;
mod load;
mod load_v1;
mod node_diagnostic;
mod python;
mod reexported;
mod session;

use self::checks::Checks;
use super::{evidence::Evidence, loaded_graph::LoadedGraph, node_references};
use crate::{
    graph::{GraphError, Judgement, Loader, release::PerRelease},
    schema::{GRAPH_DEF, MessageId, SAVED_MODEL},
};

/// A question about a graph, whose diagnostics go into the evidence of each release.
type Question = fn(&LoadedGraph<'_>, &mut PerRelease<Evidence>) -> Result<(), GraphError>;

/// Returns the questions for the loaders of such a file. Summaries of functions come first: of one
/// that is valid in every release, no other question reads the body.
fn questions(message: MessageId) -> &'static [Question] {
    match message {
        GRAPH_DEF => &[python::nodes, python::unequal_functions, python::functions],
        SAVED_MODEL => &[
            python::nodes,
            reexported::functions_and_nodes,
            references,
            python::functions,
            python::saver,
            session::nodes_and_placement,
            objects,
        ],
        _ => &[
            python::nodes,
            references,
            python::functions,
            python::saver,
            session::nodes_and_placement,
        ],
    }
}

/// Returns the checks of a loader for such a file, in its order.
fn checks(loader: Loader, message: MessageId, has_objects: bool) -> Checks {
    match (loader, message) {
        (Loader::Import, _) => import::CHECKS,
        (Loader::LoadV1, _) => load_v1::CHECKS,
        (Loader::Load, SAVED_MODEL) if has_objects => load::CHECKS_OF_OBJECTS,
        (Loader::Load, SAVED_MODEL) => load::CHECKS_OF_NODES,
        (Loader::Load, _) => load::CHECKS_OF_GRAPH,
        (Loader::Cpp, GRAPH_DEF) => cpp::CHECKS_OF_GRAPH,
        (Loader::Cpp, _) => cpp::CHECKS,
    }
}

/// Returns the verdicts of the loaders of each release on a graph, given the importer's `evidence`.
pub(in super::super) fn judge_loaders(
    graph: &LoadedGraph<'_>,
    mut evidence: PerRelease<Evidence>,
) -> Result<PerRelease<Judgement>, GraphError> {
    let (message, has_objects) = (graph.library.source.message(), graph.has_objects());
    if !graph.library.releases.is_empty() {
        for ask in questions(message) {
            ask(graph, &mut evidence)?;
        }
    }
    Ok(evidence.map(|_, mut evidence| {
        let ignored = std::mem::take(&mut evidence.ignored);
        let verdict = |loader| checks(loader, message, has_objects).verdict(&evidence);
        Judgement::new(verdict, ignored)
    }))
}

/// Question about the nodes that other fields of the meta graph name.
fn references(
    graph: &LoadedGraph<'_>,
    evidence: &mut PerRelease<Evidence>,
) -> Result<(), GraphError> {
    let mut found = node_references::judge(graph)?;
    for (release, evidence) in evidence.iter_mut() {
        evidence.references = std::mem::take(&mut found[release]);
    }
    Ok(())
}

/// Question about the Python objects, if `tf.saved_model.load` gets that far.
fn objects(graph: &LoadedGraph<'_>, evidence: &mut PerRelease<Evidence>) -> Result<(), GraphError> {
    let is_reached = evidence.values().any(|evidence| evidence.reexported_function.is_none());
    let Some(objects) = graph.objects.filter(|_| graph.has_objects() && is_reached) else {
        return Ok(());
    };
    // If the nodes have a diagnostic, one of them may lack a name.
    let are_nodes_named = graph.meta_graph.graph.structure.is_none();
    let library = graph.library;
    let (source, names) = (library.source, library.names);
    let mut found =
        objects.diagnostics(source, names, library.releases, library.release, are_nodes_named)?;
    for (release, evidence) in evidence.iter_mut() {
        evidence.objects = found[release].take();
    }
    Ok(())
}

#[cfg(test)]
mod tests;
