//! Functions as `tf.saved_model.load` leaves them: loaded into Python, and written out again.
//!
//! Each argument is one tensor of the type that is written, whatever its attributes say; each
//! result is what the function really returns; the attributes are the placeholders that are left in
//! it. A function that is imported brings along only those that it calls by their names, so that
//! one of these that calls a third by its name finds nobody.
//!
//! Knows functions that were loaded. It must never know the order in which they are.

use std::{
    cell::OnceCell,
    collections::{HashMap, HashSet},
    rc::Rc,
};

use super::{
    binding::BoundValue,
    called_bodies::{FunctionFinding, Library},
    digest::{Clear, ClearCall},
    instantiate::{BodyFinding, Definitions, Finding, misgiven},
};
use crate::artifact::{
    graph::{
        GraphError, ImportFault, ImportFaultKind,
        attributes::Attributes,
        fault::{BodyFaultKind, Part},
        function_names::FunctionNames,
        importer::bodies::in_words,
        index::{BodyCall, CallingNode, call_attributes},
        node_rules::{ElementType, NodeType},
        source::Extent,
    },
    ops::{
        ArgumentType, AttributeDefinition, DefinitionId, Operation, OperationDefinition,
        OperationList, Registry,
    },
};

/// Calls that are followed to find out whether a function has all that it needs, for all functions
/// of a library together: real ones have some thousand.
const MOST_STEPS: u64 = 1 << 24;

/// A call in a function.
#[derive(Clone, Debug)]
pub(super) struct ReloadedCall {
    /// The hash of the function's name.
    pub(super) function: u64,
    /// Whether the node's operation is the function itself.
    pub(super) direct: bool,
    /// How many tensors the node takes and gives.
    pub(super) tensors: (u64, u64),
    /// The number of the node.
    pub(super) node: u32,
    /// What is wrong with what the node gives to the function that it names as an attribute.
    pub(super) misgiven: Option<Rc<FunctionFinding>>,
}

impl ReloadedCall {
    /// What whoever builds the function finds of the call that calls this one.
    fn finding(&self, callee: &Reloaded) -> Option<Rc<FunctionFinding>> {
        let misgiven = self.misgiven.clone();
        misgiven.or_else(|| callee.call_finding(self.tensors).map(Rc::new))
    }
}

/// A function that was loaded, as one release sees it.
#[derive(Debug)]
pub(super) struct Reloaded {
    pub(super) place: Extent,
    /// Its signature; other functions and the graph still call it by its name.
    definition: Rc<OperationDefinition>,
    /// The same where somebody asks for an operation.
    signature: OnceCell<OperationList>,
    /// What a node takes and gives whose operation it is.
    pub(super) types: NodeType,
    /// How many tensors a call must take and give at least.
    pub(super) needs: (u64, u64),
    /// A node that has an attribute without a value, so that nobody can call the function.
    pub(super) unset: Option<BodyFinding>,
    pub(super) calls: Vec<ReloadedCall>,
}

impl Reloaded {
    /// A function in which a release finds nothing, with its signature.
    pub(super) fn clear(
        place: Extent,
        definition: &Rc<OperationDefinition>,
        clear: &Clear,
        definitions: &LoadDefinitions<'_>,
    ) -> Self {
        let mut types = NodeType::default();
        let (inputs, outputs) = (&definition.inputs, &definition.outputs);
        for (arguments, list) in [(inputs, &mut types.inputs), (outputs, &mut types.outputs)] {
            for argument in arguments {
                let ArgumentType::Fixed(data_type) = argument.element else { continue };
                list.push(ElementType::new(data_type, false), 1);
            }
        }
        let calls = clear.calls.iter().map(|ClearCall { body, tensors }| ReloadedCall {
            function: body.call.function,
            direct: body.call.direct,
            tensors: *tensors,
            node: body.node,
            misgiven: definitions.misgiven(body),
        });
        let needs = (types.inputs.len(), types.outputs.len());
        Self::new(place, Rc::clone(definition), types, needs, None, calls.collect())
    }

    pub(super) fn new(
        place: Extent,
        definition: Rc<OperationDefinition>,
        types: NodeType,
        needs: (u64, u64),
        unset: Option<BodyFinding>,
        calls: Vec<ReloadedCall>,
    ) -> Self {
        let signature = OnceCell::new();
        Self { place, definition, signature, types, needs, unset, calls }
    }

    /// Its signature.
    pub(super) fn operation(&self) -> Option<Operation<'_>> {
        let list = || OperationList::new([OperationDefinition::clone(&self.definition)]);
        self.signature.get_or_init(list).operation(&self.definition.name)
    }

    /// Whether it leaves something to whoever calls it.
    pub(super) fn is_open(&self) -> bool {
        !self.definition.attributes.is_empty()
    }

    fn with(&self, finding: BodyFinding) -> FunctionFinding {
        FunctionFinding { function: self.place, finding }
    }

    /// What is wrong with a call of so many tensors, whatever is in the function.
    pub(super) fn call_finding(&self, (inputs, outputs): (u64, u64)) -> Option<FunctionFinding> {
        let kind = if inputs < self.needs.0 {
            BodyFaultKind::FewInputs
        } else if outputs < self.needs.1 {
            BodyFaultKind::FewOutputs
        } else {
            return None;
        };
        Some(self.with(Finding::names(Part::Function, kind)))
    }

    /// That a call in it finds nobody of the name that is its operation.
    fn lost(&self, call: &ReloadedCall, callee: Option<&Self>) -> FunctionFinding {
        let mut finding = Finding::of(Part::Node(call.node), ImportFaultKind::UnknownOperation);
        finding.operation = callee.map_or(String::new(), |found| found.definition.name.clone());
        self.with(finding)
    }

    /// What is wrong with what a call gives for what the function leaves to it.
    pub(super) fn misgiven(
        &self,
        given: &Attributes,
        registry: &Registry,
    ) -> Option<FunctionFinding> {
        self.definition.attributes.iter().find_map(|attribute| {
            let AttributeDefinition { name, kind, .. } = attribute;
            let Some(value) = given.get(name) else { return self.ungiven() };
            Some(self.with(misgiven(name, *kind, &BoundValue::of(value), registry)?))
        })
    }

    /// That a call does not give what the function leaves to it.
    fn ungiven(&self) -> Option<FunctionFinding> {
        if !self.is_open() {
            return None;
        }
        let attributes = self.definition.attributes.iter().map(|one| one.name.clone()).collect();
        let kind = ImportFaultKind::AttributesMissing { attributes };
        Some(self.with(Finding::of(Part::Function, kind)))
    }
}

/// The functions that one release has loaded so far, by the hashes of their names.
#[derive(Debug, Default)]
pub(super) struct ReloadedLibrary {
    functions: HashMap<u64, Rc<Reloaded>>,
    /// What keeps each from being called where all of them are there.
    findings: HashMap<u64, Option<Rc<FunctionFinding>>>,
}

impl ReloadedLibrary {
    pub(super) fn get(&self, function: u64) -> Option<&Rc<Reloaded>> {
        self.functions.get(&function)
    }

    /// Adds a function whose callees were added before.
    pub(super) fn add(&mut self, function: u64, reloaded: Rc<Reloaded>) {
        let finding = self.finding(&reloaded, |_| false);
        self.findings.insert(function, finding);
        self.functions.insert(function, reloaded);
    }

    /// What keeps a function from being called whose callees were added before; `is_gone` says
    /// which of these are there under another name only.
    fn finding(
        &self,
        reloaded: &Reloaded,
        is_gone: impl Fn(u64) -> bool,
    ) -> Option<Rc<FunctionFinding>> {
        let own = reloaded.unset.clone().map(|finding| Rc::new(reloaded.with(finding)));
        own.or_else(|| {
            reloaded.calls.iter().find_map(|call| {
                let callee = self.functions.get(&call.function)?;
                if call.direct && is_gone(call.function) {
                    return Some(Rc::new(reloaded.lost(call, Some(callee))));
                }
                call.finding(callee).or_else(|| self.findings.get(&call.function)?.clone())
            })
        })
    }

    /// Says that functions were loaded a second time, under another name, of which `last` tells
    /// when the last time was; `order` is the one in which all were loaded for the first time.
    /// Those that call the first one by its name find nobody then.
    pub(super) fn rename(&mut self, last: &HashMap<u64, usize>, order: &[(usize, u64)]) {
        for (time, function) in order {
            let Some(reloaded) = self.functions.get(function).cloned() else { continue };
            let is_gone = |callee| last.get(&callee).is_some_and(|last| last > time);
            let finding = self.finding(&reloaded, is_gone);
            self.findings.insert(*function, finding);
        }
    }

    /// What a node of the graph finds that calls a function and takes and gives so many tensors, in
    /// a release.
    pub(super) fn fault(
        &self,
        library: Library<'_>,
        registry: &Registry,
        node: &CallingNode,
        tensors: (u64, u64),
    ) -> Result<Option<ImportFault>, GraphError> {
        if !node.call.inside {
            return Ok(None);
        }
        let Some(callee) = self.functions.get(&node.call.function) else { return Ok(None) };
        let mut found = None;
        if callee.is_open() {
            let (source, release) = (library.source, library.release);
            let given = call_attributes(source, node.place, node.call.direct, release)?;
            found = callee.misgiven(&given, registry).map(Rc::new);
        }
        let found = found
            .or_else(|| self.findings.get(&node.call.function).cloned().flatten())
            .or_else(|| callee.call_finding(tensors).map(Rc::new));
        found.map(|found| in_words(library, node.place, &found)).transpose()
    }
}

/// What a function sees of one release while it is loaded: the release, and the functions that were
/// loaded before it.
pub(super) struct LoadDefinitions<'a> {
    pub(super) names: &'a FunctionNames,
    pub(super) registry: &'a Registry,
    pub(super) loaded: &'a ReloadedLibrary,
    /// By the number of the node, what the function gives to those that it names as attributes and
    /// that leave something to their callers.
    pub(super) given: &'a HashMap<u32, Attributes>,
}

impl Definitions for LoadDefinitions<'_> {
    fn find(&self, name: &str) -> Option<Operation<'_>> {
        match self.names.find(name.as_bytes()) {
            Some(function) => self.loaded.get(function)?.operation(),
            None => self.registry.operation(name),
        }
    }

    fn registry(&self) -> &Registry {
        self.registry
    }
}

impl LoadDefinitions<'_> {
    /// The function of this name.
    pub(super) fn function(&self, name: &str) -> Option<&Rc<Reloaded>> {
        self.loaded.get(self.names.find(name.as_bytes())?)
    }

    /// What stands for an operation of this name: equal for what is equal.
    pub(super) fn identity(&self, name: &str) -> Option<(Option<DefinitionId>, usize)> {
        match self.function(name) {
            Some(function) => Some((None, Rc::as_ptr(function).addr())),
            None => Some((Some(self.find(name)?.definition_id()), 0)),
        }
    }

    /// What is wrong with what a call gives to the function that it names as an attribute.
    pub(super) fn misgiven_to(&self, call: &BodyCall) -> Option<FunctionFinding> {
        let callee = self.loaded.get(call.call.function).filter(|_| !call.call.direct)?;
        match self.given.get(&call.node) {
            Some(given) => callee.misgiven(given, self.registry),
            None => callee.ungiven(),
        }
    }

    /// The same, to be kept.
    pub(super) fn misgiven(&self, call: &BodyCall) -> Option<Rc<FunctionFinding>> {
        self.misgiven_to(call).map(Rc::new)
    }

    /// What a function finds that calls these by their names, and has nobody else along.
    pub(super) fn fault_of_called(
        &self,
        called: &[u64],
        steps: &mut u64,
    ) -> Option<FunctionFinding> {
        let there: HashSet<u64> = called.iter().copied().collect();
        let mut seen = HashSet::new();
        for function in called {
            let mut waiting = vec![*function];
            while let Some(next) = waiting.pop() {
                if !seen.insert(next) {
                    continue;
                }
                let Some(callee) = self.loaded.get(next) else { continue };
                if let Some(unset) = &callee.unset {
                    return Some(callee.with(unset.clone()));
                }
                for call in &callee.calls {
                    *steps = steps.saturating_add(1);
                    if *steps > MOST_STEPS {
                        return Some(callee.with(Finding::oversized()));
                    }
                    match (there.contains(&call.function), call.direct) {
                        (true, _) => {
                            let target = self.loaded.get(call.function)?;
                            if let Some(found) = call.finding(target) {
                                return Some(FunctionFinding::clone(&found));
                            }
                            waiting.push(call.function);
                        }
                        (false, true) => {
                            let target = self.loaded.get(call.function);
                            return Some(callee.lost(call, target.map(Rc::as_ref)));
                        }
                        (false, false) => {}
                    }
                }
            }
        }
        None
    }
}
