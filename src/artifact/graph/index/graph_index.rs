//! The index of one graph.

use super::{calls::Call, names::NodeNames, output_shapes::OutputShapes};
use crate::artifact::graph::{
    kinds::KindNumber,
    rules::{LoopRole, Output},
    source::Extent,
};

/// What the importer looks at in a graph.
///
/// Nodes are numbered in the order in which they are written.
#[derive(Debug, Default)]
pub(in super::super) struct GraphIndex {
    /// The nodes up to the first one that no graph can have, with it; none where the order in which
    /// they are written is the one in which they are visited.
    nodes: Vec<Node>,
    /// The inputs of all nodes, one node after the other.
    inputs: Vec<Input>,
    /// The node that has each name, by the number of the name.
    names: Vec<u32>,
    /// By node, ascending: the names of those that it has to be beside.
    pub(super) colocations: Vec<Colocation>,
    /// What the last of `nodes` has that no node can have.
    pub(super) misfit: Option<Misfit>,
    /// Nodes whose operation is on the list of deprecated ones, ascending: all, or the first of
    /// each where nodes are visited as they are written.
    pub(super) deprecated: Vec<DeprecatedNode>,
    /// Nodes that call functions, ascending.
    pub(super) calls: Vec<CallingNode>,
    /// Nodes that call what only a caller could tell, ascending.
    pub(super) unbound_calls: Vec<u32>,
    /// Of those nodes that say of which shapes their outputs are, ascending.
    pub(super) output_shapes: Vec<OutputShapes>,
    /// A function that comes again and is another one.
    pub(super) duplicate_function: Option<DuplicateFunction>,
    /// A function that has two gradients.
    pub(super) second_gradient: Option<String>,
    /// The first node with a device that is none.
    pub(super) bad_device: Option<Extent>,
    /// Whether a name was too long to be looked at, so that nothing is known of the nodes.
    pub(super) oversized: bool,
}

/// A node outside of functions.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Node {
    /// Where its NodeDef is: what is not kept here can be read there.
    pub(in super::super) place: Extent,
    /// Where its inputs end in the list of all.
    inputs_end: u32,
    pub(in super::super) loop_role: LoopRole,
    /// Which of the kinds it is; 0 where kinds are not asked for.
    pub(in super::super) kind: KindNumber,
}

/// An input of a node.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Input {
    /// The number of the name of the node that it comes from.
    name: u32,
    pub(in super::super) output: Output,
}

impl Input {
    pub(super) fn new(name: u32, output: Output) -> Self {
        Self { name, output }
    }

    /// Whether it says only what comes before the node.
    pub(in super::super) fn is_control(self) -> bool {
        self.output == Output::CONTROL
    }
}

/// That a node has to be beside another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Colocation {
    pub(super) node: u32,
    /// The number of the other's name.
    pub(super) name: u32,
}

/// What a node has that no node of a graph can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Misfit {
    pub(in super::super) bad_name: bool,
    pub(in super::super) repeated_name: bool,
    pub(in super::super) no_operation: bool,
    pub(in super::super) input_order: bool,
}

/// A function that has the name of one before it, and is another one.
#[derive(Clone, Debug)]
pub(in super::super) struct DuplicateFunction {
    /// Its position in the library.
    pub(in super::super) number: u32,
    /// Its name, cut for messages.
    pub(in super::super) name: String,
}

/// A node whose operation is on the list of deprecated ones.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct DeprecatedNode {
    pub(in super::super) number: u32,
    /// Where the operation is in the list.
    pub(in super::super) position: u32,
    pub(in super::super) place: Extent,
}

/// A node that calls a function.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct CallingNode {
    pub(in super::super) number: u32,
    pub(in super::super) place: Extent,
    pub(in super::super) call: Call,
    /// How many inputs of data it has.
    pub(in super::super) inputs: u32,
}

impl GraphIndex {
    /// Adds a node with its inputs.
    pub(super) fn add(
        &mut self,
        place: Extent,
        loop_role: LoopRole,
        kind: KindNumber,
        inputs: &[Input],
    ) {
        self.inputs.extend_from_slice(inputs);
        let inputs_end = u32::try_from(self.inputs.len()).unwrap_or(u32::MAX);
        self.nodes.push(Node { place, inputs_end, loop_role, kind });
    }

    /// Says which node has which name, once all are known.
    pub(super) fn name_nodes(&mut self, names: NodeNames) {
        self.names = names.into_nodes();
    }

    /// The nodes in the order in which they are written.
    pub(in super::super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The inputs of a node.
    pub(in super::super) fn inputs(&self, node: u32) -> &[Input] {
        let end = |node: u32| self.nodes.get(node as usize).map_or(0, |node| node.inputs_end);
        let from = node.checked_sub(1).map_or(0, end);
        self.inputs.get(from as usize..end(node) as usize).unwrap_or_default()
    }

    /// The node that an input comes from, if there is one of that name.
    pub(in super::super) fn source(&self, input: Input) -> Option<u32> {
        NodeNames::node(&self.names, input.name)
    }

    /// The nodes that have to be beside one that is not there, ascending.
    pub(in super::super) fn lost(&self) -> impl Iterator<Item = u32> + '_ {
        let lost = |beside: &&Colocation| NodeNames::node(&self.names, beside.name).is_none();
        self.colocations.iter().filter(lost).map(|beside| beside.node)
    }

    /// Whether a node has to be beside one that is not there.
    pub(in super::super) fn is_lost(&self, node: u32) -> bool {
        let from = self.colocations.partition_point(|beside| beside.node < node);
        let mut own = self.colocations.iter().skip(from).take_while(|beside| beside.node == node);
        own.any(|beside| NodeNames::node(&self.names, beside.name).is_none())
    }

    /// The function that a node calls.
    pub(in super::super) fn call_of(&self, node: u32) -> Option<&CallingNode> {
        let position = self.calls.binary_search_by_key(&node, |call| call.number).ok()?;
        self.calls.get(position)
    }

    /// What a node says of the shapes of its outputs.
    pub(in super::super) fn output_shapes_of(&self, node: u32) -> Option<OutputShapes> {
        if self.output_shapes.is_empty() {
            return None;
        }
        let position = self.output_shapes.binary_search_by_key(&node, |shapes| shapes.node).ok()?;
        self.output_shapes.get(position).copied()
    }

    /// The nodes that call what only a caller could tell, ascending: a function is named by a
    /// placeholder.
    pub(in super::super) fn unbound_calls(&self) -> &[u32] {
        &self.unbound_calls
    }

    /// Where the operation of a node is in the list of deprecated ones, if it is there.
    pub(in super::super) fn deprecated_operation_of(&self, node: u32) -> Option<u32> {
        let position = self.deprecated.binary_search_by_key(&node, |found| found.number).ok()?;
        Some(self.deprecated.get(position)?.position)
    }

    pub(in super::super) fn misfit(&self) -> Option<Misfit> {
        self.misfit
    }

    pub(in super::super) fn deprecated(&self) -> &[DeprecatedNode] {
        &self.deprecated
    }

    pub(in super::super) fn calls(&self) -> &[CallingNode] {
        &self.calls
    }

    /// Where the first node is whose device is none.
    pub(in super::super) fn bad_device(&self) -> Option<Extent> {
        self.bad_device
    }

    /// A function that comes again and is another one.
    pub(in super::super) fn duplicate_function(&self) -> Option<&DuplicateFunction> {
        self.duplicate_function.as_ref()
    }

    /// A function that has two gradients.
    pub(in super::super) fn second_gradient(&self) -> Option<&str> {
        self.second_gradient.as_deref()
    }

    /// Whether nothing is known of the nodes, because a name was too long to be looked at.
    pub(in super::super) fn is_without_nodes(&self) -> bool {
        self.oversized
    }
}
