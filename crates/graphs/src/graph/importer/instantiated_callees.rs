//! Checks that the functions that nodes call can be built, for several releases at once.
//!
//! A function is built once per name, with the attributes of the first call; its callees are built
//! with it. Each body is read once, judged for every release, and dropped; its calls and its
//! diagnostic are kept.
//!
//! Depends on the calls between functions, but not on their other contents.

mod around;
mod diagnostics;
mod settle;

use std::{collections::HashSet, rc::Rc};

use self::{
    around::{Around, FirstCall, InnerCall, InstantiationResult, is_generic},
    diagnostics::DiagnosticTable,
};
use super::{
    binding::Binding,
    by_release::{ByRelease, are_one},
    call_order, count,
    function_memo::Library,
    function_summary::{FunctionSummary, TriviallyValidCall},
    instantiate::{Built, FunctionDiagnostic, InstantiationDiagnostic},
    signatures::Signatures,
};
use crate::graph::{
    GraphError,
    diagnostic::{BodyDiagnosticKind, Part},
    function_names::FunctionNames,
    growing,
    index::{BodyCall, CallingNode, FunctionIndex},
    node_signatures::LoaderProfile,
    release::{ReleaseId, Releases},
    source::Extent,
};

/// A function that is called.
struct InstantiatedCallee {
    built: Option<ByRelease<InstantiationResult>>,
    /// Its position in the library.
    position: u32,
    /// The end of its calls among those of all functions.
    calls: u32,
}

/// The functions that nodes of a graph call, directly or through others.
pub(in super::super) struct InstantiatedCallees<'c> {
    names: &'c FunctionNames,
    releases: Releases<'c>,
    callees: Vec<InstantiatedCallee>,
    /// The calls in them, one function after the other.
    calls: Vec<InnerCall>,
    /// The number of each function in `callees` plus 1, by its position in the library; 0 for one
    /// without a call.
    numbers: Vec<u32>,
    /// The diagnostic that keeps each function from being built.
    diagnostics: DiagnosticTable,
    /// Likewise for loaders that do not require shape functions, where it differs.
    lenient: Option<DiagnosticTable>,
    /// The result of the last function in which no release finds anything, shared with equal ones.
    trivially_valid: Option<Rc<InstantiationResult>>,
    /// The last other result, shared likewise.
    other_result: Option<Rc<InstantiationResult>>,
    order: CallOrder,
    /// True if one of the functions leaves an attribute to its callers.
    has_open: bool,
    /// True if the calls of a function were recorded in the order in which they are written.
    has_unordered: bool,
    /// True if the order of calls in one of the functions is undetermined.
    is_uncertain: bool,
    /// The same calls judged in another order; set only if the order is undetermined.
    other: Option<Box<InstantiatedCallees<'c>>>,
}

/// The order in which the calls in a function are processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallOrder {
    /// In the written order for functions that are valid in every release: the first call matters
    /// only if the called function leaves an attribute to its callers.
    AsWritten,
    /// In the order in which the importer reaches them.
    AsVisited,
    /// The reverse order where the order is undetermined.
    Turned,
}

impl<'l> InstantiatedCallees<'l> {
    /// Reads and judges the functions that `calls` call, which are in the order in which the
    /// importer visits them.
    pub(in super::super) fn read<'c>(
        library: Library<'l>,
        signatures: &mut Signatures,
        calls: impl Iterator<Item = &'c CallingNode> + Clone,
    ) -> Result<Self, GraphError> {
        let mut callees = Self::in_order(library, signatures, calls.clone(), CallOrder::AsWritten)?;
        if callees.has_open && callees.has_unordered {
            let calls = calls.clone();
            callees = Self::in_order(library, signatures, calls, CallOrder::AsVisited)?;
        }
        callees.settle();
        if callees.has_open && callees.is_uncertain {
            // A function that is refused in one of the orders is not reliable.
            let mut other = Self::in_order(library, signatures, calls, CallOrder::Turned)?;
            other.settle();
            callees.other = Some(Box::new(other));
        }
        Ok(callees)
    }

    fn in_order<'c>(
        library: Library<'l>,
        signatures: &mut Signatures,
        calls: impl Iterator<Item = &'c CallingNode> + Clone,
        order: CallOrder,
    ) -> Result<Self, GraphError> {
        let most = calls.clone().count().min(library.names.places());
        let mut callees = Self {
            names: library.names,
            releases: library.releases,
            callees: Vec::with_capacity(most),
            calls: Vec::new(),
            numbers: vec![0; library.names.places()],
            diagnostics: DiagnosticTable::default(),
            lenient: None,
            trivially_valid: None,
            other_result: None,
            order,
            has_open: false,
            has_unordered: false,
            is_uncertain: false,
            other: None,
        };
        for node in calls.filter(|node| node.call.inside) {
            let first = FirstCall {
                function: node.call.function,
                place: node.place,
                direct: node.call.direct,
                around: None,
            };
            let mut waiting = vec![first];
            while let Some(call) = waiting.pop() {
                if callees.position(call.function).is_none() {
                    callees.add(library, signatures, &call, &mut waiting)?;
                }
            }
        }
        Ok(callees)
    }

    /// Reads one function, judges it, and records its calls.
    fn add(
        &mut self,
        library: Library<'_>,
        signatures: &mut Signatures,
        call: &FirstCall,
        waiting: &mut Vec<FirstCall>,
    ) -> Result<(), GraphError> {
        let Some(place) = library.names.get(call.function).map(|function| function.place) else {
            return Ok(());
        };
        let Library { names, memo, .. } = library;
        let summary = memo.summary(library, place)?;
        let known = TriviallyValidCallee::of(&summary);
        if let Some(known) = known.filter(|known| self.order.takes(known.calls)) {
            self.add_trivially_valid(call, &known, waiting);
            return Ok(());
        }
        let function = memo.index(library, place)?;
        signatures.forget();
        let signature = signatures.read(library, call.function)?;
        for node_signature in &function.node_signatures {
            if let Some(called) = names.find(node_signature.operation.as_bytes()) {
                signatures.read(library, called)?;
            }
        }
        let name = function.signature.name.clone();
        let is_open = is_generic(&function);
        self.has_open |= is_open;
        let mut binding = if is_open { call.binding(library)? } else { Binding::default() };
        let Some(signature) = signature else { return Ok(()) };
        if call.direct
            && let Some(signature) = signature.operation(&name)
        {
            // The node of the call has the defaults of its operation, like any node.
            binding.complete(signature);
        }
        let around = Rc::new(Around { binding, signature, name });
        let built = around.judge(library, signatures, &function, &summary);
        let built = built.map(|_, built| Some(self.shared(built)));
        let built = ByRelease::of(built, |_| true, are_one);
        let mut known = HashSet::new();
        let inside = self.calls_inside(library, (&function, place))?;
        for inner in &inside {
            growing::push(&mut self.calls, around.inner(&function, inner, signatures));
        }
        // The first call must be popped first.
        let firsts = inside.into_iter().filter(|inner| {
            self.position(inner.call.function).is_none() && known.insert(inner.call.function)
        });
        let firsts: Vec<FirstCall> = firsts
            .map(|inner| FirstCall {
                function: inner.call.function,
                place: inner.place,
                direct: inner.call.direct,
                around: Some(Rc::clone(&around)),
            })
            .collect();
        waiting.extend(firsts.into_iter().rev());
        self.push(call.function, built);
        Ok(())
    }

    /// Adds a function whose calls are the last ones.
    fn push(&mut self, function: u64, built: Option<ByRelease<InstantiationResult>>) {
        let Some(position) = self.names.position(function) else { return };
        let calls = count(self.calls.len());
        let callee = InstantiatedCallee { built, position: count(position), calls };
        growing::push(&mut self.callees, callee);
        if let Some(number) = self.numbers.get_mut(position) {
            *number = count(self.callees.len());
        }
    }

    /// Returns the calls in a function.
    fn calls_of(&self, function: usize) -> &[InnerCall] {
        let end =
            |function: usize| self.callees.get(function).map_or(0, |callee| callee.calls as usize);
        let begin = function.checked_sub(1).map_or(0, end);
        self.calls.get(begin..end(function)).unwrap_or_default()
    }

    /// Returns a diagnostic in a function.
    fn with(
        &self,
        callee: &InstantiatedCallee,
        diagnostic: Rc<InstantiationDiagnostic>,
    ) -> Rc<FunctionDiagnostic> {
        let function = self.names.at(callee.position as usize);
        let function = function.map_or(Extent::default(), |(_, function)| function.place);
        Rc::new(FunctionDiagnostic { function, diagnostic })
    }

    /// Returns the number of a function in `callees`, by the hash of its name.
    fn position(&self, function: u64) -> Option<usize> {
        let number = *self.numbers.get(self.names.position(function)?)?;
        Some(number.checked_sub(1)? as usize)
    }

    /// Returns the calls in a function that the importer examines, in their order.
    fn calls_inside<'f>(
        &mut self,
        library: Library<'_>,
        (function, place): (&'f FunctionIndex, Extent),
    ) -> Result<Vec<&'f BodyCall>, GraphError> {
        let inside = function.calls.iter().filter(|inner| inner.call.inside).collect();
        let (mut inside, is_certain) = in_order(library, (function, place), inside)?;
        self.is_uncertain |= !is_certain;
        if !is_certain && self.order == CallOrder::Turned {
            inside.reverse();
        }
        Ok(inside)
    }

    /// Adds a function in which no release finds anything, with its calls.
    fn add_trivially_valid(
        &mut self,
        call: &FirstCall,
        known: &TriviallyValidCallee<'_>,
        waiting: &mut Vec<FirstCall>,
    ) {
        for inner in known.calls.iter().filter(|inner| inner.body.call.inside) {
            let (function, (inputs, outputs)) = (inner.body.call.function, inner.tensors);
            growing::push(&mut self.calls, InnerCall { function, inputs, outputs });
            self.has_unordered = true;
        }
        let mut seen = HashSet::new();
        let firsts = known.calls.iter().map(|inner| &inner.body).filter(|inner| {
            inner.call.inside
                && self.position(inner.call.function).is_none()
                && seen.insert(inner.call.function)
        });
        // The attributes that it passes to others do not depend on its caller.
        let firsts = firsts.map(|inner| FirstCall {
            function: inner.call.function,
            place: inner.place,
            direct: inner.call.direct,
            around: None,
        });
        let firsts: Vec<FirstCall> = firsts.collect();
        waiting.extend(firsts.into_iter().rev());
        let built = self.built_of(known.built);
        self.push(call.function, Some(ByRelease::Same(built)));
    }

    /// Returns the result of building a function in all releases, for the number of tensors that it
    /// takes and gives; shared with the function before if it is equal.
    fn built_of(&mut self, (inputs, outputs): (u64, u64)) -> Rc<InstantiationResult> {
        if let Some(known) = &self.trivially_valid
            && known
                .as_ref()
                .as_ref()
                .is_ok_and(|one| (one.inputs, one.outputs) == (inputs, outputs))
        {
            return Rc::clone(known);
        }
        let built = Rc::new(Ok(Built { inputs, outputs, ..Built::default() }));
        self.trivially_valid = Some(Rc::clone(&built));
        built
    }

    /// Returns the result of building a function in a release, shared as well.
    fn shared(&mut self, built: Rc<InstantiationResult>) -> Rc<InstantiationResult> {
        match built.as_ref() {
            Ok(Built { inputs, outputs, no_shape_function: None }) => {
                self.built_of((*inputs, *outputs))
            }
            _ => match &self.other_result {
                Some(known) if **known == *built => Rc::clone(known),
                _ => Rc::clone(self.other_result.insert(built)),
            },
        }
    }

    /// Returns the diagnostic of a call with these numbers of inputs and outputs, independent of
    /// the body.
    fn call_diagnostic(
        &self,
        function: u64,
        (inputs, outputs): (u64, u64),
        release: ReleaseId,
    ) -> Option<Rc<FunctionDiagnostic>> {
        let callee = self.callees.get(self.position(function)?)?;
        let built = callee.built(release)?.as_ref().as_ref().ok()?;
        let kind = if inputs < built.inputs {
            BodyDiagnosticKind::FewInputs
        } else if outputs < built.outputs {
            BodyDiagnosticKind::FewOutputs
        } else {
            return None;
        };
        Some(self.with(callee, InstantiationDiagnostic::names(Part::Function, kind).into()))
    }

    /// Returns the diagnostic of what keeps a loader from building the function that a node of the
    /// graph calls with this number of tensors.
    pub(in super::super) fn diagnostic(
        &self,
        node: &CallingNode,
        tensors: (u64, u64),
        profile: LoaderProfile,
    ) -> Option<Rc<FunctionDiagnostic>> {
        if !node.call.inside {
            return None;
        }
        let release = profile.release;
        let lenient = self.lenient.as_ref().filter(|_| !profile.needs_shape_functions());
        let diagnostics = lenient.unwrap_or(&self.diagnostics);
        let own = || diagnostics.get(self.position(node.call.function)?, release);
        // Its attributes may differ from those with which the body was built.
        let found = own().or_else(|| self.call_diagnostic(node.call.function, tensors, release));
        let other = || self.other.as_ref()?.diagnostic(node, tensors, profile);
        found.or_else(other)
    }
}

impl CallOrder {
    /// Returns true if the calls can be recorded without their visiting order.
    fn takes(self, calls: &[TriviallyValidCall]) -> bool {
        self == Self::AsWritten || !calls.iter().any(|inner| inner.body.call.inside)
    }
}

/// Returns the calls in a function in the order in which the importer reaches them, and true if
/// that order is deterministic.
fn in_order<'f>(
    library: Library<'_>,
    function: (&FunctionIndex, Extent),
    mut calls: Vec<&'f BodyCall>,
) -> Result<(Vec<&'f BodyCall>, bool), GraphError> {
    if calls.len() < 2 {
        return Ok((calls, true));
    }
    let (order, is_certain) = call_order::in_order(library, function)?;
    let mut places = vec![usize::MAX; order.len()];
    for (place, node) in order.into_iter().enumerate() {
        if let Some(known) = places.get_mut(node as usize) {
            *known = place;
        }
    }
    calls.sort_by_key(|inner| places.get(inner.node as usize).copied());
    Ok((calls, is_certain))
}

/// A function in which no release finds anything, and its calls.
struct TriviallyValidCallee<'d> {
    /// Number of tensors that a call must take and give.
    built: (u64, u64),
    calls: &'d [TriviallyValidCall],
}

impl<'d> TriviallyValidCallee<'d> {
    /// `None` if it needs the slow path for one of the releases, or differs between them.
    fn of(summary: &'d FunctionSummary) -> Option<Self> {
        let trivially_valid = summary.judged.as_deref()?.trivially_valid_in_all()?;
        let built = (summary.arguments.into(), summary.results.into());
        Some(Self { built, calls: &trivially_valid.calls })
    }
}

impl InstantiatedCallee {
    fn built(&self, release: ReleaseId) -> Option<&Rc<InstantiationResult>> {
        self.built.as_ref()?.get(release)
    }

    /// Returns the diagnostic in the function itself, without those in functions that it calls.
    fn own(
        &self,
        release: ReleaseId,
        wants_shape_functions: bool,
    ) -> Option<Rc<InstantiationDiagnostic>> {
        match self.built(release)?.as_ref() {
            Err(diagnostic) => Some(Rc::clone(diagnostic)),
            Ok(built) => {
                let lacking = built.no_shape_function.clone().filter(|_| wants_shape_functions);
                lacking.map(Rc::from)
            }
        }
    }
}
