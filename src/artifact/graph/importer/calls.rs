//! Whether the functions that nodes call can be built.
//!
//! TensorFlow's importer builds the body of a function when it comes to the first node that calls
//! it, and then what that body calls; the other functions of the library it leaves alone.
//!
//! Knows which function calls which. It must never know what else is in a function.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{body, count};
use crate::artifact::graph::{
    BodyFaultKind, GraphError,
    fault::{Part, PartFault},
    function_names::FunctionNames,
    index::{Call, CallingNode, FunctionIndex, GraphIndex},
    source::{Extent, Source},
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

/// What is known of a function once its index was looked at.
#[derive(Debug)]
struct Function {
    place: Extent,
    /// The hash of its name.
    name: u64,
    fault: Option<PartFault>,
    /// The first argument or result without a type.
    untyped: Option<Part>,
    arguments: u32,
    results: u32,
    calls: Vec<Call>,
}

impl Function {
    fn of(place: Extent, name: u64, index: FunctionIndex) -> Self {
        let mut known = HashSet::new();
        Self {
            place,
            name,
            fault: body::first_fault(&index),
            untyped: body::untyped(&index),
            arguments: count(index.arguments.len()),
            results: count(index.results.len()),
            calls: index.calls.into_iter().filter(|call| known.insert(*call)).collect(),
        }
    }

    /// What is wrong with a call of it, whatever is in it.
    fn call_fault(&self, call: Call) -> Option<FunctionFault> {
        if call.direct
            && let Some(part) = self.untyped
        {
            return Some(self.with(PartFault { part, kind: BodyFaultKind::NoType }));
        }
        let few = call.outputs.is_some_and(|outputs| outputs < self.results);
        let (part, kind) = (Part::Function, BodyFaultKind::FewOutputs);
        few.then_some(self.with(PartFault { part, kind }))
    }

    /// What is wrong with a node outside of functions that calls it, whatever is in it.
    fn node_fault(&self, node: &CallingNode) -> Option<FunctionFault> {
        if node.inputs < self.arguments {
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
    pub(super) fn read(
        source: Source<'_>,
        index: &GraphIndex,
        names: &FunctionNames,
        release: i32,
    ) -> Result<Self, GraphError> {
        let mut found = BTreeMap::new();
        let mut waiting: Vec<u64> = index.calls().iter().map(|node| node.call.function).collect();
        while let Some(name) = waiting.pop() {
            let Some(function) = names.get(name) else { continue };
            if found.contains_key(&function.number) {
                continue;
            }
            let body = FunctionIndex::read(source, function.place, names, release)?;
            let body = Function::of(function.place, name, body);
            waiting.extend(body.calls.iter().map(|call| call.function));
            found.insert(function.number, body);
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
        let mut callers = Callers::of(self);
        let own = self.functions.iter().map(|function| {
            let called = |call: &Call| self.find(call.function)?.1.call_fault(*call);
            let own = function.fault.map(|fault| function.with(fault));
            own.or_else(|| function.calls.iter().find_map(called))
        });
        let mut faults: Vec<Option<FunctionFault>> = own.collect();
        while let Some(called) = callers.known.pop() {
            let fault = faults.get(called).copied().flatten();
            let edges = callers.of_function(called);
            for caller in edges {
                if let Some(known) = faults.get_mut(caller) {
                    *known = known.or(fault);
                }
                callers.settle(caller);
            }
        }
        // What still waits can reach itself, or a function that can.
        let unsettled = callers.waiting.iter().zip(&self.functions).zip(&mut faults);
        for ((_, function), fault) in unsettled.filter(|((waiting, _), _)| **waiting > 0) {
            let (part, kind) = (Part::Function, BodyFaultKind::Recursion);
            fault.get_or_insert(function.with(PartFault { part, kind }));
        }
        faults
    }
}

/// Which functions wait for which to be judged.
struct Callers {
    /// Called and caller, ascending.
    edges: Vec<(usize, usize)>,
    /// How many of the functions that it calls each one waits for.
    waiting: Vec<u32>,
    /// Functions that wait for none, the next one last.
    known: Vec<usize>,
}

impl Callers {
    fn of(functions: &CalledFunctions) -> Self {
        let mut edges = Vec::new();
        let mut waiting = Vec::new();
        for (caller, function) in functions.functions.iter().enumerate() {
            let inside = function.calls.iter().filter(|call| call.inside);
            let called = inside.filter_map(|call| Some(functions.find(call.function)?.0));
            let before = edges.len();
            edges.extend(called.map(|called| (called, caller)));
            waiting.push(count(edges.len() - before));
        }
        edges.sort_unstable();
        let known = (0_usize..).zip(&waiting).filter(|(_, waiting)| **waiting == 0);
        let known = known.map(|(function, _)| function).collect();
        Self { edges, waiting, known }
    }

    /// The functions that call one, as often as they do.
    fn of_function(&self, called: usize) -> Vec<usize> {
        let from = self.edges.partition_point(|edge| edge.0 < called);
        let edges = self.edges.get(from..).unwrap_or_default().iter();
        edges.take_while(|edge| edge.0 == called).map(|edge| edge.1).collect()
    }

    /// One of the functions that `caller` waits for is judged.
    fn settle(&mut self, caller: usize) {
        if let Some(waiting) = self.waiting.get_mut(caller) {
            *waiting -= 1;
            if *waiting == 0 {
                self.known.push(caller);
            }
        }
    }
}
