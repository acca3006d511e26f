//! Summaries of functions that were read: their faults in any release, the functions that they call
//! and name, and the releases that certainly accept them.
//!
//! A function that is written as TensorFlow writes most of them is judged by the kinds of its nodes
//! and of the edges between them, of which there are few, in one look at its nodes for all
//! releases. What is not certainly valid that way is not judged here.
//!
//! Knows one function. It must never know the library around it, nor who calls.

use std::{collections::HashSet, rc::Rc};

use super::{
    body::{self, Body, Owner, Owners},
    by_release::{ByRelease, are_one},
    count,
    instantiate::{BodyDiagnostic, BoxedDiagnostic, numbered},
    kind_facts::{FactsPerRelease, KindFacts, KnownKinds},
    reexport::{Named, named_by},
};
use crate::{
    graph::{
        ImportFaultKind,
        attributes::TensorFault,
        fault::{BodyFaultKind, Part, PartFault},
        function_names::FunctionNames,
        index::{Argument, BodyCall, Call, Element, FunctionIndex, RESOURCE, Suffix, Target},
        node_rules::{ElementType, GradientName, NodeType, SavedTensorFault, TypeList},
        release::{PerRelease, ReleaseId, Releases},
        rules::LoopRole,
    },
    ops::Registry,
};

/// Kinds of edges that are told apart; a function with more is looked at node by node.
const MOST_EDGES: usize = 1 << 16;

/// The summary of a function.
#[derive(Debug, PartialEq)]
pub(super) struct FunctionSummary {
    /// The fault that every release finds, whatever its operations are.
    pub(super) fault: Option<PartFault>,
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
    /// The fault that the C++ loader finds in it before it looks at the graph.
    pub(super) unsaved: Option<BoxedDiagnostic>,
    /// The reason that it is not found equal to itself, if it is not.
    pub(super) unequal: Option<Box<Unequal>>,
    /// The types that its calls take and give once it is loaded; `None` if every release needs the
    /// slow path.
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
    /// Number of tensors that the node takes and gives.
    pub(super) tensors: (u64, u64),
}

impl FunctionSummary {
    /// Summarizes a function. With `releases`, the function must have been read with the kinds of
    /// its nodes.
    pub(super) fn of(
        function: &FunctionIndex,
        functions: &FunctionNames,
        releases: Releases<'_>,
        kinds: &mut KnownKinds,
    ) -> Self {
        let canonical = CanonicalBody::of(function, !releases.is_empty());
        let fault = if canonical.is_some() { None } else { body::first_fault(function) };
        let mut known = HashSet::new();
        let calls = function.calls.iter().map(|inner| inner.call);
        let judged = (!releases.is_empty()).then(|| {
            Box::new(Judged::of(function, canonical.as_ref(), functions, releases, kinds))
        });
        Self {
            fault,
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
    /// The key by which the summary is shared; `None` if it holds more than a key does.
    pub(super) fn leaf_key(&self) -> Option<LeafKey> {
        let judged = self.judged.as_deref()?;
        let (types, trivially_valid) = (judged.types.as_ref()?, judged.trivially_valid.as_ref()?);
        let counts = (u64::from(self.arguments), u64::from(self.results));
        let is_leaf = self.fault.is_none()
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

    /// True if every release finds nothing in the function, for any caller, and it calls and names
    /// no other functions.
    pub(super) fn is_leaf(&self) -> bool {
        let trivially_valid = self.judged.as_deref().and_then(Judged::trivially_valid_in_all);
        trivially_valid.is_some_and(|trivially_valid| trivially_valid.calls.is_empty())
    }

    /// True if a release finds nothing in the function, for any caller.
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
        kinds: &mut KnownKinds,
    ) -> Self {
        let edges = canonical.and_then(|canonical| canonical.edges.as_ref());
        let edges = edges.filter(|_| is_closed(function));
        let trivially_valid = edges.and_then(|edges| {
            let kinds = kinds.of_function(function, functions, releases);
            trivially_valid(function, edges, &kinds, releases)
        });
        Self {
            named: named_by(function, functions),
            unsaved: unsaved(function),
            unequal: Some(Unequal::of(function, canonical.is_some()))
                .filter(|unequal| !unequal.is_none())
                .map(Box::new),
            types: trivially_valid.is_some().then(|| kinds.shared(loaded_types(function))),
            trivially_valid,
        }
    }

    /// That every release finds nothing in the function, and the same calls.
    pub(super) fn trivially_valid_in_all(&self) -> Option<&TriviallyValid> {
        match self.trivially_valid.as_ref()? {
            ByRelease::Same(trivially_valid) => Some(trivially_valid),
            ByRelease::Each(_) => None,
        }
    }

    /// That a release finds nothing in the function.
    pub(super) fn trivially_valid(&self, release: ReleaseId) -> Option<&Rc<TriviallyValid>> {
        self.trivially_valid.as_ref()?.get(release)
    }
}

/// The types that calls of a function take and give once it is loaded: each argument and result is
/// one tensor of the written type.
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

/// True if one of the results of a function is a resource handle.
pub(super) fn gives_resource(function: &FunctionIndex) -> bool {
    function.results.iter().any(|result| result.data_type == RESOURCE)
}

/// True if a function has no attributes and neither takes nor gives references.
fn is_closed(function: &FunctionIndex) -> bool {
    let signature = &function.signature;
    let mut arguments = signature.inputs.iter().chain(&signature.outputs);
    signature.attributes.is_empty() && arguments.all(|argument| !argument.is_reference)
}

/// The facts of a release about each kind of a function's nodes.
type ReleaseKinds = Vec<Rc<KindFacts>>;

/// The releases in which nothing is wrong with a function; `None` if there are none.
fn trivially_valid(
    function: &FunctionIndex,
    edges: &Edges,
    kinds: &[FactsPerRelease],
    releases: Releases<'_>,
) -> Option<ByRelease<TriviallyValid>> {
    // The same kinds and types as in the release before come to the same.
    let mut before: Option<(ReleaseKinds, u64, Option<Rc<TriviallyValid>>)> = None;
    let judge = |release, registry: &Registry| {
        let of_release = |kind: &FactsPerRelease| kind[release].clone();
        let facts: ReleaseKinds = kinds.iter().map(of_release).collect::<Option<_>>()?;
        let types = registry.types();
        let are_same = |others: &[Rc<KindFacts>]| {
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

/// The calls in a function whose kinds are these.
fn calls(function: &FunctionIndex, kinds: &[Rc<KindFacts>]) -> Box<[TriviallyValidCall]> {
    let mut known = HashSet::new();
    let call = |body: &BodyCall| {
        let kind = function.nodes.get(body.node as usize)?.kind;
        let types = &kinds.get(kind as usize)?.types;
        let tensors = (types.inputs.len(), types.outputs.len());
        known.insert((body.call, tensors)).then_some(TriviallyValidCall { body: *body, tensors })
    };
    function.calls.iter().filter_map(call).collect()
}

/// The form of a function that is compared with itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ComparedFunction {
    /// That of the file.
    Written,
    /// That in which `tf.saved_model.load` leaves it.
    Reexported,
}

/// Why TensorFlow does not find a function equal to itself.
#[derive(Debug, PartialEq)]
pub(super) struct Unequal {
    /// A node has the name of another one.
    twice: Option<BoxedDiagnostic>,
    /// Nodes with tensors that are not compared, as they cannot be read.
    tensors: Box<[(u32, TensorFault)]>,
    /// The same among the attributes of the function itself.
    own: Box<[TensorFault]>,
    /// The same among those that it has no more once it is loaded.
    passing: Box<[TensorFault]>,
}

impl Unequal {
    /// True if the function equals itself in every release.
    fn is_none(&self) -> bool {
        let are_read = self.tensors.is_empty() && self.own.is_empty() && self.passing.is_empty();
        self.twice.is_none() && are_read
    }

    /// Collects the reasons for a function. If it is `canonical`, its names are known to be unique.
    fn of(function: &FunctionIndex, canonical: bool) -> Self {
        let mut known = HashSet::new();
        let mut nodes = numbered(&function.nodes).filter(|_| !canonical);
        let twice = nodes.find(|(_, node)| !known.insert(node.name));
        let diagnostic =
            |number| BodyDiagnostic::names(Part::Node(number), BodyFaultKind::Duplicate);
        Self {
            twice: twice.map(|(number, _)| diagnostic(number)),
            tensors: function.malformed.as_slice().into(),
            own: function.own_tensors.lasting.as_slice().into(),
            passing: function.own_tensors.passing.as_slice().into(),
        }
    }

    /// Why it is not in a release, as it is written or as `tf.saved_model.load` leaves it.
    pub(super) fn in_release(
        &self,
        registry: &Registry,
        form: ComparedFunction,
    ) -> Option<BoxedDiagnostic> {
        let is_read = |fault: TensorFault| match fault {
            TensorFault::Malformed => false,
            TensorFault::OfType(number) => registry.has_type(number),
        };
        let mut tensors = self.tensors.iter().filter(|(_, fault)| !is_read(*fault));
        let tensor = || {
            let (number, _) = tensors.next()?;
            let fault = BodyDiagnostic::of(Part::Node(*number), ImportFaultKind::FunctionBody);
            Some(fault.with("a tensor that cannot be read", "a tensor"))
        };
        let own = || {
            let passing = self.passing.iter().filter(|_| form == ComparedFunction::Written);
            let mut tensors = self.own.iter().chain(passing);
            tensors.find(|fault| !is_read(**fault))?;
            let fault = BodyDiagnostic::of(Part::Function, ImportFaultKind::FunctionBody);
            Some(fault.with("an attribute that is a tensor which cannot be read", "a tensor"))
        };
        self.twice.clone().or_else(tensor).or_else(own)
    }
}

/// The fault that the C++ loader finds in a function before it looks at the graph, even if the
/// function is not called: a constant of unknown size, or a call of itself.
fn unsaved(function: &FunctionIndex) -> Option<BoxedDiagnostic> {
    let fault =
        |operation: &str, attributes| SavedTensorFault::of(operation.as_bytes(), attributes);
    let kinds: Vec<Option<SavedTensorFault>> =
        function.kinds.iter().map(|kind| fault(&kind.operation, &kind.attributes)).collect();
    let is_any = kinds.iter().any(Option::is_some);
    let mut nodes = numbered(&function.nodes).filter(|_| is_any);
    let tensor = nodes.find_map(|(number, node)| {
        let (kind, found, expected) = kinds.get(node.kind as usize)?.as_ref()?.diagnostic();
        let diagnostic =
            BodyDiagnostic::of(Part::Node(number), kind).of_operation(function, number);
        Some(diagnostic.with(found, expected))
    });
    let name = &function.signature.name;
    let calls_itself = || function.kinds.iter().any(|kind| kind.operation == *name);
    let recursion = || BodyDiagnostic::names(Part::Function, BodyFaultKind::Recursion);
    tensor.or_else(|| calls_itself().then(recursion))
}

/// Who gives a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Giver {
    /// An argument of this type.
    Argument(i32),
    /// A node of a kind: the output of this name, the tensor with this number.
    Node { kind: u32, output: u32, element: u32 },
}

/// The edges from one giver to the same input of nodes of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct EdgeKind {
    from: Giver,
    to: u32,
    input: u32,
}

/// The nodes of a function and the edges between them, each kind once.
#[derive(Debug)]
struct Edges {
    edges: HashSet<EdgeKind, foldhash::fast::RandomState>,
    /// By kind, how many inputs of data its nodes have, which is the same for all of them.
    inputs: Vec<Option<u32>>,
    /// The givers of returned tensors, with the types of the results.
    returned: Vec<(Giver, i32)>,
}

impl Edges {
    /// True if nodes of these kinds take and give the types that the edges need.
    fn are_valid(&self, kinds: &[Rc<KindFacts>]) -> bool {
        let given = |from: Giver| match from {
            Giver::Argument(data_type) => Some(ElementType::new(data_type, false)),
            Giver::Node { kind, output, element } => {
                let facts = kinds.get(kind as usize)?;
                facts.types.outputs.get(facts.output(output, element)?)
            }
        };
        let is_valid = |edge: &EdgeKind| {
            let expected = || kinds.get(edge.to as usize)?.types.inputs.get(edge.input.into());
            matches!((given(edge.from), expected()), (Some(given), Some(expected))
                if expected.takes(given) && expected.data_type == given.data_type)
        };
        let have_inputs = self.inputs.iter().zip(kinds).all(|(inputs, kind)| {
            inputs.is_none_or(|inputs| kind.types.inputs.len() == u64::from(inputs))
        });
        have_inputs
            && self.edges.iter().all(is_valid)
            && self.returned.iter().all(|(from, data_type)| {
                given(*from).is_some_and(|given| given.data_type == *data_type)
            })
    }

    /// Records a node of a kind with this number of data inputs; false if another node of the kind
    /// has a different number.
    fn node(&mut self, kind: u32, inputs: u32) -> bool {
        let Some(known) = self.inputs.get_mut(kind as usize) else { return false };
        *known.get_or_insert(inputs) == inputs
    }
}

/// A function with names of its own for everything, each input and result written in full, and
/// nothing wrong with it whatever its operations are.
#[derive(Debug)]
struct CanonicalBody {
    /// The edges; `None` if no release was given, or a loader finds something wrong with an
    /// attribute of a node.
    edges: Option<Edges>,
}

/// True if an argument or result is one tensor of a written type.
fn is_one_tensor(argument: &Argument) -> bool {
    let is_open = argument.type_attribute || argument.number_attribute || argument.list_attribute;
    argument.data_type != 0 && !is_open && !argument.bad_name
}

impl CanonicalBody {
    fn of(function: &FunctionIndex, wants_edges: bool) -> Option<Self> {
        if function.oversized {
            return None;
        }
        let owners = owners(function)?;
        let arguments_loaders_take = || {
            let mut arguments = function.arguments.iter();
            let are_canonical = function.given.is_canonical(function.arguments.len());
            are_canonical
                && arguments.all(|argument| !argument.bad_graph_name)
                && numbered(&function.arguments).all(|(number, argument)| {
                    !argument.has_handle_data || function.may_be_handle(number)
                })
        };
        let nodes_loaders_take = || {
            let mut nodes = function.nodes.iter();
            nodes.all(|node| {
                let is_read = !node.bad_class && node.gradient == GradientName::Read;
                is_read && !node.bad_device && !node.bad_graph_name
            })
        };
        let settings_loaders_take = || {
            let are_own = function.control_nodes(|name| owners.contains_key(name));
            function.unusual_attributes.is_empty() && are_own == Some(true)
        };
        let wants_edges = wants_edges
            && arguments_loaders_take()
            && nodes_loaders_take()
            && settings_loaders_take();
        let mut walk = CanonicalWalk {
            function,
            owners: &owners,
            is_in_order: true,
            edges: wants_edges.then(|| Edges {
                edges: HashSet::default(),
                inputs: vec![None; function.kinds.len()],
                returned: Vec::with_capacity(function.results.len()),
            }),
        };
        walk.nodes()?;
        walk.results()?;
        let CanonicalWalk { edges, is_in_order, .. } = walk;
        let has_cycle = || Body { function, owners }.cycle(|_| true).is_some();
        (is_in_order || !has_cycle()).then_some(Self { edges })
    }
}

/// Whose each name is, where each is one's own and nothing else is wrong with anybody's.
fn owners(function: &FunctionIndex) -> Option<Owners> {
    let room = function.arguments.len() + function.nodes.len();
    let mut owners = Owners::with_capacity_and_hasher(room, Default::default());
    for (number, argument) in numbered(&function.arguments) {
        let is_one = is_one_tensor(argument);
        if !is_one || owners.insert(argument.name, Owner::Argument(number)).is_some() {
            return None;
        }
    }
    for (number, node) in numbered(&function.nodes) {
        let is_faulty = node.bad_name || node.no_operation || node.input_order;
        if is_faulty || owners.insert(node.name, Owner::Node(number)).is_some() {
            return None;
        }
    }
    Some(owners)
}

/// A look at all inputs and results of a function.
struct CanonicalWalk<'f> {
    function: &'f FunctionIndex,
    owners: &'f Owners,
    /// True as long as each input is an argument or an earlier node, and there is no
    /// `NextIteration`.
    is_in_order: bool,
    edges: Option<Edges>,
}

impl CanonicalWalk<'_> {
    fn nodes(&mut self) -> Option<()> {
        let mut inputs = self.function.inputs.iter().peekable();
        for (number, node) in numbered(&self.function.nodes) {
            self.is_in_order &= node.loop_role != LoopRole::NextIteration;
            let mut data = 0;
            while let Some(input) = inputs.next_if(|input| input.node == number) {
                let from = self.giver(&input.target, number)?;
                let (Some(from), Some(edges)) = (from, &mut self.edges) else { continue };
                edges.edges.insert(EdgeKind { from, to: node.kind, input: data });
                data += 1;
            }
            if let Some(edges) = &mut self.edges
                && (!edges.node(node.kind, data) || edges.edges.len() > MOST_EDGES)
            {
                self.edges = None;
            }
        }
        Some(())
    }

    /// The giver of the tensor that an input of a node names: `Some(None)` for a control input.
    /// `None` if the input is not written in full, or names nothing.
    fn giver(&mut self, target: &Target, to: u32) -> Option<Option<Giver>> {
        let is_alone = target.suffix == Suffix::None;
        match (self.owners.get(&target.name)?, target.control) {
            (Owner::Argument(_), true) => is_alone.then_some(None),
            (Owner::Argument(number), false) => {
                let argument = self.function.arguments.get(*number as usize)?;
                is_alone.then_some(Some(Giver::Argument(argument.data_type)))
            }
            (Owner::Node(from), is_control) => {
                self.is_in_order &= *from < to;
                if is_control {
                    return is_alone.then_some(None);
                }
                let Element::Number(element) = target.element else { return None };
                let kind = self.function.nodes.get(*from as usize)?.kind;
                let giver = Giver::Node { kind, output: target.output, element };
                (target.suffix == Suffix::Output).then_some(Some(giver))
            }
        }
    }

    fn results(&mut self) -> Option<()> {
        let function = self.function;
        let mut names = HashSet::new();
        for result in &function.results {
            let is_own = !self.owners.contains_key(&result.result) && names.insert(result.result);
            let target = (*function.returns.get(&result.name)?)?;
            if !is_one_tensor(result) || !is_own || target.control {
                return None;
            }
            let from = self.giver(&target, u32::MAX)??;
            let is_other = |data_type: i32| data_type != result.data_type;
            if matches!(from, Giver::Argument(data_type) if is_other(data_type)) {
                return None;
            }
            if result.has_handle_data
                && let Some(Owner::Argument(number)) = self.owners.get(&target.name)
                && !function.may_be_handle(*number)
            {
                self.edges = None;
            }
            if let Some(edges) = &mut self.edges {
                edges.returned.push((from, result.data_type));
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
