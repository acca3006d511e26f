//! Summaries of functions that were read: their diagnostics in any release, the functions that they
//! call and name, and the releases that certainly accept them.
//!
//! A function in TensorFlow's usual encoding is judged by its node signatures and the kinds of
//! edges between them, of which there are few, in one pass over its nodes for all releases. Other
//! functions are not judged here.
//!
//! Depends on one function, but not on the library or the callers.

mod canonical_body;
mod unequal;

use std::{collections::HashSet, rc::Rc};

use self::canonical_body::{CanonicalBody, Edges};
pub(super) use self::unequal::{ComparedFunction, Unequal};

use super::{
    body,
    by_release::{ByRelease, are_one},
    count,
    instantiate::{BoxedDiagnostic, InstantiationDiagnostic, numbered},
    reexport::{Named, named_by},
    signature_facts::{FactsPerRelease, KnownSignatures, SignatureFacts},
};
use crate::{
    graph::{
        diagnostic::{BodyDiagnosticKind, Part, PartDiagnostic},
        function_names::FunctionNames,
        index::{Argument, BodyCall, Call, FunctionIndex, RESOURCE},
        node_rules::{ElementType, NodeType, SavedTensorDiagnostic, TypeList},
        release::{PerRelease, ReleaseId, Releases},
    },
    ops::Registry,
};

/// The summary of a function.
#[derive(Debug, PartialEq)]
pub(super) struct FunctionSummary {
    /// The diagnostic that every release finds, whatever its operations are.
    pub(super) diagnostic: Option<PartDiagnostic>,
    /// The first argument or result without a type.
    pub(super) untyped: Option<Part>,
    pub(super) arguments: u32,
    pub(super) results: u32,
    /// True if one of its results is a resource handle.
    pub(super) gives_resource: bool,
    /// The calls of the function, each once, in the order of the nodes.
    pub(super) calls: Box<[Call]>,
    /// The results by release; `None` if no releases were given.
    pub(super) judged: Option<Box<Judged>>,
}

/// The results of judging a function for several releases.
#[derive(Debug, PartialEq)]
pub(super) struct Judged {
    /// The functions that it names, if any.
    pub(super) named: Option<Box<Named>>,
    /// The diagnostic that the C++ loader finds in it before it looks at the graph.
    pub(super) unsaved: Option<BoxedDiagnostic>,
    /// The reason why it is not found equal to itself, if it is not.
    pub(super) unequal: Option<Box<Unequal>>,
    /// The types of the inputs and outputs of its calls once it is loaded; `None` if every release
    /// needs the slow path.
    pub(super) types: Option<Rc<NodeType>>,
    /// `None` if every release needs the slow path.
    trivially_valid: Option<ByRelease<TriviallyValid>>,
}

/// A function in which a release certainly finds nothing wrong, for any caller and any loader.
/// Functions that it calls are not included.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TriviallyValid {
    /// The calls, in the order of the nodes, equal calls once.
    pub(super) calls: Box<[TriviallyValidCall]>,
}

/// A call in such a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TriviallyValidCall {
    pub(super) body: BodyCall,
    /// Number of inputs and outputs of the node.
    pub(super) tensors: (u64, u64),
}

impl FunctionSummary {
    /// Summarizes a function. With `releases`, the function must have been read with the node
    /// signatures of its nodes.
    pub(super) fn of(
        function: &FunctionIndex,
        functions: &FunctionNames,
        releases: Releases<'_>,
        node_signatures: &mut KnownSignatures,
    ) -> Self {
        let canonical = CanonicalBody::of(function, !releases.is_empty());
        let diagnostic = if canonical.is_some() { None } else { body::first_diagnostic(function) };
        let mut known = HashSet::new();
        let calls = function.calls.iter().map(|inner| inner.call);
        let judged = (!releases.is_empty()).then(|| {
            Box::new(Judged::of(function, canonical.as_ref(), functions, releases, node_signatures))
        });
        Self {
            diagnostic,
            untyped: body::untyped(function),
            arguments: count(function.arguments.len()),
            results: count(function.results.len()),
            gives_resource: gives_resource(function),
            calls: calls.filter(|call| known.insert(*call)).collect(),
            judged,
        }
    }
}

/// The key by which summaries of trivially valid functions without calls are shared.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct LeafKey {
    untyped: Option<Part>,
    gives_resource: bool,
    types: Rc<NodeType>,
    /// True for a release that finds nothing; `None` if all find nothing.
    trivially_valid: Option<PerRelease<bool>>,
}

impl FunctionSummary {
    /// Returns the key by which the summary is shared; `None` if it holds more than a key does.
    pub(super) fn leaf_key(&self) -> Option<LeafKey> {
        let judged = self.judged.as_deref()?;
        let (types, trivially_valid) = (judged.types.as_ref()?, judged.trivially_valid.as_ref()?);
        let counts = (u64::from(self.arguments), u64::from(self.results));
        let is_leaf = self.diagnostic.is_none()
            && self.calls.is_empty()
            && counts == (types.inputs.len(), types.outputs.len())
            && judged.named.is_none()
            && judged.unsaved.is_none()
            && judged.unequal.is_none()
            && trivially_valid.all(|trivially_valid| trivially_valid.calls.is_empty());
        is_leaf.then(|| LeafKey {
            untyped: self.untyped,
            gives_resource: self.gives_resource,
            types: Rc::clone(types),
            trivially_valid: match trivially_valid {
                ByRelease::Same(_) => None,
                ByRelease::Each(trivially_valid) => {
                    Some(PerRelease::clone(trivially_valid).map(|_, one| one.is_some()))
                }
            },
        })
    }

    /// Returns true if every release finds nothing in the function, for any caller, and it calls
    /// and names no other functions.
    pub(super) fn is_leaf(&self) -> bool {
        let trivially_valid = self.judged.as_deref().and_then(Judged::trivially_valid_in_all);
        trivially_valid.is_some_and(|trivially_valid| trivially_valid.calls.is_empty())
    }

    /// Returns true if a release finds nothing in the function, for any caller.
    pub(super) fn is_trivially_valid(&self, release: ReleaseId) -> bool {
        self.judged.as_deref().is_some_and(|judged| judged.trivially_valid(release).is_some())
    }
}

impl Judged {
    fn of(
        function: &FunctionIndex,
        canonical: Option<&CanonicalBody>,
        functions: &FunctionNames,
        releases: Releases<'_>,
        node_signatures: &mut KnownSignatures,
    ) -> Self {
        let edges = canonical.and_then(|canonical| canonical.edges.as_ref());
        let edges = edges.filter(|_| is_closed(function));
        let trivially_valid = edges.and_then(|edges| {
            let node_signatures = node_signatures.of_function(function, functions, releases);
            trivially_valid(function, edges, &node_signatures, releases)
        });
        Self {
            named: named_by(function, functions),
            unsaved: unsaved(function),
            unequal: Some(Unequal::of(function, canonical.is_some()))
                .filter(|unequal| !unequal.is_none())
                .map(Box::new),
            types: trivially_valid
                .is_some()
                .then(|| node_signatures.shared(loaded_types(function))),
            trivially_valid,
        }
    }

    /// Returns the calls of the function, if it is trivially valid with the same calls in every
    /// release.
    pub(super) fn trivially_valid_in_all(&self) -> Option<&TriviallyValid> {
        match self.trivially_valid.as_ref()? {
            ByRelease::Same(trivially_valid) => Some(trivially_valid),
            ByRelease::Each(_) => None,
        }
    }

    /// Returns the calls of the function, if it is trivially valid in a release.
    pub(super) fn trivially_valid(&self, release: ReleaseId) -> Option<&Rc<TriviallyValid>> {
        self.trivially_valid.as_ref()?.get(release)
    }
}

/// Returns the types of the inputs and outputs of calls of a function once it is loaded: each
/// argument and result is one tensor of the declared type.
fn loaded_types(function: &FunctionIndex) -> NodeType {
    let list = |arguments: &[Argument]| {
        let mut list = TypeList::default();
        for argument in arguments {
            list.push(ElementType::new(argument.data_type, false), 1);
        }
        list
    };
    NodeType { inputs: list(&function.arguments), outputs: list(&function.results) }
}

/// Returns true if one of the results of a function is a resource handle.
pub(super) fn gives_resource(function: &FunctionIndex) -> bool {
    function.results.iter().any(|result| result.data_type == RESOURCE)
}

/// Returns true if a function has no attributes and no references among its arguments and results.
fn is_closed(function: &FunctionIndex) -> bool {
    let signature = &function.signature;
    let mut arguments = signature.inputs.iter().chain(&signature.outputs);
    signature.attributes.is_empty() && arguments.all(|argument| !argument.is_reference)
}

/// The facts of a release about each node signature of a function's nodes.
type ReleaseSignatures = Vec<Rc<SignatureFacts>>;

/// Returns the releases in which a function is valid; `None` if there are none.
fn trivially_valid(
    function: &FunctionIndex,
    edges: &Edges,
    node_signatures: &[FactsPerRelease],
    releases: Releases<'_>,
) -> Option<ByRelease<TriviallyValid>> {
    // The same node signatures and types as in the previous release have the same result.
    let mut before: Option<(ReleaseSignatures, u64, Option<Rc<TriviallyValid>>)> = None;
    let judge = |release, registry: &Registry| {
        let of_release = |signature: &FactsPerRelease| signature[release].clone();
        let facts: ReleaseSignatures =
            node_signatures.iter().map(of_release).collect::<Option<_>>()?;
        let types = registry.types();
        let are_same = |others: &[Rc<SignatureFacts>]| {
            others.len() == facts.len() && others.iter().zip(&facts).all(|(a, b)| Rc::ptr_eq(a, b))
        };
        if let Some((others, of_types, known)) = &before
            && *of_types == types
            && are_same(others)
        {
            return known.clone();
        }
        let mut arguments = function.arguments.iter();
        let has_types = arguments.all(|argument| registry.has_type(argument.data_type));
        let is_trivially_valid = has_types && edges.are_valid(&facts);
        let mut found =
            is_trivially_valid.then(|| Rc::new(TriviallyValid { calls: calls(function, &facts) }));
        if let Some((.., known)) = before.as_ref().filter(|(.., known)| *known == found) {
            found = known.clone();
        }
        before = Some((facts, types, found.clone()));
        found
    };
    ByRelease::of(releases.map(judge), |_| true, are_one)
}

/// Returns the calls in a function whose node signatures are these.
fn calls(
    function: &FunctionIndex,
    node_signatures: &[Rc<SignatureFacts>],
) -> Box<[TriviallyValidCall]> {
    let mut known = HashSet::new();
    let call = |body: &BodyCall| {
        let signature = function.nodes.get(body.node as usize)?.signature;
        let types = &node_signatures.get(signature as usize)?.types;
        let tensors = (types.inputs.len(), types.outputs.len());
        known.insert((body.call, tensors)).then_some(TriviallyValidCall { body: *body, tensors })
    };
    function.calls.iter().filter_map(call).collect()
}

/// Returns the diagnostic that the C++ loader finds in a function before it looks at the graph,
/// even if the function is not called: a constant of unknown size, or a call of itself.
fn unsaved(function: &FunctionIndex) -> Option<BoxedDiagnostic> {
    let unsaved =
        |operation: &str, attributes| SavedTensorDiagnostic::of(operation.as_bytes(), attributes);
    let diagnostics = function.node_signatures.iter();
    let diagnostics: Vec<Option<SavedTensorDiagnostic>> =
        diagnostics.map(|signature| unsaved(&signature.operation, &signature.attributes)).collect();
    let is_any = diagnostics.iter().any(Option::is_some);
    let mut nodes = numbered(&function.nodes).filter(|_| is_any);
    let tensor = nodes.find_map(|(number, node)| {
        let (kind, found, expected) =
            diagnostics.get(node.signature as usize)?.as_ref()?.diagnostic();
        let diagnostic =
            InstantiationDiagnostic::of(Part::Node(number), kind).of_operation(function, number);
        Some(diagnostic.with(found, expected))
    });
    let name = &function.signature.name;
    let calls_itself =
        || function.node_signatures.iter().any(|signature| signature.operation == *name);
    let recursion =
        || InstantiationDiagnostic::names(Part::Function, BodyDiagnosticKind::Recursion);
    tensor.or_else(|| calls_itself().then(recursion))
}

#[cfg(test)]
mod tests;
