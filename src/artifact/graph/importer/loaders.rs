//! What each loader looks at besides what the importer does.
//!
//! - `tf.saved_model.load` loads every function; it leaves the main graph of a model with an object
//!   graph alone.
//! - Python's import makes a function of Python of each function in the library, and reads the
//!   devices of all nodes.
//! - The C++ loader looks up the operations of all nodes before anything else, and wants functions,
//!   devices, constants and kernels at once, not when they are used.
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
        StructureFaultKind,
        fault::Part,
        index::{MainNodes, NamingNode, read_signature},
        node_at,
        rules::shown,
        source::Extent,
    },
    ops::{ArgumentType, OperationDefinition, Registry, type_name},
    schema::{GRAPH_DEF, SAVED_MODEL},
};

/// A graph whose judgements have what the importer finds.
#[derive(Debug)]
pub(in super::super) struct LoadedGraph<'g> {
    pub(in super::super) meta_graph: &'g mut MetaGraph,
    /// The number of the meta graph.
    pub(in super::super) number: usize,
    /// Whether the file has no other meta graph.
    pub(in super::super) is_only: bool,
    /// Where the first node is whose device is none.
    pub(in super::super) bad_device: Option<Extent>,
    /// What loaders look at in its nodes, if that is known.
    pub(in super::super) main: Option<MainNodes>,
}

impl<'g> LoadedGraph<'g> {
    /// One whose nodes every release takes.
    pub(in super::super) fn good(
        meta_graph: &'g mut MetaGraph,
        number: usize,
        is_only: bool,
        main: Option<MainNodes>,
    ) -> Self {
        Self { meta_graph, number, is_only, bad_device: None, main }
    }
}

/// Completes the judgements of a graph.
pub(in super::super) fn judge_loaders(
    library: Library<'_>,
    deprecated: &DeprecatedOperations,
    graph: LoadedGraph<'_>,
) -> Result<(), GraphError> {
    if library.registries.is_empty() {
        return Ok(());
    }
    let LoadedGraph { meta_graph, number, is_only, bad_device, main } = graph;
    let device = match bad_device {
        Some(place) => {
            let expected = "/job:NAME/replica:0/task:0/device:CPU:0";
            let found = "a device that is none".to_owned();
            Some(at(library, place, ImportFaultKind::Device, found, expected)?)
        }
        None => None,
    };
    load_v1(library, meta_graph, device.as_ref())?;
    if library.source.message() == GRAPH_DEF {
        return Ok(());
    }
    let Library { source, release, .. } = library;
    let main = match main {
        Some(main) => main,
        None => MainNodes::read(source, number, release)?,
    };
    cpp(library, meta_graph, &main, device.as_ref())?;
    if source.message() == SAVED_MODEL {
        // TensorFlow looks for objects only where there is nothing to choose from.
        let has_objects = meta_graph.has_object_graph && is_only;
        let of_functions = functions(library, deprecated)?;
        load(library, (meta_graph, has_objects), of_functions, &main, device)?;
    }
    Ok(())
}

/// A fault of a node outside of functions.
fn at(
    library: Library<'_>,
    place: Extent,
    kind: ImportFaultKind,
    found: String,
    expected: &str,
) -> Result<ImportFault, GraphError> {
    let node = node_at::read(library.source, place, None, library.release)?;
    Ok(ImportFault {
        kind,
        node: shown(&node.name),
        function: None,
        operation: shown(&node.operation),
        found: shown(found.as_bytes()),
        expected: expected.to_owned(),
    })
}

/// The fault of a node that names a function which is not there.
fn lost(
    library: Library<'_>,
    node: &NamingNode,
    kind: ImportFaultKind,
) -> Result<ImportFault, GraphError> {
    let found = format!("a function {:?} as an attribute", node.name);
    at(library, node.place, kind, found, "a function of the library")
}

/// `tf.saved_model.load`.
fn load(
    library: Library<'_>,
    (meta_graph, has_objects): (&mut MetaGraph, bool),
    functions: Vec<Option<ImportFault>>,
    main: &MainNodes,
    device: Option<ImportFault>,
) -> Result<(), GraphError> {
    // Python gives functions their new names in the nodes before it imports these, and makes a
    // function of the graph afterwards.
    let before = match main.lost_function(library.names) {
        Some(node) => Some(lost(library, node, ImportFaultKind::Python)?),
        None => None,
    };
    let after = match &main.placeholder {
        Some(node) => {
            let found = format!("a placeholder as attribute {}", node.name);
            let kind = ImportFaultKind::AttributeUnknown { attribute: node.name.clone() };
            Some(at(library, node.place, kind, found, "a value")?)
        }
        None => None,
    };
    for (judgement, of_functions) in meta_graph.graph.judgements.iter_mut().zip(functions) {
        let imported = judgement.fault(Loader::Load).filter(|fault| !is_of_library(fault));
        let of_graph = || before.clone().or(imported.cloned()).or(device.clone()).or(after.clone());
        let fault = of_functions.or_else(|| if has_objects { None } else { of_graph() });
        judgement.set_fault(Loader::Load, fault);
    }
    Ok(())
}

/// The first fault of the functions that `tf.saved_model.load` loads, by registry.
fn functions(
    library: Library<'_>,
    deprecated: &DeprecatedOperations,
) -> Result<Vec<Option<ImportFault>>, GraphError> {
    match library.names.is_empty() {
        true => Ok(vec![None; library.registries.len()]),
        false => loaded_functions::faults(library, deprecated),
    }
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

/// `tf.compat.v1.saved_model.load` and Python's import: after the import, devices are read, and a
/// function of Python is made of each function of the library.
fn load_v1(
    library: Library<'_>,
    meta_graph: &mut MetaGraph,
    device: Option<&ImportFault>,
) -> Result<(), GraphError> {
    let judgements = &mut meta_graph.graph.judgements;
    if judgements.iter().all(|judgement| judgement.fault(Loader::LoadV1).is_some()) {
        return Ok(());
    }
    let functions = python_functions(library)?;
    for (judgement, of_functions) in judgements.iter_mut().zip(functions) {
        if judgement.fault(Loader::LoadV1).is_none() {
            judgement.set_fault(Loader::LoadV1, device.cloned().or(of_functions));
        }
    }
    Ok(())
}

/// What keeps Python from making functions of its own of those of the library, by registry.
fn python_functions(library: Library<'_>) -> Result<Vec<Option<ImportFault>>, GraphError> {
    let mut found = vec![None; library.registries.len()];
    let gradients = if library.names.has_lost_gradient() {
        Some("a gradient that names a function which is not there")
    } else if library.names.has_gradients_alone() {
        Some("functions that all have gradients in the library, in a circle")
    } else {
        None
    };
    if let Some(found) = gradients {
        let nothing = String::new;
        let fault = ImportFault {
            kind: ImportFaultKind::FunctionBody,
            node: nothing(),
            function: None,
            operation: nothing(),
            found: found.to_owned(),
            expected: "gradients that are functions of the library".to_owned(),
        };
        return Ok(vec![Some(fault); library.registries.len()]);
    }
    let mut functions: Vec<_> = library.names.iter().map(|(_, function)| function).collect();
    functions.sort_unstable_by_key(|function| function.number);
    for function in functions {
        let signature = read_signature(library.source, function.place, library.release)?;
        for (known, registry) in found.iter_mut().zip(library.registries) {
            if known.is_none()
                && let Some(finding) = untyped(&signature, registry)
            {
                let finding = FunctionFinding { function: function.place, finding };
                *known = Some(in_words(library, Extent::default(), &finding)?);
            }
        }
    }
    Ok(found)
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

/// `TF_LoadSessionFromSavedModel`.
fn cpp(
    library: Library<'_>,
    meta_graph: &mut MetaGraph,
    main: &MainNodes,
    device: Option<&ImportFault>,
) -> Result<(), GraphError> {
    let call = match main.lost_call(library.names) {
        Some(node) => Some(lost(library, node, ImportFaultKind::FunctionBody)?),
        None => None,
    };
    let constant = match &main.constant {
        Some(node) => {
            let found = format!("a tensor of shape {}", node.name);
            let kind = ImportFaultKind::Shape;
            Some(at(library, node.place, kind, found, "dimensions of at least 0")?)
        }
        None => None,
    };
    let judgements = meta_graph.graph.judgements.iter_mut().zip(library.registries);
    for (judgement, registry) in judgements {
        let fault = match unknown_operation(library, main, registry)? {
            Some(unknown) => Some(unknown),
            None => {
                let imported = judgement.fault(Loader::Cpp).cloned();
                let known = imported.or(call.clone()).or(device.cloned()).or(constant.clone());
                match known {
                    Some(known) => Some(known),
                    None => without_kernel(library, main, registry)?,
                }
            }
        };
        judgement.set_fault(Loader::Cpp, fault);
    }
    Ok(())
}

/// The first node of an operation that is neither in the release nor in the library.
fn unknown_operation(
    library: Library<'_>,
    main: &MainNodes,
    registry: &Registry,
) -> Result<Option<ImportFault>, GraphError> {
    let unknown = main.operations.iter().find(|first| {
        let is_function = library.names.find(first.operation.as_bytes()).is_some();
        !is_function && registry.operation(&first.operation).is_none()
    });
    let Some(first) = unknown else { return Ok(None) };
    let found = first.operation.clone();
    at(library, first.place, ImportFaultKind::UnknownOperation, found, "").map(Some)
}

/// The first node of an operation for which no CPU has a kernel.
fn without_kernel(
    library: Library<'_>,
    main: &MainNodes,
    registry: &Registry,
) -> Result<Option<ImportFault>, GraphError> {
    let lacking = main.operations.iter().find(|first| {
        let is_function = library.names.find(first.operation.as_bytes()).is_some();
        let operation = registry.operation(&first.operation).filter(|_| !is_function);
        operation.is_some_and(|operation| !operation.has_cpu_kernel())
    });
    let Some(first) = lacking else { return Ok(None) };
    let expected = "an operation with a kernel for a CPU";
    at(library, first.place, ImportFaultKind::NoKernel, first.operation.clone(), expected).map(Some)
}

#[cfg(test)]
mod tests;
