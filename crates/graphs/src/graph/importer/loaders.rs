//! Finds the faults that each loader reports besides those of the importer.
//!
//! - `tf.saved_model.load` loads every function; it leaves the main graph of a model with an object
//!   graph alone.
//! - Python's import makes a function of Python of each function in the library, and reads the
//!   devices of all nodes.
//! - The C++ loader looks at constants and looks up the operations of all nodes before anything
//!   else, and wants functions, devices and kernels at once, not when they are used. Whether a
//!   device is there is a question to the machine: one that can be read counts as there.
//!
//! Knows the loaders. It must never know how nodes are judged.

use super::{
    bodies::in_words,
    called_bodies::{FunctionFinding, Library},
    context::Context,
    function_graph::{CLASSES, UNTYPED},
    instantiate::{BodyFinding, Finding},
    loaded_functions::{self, LoadedFunctions},
    named_nodes::{self, NamedFaults},
    order::Visits,
    placed_bodies::PlacedBodies,
    registries, saver,
};
use crate::{
    graph::{
        DeprecatedOperations, GraphError, ImportFault, ImportFaultKind, Judgement, Loader,
        MetaGraph, StructureFaultKind,
        fault::Part,
        index::{Argument, FirstNode, GraphIndex, LostCall, LostTarget, MainNodes, NamingNode},
        kinds::Kinds,
        node_at,
        node_rules::SavedTensorFault,
        rules::shown,
        source::Extent,
    },
    ops::{Registry, type_name},
    schema::{GRAPH_DEF, SAVED_MODEL},
};

/// A graph whose judgements have what the importer finds.
pub(in super::super) struct LoadedGraph<'g> {
    pub(in super::super) meta_graph: &'g mut MetaGraph,
    /// The number of the meta graph.
    pub(in super::super) number: usize,
    /// True if the file has no other meta graph.
    pub(in super::super) is_only: bool,
    /// The nodes outside of functions, where somebody had to look at them.
    pub(in super::super) index: Option<&'g GraphIndex>,
    /// The importer's state, if it came as far as visiting nodes.
    pub(in super::super) visited: Option<Visited<'g>>,
    /// The top-level node facts that loaders check, if known.
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
        Self { meta_graph, number, is_only, index: None, visited: None, main }
    }
}

/// Nodes that the importer visits.
#[derive(Clone, Copy)]
pub(in super::super) struct Visited<'g> {
    pub(in super::super) context: &'g Context<'g>,
    pub(in super::super) visits: &'g Visits,
    /// True if shape functions were evaluated, and refuse nothing.
    pub(in super::super) do_shapes_fit: bool,
}

impl Visited<'_> {
    /// When the node at a place is visited.
    fn visit_of(self, place: Extent) -> Option<u32> {
        self.context.node_at(place).map(|node| self.visits.of(node))
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
    let LoadedGraph { meta_graph, number, is_only, index, visited, main } = graph;
    let in_python = match index {
        Some(index) => in_python(library, index)?,
        None => None,
    };
    let untyped = untyped_outputs(visited, |kinds, registry| kinds.python_view(registry))?;
    if library.source.message() == GRAPH_DEF {
        let is_taken = |judgement: &Judgement| judgement.fault(Loader::LoadV1).is_none();
        let unequal = match meta_graph.graph.judgements.iter().any(is_taken) {
            true => loaded_functions::unequal(library)?,
            false => Vec::new(),
        };
        return load_v1(library, meta_graph, (untyped, in_python), &unequal, &[]);
    }
    let Library { source, names, release, .. } = library;
    let main = match main {
        Some(main) => main,
        None => MainNodes::read(source, number, release)?,
    };
    let loaded = match source.message() == SAVED_MODEL && !names.is_empty() {
        true => loaded_functions::load(library, deprecated)?,
        false => LoadedFunctions::none(library),
    };
    let unequal = &loaded.unequal_as_written;
    // TensorFlow looks for objects only where there is nothing to choose from.
    let has_objects = meta_graph.has_object_graph && is_only;
    let named = named_nodes::judge(library, meta_graph, (number, has_objects), visited)?;
    load_v1(library, meta_graph, (untyped, in_python.clone()), unequal, &named)?;
    cpp(library, meta_graph, &main, (loaded.unsaved.as_ref(), &named), visited)?;
    if source.message() == SAVED_MODEL {
        let nodes = match visited.filter(|_| !has_objects) {
            Some(visited) => {
                let untyped =
                    untyped_outputs(Some(visited), |kinds, registry| kinds.loaded_view(registry))?
                        .into_iter();
                let found = registries::loaded(visited, &loaded.functions)?;
                found.into_iter().zip(untyped).map(|(found, other)| Some(found.or(other))).collect()
            }
            None => vec![None; library.registries.len()],
        };
        let functions = loaded.faults.into_iter().zip(loaded.unequal);
        // Where functions alone are loaded, each is taken in once.
        let faults = functions.map(|(fault, unequal)| fault.or(unequal.filter(|_| !has_objects)));
        let faults = (faults.collect(), nodes);
        load(library, (meta_graph, has_objects), faults, (&main, &named), in_python)?;
    }
    Ok(())
}

/// By registry, the first node with an output whose type only a caller could tell: Python makes a
/// tensor of each output, and has no name for such a type. `view` is how it sees the nodes.
fn untyped_outputs(
    visited: Option<Visited<'_>>,
    view: impl Fn(&Kinds<'_>, usize) -> usize,
) -> Result<Vec<Option<ImportFault>>, GraphError> {
    let Some(Visited { context, .. }) = visited else { return Ok(Vec::new()) };
    let Context { index, kinds, source, .. } = *context;
    let fault = |registry| {
        let view = view(kinds, registry);
        let mut nodes = (0_u32..).zip(index.nodes());
        let found = nodes.find(|(number, node)| {
            // What a function gives, that says itself.
            let calls = || index.call_of(*number).is_some_and(|call| call.call.direct);
            kinds.is_untyped(node.kind(), view) && !calls()
        });
        let Some((number, _)) = found else { return Ok(None) };
        let place = index.place_of(source, number)?.unwrap_or_default();
        let (found, expected) = UNTYPED;
        let found = found.to_owned();
        at(context.library(), place, ImportFaultKind::Python, found, expected).map(Some)
    };
    (0..context.registries.len()).map(fault).collect()
}

/// The fault that Python finds once the nodes are imported: an attribute `_class` or a device that
/// it cannot read, whichever node comes first.
fn in_python(library: Library<'_>, index: &GraphIndex) -> Result<Option<ImportFault>, GraphError> {
    let class = index
        .bad_class()
        .filter(|class| index.bad_device().is_none_or(|device| class.start <= device.start));
    if let Some(place) = class {
        let found = "an attribute _class that Python cannot read".to_owned();
        return at(library, place, ImportFaultKind::Python, found, CLASSES).map(Some);
    }
    let Some(place) = index.bad_device() else { return Ok(None) };
    bad_device(library, place).map(Some)
}

fn bad_device(library: Library<'_>, place: Extent) -> Result<ImportFault, GraphError> {
    let expected = "/job:NAME/replica:0/task:0/device:CPU:0";
    at(library, place, ImportFaultKind::Device, "a device that is none".to_owned(), expected)
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
    (functions, nodes): (Vec<Option<ImportFault>>, Vec<Option<Option<ImportFault>>>),
    (main, named): (&MainNodes, &[NamedFaults]),
    in_python: Option<ImportFault>,
) -> Result<(), GraphError> {
    // Python gives functions their new names in the nodes before it imports these, and makes a
    // function of the graph afterwards.
    let before = match main.lost_function(library.names) {
        Some(node) => Some(lost(library, node, ImportFaultKind::Python)?),
        None => None,
    };
    let saver = saver::fault(meta_graph);
    let judgements = meta_graph.graph.judgements.iter_mut();
    let found = library.registries.iter().zip(functions).zip(nodes).zip(named);
    for (judgement, (((registry, of_functions), of_nodes), named)) in judgements.zip(found) {
        if let Some(fault) = of_functions {
            judgement.set_fault(Loader::Load, Some(fault));
            judgement.set_before_versions(Loader::Load);
            continue;
        }
        if has_objects {
            judgement.set_fault(Loader::Load, None);
            continue;
        }
        // For nodes that are not visited, the importer's fault is the only one.
        let written = || judgement.fault(Loader::Load).filter(|fault| !is_of_library(fault));
        let imported = of_nodes.unwrap_or_else(|| written().cloned());
        let imported = imported.or(in_python.clone()).or(saver.clone());
        let fault = match before.clone().or(imported) {
            Some(fault) => Some(fault),
            None => placeholder(library, main, registry)?.or(named.load.clone()),
        };
        judgement.set_fault(Loader::Load, fault);
    }
    Ok(())
}

/// The first attribute that is a placeholder and that the operation does not know: no function can
/// be made of such a node.
fn placeholder(
    library: Library<'_>,
    main: &MainNodes,
    registry: &Registry,
) -> Result<Option<ImportFault>, GraphError> {
    let unknown = main.placeholders.iter().find(|found| {
        let operation = registry.operation(&found.operation);
        operation.is_none_or(|operation| operation.attribute(&found.attribute).is_none())
    });
    let Some(found) = unknown else { return Ok(None) };
    let words = format!("a placeholder as attribute {}", found.attribute);
    let kind = ImportFaultKind::AttributeUnknown { attribute: found.attribute.clone() };
    at(library, found.place, kind, words, "a value").map(Some)
}

/// True if the fault comes from renamed functions, and is therefore reported anew.
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
    (untyped, in_python): (Vec<Option<ImportFault>>, Option<ImportFault>),
    unequal: &[Option<ImportFault>],
    named: &[NamedFaults],
) -> Result<(), GraphError> {
    let mut judgements = meta_graph.graph.judgements.iter();
    if judgements.all(|judgement| judgement.fault(Loader::LoadV1).is_some()) {
        return Ok(());
    }
    let (functions, saver) = (python_functions(library)?, saver::fault(meta_graph));
    let judgements = &mut meta_graph.graph.judgements;
    let (mut untyped, mut unequal) = (untyped.into_iter(), unequal.iter());
    let mut named = named.iter();
    for (judgement, of_functions) in judgements.iter_mut().zip(functions) {
        let unequal = unequal.next().cloned().flatten();
        let named = named.next().and_then(|named| named.load_v1.clone());
        let of_nodes = untyped.next().flatten().or(in_python.clone());
        if judgement.fault(Loader::LoadV1).is_none() {
            let of_functions = of_functions.or(unequal).or(saver.clone()).or(named);
            judgement.set_fault(Loader::LoadV1, of_nodes.or(of_functions));
        }
    }
    Ok(())
}

/// The fault that keeps Python from making its own functions of those of the library, by registry.
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
    let is_open = |release: usize, place| !library.memo.is_clear(library, place, release);
    for (_, function) in library.names.iter() {
        if !(0..found.len()).any(|release| is_open(release, function.place)) {
            continue;
        }
        let index = library.memo.index(library, function.place)?;
        for (known, registry) in found.iter_mut().zip(library.registries) {
            if known.is_none()
                && let Some(finding) = untyped(&index.arguments, registry)
            {
                let finding = FunctionFinding { function: function.place, finding: finding.into() };
                *known = Some(in_words(library, Extent::default(), &finding)?);
            }
        }
    }
    Ok(found)
}

/// An argument whose type Python does not know, which reads the type that is written, whatever
/// attribute the argument names besides.
fn untyped(arguments: &[Argument], registry: &Registry) -> Option<BodyFinding> {
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
    let finding = Finding::of(Part::Argument(position), ImportFaultKind::Python);
    Some(finding.with(found, expected))
}

/// `TF_LoadSessionFromSavedModel`: constants, operations, the nodes and edges of a session, where
/// each node is to run, and then the import.
fn cpp(
    library: Library<'_>,
    meta_graph: &mut MetaGraph,
    main: &MainNodes,
    (in_functions, named): (Option<&ImportFault>, &[NamedFaults]),
    visited: Option<Visited<'_>>,
) -> Result<(), GraphError> {
    // Nodes are placed in the order in which they were made.
    let order = |place: Extent| {
        let visit = visited.and_then(|visited| visited.visit_of(place));
        (visit.unwrap_or_default(), place.start)
    };
    let unsaved = match &main.saved_tensor {
        Some((place, fault)) => Some(unsaved(library, *place, fault)?),
        None => in_functions.cloned(),
    };
    let call = match main.lost_call(library.names) {
        Some(call) => Some(lost_call(library, &call)?),
        None => None,
    };
    let bodies = PlacedBodies::read(library, main.called_functions())?;
    let judgements = meta_graph.graph.judgements.iter_mut().zip(library.registries).zip(named);
    for ((judgement, registry), named) in judgements {
        let first = match &unsaved {
            Some(unsaved) => Some(unsaved.clone()),
            None => unknown_operation(library, main, registry)?,
        };
        if first.is_some() {
            judgement.set_fault(Loader::Cpp, first);
            judgement.set_before_versions(Loader::Cpp);
            continue;
        }
        let known = judgement.fault(Loader::Cpp).cloned().or(call.clone());
        let imported = judgement.fault(Loader::Import);
        let fault = match known {
            Some(known) => Some(known),
            None => {
                let unplaced = unplaced(library, &order, main, registry)?;
                // A node that has no kernel is looked at more closely.
                let is_of_node = |fault: &ImportFault| {
                    let operation = registry.operation(&fault.operation);
                    fault.function.is_none()
                        && operation.is_some_and(|operation| !operation.has_cpu_kernel())
                };
                let unplaced = unplaced.filter(|fault| {
                    fault.kind != ImportFaultKind::NoKernel || !imported.is_some_and(is_of_node)
                });
                match unplaced {
                    Some(unplaced) => Some(unplaced),
                    None => bodies.fault(library, registry)?,
                }
            }
        };
        let fault = fault.or(imported.cloned()).or(named.cpp.clone());
        judgement.set_fault(Loader::Cpp, fault);
    }
    Ok(())
}

/// A constant of which the loader does not know how many elements it has.
fn unsaved(
    library: Library<'_>,
    place: Extent,
    fault: &SavedTensorFault,
) -> Result<ImportFault, GraphError> {
    let (kind, found, expected) = words_of_tensor(fault);
    at(library, place, kind, found, expected)
}

/// The fault of a tensor, as its kind, the found value and the expected one.
pub(super) fn words_of_tensor(fault: &SavedTensorFault) -> (ImportFaultKind, String, &'static str) {
    match fault {
        SavedTensorFault::Missing => {
            let attributes = vec!["value".to_owned()];
            (ImportFaultKind::AttributesMissing { attributes }, String::new(), "attribute value")
        }
        SavedTensorFault::Shape(shape) => {
            let expected = "dimensions of at least 0, under 2^63 elements";
            (ImportFaultKind::Shape, format!("a tensor of shape {shape}"), expected)
        }
    }
}

/// A PartitionedCall of no function of the library.
fn lost_call(library: Library<'_>, call: &LostCall) -> Result<ImportFault, GraphError> {
    let name = "f".to_owned();
    let (kind, found) = match &call.target {
        LostTarget::Missing => {
            (ImportFaultKind::AttributesMissing { attributes: vec![name] }, String::new())
        }
        LostTarget::Other(value) => {
            (ImportFaultKind::AttributeKind { attribute: name }, format!("f = {value}"))
        }
        LostTarget::Function(function) => {
            let found = format!("a function {function:?} as an attribute");
            (ImportFaultKind::FunctionBody, found)
        }
    };
    at(library, call.place, kind, found, "a function of the library")
}

/// The first node that can be placed nowhere: it has no kernel, or a device that cannot be read.
fn unplaced(
    library: Library<'_>,
    order: &impl Fn(Extent) -> (u32, u64),
    main: &MainNodes,
    registry: &Registry,
) -> Result<Option<ImportFault>, GraphError> {
    let lacking = without_kernel(library, order, main, registry);
    let is_first = |device: &&NamingNode| {
        lacking.is_none_or(|lacking| order(device.place) < order(lacking.place))
    };
    let device = main.device.as_ref().filter(is_first);
    match (device, lacking) {
        (Some(device), _) => bad_device(library, device.place).map(Some),
        (None, Some(first)) => {
            let expected = "an operation with a kernel for a CPU";
            let (kind, found) = (ImportFaultKind::NoKernel, first.operation.clone());
            at(library, first.place, kind, found, expected).map(Some)
        }
        (None, None) => Ok(None),
    }
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
fn without_kernel<'m>(
    library: Library<'_>,
    order: &impl Fn(Extent) -> (u32, u64),
    main: &'m MainNodes,
    registry: &Registry,
) -> Option<&'m FirstNode> {
    let lacking = main.operations.iter().filter(|first| {
        let is_function = library.names.find(first.operation.as_bytes()).is_some();
        let operation = registry.operation(&first.operation).filter(|_| !is_function);
        operation.is_some_and(|operation| !operation.has_cpu_kernel())
    });
    lacking.min_by_key(|first| order(first.place))
}

#[cfg(test)]
mod tests;
