//! Whether the functions that nodes call can be built, for several releases at once.
//!
//! A function is built once a name, with the attributes of the call that comes first; what it calls
//! is built with it. Each body is read once, judged for every release, and forgotten; what is kept
//! is whom it calls and what is wrong with it.
//!
//! Knows which function calls which. It must never know what else is in a function.

mod around;

use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
};

use self::around::{Around, FirstCall, is_generic};
use super::{
    binding::Binding,
    call_order,
    callers::Callers,
    digest::{ClearCall, Digest},
    function_memo::FunctionMemo,
    instantiate::{BodyFinding, Built, Definitions, Finding},
    signatures::Signatures,
};
use crate::artifact::{
    graph::{
        GraphError,
        fault::{BodyFaultKind, Part},
        function_names::FunctionNames,
        index::{BodyCall, Call, CallingNode, FunctionIndex},
        source::{Extent, Source},
    },
    ops::{Operation, Registry},
};

/// What is wrong with a function of the library.
#[derive(Clone, Debug)]
pub(in super::super) struct FunctionFinding {
    /// Where the function is in the file.
    pub(super) function: Extent,
    pub(super) finding: BodyFinding,
}

type Found = Option<Rc<FunctionFinding>>;

/// A call in a body.
#[derive(Clone, Copy, Debug)]
struct InnerCall {
    call: Call,
    inputs: u64,
    outputs: u64,
}

/// A function that is called.
struct CalledBody {
    place: Extent,
    /// By release.
    built: Vec<Rc<Result<Built, Rc<FunctionFinding>>>>,
    calls: Vec<InnerCall>,
}

/// The functions that nodes of a graph call, at once or through others.
pub(in super::super) struct CalledBodies {
    bodies: Vec<CalledBody>,
    /// By the hashes of their names.
    positions: HashMap<u64, usize>,
    /// By function and release, what keeps it from being built; first for loaders that want a shape
    /// function of each node, then for those that do not.
    findings: [Vec<Vec<Found>>; 2],
    order: CallOrder,
    /// Whether one of the functions leaves something to its callers.
    has_open: bool,
    /// Whether the calls of a function were taken in as they are written.
    has_unordered: bool,
    /// Whether of one of the functions nobody can tell in which order its calls come.
    is_uncertain: bool,
    /// The same in another order, where nobody can tell which one it is.
    other: Option<Box<CalledBodies>>,
}

/// In which order the calls in a function are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallOrder {
    /// Those in functions that are good in every release as they are written: which comes first
    /// decides something only where a function leaves something to its callers.
    AsWritten,
    /// As the importer comes to them.
    AsVisited,
    /// The other way round where nobody can tell.
    Turned,
}

/// The file, the library and the releases.
#[derive(Clone, Copy)]
pub(in super::super) struct Library<'a> {
    pub(in super::super) source: Source<'a>,
    pub(in super::super) names: &'a FunctionNames,
    /// What was read of the functions.
    pub(in super::super) memo: &'a FunctionMemo,
    pub(in super::super) registries: &'a [Registry],
    /// The GraphDef version of the release that reads the text form.
    pub(in super::super) release: i32,
    /// Whether the shapes of tensors are followed.
    pub(in super::super) follows_shapes: bool,
}

/// The definitions of one release.
pub(super) struct ReleaseDefinitions<'a> {
    pub(super) names: &'a FunctionNames,
    pub(super) signatures: &'a Signatures,
    pub(super) registry: &'a Registry,
}

impl Definitions for ReleaseDefinitions<'_> {
    fn find(&self, name: &str) -> Option<Operation<'_>> {
        match self.names.find(name.as_bytes()) {
            Some(function) => self.signatures.get(function)?.operation(name),
            None => self.registry.operation(name),
        }
    }

    fn registry(&self) -> &Registry {
        self.registry
    }
}

impl CalledBodies {
    /// Reads and judges what `calls` call, which are in the order in which the importer visits
    /// them.
    pub(in super::super) fn read<'c>(
        library: Library<'_>,
        signatures: &mut Signatures,
        calls: impl Iterator<Item = &'c CallingNode> + Clone,
    ) -> Result<Self, GraphError> {
        let mut bodies = Self::in_order(library, signatures, calls.clone(), CallOrder::AsWritten)?;
        if bodies.has_open && bodies.has_unordered {
            let calls = calls.clone();
            bodies = Self::in_order(library, signatures, calls, CallOrder::AsVisited)?;
        }
        bodies.settle(library.registries.len());
        if bodies.has_open && bodies.is_uncertain {
            // What is refused in one of the orders is not to be relied on.
            let mut other = Self::in_order(library, signatures, calls, CallOrder::Turned)?;
            other.settle(library.registries.len());
            bodies.other = Some(Box::new(other));
        }
        Ok(bodies)
    }

    fn in_order<'c>(
        library: Library<'_>,
        signatures: &mut Signatures,
        calls: impl Iterator<Item = &'c CallingNode>,
        order: CallOrder,
    ) -> Result<Self, GraphError> {
        let mut bodies = Self {
            bodies: Vec::new(),
            positions: HashMap::new(),
            findings: [Vec::new(), Vec::new()],
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
                if !bodies.positions.contains_key(&call.function) {
                    bodies.add(library, signatures, &call, &mut waiting)?;
                }
            }
        }
        Ok(bodies)
    }

    /// Reads one function, judges it, and says what it calls.
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
        let digest = memo.digest(library, place)?;
        let known = ClearBody::of(&digest, library.registries.len());
        if let Some(known) = known.filter(|known| self.order.takes(known.calls)) {
            self.add_clear(place, call, &known, waiting);
            return Ok(());
        }
        let function = memo.index(library, place)?;
        let signature = signatures.read(library, call.function)?;
        for kind in &function.kinds {
            if let Some(called) = names.find(kind.operation.as_bytes()) {
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
            // The node of the call has the defaults of its operation, as any node has.
            binding.complete(signature);
        }
        let around = Rc::new(Around { binding, signature, name });
        let built = around.judge(library, signatures, &function, (place, &digest));
        let mut known = HashSet::new();
        let inside = self.calls_inside(library, (&function, place))?;
        let calls = inside.iter().map(|inner| around.inner(&function, inner, signatures));
        let calls: Vec<InnerCall> = calls.collect();
        // The first call has to come off the stack first.
        let firsts = inside.into_iter().filter(|inner| {
            !self.positions.contains_key(&inner.call.function) && known.insert(inner.call.function)
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
        self.positions.insert(call.function, self.bodies.len());
        self.bodies.push(CalledBody { place, built, calls });
        Ok(())
    }

    /// The calls in a function that the importer looks into, in the order in which they come.
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

    /// Takes in a function in which no release finds anything, and says what it calls.
    fn add_clear(
        &mut self,
        place: Extent,
        call: &FirstCall,
        known: &ClearBody<'_>,
        waiting: &mut Vec<FirstCall>,
    ) {
        let calls = known.calls.iter().map(|inner| InnerCall {
            call: inner.body.call,
            inputs: inner.tensors.0,
            outputs: inner.tensors.1,
        });
        self.has_unordered |= known.calls.iter().any(|inner| inner.body.call.inside);
        let mut seen = HashSet::new();
        let firsts = known.calls.iter().map(|inner| &inner.body).filter(|inner| {
            inner.call.inside
                && !self.positions.contains_key(&inner.call.function)
                && seen.insert(inner.call.function)
        });
        // What it gives to others depends on nobody.
        let firsts = firsts.map(|inner| FirstCall {
            function: inner.call.function,
            place: inner.place,
            direct: inner.call.direct,
            around: None,
        });
        let firsts: Vec<FirstCall> = firsts.collect();
        waiting.extend(firsts.into_iter().rev());
        self.positions.insert(call.function, self.bodies.len());
        let built = vec![Rc::clone(&known.built); known.releases];
        self.bodies.push(CalledBody { place, built, calls: calls.collect() });
    }

    /// Finds out what keeps each function from being built: its own fault, or that of one that it
    /// calls.
    fn settle(&mut self, releases: usize) {
        let positions = &self.positions;
        let edges = self.bodies.iter().enumerate().flat_map(|(caller, body)| {
            let inside = body.calls.iter().filter(|inner| inner.call.inside);
            inside.filter_map(move |inner| Some((*positions.get(&inner.call.function)?, caller)))
        });
        let edges: Vec<_> = edges.collect();
        let (order, circular) = Callers::of(self.bodies.len(), edges).callees_first();
        let lacks = |built: &Rc<Result<Built, _>>| {
            built.as_ref().as_ref().is_ok_and(|built| built.no_shape_function.is_some())
        };
        let some_lack = self.bodies.iter().any(|body| body.built.iter().any(lacks));
        let strict = self.findings_of(releases, &order, &circular, true);
        let lenient = if some_lack {
            self.findings_of(releases, &order, &circular, false)
        } else {
            strict.clone()
        };
        self.findings = [strict, lenient];
    }

    fn findings_of(
        &self,
        releases: usize,
        order: &[usize],
        circular: &[usize],
        wants_shape_functions: bool,
    ) -> Vec<Vec<Found>> {
        let mut findings = vec![vec![None; releases]; self.bodies.len()];
        for function in order {
            self.find_in(*function, &mut findings, wants_shape_functions);
        }
        // Of functions that call each other, what is wrong with one is found by all that come to
        // it, before they come to themselves again.
        let mut waiting: Vec<usize> = circular.iter().rev().copied().collect();
        let callers = self.callers_in(circular);
        while let Some(function) = waiting.pop() {
            if self.find_in(function, &mut findings, wants_shape_functions) {
                waiting.extend(callers.get(&function).into_iter().flatten());
            }
        }
        for function in circular {
            let (Some(body), Some(found)) =
                (self.bodies.get(*function), findings.get_mut(*function))
            else {
                continue;
            };
            for found in found.iter_mut().filter(|found| found.is_none()) {
                *found = Some(body.recursion());
            }
        }
        findings
    }

    /// Among these functions, which ones call each.
    fn callers_in(&self, functions: &[usize]) -> HashMap<usize, Vec<usize>> {
        let mut callers: HashMap<usize, Vec<usize>> = HashMap::new();
        for caller in functions {
            let calls = self.bodies.get(*caller).map(|body| body.calls.as_slice());
            for inner in calls.unwrap_or_default().iter().filter(|inner| inner.call.inside) {
                if let Some(called) = self.positions.get(&inner.call.function) {
                    callers.entry(*called).or_default().push(*caller);
                }
            }
        }
        callers
    }

    /// Finds what keeps a function from being built, by release, as far as it is known of those
    /// that it calls; whether that is more than was known before.
    fn find_in(
        &self,
        function: usize,
        findings: &mut [Vec<Found>],
        wants_shape_functions: bool,
    ) -> bool {
        let Some(body) = self.bodies.get(function) else { return false };
        let releases = findings.get(function).map_or(0, Vec::len);
        let mut has_more = false;
        for release in 0..releases {
            let of = |function: usize| findings.get(function)?.get(release)?.clone();
            if of(function).is_some() {
                continue;
            }
            let called = |inner: &InnerCall| {
                let tensors = (inner.inputs, inner.outputs);
                self.call_finding(inner.call, tensors, release).or_else(|| {
                    let called = self.positions.get(&inner.call.function)?;
                    of(*called).filter(|_| inner.call.inside)
                })
            };
            let own = body.own(release, wants_shape_functions);
            let found = own.or_else(|| body.calls.iter().find_map(called));
            has_more |= found.is_some();
            if let Some(known) = findings.get_mut(function).and_then(|all| all.get_mut(release)) {
                *known = found;
            }
        }
        has_more
    }

    /// What is wrong with a call that has so many inputs and outputs, whatever is in the function.
    fn call_finding(&self, call: Call, (inputs, outputs): (u64, u64), release: usize) -> Found {
        if !call.inside {
            return None;
        }
        let body = self.bodies.get(*self.positions.get(&call.function)?)?;
        let built = body.built.get(release)?.as_ref().as_ref().ok()?;
        let kind = if inputs < built.inputs {
            BodyFaultKind::FewInputs
        } else if outputs < built.outputs {
            BodyFaultKind::FewOutputs
        } else {
            return None;
        };
        Some(body.with(Finding::names(Part::Function, kind)))
    }

    /// What keeps the importer of a release from building what a node of the graph calls that takes
    /// and gives so many tensors.
    pub(in super::super) fn finding(
        &self,
        node: &CallingNode,
        tensors: (u64, u64),
        release: usize,
        wants_shape_functions: bool,
    ) -> Found {
        if !node.call.inside {
            return None;
        }
        let findings = self.findings.get(usize::from(!wants_shape_functions))?;
        let own = || {
            let called = findings.get(*self.positions.get(&node.call.function)?)?;
            called.get(release)?.clone()
        };
        // Its attributes may be others than those that the body was built for.
        let found = own().or_else(|| self.call_finding(node.call, tensors, release));
        let other = || self.other.as_ref()?.finding(node, tensors, release, wants_shape_functions);
        found.or_else(other)
    }
}

impl CallOrder {
    /// Whether a function with these calls can be taken in without a look at where they are.
    fn takes(self, calls: &[ClearCall]) -> bool {
        self == Self::AsWritten || !calls.iter().any(|inner| inner.body.call.inside)
    }
}

/// The calls in a function in the order in which the importer comes to them, and whether that is
/// the same each time.
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

/// A function in which no release finds anything, and what it calls.
struct ClearBody<'d> {
    built: Rc<Result<Built, Rc<FunctionFinding>>>,
    calls: &'d [ClearCall],
    releases: usize,
}

impl<'d> ClearBody<'d> {
    /// `None` if it has to be looked at more closely for one of the releases, or is not the same in
    /// all of them.
    fn of(digest: &'d Digest, releases: usize) -> Option<Self> {
        let clear = digest.judged.as_deref()?.clear_in_all()?;
        let built = Rc::new(Ok(Built::of(digest)));
        Some(Self { built, calls: &clear.calls, releases })
    }
}

impl Built {
    /// A function in which a release finds nothing.
    fn of(digest: &Digest) -> Self {
        let (inputs, outputs) = (digest.arguments.into(), digest.results.into());
        Self { inputs, outputs, ..Self::default() }
    }
}

impl CalledBody {
    fn with(&self, finding: BodyFinding) -> Rc<FunctionFinding> {
        Rc::new(FunctionFinding { function: self.place, finding })
    }

    /// What is wrong with the function itself.
    fn own(&self, release: usize, wants_shape_functions: bool) -> Found {
        match self.built.get(release)?.as_ref() {
            Err(finding) => Some(Rc::clone(finding)),
            Ok(built) => {
                let lacking = built.no_shape_function.clone().filter(|_| wants_shape_functions);
                lacking.map(|finding| self.with(finding))
            }
        }
    }

    fn recursion(&self) -> Rc<FunctionFinding> {
        self.with(Finding::names(Part::Function, BodyFaultKind::Recursion))
    }
}
