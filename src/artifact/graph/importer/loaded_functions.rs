//! What `tf.saved_model.load` makes of a library of functions: it loads all of them, called or not.
//!
//! Functions are loaded after those that they name: by their operations and by attributes that are
//! functions. One that names a function which is not there, or itself, can never be loaded.
//!
//! Knows which function names which. It must never know what is wrong inside of one.

use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
};

use super::{
    bodies::in_words,
    body_shapes::{self, ShapeReader},
    called_bodies::{FunctionFinding, Library},
    digest::{Clear, Digest, FunctionForm, Judged},
    function_graph::{kinds_in_graph, reload},
    instantiate::{BodyFinding, Finding, numbered},
    reloaded::{LoadDefinitions, Reloaded, ReloadedLibrary},
};
use crate::artifact::{
    graph::{
        DeprecatedOperations, GraphError, ImportFault, ImportFaultKind, StructureFault,
        StructureFaultKind,
        attributes::{AttributeValue, Attributes, Text},
        fault::Part,
        function_names::{FunctionNames, LibraryFunction},
        index::{FunctionIndex, call_attributes},
        source::Extent,
    },
    ops::{DefinitionId, OperationDefinition, Registry},
};

/// A function of the library, before it is loaded.
struct Unloaded {
    /// Where its last definition is, which is the one that counts.
    place: Extent,
    /// The positions of the functions that it names.
    names: Vec<usize>,
    digest: Rc<Digest>,
}

impl Unloaded {
    fn judged(&self) -> Option<&Judged> {
        self.digest.judged.as_deref()
    }

    /// The first kind whose nodes need a function that is not there although it is loaded later.
    fn needs_later(&self, there: &HashSet<u64>) -> Option<u32> {
        let needed = self.judged().map_or(&[][..], |judged| &judged.named.needed);
        needed.iter().find(|(function, _)| !there.contains(function)).map(|(_, kind)| *kind)
    }

    /// A fault of the function.
    fn find(&self, fault: impl Fn(&Judged) -> Option<&BodyFinding>) -> Option<FunctionFinding> {
        let finding = fault(self.judged()?)?.clone();
        Some(FunctionFinding { function: self.place, finding })
    }
}

/// The functions that one names.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// The hashes of the names of those that it is loaded after.
    functions: Box<[u64]>,
    /// The hashes of others that nodes of a kind have as attributes. Python does not wait for
    /// these, and needs them nevertheless.
    needed: Box<[(u64, u32)]>,
    /// A node names a function that is not there.
    lost: Option<BodyFinding>,
}

/// What the nodes of a function name: each by its operation, or else by its registered gradient, or
/// else by attributes that are functions.
pub(super) fn named_by(function: &FunctionIndex, names: &FunctionNames) -> Named {
    let mut named = HashSet::new();
    let (mut needed, mut lost) = (Vec::new(), None);
    for (node, gradient) in &function.registered {
        if names.get(*gradient).is_some() {
            named.insert(*gradient);
        } else if lost.is_none() {
            let fault = Finding::of(Part::Node(*node), ImportFaultKind::Python);
            let found = "a registered gradient that is not there";
            let fault = fault.of_operation(function, *node);
            lost = Some(fault.with(found, "a function of the library"));
        }
    }
    let without_gradient = kinds_without_gradient(function);
    for (number, kind) in (0_u32..).zip(&function.kinds) {
        let called = names.find(kind.operation.as_bytes());
        named.extend(called);
        let waits = called.is_none()
            && without_gradient.as_ref().is_none_or(|kinds| kinds.contains(&number));
        match named_functions(&kind.attributes, names) {
            Ok(found) if waits => named.extend(found),
            Ok(found) => needed.extend(found.into_iter().map(|function| (function, number))),
            Err(name) if lost.is_none() => lost = Some(lost_function(function, number, &name)),
            Err(_) => {}
        }
    }
    needed.retain(|(function, _)| !named.contains(function));
    Named { functions: named.into_iter().collect(), needed: needed.into(), lost }
}

/// The kinds of which a node has no registered gradient; `None` where no node has one.
fn kinds_without_gradient(function: &FunctionIndex) -> Option<HashSet<u32>> {
    if function.registered.is_empty() {
        return None;
    }
    let with: HashSet<u32> = function.registered.iter().map(|(node, _)| *node).collect();
    let nodes = numbered(&function.nodes).filter(|(number, _)| !with.contains(number));
    Some(nodes.map(|(_, node)| node.kind).collect())
}

/// What loaders make of the functions of a library.
#[derive(Debug)]
pub(super) struct LoadedFunctions {
    /// By registry, the first fault that `tf.saved_model.load` finds.
    pub(super) faults: Vec<Option<ImportFault>>,
    /// By registry, the functions as it leaves them; all of them where there is no fault.
    pub(super) functions: Vec<ReloadedLibrary>,
    /// The first fault that the C++ loader finds before it looks at the graph.
    pub(super) unsaved: Option<ImportFault>,
    /// By registry, the first function in which a name comes twice, or that has a tensor which
    /// cannot be read: TensorFlow does not find it equal to itself, which it asks when Python takes
    /// the function in once more.
    pub(super) unequal: Vec<Option<ImportFault>>,
    /// The same for functions as they are written, which loaders of TensorFlow 1 take in.
    pub(super) unequal_as_written: Vec<Option<ImportFault>>,
}

impl LoadedFunctions {
    /// Those of a library that has none.
    pub(super) fn none(registries: usize) -> Self {
        let functions = (0..registries).map(|_| ReloadedLibrary::default()).collect();
        let none = vec![None; registries];
        Self {
            faults: none.clone(),
            functions,
            unsaved: None,
            unequal: none.clone(),
            unequal_as_written: none,
        }
    }
}

/// Loads the functions of a library, as `tf.saved_model.load` does.
pub(super) fn load(
    library: Library<'_>,
    deprecated: &DeprecatedOperations,
) -> Result<LoadedFunctions, GraphError> {
    let mut functions: Vec<(u64, LibraryFunction)> = library.names.iter().collect();
    functions.sort_unstable_by_key(|(_, function)| function.number);
    let positions = (0_usize..).zip(&functions).map(|(position, (hash, _))| (*hash, position));
    let positions: HashMap<u64, usize> = positions.collect();
    let mut found = LoadedFunctions::none(library.registries.len());
    let mut unloaded = Vec::with_capacity(functions.len());
    for (_, function) in &functions {
        unloaded.push(read(library, &positions, function.last)?);
    }
    let first = |fault: fn(&Judged) -> Option<&BodyFinding>| {
        let found = unloaded.iter().find_map(|function: &Unloaded| function.find(fault));
        found.map(|found| in_words(library, Extent::default(), &found)).transpose()
    };
    found.unsaved = first(|judged| judged.unsaved.as_ref())?;
    for function in &unloaded {
        let digest = (function.place, &*function.digest);
        note_unequal(library, digest, FunctionForm::Loaded, &mut found.unequal)?;
        note_unequal(library, digest, FunctionForm::Written, &mut found.unequal_as_written)?;
    }
    let order = match order(&functions, &unloaded) {
        Ok(order) => order,
        Err(finding) => {
            let fault = in_words(library, Extent::default(), &finding)?;
            found.faults.fill(Some(fault));
            return Ok(found);
        }
    };
    let shapes = ShapeReader::default();
    Loading { library, deprecated, found, shapes, steps: 0 }.all(&order, &functions, &unloaded)
}

/// By registry, the first function that TensorFlow does not find equal to itself; see
/// [`LoadedFunctions::unequal`].
pub(super) fn unequal(library: Library<'_>) -> Result<Vec<Option<ImportFault>>, GraphError> {
    let mut functions: Vec<LibraryFunction> = library.names.iter().map(|(_, one)| one).collect();
    functions.sort_unstable_by_key(|function| function.number);
    let mut found = vec![None; library.registries.len()];
    for LibraryFunction { place, .. } in functions {
        let digest = library.memo.digest(library, place)?;
        note_unequal(library, (place, &digest), FunctionForm::Written, &mut found)?;
    }
    Ok(found)
}

/// Notes a function that is not found equal to itself for the registries that have none so far.
fn note_unequal(
    library: Library<'_>,
    (place, digest): (Extent, &Digest),
    form: FunctionForm,
    found: &mut [Option<ImportFault>],
) -> Result<(), GraphError> {
    let Some(judged) = digest.judged.as_deref() else { return Ok(()) };
    for (known, registry) in found.iter_mut().zip(library.registries) {
        if known.is_none()
            && let Some(finding) = judged.unequal.in_release(registry, form)
        {
            let finding = FunctionFinding { function: place, finding };
            *known = Some(not_the_same(in_words(library, Extent::default(), &finding)?));
        }
    }
    Ok(())
}

/// That a function which has this fault is not equal to itself.
fn not_the_same(fault: ImportFault) -> ImportFault {
    let name = fault.function.clone().unwrap_or_default();
    let body = match fault.kind {
        ImportFaultKind::Structure(fault) => fault.body,
        _ => None,
    };
    let node = name.clone();
    let kind = StructureFault { node, kind: StructureFaultKind::UnequalFunction, body };
    ImportFault { kind: ImportFaultKind::Structure(kind), ..fault }
}

/// Reads one function, and says what it names.
fn read(
    library: Library<'_>,
    positions: &HashMap<u64, usize>,
    place: Extent,
) -> Result<Unloaded, GraphError> {
    let digest = library.memo.digest(library, place)?;
    let named = digest.judged.iter().flat_map(|judged| &judged.named.functions);
    let mut names: Vec<usize> = named.filter_map(|hash| positions.get(hash).copied()).collect();
    names.sort_unstable();
    Ok(Unloaded { place, names, digest })
}

/// What releases are alike for while a function is loaded: its operations and the element types.
type Key = (Vec<Option<(Option<DefinitionId>, usize)>>, u64);

/// Functions that are being loaded.
struct Loading<'a> {
    library: Library<'a>,
    deprecated: &'a DeprecatedOperations,
    found: LoadedFunctions,
    shapes: ShapeReader<'a>,
    /// What was looked at so far; see [`reload`].
    steps: u64,
}

impl Loading<'_> {
    /// Loads the functions in that order.
    fn all(
        mut self,
        order: &[usize],
        functions: &[(u64, LibraryFunction)],
        unloaded: &[Unloaded],
    ) -> Result<LoadedFunctions, GraphError> {
        let mut there = HashSet::new();
        let (mut firsts, mut again) = (Vec::with_capacity(order.len()), HashMap::new());
        for (time, position) in order.iter().enumerate() {
            let (Some((hash, _)), Some(function)) =
                (functions.get(*position), unloaded.get(*position))
            else {
                continue;
            };
            if let Some(kind) = function.needs_later(&there) {
                self.refuse(function, kind)?;
            }
            match there.insert(*hash) {
                true => firsts.push((time, *hash)),
                false => _ = again.insert(*hash, time),
            }
            let is_first = self.found.functions.iter().any(|known| known.get(*hash).is_none());
            if is_first && self.found.faults.iter().any(Option::is_none) {
                self.load(*hash, function)?;
            }
        }
        if !again.is_empty() {
            let libraries = self.found.functions.iter_mut();
            libraries.for_each(|library| library.rename(&again, &firsts));
        }
        Ok(self.found)
    }

    /// By the number of the node, what a function gives to those that it names as attributes and
    /// that leave something to their callers.
    fn given(
        &self,
        Unloaded { place, digest, .. }: &Unloaded,
    ) -> Result<HashMap<u32, Attributes>, GraphError> {
        let Library { source, release, .. } = self.library;
        let mut given = HashMap::new();
        let is_open = |function| {
            let mut libraries = self.found.functions.iter();
            libraries.any(|loaded| loaded.get(function).is_some_and(|one| one.is_open()))
        };
        if !digest.calls.iter().any(|call| !call.direct && call.inside && is_open(call.function)) {
            return Ok(given);
        }
        let function = self.library.memo.index(self.library, *place)?;
        let calls = function.calls.iter().filter(|call| is_open(call.call.function));
        for call in calls.filter(|call| !call.call.direct) {
            given.insert(call.node, call_attributes(source, call.place, false, release)?);
        }
        Ok(given)
    }

    /// Says that a function cannot be loaded, as nodes of a kind need one that is loaded later.
    fn refuse(&mut self, unloaded: &Unloaded, kind: u32) -> Result<(), GraphError> {
        let index = self.library.memo.index(self.library, unloaded.place)?;
        let node = numbered(&index.nodes).find(|(_, node)| node.kind == kind);
        let node = node.map_or(0, |(number, _)| number);
        let finding = Finding::of(Part::Node(node), ImportFaultKind::Python)
            .of_operation(&index, node)
            .with("a function as an attribute that is loaded later", "one that is loaded before");
        let found = FunctionFinding { function: unloaded.place, finding };
        let fault = in_words(self.library, Extent::default(), &found)?;
        for known in self.found.faults.iter_mut().filter(|known| known.is_none()) {
            *known = Some(fault.clone());
        }
        Ok(())
    }

    /// Loads one function for each release that has found nothing yet; those that are alike share
    /// what comes of it.
    fn load(&mut self, hash: u64, unloaded: &Unloaded) -> Result<(), GraphError> {
        let Unloaded { place, digest, .. } = unloaded;
        let mut clear: Vec<(&Rc<Clear>, Rc<Reloaded>)> = Vec::new();
        let mut judged: Vec<(Key, Rc<Reloaded>)> = Vec::new();
        let mut whole = None;
        let library = self.library;
        let shapes = body_shapes::alone(*place, (library, &mut self.shapes))?;
        let given = self.given(unloaded)?;
        let found = self.found.faults.iter_mut().zip(&mut self.found.functions);
        for (release, ((fault, loaded), registry)) in found.zip(library.registries).enumerate() {
            if fault.is_some() {
                continue;
            }
            let names = library.names;
            let definitions = |loaded| LoadDefinitions { names, registry, loaded, given: &given };
            if shapes.is_none()
                && let Some((definition, found)) = taken_by(digest, release)
            {
                let known = clear.iter().find(|(known, _)| Rc::ptr_eq(known, found));
                let reloaded = match known {
                    Some((_, known)) => Rc::clone(known),
                    None => {
                        let definitions = definitions(loaded);
                        Rc::new(Reloaded::clear(*place, definition, found, &definitions))
                    }
                };
                loaded.add(hash, Rc::clone(&reloaded));
                clear.push((found, reloaded));
                continue;
            }
            let function = match &whole {
                Some(function) => Rc::clone(function),
                None => library.memo.index(library, *place)?,
            };
            let function = &**whole.insert(function);
            let definitions = definitions(loaded);
            let key = key(function, &definitions, registry);
            // A fault is told in the words of its own release.
            if let Some((_, known)) = judged.iter().find(|(known, _)| *known == key) {
                loaded.add(hash, Rc::clone(known));
                continue;
            }
            let reloaded = match function.oversized {
                true => Err(FunctionFinding { function: *place, finding: Finding::oversized() }),
                false => {
                    let kinds = kinds_in_graph(function, &definitions);
                    let (function, shapes) = ((function, *place), shapes.as_ref());
                    reload(function, &kinds, shapes, &definitions, self.deprecated, &mut self.steps)
                }
            };
            match reloaded {
                Ok(reloaded) => {
                    let reloaded = Rc::new(reloaded);
                    loaded.add(hash, Rc::clone(&reloaded));
                    judged.push((key, reloaded));
                }
                Err(found) => *fault = Some(in_words(library, Extent::default(), &found)?),
            }
        }
        Ok(())
    }
}

/// That a release takes a function as it is, with the signature that it then has.
fn taken_by(digest: &Digest, release: usize) -> Option<(&Rc<OperationDefinition>, &Rc<Clear>)> {
    let judged = digest.judged.as_deref()?;
    Some((judged.definition.as_ref()?, judged.clear(release)?))
}

fn key(function: &FunctionIndex, definitions: &LoadDefinitions<'_>, registry: &Registry) -> Key {
    let kinds = function.kinds.iter().map(|kind| definitions.identity(&kind.operation));
    (kinds.collect(), registry.types())
}

/// The functions that attributes name; a name that no function of the library has is an error.
pub(super) fn named_functions(
    attributes: &Attributes,
    names: &FunctionNames,
) -> Result<Vec<u64>, String> {
    let mut found = Vec::new();
    let mut note = |name: Text<'_>| {
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
            AttributeValue::List(list) => list.functions().try_for_each(&mut note)?,
            AttributeValue::Function(name) => note(name)?,
            _ => {}
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

/// The order in which functions are loaded, or why there is none: as Python does it, the one that
/// became ready last comes first, and a name that comes twice counts twice.
fn order(
    functions: &[(u64, LibraryFunction)],
    unloaded: &[Unloaded],
) -> Result<Vec<usize>, FunctionFinding> {
    let mut callers: Vec<Vec<usize>> = vec![Vec::new(); unloaded.len()];
    let mut waiting: Vec<i64> = Vec::with_capacity(unloaded.len());
    for (position, function) in unloaded.iter().enumerate() {
        if let Some(finding) = function.find(|judged| judged.named.lost.as_ref()) {
            return Err(finding);
        }
        for named in &function.names {
            if let Some(callers) = callers.get_mut(*named) {
                callers.push(position);
            }
        }
        waiting.push(function.names.len() as i64);
    }
    let occurrences = (0_usize..).zip(functions).flat_map(|(position, (_, function))| {
        let last = (function.last_number != function.number).then_some(function.last_number);
        [Some(function.number), last].into_iter().flatten().map(move |at| (at, position))
    });
    let mut occurrences: Vec<(u32, usize)> = occurrences.collect();
    occurrences.sort_unstable();
    let ready = occurrences.iter().map(|(_, position)| *position);
    let mut ready: Vec<usize> = ready.filter(|one| waiting.get(*one) == Some(&0)).collect();
    let mut order = Vec::with_capacity(occurrences.len());
    let mut loaded = HashSet::new();
    while let Some(next) = ready.pop() {
        let has_all = |function: &Unloaded| function.names.iter().all(|one| loaded.contains(one));
        if let Some(function) = unloaded.get(next).filter(|function| !has_all(function)) {
            return Err(needs_itself(function));
        }
        loaded.insert(next);
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
    let left = unloaded.iter().enumerate().find(|(position, _)| !loaded.contains(position));
    // A name that comes twice and waits for others is ready only once.
    let twice = || {
        let mut twice = functions.iter().zip(unloaded).filter(|((_, function), unloaded)| {
            function.last_number != function.number && !unloaded.names.is_empty()
        });
        twice.next().map(|(_, unloaded)| unloaded)
    };
    match left.map(|(_, function)| function).or_else(twice) {
        None => Ok(order),
        Some(function) => Err(needs_itself(function)),
    }
}

fn needs_itself(function: &Unloaded) -> FunctionFinding {
    let finding = Finding::of(Part::Function, ImportFaultKind::Python);
    let finding = finding.with("it needs itself, at once or through others", "");
    FunctionFinding { function: function.place, finding }
}
