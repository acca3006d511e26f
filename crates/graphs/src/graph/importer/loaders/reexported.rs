//! The checks that `tf.saved_model.load` makes on the library and on the nodes that call its
//! functions.

use super::{node_diagnostic, python::untyped_outputs};
use crate::{
    graph::{
        GraphError, ImportDiagnostic, ImportDiagnosticKind, StructureDiagnosticKind,
        importer::{
            evidence::Evidence,
            function_memo::Library,
            loaded_graph::LoadedGraph,
            reexport::{self, ReexportedFunctions},
            registries,
        },
        index::TopLevelNodes,
        node_rules::Strictness,
        release::PerRelease,
    },
    ops::Registry,
};

/// Question about functions that cannot be loaded, and then about the nodes outside functions,
/// unless objects are loaded instead.
pub(super) fn functions_and_nodes(
    graph: &LoadedGraph<'_>,
    evidence: &mut PerRelease<Evidence>,
) -> Result<(), GraphError> {
    let library = graph.library;
    let mut loaded = match library.names.is_empty() {
        true => ReexportedFunctions::none(library),
        false => reexport::load(library, graph.deprecated)?,
    };
    for (release, evidence) in evidence.iter_mut() {
        evidence.reexported_function = loaded.diagnostics[release].take();
        evidence.unequal_reexported_function = loaded.unequal[release].take();
        evidence.unequal_function = loaded.unequal_as_written[release].take();
        evidence.unsaved_function.clone_from(&loaded.unsaved);
    }
    match graph.has_objects() {
        true => Ok(()),
        false => nodes(graph, &loaded, evidence),
    }
}

/// Question about the nodes outside functions, which `tf.saved_model.load` imports once the
/// functions are loaded.
fn nodes(
    graph: &LoadedGraph<'_>,
    loaded: &ReexportedFunctions<'_>,
    evidence: &mut PerRelease<Evidence>,
) -> Result<(), GraphError> {
    let library = graph.library;
    let missing = match graph.top_level.unresolved_function(library.names) {
        Some(node) => {
            Some(node_diagnostic::missing_function(library, node, ImportDiagnosticKind::Python)?)
        }
        None => None,
    };
    for (release, evidence) in evidence.iter_mut() {
        let registry = library.releases.registry(release);
        evidence.placeholder = placeholder(library, &graph.top_level, registry)?;
        evidence.missing_function.clone_from(&missing);
    }
    let Some(visited) = graph.visited else {
        // The importer's diagnostic is the only one; diagnostics of the library are found again.
        for (_, evidence) in evidence.iter_mut() {
            let written = evidence.python_import.as_ref();
            evidence.reexported_nodes =
                written.filter(|diagnostic| !is_of_library(diagnostic)).cloned();
        }
        return Ok(());
    };
    let mut output_types = untyped_outputs(visited, Strictness::Load)?;
    let mut found = registries::loaded(visited, &loaded.functions)?;
    for (release, evidence) in evidence.iter_mut() {
        evidence.reexported_nodes = found[release].take();
        evidence.reexported_output_type = output_types[release].take();
    }
    Ok(())
}

/// Returns the first placeholder attribute that the operation does not know: a node with one cannot
/// become part of a function.
fn placeholder(
    library: Library<'_>,
    top_level: &TopLevelNodes,
    registry: &Registry,
) -> Result<Option<ImportDiagnostic>, GraphError> {
    let unknown = top_level.placeholders.iter().find(|found| {
        let operation = registry.operation(&found.operation);
        operation.is_none_or(|operation| operation.attribute(&found.attribute).is_none())
    });
    let Some(found) = unknown else { return Ok(None) };
    let text = format!("a placeholder as attribute {}", found.attribute);
    let kind = ImportDiagnosticKind::AttributeUnknown { attribute: found.attribute.clone() };
    node_diagnostic::at(library, found.place, kind, text, "a value").map(Some)
}

/// Returns true for a diagnostic of the original library, whose functions have other names once
/// loaded.
fn is_of_library(diagnostic: &ImportDiagnostic) -> bool {
    let ImportDiagnosticKind::Structure(diagnostic) = &diagnostic.kind else { return false };
    matches!(
        diagnostic.kind,
        StructureDiagnosticKind::DuplicateFunction | StructureDiagnosticKind::SecondGradient
    )
}
