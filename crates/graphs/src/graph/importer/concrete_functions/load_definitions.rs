//! The definitions that a function sees while `tf.saved_model.load` loads it.
//!
//! Depends on one release, but not on the order of loading.

use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
};

use super::{
    super::{
        function_memo::Library,
        instantiate::{Definitions, FunctionDiagnostic, InstantiationDiagnostic},
    },
    ConcreteFunction, ConcreteFunctionsOfRelease,
};
use crate::{
    graph::{
        GraphError,
        attributes::Attributes,
        function_names::FunctionNames,
        index::{BodyCall, FunctionIndex},
    },
    ops::{DefinitionId, Operation, Registry},
};

/// Limit on the calls that are followed to find out if a function has all that it needs, for all
/// functions of a library together: real ones have some thousand.
const MOST_STEPS: u64 = 1 << 24;

/// The definitions that a function sees in one release while it is loaded: those of the release,
/// and the functions that were loaded before it.
pub(in super::super) struct LoadDefinitions<'a> {
    pub(in super::super) names: &'a FunctionNames,
    pub(in super::super) registry: &'a Registry,
    pub(in super::super) loaded: ConcreteFunctionsOfRelease<'a, 'a>,
    /// The values that the function passes to functions in attributes that leave something to their
    /// callers, by the number of the node.
    pub(in super::super) given: &'a HashMap<u32, Attributes>,
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
    /// Reads the signatures of the functions that nodes of a function have as their operations.
    pub(in super::super) fn read_functions(
        &self,
        library: Library<'_>,
        function: &FunctionIndex,
    ) -> Result<(), GraphError> {
        let functions = function
            .node_signatures
            .iter()
            .filter_map(|signature| self.function(&signature.operation));
        functions.into_iter().try_for_each(|function| function.read_definition(library))
    }

    /// Returns the function of this name.
    pub(in super::super) fn function(&self, name: &str) -> Option<&Rc<ConcreteFunction>> {
        self.loaded.get(self.names.find(name.as_bytes())?)
    }

    /// Returns the identity of an operation of this name: equal for equal definitions.
    pub(in super::super) fn identity(&self, name: &str) -> Option<(Option<DefinitionId>, usize)> {
        match self.function(name) {
            Some(function) => Some((None, Rc::as_ptr(function).addr())),
            None => Some((Some(self.find(name)?.definition_id()), 0)),
        }
    }

    /// Returns the mismatch of an argument that a call gives to the function that it names as an
    /// attribute.
    pub(in super::super) fn wrong_binding_of(&self, call: &BodyCall) -> Option<FunctionDiagnostic> {
        let callee = self.loaded.get(call.call.function).filter(|_| !call.call.direct)?;
        match self.given.get(&call.node) {
            Some(given) => callee.wrong_binding(given, self.registry),
            None => callee.ungiven(),
        }
    }

    /// Returns such a mismatch in the form that is kept.
    pub(in super::super) fn wrong_binding(
        &self,
        call: &BodyCall,
    ) -> Option<Rc<FunctionDiagnostic>> {
        self.wrong_binding_of(call).map(Rc::new)
    }

    /// Returns the diagnostic of a function that calls these by name, and brings no other functions
    /// along.
    pub(in super::super) fn diagnostic_of_called(
        &self,
        called: &[u64],
        steps: &mut u64,
    ) -> Option<FunctionDiagnostic> {
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
                for call in callee.calls.iter() {
                    *steps = steps.saturating_add(1);
                    if *steps > MOST_STEPS {
                        return Some(callee.with(InstantiationDiagnostic::oversized()));
                    }
                    match (there.contains(&call.function), call.direct) {
                        (true, _) => {
                            let target = self.loaded.get(call.function)?;
                            if let Some(found) = call.diagnostic(target) {
                                return Some(FunctionDiagnostic::clone(&found));
                            }
                            waiting.push(call.function);
                        }
                        (false, true) => {
                            let target = self.loaded.get(call.function);
                            let library = self.loaded.functions.library;
                            return Some(callee.unresolved_call(
                                library,
                                call,
                                target.map(Rc::as_ref),
                            ));
                        }
                        (false, false) => {}
                    }
                }
            }
        }
        None
    }
}
