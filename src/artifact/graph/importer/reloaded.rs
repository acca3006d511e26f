//! Functions as `tf.saved_model.load` leaves them: loaded into Python, and written out again.
//!
//! Each argument is one tensor of the type that is written, whatever its attributes say; each result
//! is what the function really returns; the attributes are the placeholders that are left in it.
//! A function that is imported brings along only those that it calls by their names, so that one of
//! these that calls a third by its name finds nobody.
//!
//! Knows functions that were loaded. It must never know the order in which they are.

use std::{
    cell::OnceCell,
    collections::{HashMap, HashSet},
    rc::Rc,
};

use super::{
    called_bodies::{FunctionFinding, Library},
    digest::{Clear, ClearCall},
    instantiate::{BodyFinding, Definitions, Finding},
};
use crate::artifact::{
    graph::{
        GraphError, ImportFault, ImportFaultKind,
        fault::{BodyFaultKind, Part},
        function_names::FunctionNames,
        importer::bodies::in_words,
        index::{CallingNode, call_attributes},
        node_rules::{ElementType, NodeType},
        source::Extent,
    },
    ops::{ArgumentType, DefinitionId, Operation, OperationDefinition, OperationList, Registry},
};

/// Calls that are followed to find out whether a function has all that it needs, for all functions
/// of a library together: real ones have some thousand.
const MOST_STEPS: u64 = 1 << 24;

/// A call in a function.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReloadedCall {
    /// The hash of the function's name.
    pub(super) function: u64,
    /// Whether the node's operation is the function itself.
    pub(super) direct: bool,
    /// How many tensors the node takes and gives.
    pub(super) tensors: (u64, u64),
    /// The number of the node.
    pub(super) node: u32,
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
    /// The names of its attributes: those that the call must give.
    pub(super) attributes: Vec<String>,
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
        let attributes = definition.attributes.iter().map(|one| one.name.clone()).collect();
        let signature = OnceCell::new();
        Self { place, definition, signature, types, needs, attributes, unset, calls }
    }

    /// Its signature.
    pub(super) fn operation(&self) -> Option<Operation<'_>> {
        let list = || OperationList::new([OperationDefinition::clone(&self.definition)]);
        self.signature.get_or_init(list).operation(&self.definition.name)
    }

    fn with(&self, finding: BodyFinding) -> FunctionFinding {
        FunctionFinding { function: self.place, finding }
    }

    /// What is wrong with a call of so many tensors, whatever is in the function.
    fn call_finding(&self, (inputs, outputs): (u64, u64)) -> Option<FunctionFinding> {
        let kind = if inputs < self.needs.0 {
            BodyFaultKind::FewInputs
        } else if outputs < self.needs.1 {
            BodyFaultKind::FewOutputs
        } else {
            return None;
        };
        Some(self.with(Finding::names(Part::Function, kind)))
    }

    /// That a call does not give what the function leaves to it.
    fn ungiven(&self) -> Option<FunctionFinding> {
        if self.attributes.is_empty() {
            return None;
        }
        let attributes = self.attributes.clone();
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
        let own = reloaded.unset.clone().map(|finding| Rc::new(reloaded.with(finding)));
        let finding = own.or_else(|| {
            reloaded.calls.iter().find_map(|call| {
                let callee = self.functions.get(&call.function)?;
                let ungiven = || callee.ungiven().filter(|_| !call.direct);
                let found = ungiven().or_else(|| callee.call_finding(call.tensors));
                found.map(Rc::new).or_else(|| self.findings.get(&call.function)?.clone())
            })
        });
        self.findings.insert(function, finding);
        self.functions.insert(function, reloaded);
    }

    /// What a node of the graph finds that calls a function and takes and gives so many tensors.
    pub(super) fn fault(
        &self,
        library: Library<'_>,
        node: &CallingNode,
        tensors: (u64, u64),
    ) -> Result<Option<ImportFault>, GraphError> {
        if !node.call.inside {
            return Ok(None);
        }
        let Some(callee) = self.functions.get(&node.call.function) else { return Ok(None) };
        let mut found = self.findings.get(&node.call.function).cloned().flatten();
        if !callee.attributes.is_empty() && !node.call.direct {
            let (source, release) = (library.source, library.release);
            let given = call_attributes(source, node.place, false, release)?;
            if callee.attributes.iter().any(|name| given.get(name).is_none()) {
                found = callee.ungiven().map(Rc::new);
            }
        }
        let found = found.or_else(|| callee.call_finding(tensors).map(Rc::new));
        found.map(|found| in_words(library, node.place, &found)).transpose()
    }
}

/// What a function sees of one release while it is loaded: the release, and the functions that were
/// loaded before it.
pub(super) struct LoadDefinitions<'a> {
    pub(super) names: &'a FunctionNames,
    pub(super) registry: &'a Registry,
    pub(super) loaded: &'a ReloadedLibrary,
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
                        (true, direct) => {
                            let target = self.loaded.get(call.function)?;
                            let ungiven = || target.ungiven().filter(|_| !direct);
                            let found = ungiven().or_else(|| target.call_finding(call.tensors));
                            if found.is_some() {
                                return found;
                            }
                            waiting.push(call.function);
                        }
                        (false, true) => {
                            let kind = ImportFaultKind::UnknownOperation;
                            let mut finding = Finding::of(Part::Node(call.node), kind);
                            let target = self.loaded.get(call.function);
                            finding.operation =
                                target.map_or(String::new(), |found| found.definition.name.clone());
                            return Some(callee.with(finding));
                        }
                        (false, false) => {}
                    }
                }
            }
        }
        None
    }
}
