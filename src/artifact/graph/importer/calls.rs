//! Whether the functions that nodes call can be built.
//!
//! TensorFlow's importer builds the body of a function when it comes to the first node that calls
//! it, and then what that body calls; the other functions of the library it leaves alone.
//!
//! Knows which function calls which. It must never know what else is in a function.

use std::{
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

use super::{called_bodies::Library, callers::Callers, digest::Digest};
use crate::artifact::graph::{
    BodyFaultKind, GraphError,
    fault::{Part, PartFault},
    index::{Call, CallingNode, GraphIndex},
    source::Extent,
};

/// What is wrong with a function of the library.
#[derive(Clone, Copy, Debug)]
pub(super) struct FunctionFault {
    /// Where the function is in the file.
    pub(super) function: Extent,
    pub(super) fault: PartFault,
}

/// A node outside of functions that calls a function that cannot be built.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallFault {
    /// The number of the node in the graph.
    pub(super) node: u32,
    pub(super) fault: FunctionFault,
    /// Whether it is one of the function's signature, which the importer looks at before it asks
    /// whether the function is deprecated.
    pub(super) of_signature: bool,
}

/// A function that is called.
#[derive(Debug)]
struct Function {
    place: Extent,
    /// The hash of its name.
    name: u64,
    digest: Rc<Digest>,
}

impl Function {
    /// What is wrong with a call of it, whatever is in it.
    fn call_fault(&self, call: Call) -> Option<FunctionFault> {
        if call.direct
            && let Some(part) = self.digest.untyped
        {
            return Some(self.with(PartFault { part, kind: BodyFaultKind::NoType }));
        }
        let few = call.outputs.is_some_and(|outputs| outputs < self.digest.results);
        let (part, kind) = (Part::Function, BodyFaultKind::FewOutputs);
        few.then_some(self.with(PartFault { part, kind }))
    }

    /// What is wrong with a node outside of functions that calls it, whatever is in it.
    fn node_fault(&self, node: &CallingNode) -> Option<FunctionFault> {
        if node.inputs < self.digest.arguments {
            let (part, kind) = (Part::Function, BodyFaultKind::FewInputs);
            return Some(self.with(PartFault { part, kind }));
        }
        self.call_fault(node.call)
    }

    fn with(&self, fault: PartFault) -> FunctionFault {
        FunctionFault { function: self.place, fault }
    }
}

/// The functions that the nodes of a graph call, at once or through others, in the order of the
/// library.
#[derive(Debug)]
pub(super) struct CalledFunctions {
    functions: Vec<Function>,
    /// By the hashes of their names.
    positions: HashMap<u64, usize>,
}

impl CalledFunctions {
    /// Reads and judges one function after the other.
    pub(super) fn read(library: Library<'_>, index: &GraphIndex) -> Result<Self, GraphError> {
        let mut found = BTreeMap::new();
        let mut waiting: Vec<u64> = index.calls().iter().map(|node| node.call.function).collect();
        while let Some(name) = waiting.pop() {
            let Some(function) = library.names.get(name) else { continue };
            if found.contains_key(&function.number) {
                continue;
            }
            let place = function.place;
            let digest = library.memo.digest(library, place)?;
            waiting.extend(digest.calls.iter().map(|call| call.function));
            found.insert(function.number, Function { place, name, digest });
        }
        let functions: Vec<_> = found.into_values().collect();
        let named = functions.iter().enumerate();
        let positions = named.map(|(position, function)| (function.name, position)).collect();
        Ok(Self { functions, positions })
    }

    fn find(&self, name: u64) -> Option<(usize, &Function)> {
        let position = *self.positions.get(&name)?;
        Some((position, self.functions.get(position)?))
    }

    /// The nodes that call a function that cannot be built, by their numbers, ascending.
    pub(super) fn faults(&self, index: &GraphIndex) -> Vec<CallFault> {
        let by_function = self.fault_by_function();
        let fault_of = |node: &CallingNode| {
            let (position, function) = self.find(node.call.function)?;
            let (fault, of_signature) = match function.node_fault(node) {
                Some(fault) => (fault, true),
                None if node.call.inside => ((*by_function.get(position)?)?, false),
                None => return None,
            };
            Some(CallFault { node: node.number, fault, of_signature })
        };
        index.calls().iter().filter_map(fault_of).collect()
    }

    /// What keeps each function from being built: its own fault or one of a function that it calls.
    fn fault_by_function(&self) -> Vec<Option<FunctionFault>> {
        let own = self.functions.iter().map(|function| {
            let called = |call: &Call| self.find(call.function)?.1.call_fault(*call);
            let own = function.digest.fault.map(|fault| function.with(fault));
            own.or_else(|| function.digest.calls.iter().find_map(called))
        });
        let mut faults: Vec<Option<FunctionFault>> = own.collect();
        let calls = self.functions.iter().enumerate().flat_map(|(caller, function)| {
            let inside = function.digest.calls.iter().filter(|call| call.inside);
            inside.filter_map(move |call| Some((self.find(call.function)?.0, caller)))
        });
        let (order, circular) = Callers::of(self.functions.len(), calls.collect()).callees_first();
        for caller in order.into_iter().chain(circular.iter().copied()) {
            let Some(function) = self.functions.get(caller) else { continue };
            let inside = function.digest.calls.iter().filter(|call| call.inside);
            let mut called = inside.filter_map(|call| Some(self.find(call.function)?.0));
            let found = called.find_map(|called| faults.get(called).copied().flatten());
            if let Some(known) = faults.get_mut(caller) {
                *known = known.or(found);
            }
        }
        // What is left can reach itself, or a function that can.
        for function in circular {
            let recursion = PartFault { part: Part::Function, kind: BodyFaultKind::Recursion };
            if let (Some(known), Some(function)) =
                (faults.get_mut(function), self.functions.get(function))
            {
                known.get_or_insert(function.with(recursion));
            }
        }
        faults
    }
}
