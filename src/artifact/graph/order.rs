//! The order in which TensorFlow's importer visits the nodes of a graph, and what it finds on the way.
//!
//! Needed only for graphs that use a node before they write it, or that may have two nodes of one name or one that is nowhere. Two more walks over the
//! bytes: the first gives every name its number, the second collects the edges. Memory is proportional to the nodes and edges.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasher, Hasher};

use super::bodies::CallFault;
use super::structure::{
    LoopRole, StructureFault, StructureFaultKind, input_node, is_node_name, shown,
};
use super::{DeprecatedOperations, DeprecatedUse, Graph};
use crate::artifact::schema::{
    ATTR_VALUE, ATTR_VALUE_LIST_VALUE, Field, GRAPH_DEF, META_GRAPH_DEF, MessageId, NODE_DEF,
    NODE_DEF_ATTR_ENTRY, SAVED_MODEL,
};
use crate::wire::scan::{Piece, Step, Visitor};

/// A name that is longer than this, in bytes, is taken as it is without being looked at: no real graph has one.
const LONGEST_NAME: usize = 1 << 20;

/// What the importer finds.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The first fault, if any.
    pub(super) fault: Option<StructureFault>,
    /// The first node of each deprecated operation, in the order of visits: position in the list, and the node's name. `None` if the
    /// order is not known.
    deprecated: Option<Vec<(u32, String)>>,
    /// How many of `deprecated` are visited before the fault.
    visited_before_fault: usize,
    /// The fault of a node whose name is still to be found, by the node's number.
    unnamed: Option<(u32, StructureFaultKind)>,
}

impl Order {
    /// The node whose name is still to be found.
    pub(super) fn wanted(&self) -> Option<u32> {
        self.unnamed.map(|(number, _)| number)
    }

    /// Takes the name that was found.
    pub(super) fn name(&mut self, found: Option<StructureFault>) {
        if let (Some(found), Some((_, kind))) = (found, self.unnamed) {
            self.fault = Some(StructureFault { kind, ..found });
        }
    }

    /// Corrects what the first walk could not know.
    pub(super) fn apply(self, graph: &mut Graph, operations: &DeprecatedOperations) {
        graph.structure = self.fault;
        graph.visited_before_fault = self.visited_before_fault;
        let Some(order) = self.deprecated else { return };
        let mut uses = std::mem::take(&mut graph.deprecated_nodes);
        for (position, node) in order {
            let name = operations.entries().get(position as usize).map(|operation| &operation.name);
            if let Some(found) = uses.iter().position(|found| Some(&found.operation.name) == name) {
                graph.deprecated_nodes.push(DeprecatedUse { node, ..uses.swap_remove(found) });
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Numbers every name and looks at every node for itself.
    Names,
    /// Collects the edges.
    Edges,
    /// Finds the name of one node.
    Find(u32),
}

/// A walk that collects names, then edges, of one graph.
pub(super) struct OrderVisitor<'a> {
    operations: &'a DeprecatedOperations,
    /// The GraphDef version of the release that is to read the graph.
    release: i32,
    root: MessageId,
    /// The graph that is looked at, by the number of its meta graph.
    target: usize,
    meta_graphs: usize,
    pass: Pass,
    hashers: [foldhash::quality::RandomState; 2],
    numbers: HashMap<[u64; 2], u32>,
    node: u32,
    in_node: bool,
    /// Every deprecated node: its number, the position of its operation in the list, its name.
    deprecated: Vec<(u32, u32, String)>,
    loop_role: LoopRole,
    name: Vec<u8>,
    operation: Vec<u8>,
    text: Vec<u8>,
    oversized: bool,
    control_inputs: u32,
    inputs: Vec<Option<u32>>,
    /// Whether the attribute that is being read says what the node has to be beside, and whether one of those nodes is not there.
    class: (bool, bool),
    /// The same of the node.
    lost: bool,
    /// The numbers of the nodes that have to be beside one that is not there, ascending.
    lost_nodes: Vec<u32>,
    /// The nodes that call a function that cannot be built.
    calling_nodes: &'a [CallFault],
    has_control: bool,
    bad_input_order: bool,
    /// The numbers of the NextIteration nodes, ascending.
    next_iterations: Vec<u32>,
    /// The numbers of the Merge nodes, ascending.
    merges: Vec<u32>,
    edges: Vec<(u32, u32)>,
    pending: Vec<u32>,
    fault: Option<StructureFault>,
    /// Whether a name was too long to be looked at, so that nothing is known of the order.
    gave_up: bool,
}

impl<'a> OrderVisitor<'a> {
    pub(super) fn new(
        root: MessageId,
        target: usize,
        operations: &'a DeprecatedOperations,
        release: i32,
    ) -> Self {
        Self {
            operations,
            release,
            root,
            target,
            meta_graphs: 0,
            pass: Pass::Names,
            hashers: Default::default(),
            numbers: HashMap::new(),
            node: 0,
            in_node: false,
            deprecated: Vec::new(),
            loop_role: LoopRole::None,
            name: Vec::new(),
            operation: Vec::new(),
            text: Vec::new(),
            oversized: false,
            control_inputs: 0,
            inputs: Vec::new(),
            class: (false, false),
            lost: false,
            lost_nodes: Vec::new(),
            calling_nodes: &[],
            has_control: false,
            bad_input_order: false,
            next_iterations: Vec::new(),
            merges: Vec::new(),
            edges: Vec::new(),
            pending: Vec::new(),
            fault: None,
            gave_up: false,
        }
    }

    /// Knows the nodes that call a function that cannot be built.
    pub(super) fn calling(mut self, nodes: &'a [CallFault]) -> Self {
        self.calling_nodes = nodes;
        self
    }

    /// Prepares for the second walk over the same bytes.
    pub(super) fn second(&mut self) {
        self.pass = Pass::Edges;
        self.meta_graphs = 0;
        self.node = 0;
    }

    /// A walk that finds the name of one node of the same graph.
    pub(super) fn finding(mut self, number: u32) -> Self {
        self.pass = Pass::Find(number);
        self
    }

    /// The name that was looked for, as the fault of the node that has it.
    pub(super) fn found(self) -> Option<StructureFault> {
        self.fault
    }

    fn hash(&self, name: &[u8]) -> [u64; 2] {
        self.hashers.each_ref().map(|hasher| {
            let mut hasher = hasher.build_hasher();
            hasher.write(name);
            hasher.finish()
        })
    }

    fn is_target(&self) -> bool {
        self.root != SAVED_MODEL || self.meta_graphs == self.target + 1
    }

    fn complain(&mut self, kind: StructureFaultKind) {
        let name = shown(&self.name);
        self.fault.get_or_insert_with(|| StructureFault::new(kind, &name));
    }

    fn input(&mut self) {
        if self.pass == Pass::Names {
            if self.text.first() == Some(&b'^') {
                self.has_control = true;
            } else if self.has_control {
                self.bad_input_order = true;
            }
            return;
        }
        if self.pass != Pass::Edges {
            return;
        }
        let (name, _) = input_node(&self.text);
        let number = self.numbers.get(&self.hash(name)).copied();
        if self.text.first() == Some(&b'^') {
            self.control_inputs += 1;
        }
        self.inputs.push(number);
    }

    fn end_of_node(&mut self) {
        self.in_node = false;
        if self.oversized {
            self.gave_up = true;
        }
        let number = self.node;
        self.node = self.node.saturating_add(1);
        match self.pass {
            Pass::Names => {
                if !is_node_name(&self.name) {
                    self.complain(StructureFaultKind::Name);
                } else if self.numbers.insert(self.hash(&self.name), number).is_some() {
                    self.complain(StructureFaultKind::Duplicate);
                } else if self.operation.is_empty() {
                    self.complain(StructureFaultKind::NoOperation);
                } else if self.bad_input_order {
                    self.complain(StructureFaultKind::InputOrder);
                }
                match self.loop_role {
                    LoopRole::None => {}
                    LoopRole::NextIteration => self.next_iterations.push(number),
                    LoopRole::Merge => self.merges.push(number),
                }
                if let Some(position) = self.operations.position(&self.operation) {
                    let name = shown(&self.name);
                    self.deprecated.push((
                        number,
                        u32::try_from(position).unwrap_or(u32::MAX),
                        name,
                    ));
                }
            }
            Pass::Find(wanted) => {
                if wanted == number {
                    self.complain(StructureFaultKind::Cycle);
                }
            }
            Pass::Edges => {
                if self.lost {
                    self.lost_nodes.push(number);
                }
                let inputs = std::mem::take(&mut self.inputs);
                if inputs.contains(&None) {
                    self.complain(StructureFaultKind::UnknownInput);
                }
                let mut pending = u32::try_from(inputs.len()).unwrap_or(u32::MAX);
                // Control inputs come last, so that the data inputs are the first ones.
                let data = inputs.len().saturating_sub(self.control_inputs as usize);
                let is_loop = |number: &u32| self.next_iterations.binary_search(number).is_ok();
                if self.loop_role == LoopRole::Merge
                    && inputs.iter().take(data).flatten().any(is_loop)
                {
                    // The head of a loop starts with one data input; the other one comes back from the loop.
                    pending = self.control_inputs + 1;
                }
                self.pending.push(pending);
                self.edges.extend(inputs.iter().flatten().map(|input| (*input, number)));
                self.inputs = inputs;
            }
        }
    }

    /// Visits the nodes: the lowest number first among those whose inputs were visited.
    pub(super) fn finish(mut self) -> Order {
        if self.gave_up {
            return Order::default();
        }
        if self.fault.is_some() {
            return Order { fault: self.fault, ..Order::default() };
        }
        let visits = visit(&mut self.edges, &mut self.pending, &self.next_iterations, &self.merges);
        let visit = |number: u32| visits.get(number as usize).copied().unwrap_or(u32::MAX);
        self.deprecated.sort_by_key(|(number, position, _)| (*position, visit(*number)));
        self.deprecated.dedup_by_key(|(_, position, _)| *position);
        self.deprecated.retain(|(number, _, _)| visit(*number) != u32::MAX);
        self.deprecated.sort_by_key(|(number, _, _)| visit(*number));
        // At one node, where it has to be comes before what it calls.
        let lost = self.lost_nodes.iter();
        let lost = lost.map(|number| (*number, StructureFaultKind::UnknownColocation, false));
        let calling = self.calling_nodes.iter();
        let calling =
            calling.map(|call| (call.node, StructureFaultKind::CalledFunction, !call.of_signature));
        let first = lost.chain(calling).min_by_key(|(number, kind, _)| (visit(*number), *kind));
        let first = first.filter(|(number, _, _)| visit(*number) != u32::MAX);
        let unvisited = || {
            let number = visits.iter().position(|visit| *visit == u32::MAX)?;
            Some((u32::try_from(number).ok()?, StructureFaultKind::Cycle))
        };
        let before = first.map_or(self.deprecated.len(), |(first, _, at_node)| {
            // A function can say of itself that it is deprecated, which comes before what is in it.
            self.deprecated.partition_point(|(number, _, _)| {
                visit(*number) < visit(first) || (at_node && *number == first)
            })
        });
        Order {
            fault: None,
            visited_before_fault: before,
            unnamed: first.map(|(number, kind, _)| (number, kind)).or_else(unvisited),
            deprecated: Some(
                self.deprecated.into_iter().map(|(_, position, name)| (position, name)).collect(),
            ),
        }
    }
}

/// Visits nodes, the lowest number first among those whose inputs were visited, and says when each was; `u32::MAX` for never.
///
/// `pending` has how many inputs each node waits for; the edges lead from a node to one that has it as an input; the numbers of the
/// nodes by which loops go back (`next_iterations`) and at which they may begin (`merges`) are ascending.
pub(super) fn visit(
    edges: &mut [(u32, u32)],
    pending: &mut [u32],
    next_iterations: &[u32],
    merges: &[u32],
) -> Vec<u32> {
    edges.sort_unstable();
    let mut ready: BinaryHeap<Reverse<u32>> = (0_u32..)
        .zip(pending.iter())
        .filter(|(_, pending)| **pending == 0)
        .map(|(number, _)| Reverse(number))
        .collect();
    let mut visits = vec![u32::MAX; pending.len()];
    let mut visited = 0;
    while let Some(Reverse(number)) = ready.pop() {
        if let Some(visit) = visits.get_mut(number as usize) {
            *visit = visited;
        }
        visited += 1;
        let is_next_iteration = next_iterations.binary_search(&number).is_ok();
        let from = edges.partition_point(|edge| edge.0 < number);
        let after = edges.get(from..).unwrap_or_default();
        for (_, to) in after.iter().take_while(|edge| edge.0 == number) {
            // The edge that closes a loop is waited for by nobody; not even where it is a control edge, for which the head of the
            // loop then waits for ever.
            if is_next_iteration && merges.binary_search(to).is_ok() {
                continue;
            }
            if let Some(pending) = pending.get_mut(*to as usize)
                && *pending > 0
            {
                *pending -= 1;
                if *pending == 0 {
                    ready.push(Reverse(*to));
                }
            }
        }
    }
    visits
}

impl Visitor for OrderVisitor<'_> {
    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        match (message, field.number) {
            (SAVED_MODEL, 2) => {
                self.meta_graphs += 1;
                if self.is_target() { Step::Into } else { Step::Over }
            }
            (GRAPH_DEF, 1) => {
                self.in_node = true;
                self.loop_role = LoopRole::None;
                self.lost = false;
                self.oversized = false;
                self.has_control = false;
                self.bad_input_order = false;
                self.control_inputs = 0;
                self.inputs.clear();
                self.name.clear();
                self.operation.clear();
                Step::Into
            }
            (META_GRAPH_DEF, 2) => Step::Into,
            (NODE_DEF, 5) if self.pass == Pass::Edges => {
                self.class = (false, false);
                Step::Into
            }
            (NODE_DEF_ATTR_ENTRY, 2) | (ATTR_VALUE, 1) => Step::Into,
            (ATTR_VALUE, _) => {
                // Another value takes the place of a list.
                self.class.1 = false;
                Step::Over
            }
            _ => Step::Over,
        }
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, _at: u64) {
        match (message, field.number) {
            (GRAPH_DEF, 1) => self.end_of_node(),
            // Of several attributes with one key the last one counts.
            (NODE_DEF, 5) if self.class.0 => self.lost = self.class.1,
            _ => {}
        }
    }

    fn integer(&mut self, message: MessageId, _field: &'static Field, _value: u64) {
        if message == ATTR_VALUE {
            self.class.1 = false;
        }
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        match (message, field.number) {
            (NODE_DEF_ATTR_ENTRY, 1) => self.class.0 = piece == b"_class",
            (ATTR_VALUE, _) => self.class.1 = false,
            (ATTR_VALUE_LIST_VALUE, 2) => {
                self.class.1 |= piece
                    .strip_prefix(b"loc:@")
                    .is_some_and(|name| !self.numbers.contains_key(&self.hash(name)));
            }
            _ => {}
        }
        if !self.in_node || message != NODE_DEF || field.number > 3 {
            return;
        }
        if is.first {
            self.text.clear();
        }
        if self.text.len() + piece.len() > LONGEST_NAME {
            self.oversized = true;
            return;
        }
        self.text.extend_from_slice(piece);
        if !is.last {
            return;
        }
        match field.number {
            1 => std::mem::swap(&mut self.name, &mut self.text),
            2 => {
                self.loop_role = LoopRole::of(&self.text);
                std::mem::swap(&mut self.operation, &mut self.text);
            }
            _ => self.input(),
        }
    }

    fn wants_packed(&self, _message: MessageId) -> bool {
        false
    }

    fn release(&self) -> i32 {
        self.release
    }

    fn wants_bytes(&self, message: MessageId, field: &'static Field) -> bool {
        matches!(message, ATTR_VALUE | ATTR_VALUE_LIST_VALUE) && field.number == 2
    }
}
