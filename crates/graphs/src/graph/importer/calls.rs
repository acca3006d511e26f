//! Checks that the functions that nodes call can be built.
//!
//! TensorFlow's importer builds the body of a function when it reaches the first node that calls
//! it, and then the functions that the body calls; it does not build the other functions of the
//! library.
//!
//! Depends on the calls between functions, but not on their other contents.

use std::rc::Rc;

use super::{callers::Callers, count, function_memo::Library, function_summary::FunctionSummary};
use crate::graph::{
    BodyDiagnosticKind, GraphError,
    diagnostic::{Part, PartDiagnostic},
    function_names::FunctionNames,
    index::{Call, CallingNode, GraphIndex},
    source::Extent,
};

/// A diagnostic of a part of a function of the library.
#[derive(Clone, Copy, Debug)]
pub(super) struct FunctionPartDiagnostic {
    /// The extent of the function in the file.
    pub(super) function: Extent,
    pub(super) diagnostic: PartDiagnostic,
}

/// A node outside functions that calls a function that cannot be built.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallDiagnostic {
    /// The number of the node in the graph.
    pub(super) node: u32,
    pub(super) diagnostic: FunctionPartDiagnostic,
    /// True for a diagnostic of the function's signature, which the importer checks before the
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
    /// Returns the diagnostic of a call, inside or outside functions, independent of the body of
    /// the called function.
    fn call_diagnostic(&self, call: Call) -> Option<FunctionPartDiagnostic> {
        if call.direct
            && let Some(part) = self.summary.untyped
        {
            return Some(self.with(PartDiagnostic { part, kind: BodyDiagnosticKind::NoType }));
        }
        let few = call.outputs.is_some_and(|outputs| outputs < self.summary.results);
        let (part, kind) = (Part::Function, BodyDiagnosticKind::FewOutputs);
        few.then_some(self.with(PartDiagnostic { part, kind }))
    }

    /// Returns the diagnostic of a call outside functions, where the number of inputs is checked as
    /// well.
    fn node_diagnostic(&self, node: &CallingNode) -> Option<FunctionPartDiagnostic> {
        if node.inputs < self.summary.arguments {
            let (part, kind) = (Part::Function, BodyDiagnosticKind::FewInputs);
            return Some(self.with(PartDiagnostic { part, kind }));
        }
        self.call_diagnostic(node.call)
    }

    fn with(&self, diagnostic: PartDiagnostic) -> FunctionPartDiagnostic {
        FunctionPartDiagnostic { function: self.place, diagnostic }
    }
}

/// The functions that the nodes of a graph call, directly or through others, in the order of the
/// library.
pub(super) struct CalledFunctions<'l> {
    names: &'l FunctionNames,
    functions: Vec<Function>,
    /// The number of a function in `functions` plus 1, by its position in the library; 0 for one
    /// without a call.
    numbers: Vec<u32>,
}

impl<'l> CalledFunctions<'l> {
    /// Reads and judges one function after another.
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

    /// Returns the nodes that call a function that cannot be built, by their numbers, ascending.
    pub(super) fn diagnostics(&self, index: &GraphIndex) -> Vec<CallDiagnostic> {
        let by_function = self.diagnostic_by_function();
        let diagnostic_of = |node: &CallingNode| {
            let (position, function) = self.find(node.call.function)?;
            let (diagnostic, of_signature) = match function.node_diagnostic(node) {
                Some(diagnostic) => (diagnostic, true),
                None if node.call.inside => ((*by_function.get(position)?)?, false),
                None => return None,
            };
            Some(CallDiagnostic { node: node.number, diagnostic, of_signature })
        };
        index.calls().iter().filter_map(diagnostic_of).collect()
    }

    /// Returns the diagnostic that keeps each function from being built: its own, or that of a
    /// function that it calls.
    fn diagnostic_by_function(&self) -> Vec<Option<FunctionPartDiagnostic>> {
        let own = self.functions.iter().map(|function| {
            let called = |call: &Call| self.find(call.function)?.1.call_diagnostic(*call);
            let own = function.summary.diagnostic.map(|diagnostic| function.with(diagnostic));
            own.or_else(|| function.summary.calls.iter().find_map(called))
        });
        let mut diagnostics: Vec<Option<FunctionPartDiagnostic>> = own.collect();
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
            let found = called.find_map(|called| diagnostics.get(called).copied().flatten());
            if let Some(known) = diagnostics.get_mut(caller) {
                *known = known.or(found);
            }
        }
        // The remaining functions can reach themselves, or a function that can.
        for function in circular {
            let recursion =
                PartDiagnostic { part: Part::Function, kind: BodyDiagnosticKind::Recursion };
            if let (Some(known), Some(function)) =
                (diagnostics.get_mut(function as usize), self.functions.get(function as usize))
            {
                known.get_or_insert(function.with(recursion));
            }
        }
        diagnostics
    }
}
