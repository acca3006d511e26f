//! What each loader of a SavedModel looks at besides what the importer does.
//!
//! - `tf.saved_model.load` loads every function; it leaves the main graph of a model with an object
//!   graph alone.
//! - Python's import of a graph wants to know the type of each argument of each function.
//!
//! Knows the loaders. It must never know how nodes are judged.

use super::{
    bodies::in_words,
    called_bodies::{FunctionFinding, Library},
    instantiate::{BodyFinding, Finding},
    loaded_functions,
};
use crate::artifact::{
    graph::{
        DeprecatedOperations, GraphError, ImportFault, ImportFaultKind, Loader, MetaGraph,
        StructureFaultKind, fault::Part, index::read_signature, source::Extent,
    },
    ops::{ArgumentType, OperationDefinition, Registry, type_name},
    schema::SAVED_MODEL,
};

/// Completes the judgements of a meta graph, which have what the importer finds.
pub(in super::super) fn judge_loaders(
    library: Library<'_>,
    deprecated: &DeprecatedOperations,
    meta_graph: &mut MetaGraph,
) -> Result<(), GraphError> {
    if library.registries.is_empty() {
        return Ok(());
    }
    load(library, deprecated, meta_graph)?;
    load_v1(library, meta_graph)
}

/// `tf.saved_model.load`.
fn load(
    library: Library<'_>,
    deprecated: &DeprecatedOperations,
    meta_graph: &mut MetaGraph,
) -> Result<(), GraphError> {
    if library.source.message() != SAVED_MODEL {
        return Ok(());
    }
    let has_object_graph = meta_graph.has_object_graph;
    let functions = match library.names.is_empty() {
        true => vec![None; library.registries.len()],
        false => loaded_functions::faults(library, deprecated)?,
    };
    for (judgement, of_functions) in meta_graph.graph.judgements.iter_mut().zip(functions) {
        let of_graph = judgement.fault(Loader::Load).cloned();
        let of_graph = of_graph.filter(|fault| !has_object_graph && !is_of_library(fault));
        judgement.set_fault(Loader::Load, of_functions.or(of_graph));
    }
    Ok(())
}

/// Whether it is one that comes of functions having the names of others, which are named anew.
fn is_of_library(fault: &ImportFault) -> bool {
    match &fault.kind {
        ImportFaultKind::Structure(fault) => matches!(
            fault.kind,
            StructureFaultKind::DuplicateFunction | StructureFaultKind::SecondGradient
        ),
        kind => *kind == ImportFaultKind::FunctionName,
    }
}

/// `tf.compat.v1.saved_model.load` and Python's import: after the import, a function of Python is
/// made of each in the library.
fn load_v1(library: Library<'_>, meta_graph: &mut MetaGraph) -> Result<(), GraphError> {
    let is_open = |judgement: &&mut _| {
        let judgement: &crate::artifact::graph::Judgement = judgement;
        judgement.fault(Loader::LoadV1).is_none()
    };
    if library.names.is_empty()
        || !meta_graph.graph.judgements.iter_mut().any(|mut one| is_open(&&mut one))
    {
        return Ok(());
    }
    let mut functions: Vec<_> = library.names.iter().map(|(_, function)| function).collect();
    functions.sort_unstable_by_key(|function| function.number);
    let mut found = vec![None; library.registries.len()];
    for function in functions {
        let signature = read_signature(library.source, function.place, library.release)?;
        for (known, registry) in found.iter_mut().zip(library.registries) {
            if known.is_none() {
                *known = untyped(&signature, registry)
                    .map(|finding| FunctionFinding { function: function.place, finding });
            }
        }
    }
    for (judgement, found) in meta_graph.graph.judgements.iter_mut().zip(found) {
        if let Some(finding) = found.filter(|_| judgement.fault(Loader::LoadV1).is_none()) {
            let fault = in_words(library, Extent::default(), &finding)?;
            judgement.set_fault(Loader::LoadV1, Some(fault));
        }
    }
    Ok(())
}

/// An argument whose type Python does not know.
fn untyped(signature: &OperationDefinition, registry: &Registry) -> Option<BodyFinding> {
    let is_known = |number: i32| {
        registry.has_type(number) || number.checked_sub(100).is_some_and(|n| registry.has_type(n))
    };
    let number = |element: &ArgumentType| match element {
        ArgumentType::Fixed(number) => *number,
        ArgumentType::Attribute(_) | ArgumentType::List(_) => 0,
    };
    let numbers = signature.inputs.iter().map(|argument| number(&argument.element));
    let (position, number) = (0_u32..).zip(numbers).find(|(_, number)| !is_known(*number))?;
    let found = match number {
        0 => "an argument without a type of its own".to_owned(),
        number => format!("an argument of type {}", type_name(number)),
    };
    let expected = format!("an element type of TensorFlow {}", registry.release());
    let finding = Finding::of(Part::Argument(position), ImportFaultKind::Python);
    Some(finding.with(found, expected))
}
