//! The index of one graph.

use super::{
    calls::Call,
    names::{MOST_NAMES, NodeNames},
    output_shapes::OutputShapes,
    places::{NodeGroup, NodePlaces},
};
use crate::{
    GraphError,
    node_signatures::SignatureNumber,
    rules::{LoopRole, Output},
    source::{Extent, Source},
};

/// The parts of a graph that the importer checks.
///
/// Nodes are numbered in the order of the file.
#[derive(Debug, Default)]
pub struct GraphIndex {
    /// The nodes up to the first invalid one, inclusive; empty where nodes are visited in the order
    /// of the file.
    nodes: Vec<Node>,
    /// The inputs of all nodes, one node after the other.
    inputs: Vec<Input>,
    /// The inputs that do not fit into one word.
    long_inputs: Vec<LongInput>,
    places: NodePlaces,
    /// True if each input is an earlier node and no edge closes a loop.
    is_in_order: bool,
    /// The names with which each node is colocated, ascending by node, until it is known if they
    /// exist.
    colocations: Vec<Colocation>,
    /// The nodes that are colocated with a missing node, ascending.
    unresolved: Vec<u32>,
    /// The diagnostic of the last of `nodes` that makes any graph invalid.
    pub(super) mismatch: Option<NodeMismatch>,
    /// The first node without an operation, if no function of the library has an empty name.
    pub(super) nameless_call: Option<u32>,
    /// Nodes whose operation is deprecated, ascending: all, or the first of each operation where
    /// nodes are visited in the order of the file.
    pub(super) deprecated: Vec<DeprecatedNode>,
    /// Nodes that call functions, ascending.
    pub(super) calls: Vec<CallingNode>,
    /// Nodes that call a placeholder, which only a caller could replace, ascending.
    pub(super) unbound_calls: Vec<u32>,
    /// The nodes that declare the shapes of their outputs, ascending.
    pub(super) output_shapes: Vec<OutputShapes>,
    /// A repeated function that differs from the first.
    pub(super) duplicate_function: Option<DuplicateFunction>,
    /// A function that has two gradients.
    pub(super) second_gradient: Option<String>,
    /// The first node with an invalid device.
    pub(super) bad_device: Option<Extent>,
    /// The first node whose attribute `_class` Python cannot read.
    pub(super) bad_class: Option<Extent>,
    /// True if a name was too long to be checked; nothing is then known of the nodes.
    pub(super) oversized: bool,
}

/// A node outside functions.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// The end of its inputs in the list of all.
    inputs_end: u32,
    /// Its node signature in the lower bits, its role in loops in the upper two.
    packed: u32,
}

/// Number of bits of a word for a node signature, a name or a node.
const NUMBER_BITS: u32 = 30;
const NUMBER: u32 = (1 << NUMBER_BITS) - 1;

impl Node {
    fn new(inputs_end: u32, signature: SignatureNumber, role: LoopRole) -> Self {
        let role = match role {
            LoopRole::None => 0,
            LoopRole::Merge => 1,
            LoopRole::NextIteration => 2,
        };
        Self { inputs_end, packed: signature.min(NUMBER) | role << NUMBER_BITS }
    }

    /// Returns the number of its node signature; 0 if node signatures are not requested.
    pub fn signature(self) -> SignatureNumber {
        self.packed & NUMBER
    }

    pub fn loop_role(self) -> LoopRole {
        match self.packed >> NUMBER_BITS {
            0 => LoopRole::None,
            1 => LoopRole::Merge,
            _ => LoopRole::NextIteration,
        }
    }
}

/// An input of a node: the source node in the lower bits (the number of its name, before all names
/// are known), and the output in the upper two.
#[derive(Clone, Copy, Debug)]
pub struct Input(u32);

/// The values of the upper bits of an input: output 0, a control edge, output 1, or the number of a
/// [`LongInput`] in the lower bits.
const FIRST: u32 = 0;
const CONTROL: u32 = 1;
const SECOND: u32 = 2;
const LONG: u32 = 3;

impl Input {
    /// Returns true for a control input.
    pub fn is_control(self) -> bool {
        self.code() == CONTROL
    }

    fn code(self) -> u32 {
        self.0 >> NUMBER_BITS
    }

    fn number(self) -> u32 {
        self.0 & NUMBER
    }
}

/// An input from an unusual output.
#[derive(Clone, Copy, Debug)]
struct LongInput {
    /// The node or the number of its name, as in [`Input`].
    from: u32,
    output: Output,
}

/// An input in its encoding, before all nodes are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedInput {
    /// The number of the name.
    pub(super) name: u32,
    pub(super) output: Output,
}

/// The number that stands for no node or name.
const NOWHERE: u32 = NUMBER;

const _: () = assert!(NOWHERE == MOST_NAMES);

/// A colocation constraint between two nodes.
#[derive(Clone, Copy, Debug)]
struct Colocation {
    node: u32,
    /// The number of the other's name.
    name: u32,
}

/// The diagnostics of a node that make any graph invalid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeMismatch {
    pub bad_name: bool,
    pub repeated_name: bool,
    pub no_operation: bool,
    pub input_order: bool,
}

/// A function with the name of an earlier one, from which it differs.
#[derive(Clone, Debug)]
pub struct DuplicateFunction {
    /// Its position in the library.
    pub number: u32,
    /// Its name, cut for messages.
    pub name: String,
}

/// A node whose operation is deprecated.
#[derive(Clone, Copy, Debug)]
pub struct DeprecatedNode {
    pub number: u32,
    /// The position of the operation in the list.
    pub position: u32,
    pub place: Extent,
}

/// A node that calls a function.
#[derive(Clone, Copy, Debug)]
pub struct CallingNode {
    pub number: u32,
    pub place: Extent,
    pub call: Call,
    /// The number of its data inputs.
    pub inputs: u32,
}

impl GraphIndex {
    /// Creates an index for a graph in `source` with about this number of nodes and inputs.
    pub(super) fn of(source: Source<'_>, nodes: usize, inputs: usize) -> Self {
        Self {
            nodes: Vec::with_capacity(nodes),
            inputs: Vec::with_capacity(inputs),
            places: NodePlaces::of(source, nodes),
            ..Self::default()
        }
    }

    /// Sets the start of the content of a GraphDef.
    pub(super) fn begin_graph(&mut self, at: u64) {
        self.places.begin_graph(at);
    }

    /// Adds a node with its inputs.
    pub(super) fn add(
        &mut self,
        place: Extent,
        loop_role: LoopRole,
        signature: SignatureNumber,
        inputs: &[NamedInput],
    ) {
        self.places.add(place);
        for input in inputs {
            self.add_input(*input);
        }
        let inputs_end = u32::try_from(self.inputs.len()).unwrap_or(u32::MAX);
        self.nodes.push(Node::new(inputs_end, signature, loop_role));
    }

    #[inline]
    fn add_input(&mut self, input: NamedInput) {
        let code = match input.output {
            Output::CONTROL => Some(CONTROL),
            output => match output.number() {
                Some(0) => Some(FIRST),
                Some(1) => Some(SECOND),
                _ => None,
            },
        };
        let (code, number) = match code {
            Some(code) => (code, input.name),
            None => {
                let number = u32::try_from(self.long_inputs.len()).unwrap_or(NUMBER).min(NUMBER);
                self.long_inputs.push(LongInput { from: input.name, output: input.output });
                (LONG, number)
            }
        };
        self.inputs.push(Input(number | code << NUMBER_BITS));
    }

    /// Colocates the last node with the one of this name.
    pub(super) fn add_colocation(&mut self, node: u32, name: u32, names: &NodeNames) {
        // Most nodes are colocated with an earlier one.
        if names.node(name).is_none() {
            self.colocations.push(Colocation { node, name });
        }
    }

    /// Assigns nodes to names, once all are known.
    pub(super) fn name_nodes(&mut self, names: &NodeNames) {
        let node = |name: u32| names.node(name).unwrap_or(NOWHERE);
        for input in &mut self.inputs {
            if input.code() != LONG {
                *input = Input(input.0 & !NUMBER | node(input.number()));
            }
        }
        for input in &mut self.long_inputs {
            input.from = node(input.from);
        }
        self.unresolved = Vec::new();
        for beside in std::mem::take(&mut self.colocations) {
            if names.node(beside.name).is_none() && self.unresolved.last() != Some(&beside.node) {
                self.unresolved.push(beside.node);
            }
        }
        self.oversized |= names.is_overfull();
        self.is_in_order = self.find_order();
    }

    fn find_order(&self) -> bool {
        let mut numbers = 0_u32..;
        let mut is_before = |inputs: &[Input]| {
            let node = numbers.next().unwrap_or(u32::MAX);
            inputs.iter().all(|input| self.source(*input).is_some_and(|from| from < node))
        };
        let mut from = 0;
        self.nodes.iter().all(|node| {
            let end = node.inputs_end as usize;
            let inputs = self.inputs.get(from..end).unwrap_or_default();
            from = end;
            node.loop_role() != LoopRole::NextIteration && is_before(inputs)
        })
    }

    /// Returns true if each node has earlier ones as inputs and no edge closes a loop: the nodes
    /// are then visited in the order of the file.
    #[inline]
    pub fn is_in_order(&self) -> bool {
        self.is_in_order
    }

    /// Returns the nodes in the order of the file.
    #[inline]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the inputs of a node.
    #[inline]
    pub fn inputs(&self, node: u32) -> &[Input] {
        let end = |node: u32| self.nodes.get(node as usize).map_or(0, |node| node.inputs_end);
        let from = node.checked_sub(1).map_or(0, end);
        self.inputs.get(from as usize..end(node) as usize).unwrap_or_default()
    }

    fn long(&self, input: Input) -> Option<&LongInput> {
        self.long_inputs.get(input.number() as usize)
    }

    /// Returns the source node of an input, if a node of that name exists.
    #[inline]
    pub fn source(&self, input: Input) -> Option<u32> {
        let from = match input.code() {
            LONG => self.long(input)?.from,
            _ => input.number(),
        };
        Some(from).filter(|from| *from != NOWHERE)
    }

    /// Returns the output of an input's source node.
    #[inline]
    pub fn output(&self, input: Input) -> Output {
        match input.code() {
            FIRST => Output::FIRST,
            CONTROL => Output::CONTROL,
            SECOND => Output::SECOND,
            _ => self.long(input).map_or(Output::CONTROL, |input| input.output),
        }
    }

    /// Returns the extent of the NodeDef of a node, to read what the index does not keep.
    ///
    /// # Errors
    /// [`GraphError`], if the system cannot read the file, or the node is missing.
    pub fn place_of(&self, source: Source<'_>, node: u32) -> Result<Extent, GraphError> {
        self.places.find(source, node)?.ok_or_else(GraphError::moved_node)
    }

    /// Returns the extents of a few neighbouring NodeDefs, including this one, which are read
    /// together.
    pub fn places_around(
        &self,
        source: Source<'_>,
        node: u32,
    ) -> Result<Option<NodeGroup>, GraphError> {
        self.places.find_group(source, node)
    }

    /// Returns the nodes that are colocated with a missing node, ascending.
    pub fn unresolved_colocations(&self) -> impl Iterator<Item = u32> + '_ {
        self.unresolved.iter().copied()
    }

    /// Returns true if a node is colocated with one that does not exist.
    #[inline]
    pub fn has_unresolved_colocation(&self, node: u32) -> bool {
        self.unresolved.binary_search(&node).is_ok()
    }

    /// Returns the function that a node calls.
    #[inline]
    pub fn call_of(&self, node: u32) -> Option<&CallingNode> {
        let position = self.calls.binary_search_by_key(&node, |call| call.number).ok()?;
        self.calls.get(position)
    }

    /// Returns the output shapes that a node declares.
    #[inline]
    pub fn output_shapes_of(&self, node: u32) -> Option<OutputShapes> {
        if self.output_shapes.is_empty() {
            return None;
        }
        let position = self.output_shapes.binary_search_by_key(&node, |shapes| shapes.node).ok()?;
        self.output_shapes.get(position).copied()
    }

    /// Returns the nodes that call a placeholder, which only a caller could replace, ascending.
    pub fn unbound_calls(&self) -> &[u32] {
        &self.unbound_calls
    }

    /// Returns the position of the operation of a node in the list of deprecated ones.
    pub fn deprecated_operation_of(&self, node: u32) -> Option<u32> {
        let position = self.deprecated.binary_search_by_key(&node, |found| found.number).ok()?;
        Some(self.deprecated.get(position)?.position)
    }

    pub fn mismatch(&self) -> Option<NodeMismatch> {
        self.mismatch
    }

    /// Returns the first node without an operation, if no function of the library has an empty
    /// name.
    pub fn nameless_call(&self) -> Option<u32> {
        self.nameless_call
    }

    pub fn deprecated(&self) -> &[DeprecatedNode] {
        &self.deprecated
    }

    pub fn calls(&self) -> &[CallingNode] {
        &self.calls
    }

    /// Returns the extent of the first node with an invalid device.
    pub fn bad_device(&self) -> Option<Extent> {
        self.bad_device
    }

    /// Returns the extent of the first node whose attribute `_class` Python cannot read.
    pub fn bad_class(&self) -> Option<Extent> {
        self.bad_class
    }

    /// Returns a repeated function that differs from the first.
    pub fn duplicate_function(&self) -> Option<&DuplicateFunction> {
        self.duplicate_function.as_ref()
    }

    /// Returns a function that has two gradients.
    pub fn second_gradient(&self) -> Option<&str> {
        self.second_gradient.as_deref()
    }

    /// Returns true if nothing is known of the nodes because a name was too long to be checked.
    pub fn is_without_nodes(&self) -> bool {
        self.oversized
    }
}
