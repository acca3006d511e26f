//! Checks that the functions that nodes call can be built.
//!
//! TensorFlow's importer builds the body of a function when it comes to the first node that calls
//! it, and then what that body calls; the other functions of the library it leaves alone.
//!
//! Knows which function calls which. It must never know what else is in a function.

use std::rc::Rc;

use super::{
    callers::Callers, count, function_summary::FunctionSummary, instantiated_callees::Library,
};
use crate::graph::{
    BodyFaultKind, GraphError,
    fault::{Part, PartFault},
    function_names::FunctionNames,
    index::{Call, CallingNode, GraphIndex},
    source::Extent,
};

/// A fault in a function of the library.
#[derive(Clone, Copy, Debug)]
pub(super) struct FunctionFault {
    /// The extent of the function in the file.
    pub(super) function: Extent,
    pub(super) fault: PartFault,
}

/// A node outside of functions that calls a function that cannot be built.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallFault {
    /// The number of the node in the graph.
    pub(super) node: u32,
    pub(super) fault: FunctionFault,
    /// True for a fault of the function's signature, which the importer checks before the
    /// function's deprecation.
    pub(super) of_signature: bool,
}

/// A function that is called.
#[derive(Debug)]
struct Function {
    place: Extent,
    summary: Rc<FunctionSummary>,
}

impl Function {
    /// The fault of a call, in a function or outside of functions, whatever the called function
    /// contains.
    fn call_fault(&self, call: Call) -> Option<FunctionFault> {
        if call.direct
            && let Some(part) = self.summary.untyped
        {
            return Some(self.with(PartFault { part, kind: BodyFaultKind::NoType }));
        }
        let few = call.outputs.is_some_and(|outputs| outputs < self.summary.results);
        let (part, kind) = (Part::Function, BodyFaultKind::FewOutputs);
        few.then_some(self.with(PartFault { part, kind }))
    }

    /// The fault of a call outside of functions, where the number of inputs is checked as well.
    fn node_fault(&self, node: &CallingNode) -> Option<FunctionFault> {
        if node.inputs < self.summary.arguments {
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
pub(super) struct CalledFunctions<'l> {
    names: &'l FunctionNames,
    functions: Vec<Function>,
    /// By its position in the library, the number of a function in `functions`, from 1 on; 0 for
    /// one without a call.
    numbers: Vec<u32>,
}

impl<'l> CalledFunctions<'l> {
    /// Reads and judges one function after the other.
    pub(super) fn read(library: Library<'l>, index: &GraphIndex) -> Result<Self, GraphError> {
        let Library { names, memo, .. } = library;
        let mut numbers = vec![0; names.places()];
        let mut waiting: Vec<u64> = index.calls().iter().map(|node| node.call.function).collect();
        while let Some(name) = waiting.pop() {
            let Some(position) = names.position(name) else { continue };
            let (Some((_, function)), Some(number)) =
                (names.at(position), numbers.get_mut(position))
            else {
                continue;
            };
            if *number == 0 {
                *number = 1;
                let summary = memo.summary(library, function.place)?;
                waiting.extend(summary.calls.iter().map(|call| call.function));
            }
        }
        let called = numbers.iter().filter(|number| **number > 0).count();
        let mut functions = Vec::with_capacity(called);
        for (position, number) in numbers.iter_mut().enumerate().filter(|(_, one)| **one > 0) {
            if let Some((_, function)) = names.at(position) {
                let place = function.place;
                functions.push(Function { place, summary: memo.summary(library, place)? });
                *number = count(functions.len());
            }
        }
        Ok(Self { names, functions, numbers })
    }

    fn find(&self, name: u64) -> Option<(usize, &Function)> {
        let number = *self.numbers.get(self.names.position(name)?)?;
        let number = number.checked_sub(1)? as usize;
        Some((number, self.functions.get(number)?))
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

    /// The fault that keeps each function from being built: its own, or that of a function that it
    /// calls.
    fn fault_by_function(&self) -> Vec<Option<FunctionFault>> {
        let own = self.functions.iter().map(|function| {
            let called = |call: &Call| self.find(call.function)?.1.call_fault(*call);
            let own = function.summary.fault.map(|fault| function.with(fault));
            own.or_else(|| function.summary.calls.iter().find_map(called))
        });
        let mut faults: Vec<Option<FunctionFault>> = own.collect();
        let calls = self.functions.iter().enumerate().flat_map(|(caller, function)| {
            let inside = function.summary.calls.iter().filter(|call| call.inside);
            inside.filter_map(move |call| Some((count(self.find(call.function)?.0), count(caller))))
        });
        let (order, circular) = Callers::of(self.functions.len(), calls.collect()).callees_first();
        for caller in order.into_iter().chain(circular.iter().copied()) {
            let caller = caller as usize;
            let Some(function) = self.functions.get(caller) else { continue };
            let inside = function.summary.calls.iter().filter(|call| call.inside);
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
                (faults.get_mut(function as usize), self.functions.get(function as usize))
            {
                known.get_or_insert(function.with(recursion));
            }
        }
        faults
    }
}
