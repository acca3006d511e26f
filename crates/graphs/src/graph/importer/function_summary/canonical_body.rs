//! Functions in TensorFlow's usual encoding: their nodes, and the kinds of the edges between them.
//!
//! Depends on one function and its node signatures, but not on a release.

use std::{collections::HashSet, rc::Rc};

use super::super::{
    body::{Body, Owner, Owners},
    instantiate::numbered,
    signature_facts::SignatureFacts,
};
use crate::graph::{
    index::{Argument, Element, FunctionIndex, Suffix, Target},
    node_rules::{ElementType, GradientName},
    rules::LoopRole,
};

/// Limit on the kinds of edges; a function with more is checked node by node.
const MOST_EDGES: usize = 1 << 16;

/// The source of a tensor in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Giver {
    /// An argument of this type.
    Argument(i32),
    /// A node of a signature: the output of this name, the tensor with this number.
    Node { signature: u32, output: u32, element: u32 },
}

/// The edges from one source to the same input of nodes of one signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct EdgeKind {
    from: Giver,
    to: u32,
    input: u32,
}

/// The nodes of a function and the edges between them, each kind stored once.
#[derive(Debug)]
pub(super) struct Edges {
    edges: HashSet<EdgeKind, foldhash::fast::RandomState>,
    /// The number of data inputs of each node signature, which is the same for all of its nodes.
    inputs: Vec<Option<u32>>,
    /// The sources of returned tensors, with the types of the results.
    returned: Vec<(Giver, i32)>,
}

impl Edges {
    /// Returns true if nodes of these signatures have the input and output types that the edges
    /// need.
    pub(super) fn are_valid(&self, node_signatures: &[Rc<SignatureFacts>]) -> bool {
        let given = |from: Giver| match from {
            Giver::Argument(data_type) => Some(ElementType::new(data_type, false)),
            Giver::Node { signature, output, element } => {
                let facts = node_signatures.get(signature as usize)?;
                facts.types.outputs.get(facts.output(output, element)?)
            }
        };
        let is_valid = |edge: &EdgeKind| {
            let expected =
                || node_signatures.get(edge.to as usize)?.types.inputs.get(edge.input.into());
            matches!((given(edge.from), expected()), (Some(given), Some(expected))
                if expected.takes(given) && expected.data_type == given.data_type)
        };
        let have_inputs = self.inputs.iter().zip(node_signatures).all(|(inputs, signature)| {
            inputs.is_none_or(|inputs| signature.types.inputs.len() == u64::from(inputs))
        });
        have_inputs
            && self.edges.iter().all(is_valid)
            && self.returned.iter().all(|(from, data_type)| {
                given(*from).is_some_and(|given| given.data_type == *data_type)
            })
    }

    /// Records a node of a signature with this number of data inputs; false if another node of the
    /// signature has a different number.
    fn node(&mut self, signature: u32, inputs: u32) -> bool {
        let Some(known) = self.inputs.get_mut(signature as usize) else { return false };
        *known.get_or_insert(inputs) == inputs
    }
}

/// A function with unique names, each input and result in full form, and no diagnostic that is
/// independent of operations.
#[derive(Debug)]
pub(super) struct CanonicalBody {
    /// The edges; `None` if no release was given, or a loader refuses an attribute of a node.
    pub(super) edges: Option<Edges>,
}

/// Returns true if an argument or result is one tensor of a written type.
fn is_one_tensor(argument: &Argument) -> bool {
    let is_open = argument.type_attribute || argument.number_attribute || argument.list_attribute;
    argument.data_type != 0 && !is_open && !argument.bad_name
}

impl CanonicalBody {
    pub(super) fn of(function: &FunctionIndex, wants_edges: bool) -> Option<Self> {
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
                inputs: vec![None; function.node_signatures.len()],
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

/// Returns the owner of each name, if all names are unique and there is no other diagnostic.
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

/// A pass over all inputs and results of a function.
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
                edges.edges.insert(EdgeKind { from, to: node.signature, input: data });
                data += 1;
            }
            if let Some(edges) = &mut self.edges
                && (!edges.node(node.signature, data) || edges.edges.len() > MOST_EDGES)
            {
                self.edges = None;
            }
        }
        Some(())
    }

    /// Returns the source of the tensor that an input of a node names: `Some(None)` for a control
    /// input. `None` if the input is not in full form, or its source does not exist.
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
                let signature = self.function.nodes.get(*from as usize)?.signature;
                let giver = Giver::Node { signature, output: target.output, element };
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
