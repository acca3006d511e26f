//! Python's checks of an imported graph: of its nodes, functions and saver.

use super::node_diagnostic;
use crate::{
    graph::{
        GraphError, ImportDiagnostic, ImportDiagnosticKind,
        diagnostic::Part,
        importer::{
            callee_diagnostics::to_diagnostic,
            context::Context,
            evidence::Evidence,
            function_graph::{CLASSES, UNTYPED},
            function_memo::Library,
            instantiate::{BoxedDiagnostic, FunctionDiagnostic, InstantiationDiagnostic},
            loaded_graph::{LoadedGraph, Visited},
            reexport, saver,
        },
        index::{Argument, GraphIndex},
        node_rules::Strictness,
        node_signatures::LoaderProfile,
        release::PerRelease,
        source::Extent,
    },
    ops::{Registry, type_name},
};

/// Question about outputs, attributes `_class` and devices that Python cannot read.
pub(super) fn nodes(
    graph: &LoadedGraph<'_>,
    evidence: &mut PerRelease<Evidence>,
) -> Result<(), GraphError> {
    let attribute = match graph.index {
        Some(index) => unreadable_attribute(graph.library, index)?,
        None => None,
    };
    let mut output_types = match graph.visited {
        Some(visited) => untyped_outputs(visited, Strictness::PythonImport)?,
        None => graph.library.releases.all(None),
    };
    for (release, evidence) in evidence.iter_mut() {
        evidence.python_attribute.clone_from(&attribute);
        evidence.output_type = output_types[release].take();
    }
    Ok(())
}

/// Returns the first node with an output whose type only a caller could determine: Python creates a
/// tensor for each output, and has no name for such a type.
pub(super) fn untyped_outputs(
    Visited { context, .. }: Visited<'_>,
    strictness: Strictness,
) -> Result<PerRelease<Option<ImportDiagnostic>>, GraphError> {
    let Context { index, node_signatures, source, .. } = *context;
    context.releases.try_map(|release, _| {
        let mut nodes = (0_u32..).zip(index.nodes());
        let found = nodes.find(|(number, node)| {
            // The outputs of a call have the types of its function's results.
            let calls = || index.call_of(*number).is_some_and(|call| call.call.direct);
            node_signatures.is_untyped(node.signature(), LoaderProfile { release, strictness })
                && !calls()
        });
        let Some((number, _)) = found else { return Ok(None) };
        let place = index.place_of(source, number)?;
        let (found, expected) = UNTYPED;
        let (library, found) = (context.library(), found.to_owned());
        node_diagnostic::at(library, place, ImportDiagnosticKind::Python, found, expected).map(Some)
    })
}

/// Returns the first attribute `_class` or device that Python cannot read, whichever node comes
/// first.
fn unreadable_attribute(
    library: Library<'_>,
    index: &GraphIndex,
) -> Result<Option<ImportDiagnostic>, GraphError> {
    let class = index
        .bad_class()
        .filter(|class| index.bad_device().is_none_or(|device| class.start <= device.start));
    if let Some(place) = class {
        let found = "an attribute _class that Python cannot read".to_owned();
        return node_diagnostic::at(library, place, ImportDiagnosticKind::Python, found, CLASSES)
            .map(Some);
    }
    let Some(place) = index.bad_device() else { return Ok(None) };
    node_diagnostic::bad_device(library, place).map(Some)
}

/// Question about the saver of the meta graph.
pub(super) fn saver(
    graph: &LoadedGraph<'_>,
    evidence: &mut PerRelease<Evidence>,
) -> Result<(), GraphError> {
    let diagnostic = saver::diagnostic(graph.meta_graph);
    for (_, evidence) in evidence.iter_mut() {
        evidence.saver.clone_from(&diagnostic);
    }
    Ok(())
}

/// Question about functions that are not found equal to themselves in their original form.
pub(super) fn unequal_functions(
    graph: &LoadedGraph<'_>,
    evidence: &mut PerRelease<Evidence>,
) -> Result<(), GraphError> {
    if !evidence.values().any(Evidence::is_imported_by_python) {
        return Ok(());
    }
    let mut unequal = reexport::unequal(graph.library)?;
    for (release, evidence) in evidence.iter_mut() {
        evidence.unequal_function = unequal[release].take();
    }
    Ok(())
}

/// Question about functions of the library that Python cannot turn into its own, if it gets that
/// far.
pub(super) fn functions(
    graph: &LoadedGraph<'_>,
    evidence: &mut PerRelease<Evidence>,
) -> Result<(), GraphError> {
    let library = graph.library;
    if !evidence.values().any(Evidence::is_imported_by_python) {
        return Ok(());
    }
    if let Some(diagnostic) = gradients(library) {
        for (_, evidence) in evidence.iter_mut() {
            evidence.python_function = Some(diagnostic.clone());
        }
        return Ok(());
    }
    for (_, function) in library.names.iter() {
        let is_valid = |release| library.memo.is_trivially_valid(library, function.place, release);
        if library.releases.ids().all(is_valid) {
            continue;
        }
        let index = library.memo.index(library, function.place)?;
        for (release, evidence) in evidence.iter_mut() {
            if evidence.python_function.is_none()
                && let Some(diagnostic) =
                    untyped(&index.arguments, library.releases.registry(release))
            {
                let diagnostic =
                    FunctionDiagnostic { function: function.place, diagnostic: diagnostic.into() };
                evidence.python_function =
                    Some(to_diagnostic(library, Extent::default(), &diagnostic)?);
            }
        }
    }
    Ok(())
}

/// Returns the diagnostic of gradients in the library that leave Python no function to load first.
fn gradients(library: Library<'_>) -> Option<ImportDiagnostic> {
    let found = if library.names.has_unresolved_gradient() {
        "a gradient that names a function which is not there"
    } else if library.names.has_gradients_alone() {
        "functions that all have gradients in the library, in a circle"
    } else {
        return None;
    };
    Some(ImportDiagnostic {
        kind: ImportDiagnosticKind::FunctionBody,
        node: String::new(),
        function: None,
        operation: String::new(),
        found: found.to_owned(),
        expected: "gradients that are functions of the library".to_owned(),
    })
}

/// Returns an argument whose type Python does not know: it reads the declared type, whatever
/// attribute the argument names as well.
fn untyped(arguments: &[Argument], registry: &Registry) -> Option<BoxedDiagnostic> {
    let is_known = |number: i32| {
        registry.has_type(number) || number.checked_sub(100).is_some_and(|n| registry.has_type(n))
    };
    let numbers = arguments.iter().map(|argument| argument.data_type);
    let (position, number) = (0_u32..).zip(numbers).find(|(_, number)| !is_known(*number))?;
    let found = match number {
        0 => "an argument without a type of its own".to_owned(),
        number => format!("an argument of type {}", type_name(number)),
    };
    let expected = format!("an element type of TensorFlow {}", registry.release());
    let diagnostic =
        InstantiationDiagnostic::of(Part::Argument(position), ImportDiagnosticKind::Python);
    Some(diagnostic.with(found, expected))
}
