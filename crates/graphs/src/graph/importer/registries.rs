//! Checks the nodes of a graph for each release and each loader.

use super::{
    body_shapes::CalledShapes,
    callee_diagnostics::CalleeDiagnostics,
    concrete_functions::ConcreteFunctions,
    context::Context,
    evidence::Evidence,
    judge::StructureDiagnostics,
    loaded_graph::Visited,
    node_checks::{Functions, first_diagnostics},
    visits::Visits,
};
use crate::graph::{
    GraphError, ImportDiagnostic, ImportDiagnosticKind, StructureDiagnostic,
    StructureDiagnosticKind,
    index::{DuplicateFunction, FoundSignatures, GraphIndex, NameClashes},
    node_rules::Strictness,
    release::{PerRelease, ReleaseId, Releases},
    shapes::{self, CalledFunctions, ShapeDiagnostic, ShapedGraph},
};

/// The result of checking the nodes of a graph.
pub(in super::super) struct CheckedNodes {
    pub(in super::super) evidence: PerRelease<Evidence>,
    /// True if shape functions were evaluated, and refuse nothing.
    pub(in super::super) do_shapes_fit: bool,
}

impl CheckedNodes {
    /// Creates the result for a graph in whose nodes no loader finds anything, and whose shapes
    /// were not requested.
    pub(in super::super) fn accepted(releases: Releases<'_>) -> Self {
        Self { evidence: releases.all(Evidence::default()), do_shapes_fit: false }
    }

    /// Creates the result for a graph with a diagnostic that every loader of every release finds.
    fn refused(diagnostic: &ImportDiagnostic, releases: Releases<'_>) -> Self {
        Self { evidence: releases.all(Evidence::of_nodes(diagnostic)), do_shapes_fit: false }
    }
}

/// Returns the evidence for a graph in which the importer finds a diagnostic before it looks up
/// operations.
pub(in super::super) fn structure_evidence(
    diagnostic: &StructureDiagnostic,
    releases: Releases<'_>,
) -> PerRelease<Evidence> {
    releases.all(Evidence::of_nodes(&of_structure(diagnostic)))
}

fn of_structure(diagnostic: &StructureDiagnostic) -> ImportDiagnostic {
    ImportDiagnostic {
        node: diagnostic.node.clone(),
        function: None,
        operation: String::new(),
        kind: ImportDiagnosticKind::Structure(diagnostic.clone()),
        found: String::new(),
        expected: String::new(),
    }
}

/// Checks the nodes of a graph whose steps without operations gave these diagnostics.
pub(in super::super) fn check_nodes(
    context: &Context<'_>,
    found: &FoundSignatures<'_>,
    structure: &StructureDiagnostics,
) -> Result<CheckedNodes, GraphError> {
    let mut checked = check_named(context, found, structure)?;
    if let Some(diagnostic) = &structure.nameless_call {
        let diagnostic = of_structure(diagnostic);
        for (_, evidence) in checked.evidence.iter_mut() {
            evidence.nameless_call = Some(diagnostic.clone());
        }
    }
    Ok(checked)
}

/// Checks the nodes likewise, if nodes without an operation may call a function without a name.
fn check_named(
    context: &Context<'_>,
    found: &FoundSignatures<'_>,
    structure: &StructureDiagnostics,
) -> Result<CheckedNodes, GraphError> {
    let refused =
        structure.diagnostic.as_ref().filter(|diagnostic| !diagnostic.kind.is_found_on_the_way());
    let is_of_library = |kind| {
        matches!(
            kind,
            StructureDiagnosticKind::DuplicateFunction | StructureDiagnosticKind::SecondGradient
        )
    };
    let mut checked = match refused {
        Some(diagnostic) => {
            let checked = CheckedNodes::refused(&of_structure(diagnostic), context.releases);
            if !is_of_library(diagnostic.kind) {
                return Ok(checked);
            }
            checked
        }
        None if context.index.is_without_nodes() => {
            return Ok(CheckedNodes::refused(&oversized(), context.releases));
        }
        None => check_visited(context, structure)?,
    };
    for (release, evidence) in checked.evidence.iter_mut() {
        evidence.function_name = function_name(context.index, &found.clashes, release);
        evidence.ignored = found.ignored.of_release(&found.node_signatures, release);
    }
    Ok(checked)
}

/// Checks the nodes of a graph whose nodes are visited.
fn check_visited(
    context: &Context<'_>,
    structure: &StructureDiagnostics,
) -> Result<CheckedNodes, GraphError> {
    let Some(visits) = &structure.visits else {
        return Ok(CheckedNodes::accepted(context.releases));
    };
    let diagnostics = CalleeDiagnostics::read(context, visits)?;
    let functions = Functions::Written(&diagnostics);
    let mut called = CalledShapes::of(context.library(), context.producer);
    let shapes = shape_diagnostic(context, visits, Some(&mut called))?;
    let with_strictness =
        |strictness| first_diagnostics(context, visits, strictness, functions, shapes.as_ref());
    let import = with_strictness(Strictness::Import)?;
    let is_of = |kind: ImportDiagnosticKind| {
        move |diagnostic: &Option<ImportDiagnostic>| {
            diagnostic.as_ref().is_some_and(|diagnostic| diagnostic.kind == kind)
        }
    };
    let needs_shape_function = is_of(ImportDiagnosticKind::NoShapeFunction);
    let is_shape = is_of(ImportDiagnosticKind::Shape);
    // Python requires no shape functions, and gives an attribute without a value its default.
    let differs =
        context.node_signatures.differs_in_python() || import.values().any(needs_shape_function);
    let python_import =
        if differs { with_strictness(Strictness::PythonImport)? } else { import.clone() };
    // A session finds nothing where the import finds nothing.
    let session = match import.values().all(Option::is_none) {
        true => import.clone(),
        // Shapes from attribute values that a session does not check are invisible to other
        // loaders.
        false => with_strictness(Strictness::Session)?.map(|release, own| match &import[release] {
            import if is_shape(&own) && !is_shape(import) => import.clone(),
            _ => own,
        }),
    };
    let evidence = import.zip(python_import).zip(session);
    let evidence = evidence.map(|_, ((import, python_import), session)| Evidence {
        import,
        python_import,
        session,
        ..Evidence::default()
    });
    Ok(CheckedNodes { evidence, do_shapes_fit: context.follows_shapes && shapes.is_none() })
}

/// Returns the first node that a shape function refuses, if shapes are inferred.
fn shape_diagnostic(
    context: &Context<'_>,
    visits: &Visits,
    called: Option<&mut dyn CalledFunctions>,
) -> Result<Option<ShapeDiagnostic>, GraphError> {
    let Context { source, index, node_signatures, releases, release, producer, .. } = *context;
    if !context.follows_shapes {
        return Ok(None);
    }
    let graph = ShapedGraph { source, index, node_signatures, releases, release, producer };
    shapes::first_diagnostic(graph, visits.in_order(), called)
}

/// Returns the diagnostic that `tf.saved_model.load` finds in the nodes outside functions, after it
/// has loaded the functions.
pub(super) fn loaded(
    Visited { context, visits, do_shapes_fit }: Visited<'_>,
    functions: &ConcreteFunctions<'_>,
) -> Result<PerRelease<Option<ImportDiagnostic>>, GraphError> {
    let functions = Functions::Reexported(functions);
    // Less is known about renamed functions, and nothing more is refused.
    let shapes = if do_shapes_fit { None } else { shape_diagnostic(context, visits, None)? };
    first_diagnostics(context, visits, Strictness::Load, functions, shapes.as_ref())
}

/// Returns the first function whose name is that of an operation, unless another one of the library
/// is faulty before it.
fn function_name(
    index: &GraphIndex,
    clashes: &NameClashes,
    release: ReleaseId,
) -> Option<ImportDiagnostic> {
    let clash = clashes.first(release)?;
    let is_later = |other: &DuplicateFunction| other.number < clash.number;
    if index.duplicate_function().is_some_and(is_later) {
        return None;
    }
    Some(ImportDiagnostic {
        kind: ImportDiagnosticKind::FunctionName,
        node: String::new(),
        function: Some(clash.name.clone()),
        operation: String::new(),
        found: clash.name.clone(),
        expected: "a name that no operation has".to_owned(),
    })
}

/// Returns the diagnostic of a graph with a name that is too long to be read.
fn oversized() -> ImportDiagnostic {
    ImportDiagnostic {
        kind: ImportDiagnosticKind::Oversized,
        node: String::new(),
        function: None,
        operation: String::new(),
        found: "a name of over 1 MiB".to_owned(),
        expected: "names that can be looked at".to_owned(),
    }
}

#[cfg(test)]
mod tests;
