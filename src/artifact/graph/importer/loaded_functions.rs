//! What `tf.saved_model.load` makes of a library of functions: it loads all of them, called or not.
//!
//! Functions are loaded after those that they name: by their operations and by attributes that are
//! functions. One that names a function which is not there, or itself, can never be loaded.
//!
//! Knows which function names which. It must never know what is wrong inside of one.

use std::collections::{HashMap, HashSet};

use super::{
    bodies::in_words,
    called_bodies::{FunctionFinding, Library, ReleaseDefinitions},
    function_graph::{KindInGraph, fault_in_graph, kinds_in_graph},
    instantiate::{BodyFinding, Definitions, Finding},
    signatures::Signatures,
};
use crate::artifact::{
    graph::{
        DeprecatedOperations, GraphError, ImportFault, ImportFaultKind,
        attributes::{AttributeValue, Attributes},
        fault::Part,
        function_names::{FunctionNames, LibraryFunction},
        index::{FunctionDepth, FunctionIndex},
        source::Extent,
    },
    ops::{DefinitionId, Element, Registry},
};

/// A function of the library.
struct Loaded {
    place: Extent,
    /// What is wrong with it, by registry.
    findings: Vec<Option<BodyFinding>>,
    /// The positions of the functions that it names.
    names: Vec<usize>,
    /// A node names a function that is not there.
    lost: Option<BodyFinding>,
}

/// The first fault of the functions of a library, by registry.
pub(super) fn faults(
    library: Library<'_>,
    deprecated: &DeprecatedOperations,
) -> Result<Vec<Option<ImportFault>>, GraphError> {
    let mut functions: Vec<(u64, LibraryFunction)> = library.names.iter().collect();
    functions.sort_unstable_by_key(|(_, function)| function.number);
    let positions = (0_usize..).zip(&functions).map(|(position, (hash, _))| (*hash, position));
    let positions: HashMap<u64, usize> = positions.collect();
    let mut signatures = Signatures::default();
    let mut loaded = Vec::with_capacity(functions.len());
    for (_, function) in &functions {
        loaded.push(load(library, &positions, &mut signatures, function.place, deprecated)?);
    }
    let order = match order(&loaded) {
        Ok(order) => order,
        Err(finding) => {
            let fault = in_words(library, Extent::default(), &finding)?;
            return Ok(vec![Some(fault); library.registries.len()]);
        }
    };
    let first = |registry: usize| {
        let mut in_order = order.iter().filter_map(|position| loaded.get(*position));
        let found = in_order.find_map(|function| {
            let finding = function.findings.get(registry)?.clone()?;
            Some(FunctionFinding { function: function.place, finding })
        });
        found.map(|found| in_words(library, Extent::default(), &found)).transpose()
    };
    (0..library.registries.len()).map(first).collect()
}

/// Reads and judges one function.
fn load(
    library: Library<'_>,
    positions: &HashMap<u64, usize>,
    signatures: &mut Signatures,
    place: Extent,
    deprecated: &DeprecatedOperations,
) -> Result<Loaded, GraphError> {
    let Library { source, names, registries, release } = library;
    let function = FunctionIndex::read(source, place, names, release, FunctionDepth::Kinds)?;
    let mut named: HashSet<usize> = HashSet::new();
    let mut lost = None;
    for (number, kind) in (0_u32..).zip(&function.kinds) {
        let called = names.find(kind.operation.as_bytes());
        if let Some(called) = called {
            signatures.read(library, called)?;
            named.extend(positions.get(&called));
        }
        match named_functions(&kind.attributes, names) {
            Ok(found) if called.is_none() => {
                named.extend(found.iter().filter_map(|hash| positions.get(hash)));
            }
            Ok(_) => {}
            Err(name) if lost.is_none() => lost = Some(lost_function(&function, number, &name)),
            Err(_) => {}
        }
    }
    let mut names: Vec<usize> = named.into_iter().collect();
    names.sort_unstable();
    let findings = judge(&function, library, signatures, deprecated);
    debug_assert_eq!(findings.len(), registries.len());
    Ok(Loaded { place, findings, names, lost })
}

/// What each release makes of a function; of releases that are alike asked once if it is good.
fn judge(
    function: &FunctionIndex,
    library: Library<'_>,
    signatures: &Signatures,
    deprecated: &DeprecatedOperations,
) -> Vec<Option<BodyFinding>> {
    type Key = (Vec<Option<DefinitionId>>, u64);
    let mut judged: Vec<Key> = Vec::new();
    let mut good: Vec<(Vec<Option<KindInGraph>>, u64)> = Vec::new();
    let judge = |registry: &Registry| {
        let definitions = ReleaseDefinitions { names: library.names, signatures, registry };
        let ids = function.kinds.iter().map(|kind| {
            definitions.find(&kind.operation).map(|definition| definition.definition_id())
        });
        let types = (0..64).filter(|number| registry.has_type(*number));
        let key = (ids.collect(), types.fold(0_u64, |types, number| types | 1 << number));
        // A fault is told in the words of its own release.
        if judged.contains(&key) {
            return None;
        }
        if function.oversized {
            return Some(Finding::oversized());
        }
        // Most definitions that differ are the same for the nodes of one function.
        let kinds = (kinds_in_graph(function, &definitions), key.1);
        let found = match good.contains(&kinds) {
            true => None,
            false => fault_in_graph(function, &kinds.0, &definitions, deprecated),
        };
        if found.is_none() {
            judged.push(key);
            good.push(kinds);
        }
        found
    };
    library.registries.iter().map(judge).collect()
}

/// The functions that attributes name; a name that no function of the library has is an error.
pub(super) fn named_functions(
    attributes: &Attributes,
    names: &FunctionNames,
) -> Result<Vec<u64>, String> {
    let mut found = Vec::new();
    let mut note = |value: AttributeValue<'_>| {
        let AttributeValue::Function(name) = value else { return Ok(()) };
        let bytes = name.bytes.unwrap_or_default();
        match names.find(bytes) {
            Some(hash) => {
                found.push(hash);
                Ok(())
            }
            None => Err(String::from_utf8_lossy(bytes).into_owned()),
        }
    };
    for (_, value) in attributes.iter() {
        match value {
            AttributeValue::List(list) if list.element() == Some(Element::Function) => {
                list.values().try_for_each(&mut note)?;
            }
            value => note(value)?,
        }
    }
    Ok(found)
}

/// What is wrong with the first node of a kind that names a function which is not there.
fn lost_function(function: &FunctionIndex, kind: u32, name: &str) -> BodyFinding {
    let node = function.nodes.iter().position(|node| node.kind == kind).unwrap_or_default();
    let node = u32::try_from(node).unwrap_or(u32::MAX);
    Finding::of(Part::Node(node), ImportFaultKind::Python)
        .of_operation(function, node)
        .with(format!("a function {name:?} as an attribute"), "a function of the library")
}

/// The order in which functions are loaded, or why there is none.
fn order(loaded: &[Loaded]) -> Result<Vec<usize>, FunctionFinding> {
    let mut callers: Vec<Vec<usize>> = vec![Vec::new(); loaded.len()];
    let mut waiting: Vec<usize> = Vec::with_capacity(loaded.len());
    for (position, function) in loaded.iter().enumerate() {
        if let Some(finding) = &function.lost {
            return Err(FunctionFinding { function: function.place, finding: finding.clone() });
        }
        for named in &function.names {
            if let Some(callers) = callers.get_mut(*named) {
                callers.push(position);
            }
        }
        waiting.push(function.names.len());
    }
    let free = waiting.iter().enumerate().filter(|(_, waiting)| **waiting == 0);
    let mut ready: Vec<usize> = free.map(|(position, _)| position).collect();
    let mut order = Vec::with_capacity(loaded.len());
    // As Python does it: the one that became ready last comes first.
    while let Some(next) = ready.pop() {
        order.push(next);
        for caller in callers.get(next).map(Vec::as_slice).unwrap_or_default() {
            if let Some(waiting) = waiting.get_mut(*caller) {
                *waiting -= 1;
                if *waiting == 0 {
                    ready.push(*caller);
                }
            }
        }
    }
    let left = waiting.iter().position(|waiting| *waiting > 0);
    match left.and_then(|position| loaded.get(position)) {
        None => Ok(order),
        Some(function) => {
            let finding = Finding::of(Part::Function, ImportFaultKind::Python);
            let finding = finding.with("it needs itself, at once or through others", "");
            Err(FunctionFinding { function: function.place, finding })
        }
    }
}
