//! Judges a graph for each registry.

use super::{
    bodies::Bodies,
    body_shapes::CalledShapes,
    context::Context,
    faults::{Functions, Reader, faults},
    judge::Findings,
    loaders::Visited,
    order::Visits,
    reloaded::ReloadedFunctions,
};
use crate::graph::{
    GraphError, ImportFault, ImportFaultKind, Judgement, Loader, StructureFault,
    StructureFaultKind,
    index::{DuplicateFunction, FoundKinds, GraphIndex, TakenNames},
    shapes::{self, CalledFunctions, ShapeFault, ShapedGraph},
};

/// The judgements of a graph in which the importer finds a fault before it asks what operations
/// are.
pub(in super::super) fn structure_judgements(
    fault: &StructureFault,
    registries: usize,
) -> Vec<Judgement> {
    let fault = of_structure(fault);
    (0..registries).map(|_| for_all_loaders(&fault)).collect()
}

fn of_structure(fault: &StructureFault) -> ImportFault {
    ImportFault {
        node: fault.node.clone(),
        function: None,
        operation: String::new(),
        kind: ImportFaultKind::Structure(fault.clone()),
        found: String::new(),
        expected: String::new(),
    }
}

fn for_all_loaders(fault: &ImportFault) -> Judgement {
    let mut judgement = Judgement::default();
    judgement.set_faults(&Loader::ALL, fault);
    judgement
}

/// The judgements of a graph, in the order of the registries, and whether shape functions were
/// asked about its nodes and refuse nothing.
pub(in super::super) fn judgements(
    context: &Context<'_>,
    found: &FoundKinds<'_>,
    findings: &Findings,
) -> Result<(Vec<Judgement>, bool), GraphError> {
    let (mut judgements, do_shapes_fit) = of_named(context, found, findings)?;
    if let Some(fault) = &findings.nameless_call {
        let fault = of_structure(fault);
        for judgement in &mut judgements {
            judgement.set_faults(&[Loader::Import, Loader::LoadV1, Loader::Cpp], &fault);
        }
    }
    Ok((judgements, do_shapes_fit))
}

/// The same, where nodes without an operation may call a function without a name.
fn of_named(
    context: &Context<'_>,
    found: &FoundKinds<'_>,
    findings: &Findings,
) -> Result<(Vec<Judgement>, bool), GraphError> {
    let mut do_shapes_fit = false;
    let count = context.registries.len();
    let structure = findings.fault.as_ref().filter(|fault| !fault.kind.is_found_on_the_way());
    let is_of_library = |kind| {
        matches!(kind, StructureFaultKind::DuplicateFunction | StructureFaultKind::SecondGradient)
    };
    let mut judgements = match structure {
        Some(fault) if !is_of_library(fault.kind) => {
            return Ok((structure_judgements(fault, count), false));
        }
        Some(fault) => structure_judgements(fault, count),
        None if context.index.is_without_nodes() => {
            let fault = oversized();
            return Ok(((0..count).map(|_| for_all_loaders(&fault)).collect(), false));
        }
        None => visited(context, findings, &mut do_shapes_fit)?,
    };
    for (registry, judgement) in judgements.iter_mut().enumerate() {
        if let Some(fault) = taken_name(context.index, &found.taken, registry) {
            // What loads functions under other names does not mind.
            judgement.set_faults(&[Loader::Import, Loader::LoadV1, Loader::Cpp], &fault);
        }
        judgement.dropped = found.dropped.of_registry(&found.kinds, registry);
    }
    Ok((judgements, do_shapes_fit))
}

/// The judgements of a graph whose nodes are visited; says whether their shapes fit.
fn visited(
    context: &Context<'_>,
    findings: &Findings,
    do_shapes_fit: &mut bool,
) -> Result<Vec<Judgement>, GraphError> {
    let count = context.registries.len();
    let Some(visits) = &findings.visits else { return Ok(vec![Judgement::default(); count]) };
    let bodies = Bodies::read(context, visits)?;
    let functions = Functions::Written(&bodies);
    let reader = |view| Reader { view, needs_shape_functions: true };
    let readers: Vec<Reader> = (0..count).map(reader).collect();
    let mut called = CalledShapes::of(context.library(), context.producer);
    let shapes = shape_fault(context, visits, Some(&mut called))?;
    *do_shapes_fit = context.follows_shapes && shapes.is_none();
    let import = faults(context, visits, &readers, functions, shapes.as_ref())?;
    let needs_shape_functions = |fault: &Option<ImportFault>| {
        fault.as_ref().is_some_and(|fault| fault.kind == ImportFaultKind::NoShapeFunction)
    };
    // Python asks for no shape functions, and gives an attribute without a value its default.
    let python = if context.kinds.differs_in_python() || import.iter().any(needs_shape_functions) {
        let view = |registry| context.kinds.python_view(registry);
        let reader = |registry| Reader { view: view(registry), needs_shape_functions: false };
        let readers: Vec<Reader> = (0..count).map(reader).collect();
        faults(context, visits, &readers, functions, shapes.as_ref())?
    } else {
        import.clone()
    };
    let session = in_session(context, visits, functions, &import, shapes.as_ref())?;
    let judgement = |((import, python), session)| {
        let mut judgement = Judgement::default();
        judgement.set_fault(Loader::Cpp, session);
        judgement.set_fault(Loader::Import, import);
        judgement.set_fault(Loader::LoadV1, Option::clone(&python));
        judgement.set_fault(Loader::Load, python);
        judgement
    };
    Ok(import.into_iter().zip(python).zip(session).map(judgement).collect())
}

/// The first node that a shape function refuses, where shapes are asked for.
fn shape_fault(
    context: &Context<'_>,
    visits: &Visits,
    called: Option<&mut dyn CalledFunctions>,
) -> Result<Option<ShapeFault>, GraphError> {
    let Context { source, index, kinds, registries, release, producer, .. } = *context;
    if !context.follows_shapes {
        return Ok(None);
    }
    let graph = ShapedGraph { source, index, kinds, registries, release, producer };
    shapes::first_fault(graph, visits.in_order(), called)
}

/// The fault that `tf.saved_model.load` finds in the nodes outside of functions, after it loaded
/// these.
pub(super) fn loaded(
    Visited { context, visits, do_shapes_fit }: Visited<'_>,
    functions: &ReloadedFunctions<'_>,
) -> Result<Vec<Option<ImportFault>>, GraphError> {
    let view = |registry| context.kinds.loaded_view(registry);
    let reader = |registry| Reader { view: view(registry), needs_shape_functions: false };
    let readers: Vec<Reader> = (0..context.registries.len()).map(reader).collect();
    let functions = Functions::Reloaded(functions);
    // Of functions that have other names by now, less is known and no more refused.
    let shapes = if do_shapes_fit { None } else { shape_fault(context, visits, None)? };
    faults(context, visits, &readers, functions, shapes.as_ref())
}

/// The fault that a session finds when it creates nodes and edges of the graph, before values are
/// checked.
fn in_session(
    context: &Context<'_>,
    visits: &Visits,
    functions: Functions<'_>,
    import: &[Option<ImportFault>],
    shapes: Option<&ShapeFault>,
) -> Result<Vec<Option<ImportFault>>, GraphError> {
    if import.iter().all(Option::is_none) {
        return Ok(import.to_vec());
    }
    let view = |registry| context.kinds.session_view(registry);
    let reader = |registry| Reader { view: view(registry), needs_shape_functions: true };
    let readers: Vec<Reader> = (0..import.len()).map(reader).collect();
    let session = faults(context, visits, &readers, functions, shapes)?;
    // Attribute values that the session has not checked make shapes that no other loader sees.
    let is_shape = |fault: &ImportFault| fault.kind == ImportFaultKind::Shape;
    let first = |(own, import): (Option<ImportFault>, &Option<ImportFault>)| {
        let is_seen = import.as_ref().is_some_and(is_shape);
        if own.as_ref().is_some_and(is_shape) && !is_seen { import.clone() } else { own }
    };
    Ok(session.into_iter().zip(import).map(first).collect())
}

/// The first function whose name is that of an operation, unless another one of the library is
/// faulty before it.
fn taken_name(index: &GraphIndex, taken: &TakenNames, registry: usize) -> Option<ImportFault> {
    let taken = taken.first(registry)?;
    let is_later = |other: &DuplicateFunction| other.number < taken.number;
    if index.duplicate_function().is_some_and(is_later) {
        return None;
    }
    Some(ImportFault {
        kind: ImportFaultKind::FunctionName,
        node: String::new(),
        function: Some(taken.name.clone()),
        operation: String::new(),
        found: taken.name.clone(),
        expected: "a name that no operation has".to_owned(),
    })
}

/// The fault of a graph with a name that is too long to be read.
fn oversized() -> ImportFault {
    ImportFault {
        kind: ImportFaultKind::Oversized,
        node: String::new(),
        function: None,
        operation: String::new(),
        found: "a name of over 1 MiB".to_owned(),
        expected: "names that can be looked at".to_owned(),
    }
}

#[cfg(test)]
mod tests;
