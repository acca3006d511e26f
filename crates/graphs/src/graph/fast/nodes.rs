//! Checks names and inputs of nodes during the fast walk.
//!
//! The [`NodeTable`] keeps a hash of every name. If an input is not the name of an earlier node, or
//! two names have one hash, it reports that the result is unknown.

use std::hash::{BuildHasher, Hasher};

use super::{
    edges::{EdgeKind, EdgeKinds, FastSignature},
    names::{NameFlags, Names, is_same_name, signature_of, with_signature},
    node_signatures::FastSignatures,
};
use crate::{
    graph::{
        DeprecatedOperations, StructureDiagnosticKind,
        characters::Seen,
        rules::{LoopRole, Output, input_node, input_node_seen, is_control_input, is_node_name},
    },
    scan::Piece,
};

/// The facts about the current node.
#[derive(Debug, Default)]
pub(super) struct NodeInProgress {
    /// The name, cut for messages.
    pub(super) name: Vec<u8>,
    pub(super) deprecated: Option<u32>,
    name_hash: Option<u64>,
    bad_name: bool,
    has_operation: bool,
    inputs: Vec<u64>,
    /// The number of its inputs.
    count: u64,
    /// The output that each of `inputs` names; empty unless node signatures are kept.
    outputs: Vec<Output>,
    /// The nodes with which it may be colocated.
    colocated: Vec<u64>,
    loop_role: LoopRole,
    control_inputs: bool,
    bad_input_order: bool,
    /// A name or input that is too long to be checked completely.
    oversized: bool,
}

impl NodeInProgress {
    pub(super) fn clear(&mut self) {
        self.name.clear();
        self.inputs.clear();
        self.outputs.clear();
        self.colocated.clear();
        let (name, inputs) = (std::mem::take(&mut self.name), std::mem::take(&mut self.inputs));
        let colocated = std::mem::take(&mut self.colocated);
        let outputs = std::mem::take(&mut self.outputs);
        *self = Self { name, inputs, outputs, colocated, ..Self::default() };
    }

    /// Prepares for a node in the canonical encoding.
    pub(super) fn begin_canonical(&mut self) {
        self.colocated.clear();
        self.inputs.clear();
        self.outputs.clear();
        self.count = 0;
        self.control_inputs = false;
    }

    /// Returns the number of data inputs of a canonically encoded node, where node signatures are
    /// kept.
    pub(super) fn data_inputs(&self) -> u64 {
        self.outputs.iter().filter(|output| **output != Output::CONTROL).count() as u64
    }

    pub(super) fn operation(&mut self, piece: &[u8], is: Piece, operations: &DeprecatedOperations) {
        self.has_operation = !is.first || !is.last || !piece.is_empty();
        self.deprecated = None;
        self.loop_role = LoopRole::None;
        if is.first && is.last {
            self.loop_role = LoopRole::of(piece);
            self.deprecated =
                operations.position(piece).and_then(|position| u32::try_from(position).ok());
        }
    }
}

/// The names of the nodes so far.
#[derive(Debug)]
pub(super) struct NodeTable {
    hasher: foldhash::fast::RandomState,
    names: Names,
    /// True if nodes are added with their node signatures.
    keeps_signatures: bool,
    /// The last names, each in the slot that its hash selects: most inputs name a node shortly
    /// before.
    recent: Box<[u64]>,
    /// The number of inputs of all nodes.
    inputs: u64,
    /// True if there was a `NextIteration`, the back edge of a loop.
    next_iteration: bool,
    /// True if a name was too long to be checked, or a loop begins with its own back edge.
    unknown: bool,
}

/// Number of names in the cache; 16 KiB of hashes, which fit into the first-level cache.
const RECENT: usize = 2048;

/// Returns the slot of a hash among the recent names.
fn recent(hash: u64) -> usize {
    (hash >> 16) as usize % RECENT
}

impl NodeTable {
    /// Creates a table for a graph in a file of `size` bytes; `keeps_signatures` if nodes come with
    /// their node signatures.
    pub(super) fn new(size: u64, keeps_signatures: bool) -> Self {
        Self {
            hasher: foldhash::fast::RandomState::default(),
            names: Names::new(size, keeps_signatures),
            keeps_signatures,
            recent: vec![0; RECENT].into(),
            inputs: 0,
            next_iteration: false,
            unknown: false,
        }
    }

    /// Returns the number of inputs of all nodes.
    pub(super) fn inputs(&self) -> u64 {
        self.inputs
    }

    /// Returns true if the nodes need the slow path, because an input does not name an earlier node
    /// or two names may be equal, and the kinds of the resolved edges.
    pub(super) fn needs_order(self) -> (bool, EdgeKinds) {
        let (flags, edges) = self.names.finish();
        let NameFlags { forward_references, suspected_duplicates } = flags;
        (self.unknown || forward_references || suspected_duplicates, edges)
    }

    fn hash(&self, bytes: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(bytes);
        // The lowest bit distinguishes queued operations, and as it is set in the table, zero marks
        // a free slot.
        hasher.finish() | 1
    }

    /// Looks up an input of a canonically encoded node; returns false if the node needs the slow
    /// path, which then starts again.
    #[inline]
    pub(super) fn canonical_input(
        &mut self,
        node: &mut NodeInProgress,
        input: &[u8],
        seen: Seen,
    ) -> bool {
        let name = input_node_seen(input, seen);
        if is_control_input(input) {
            node.control_inputs = true;
        } else if node.control_inputs {
            return false;
        }
        node.count += 1;
        let hash = self.hash(name);
        if self.keeps_signatures {
            // The target's signature is known at the end of the node.
            node.inputs.push(hash);
            node.outputs.push(Output::of(input, name));
        } else {
            self.look_up(hash);
        }
        true
    }

    /// Adds a canonically encoded node, whose name is valid.
    #[inline]
    pub(super) fn add_canonical(
        &mut self,
        node: &NodeInProgress,
        name: &[u8],
        role: LoopRole,
        at: u64,
        signature: Option<(FastSignature, &mut FastSignatures<'_>)>,
    ) {
        self.names.pass(at);
        self.inputs += node.count;
        let hash = self.hash(name);
        match signature {
            Some((signature, node_signatures)) => {
                self.look_up_edges(node, signature, node_signatures);
                self.insert(with_signature(hash, signature));
            }
            None => {
                self.look_up_all(&node.inputs);
                self.insert(hash);
            }
        }
        self.look_up_all(&node.colocated);
        self.note_loop(role);
    }

    /// Records a node with which this one is colocated.
    pub(super) fn colocated(&self, node: &mut NodeInProgress, name: &[u8]) {
        node.colocated.push(self.hash(name));
    }

    /// A Merge does not wait for a back edge, and waits forever if it has no other input: the slow
    /// path checks this.
    #[inline]
    fn note_loop(&mut self, role: LoopRole) {
        match role {
            LoopRole::None => {}
            LoopRole::NextIteration => self.next_iteration = true,
            LoopRole::Merge => self.unknown |= self.next_iteration,
        }
    }

    pub(super) fn name(&self, node: &mut NodeInProgress, piece: &[u8], is: Piece) {
        if is.first && is.last {
            node.bad_name = !is_node_name(piece);
            node.name_hash = Some(self.hash(piece));
        } else {
            node.oversized = true;
        }
    }

    pub(super) fn input(&self, node: &mut NodeInProgress, piece: &[u8], is: Piece) {
        if !(is.first && is.last) {
            node.oversized = true;
            return;
        }
        node.count += 1;
        let name = input_node(piece);
        // Only the first character decides the order.
        if is_control_input(piece) {
            node.control_inputs = true;
        } else if node.control_inputs {
            node.bad_input_order = true;
        }
        node.inputs.push(self.hash(name));
    }

    /// Adds the node.
    ///
    /// `at` is the end of its bytes.
    pub(super) fn add(
        &mut self,
        node: &mut NodeInProgress,
        at: u64,
    ) -> Result<(), StructureDiagnosticKind> {
        self.names.pass(at);
        self.inputs += node.count;
        if node.oversized {
            // Longer than any name that TensorFlow makes; the slow path checks it or gives up.
            self.unknown = true;
            return Ok(());
        }
        self.look_up_all(&node.inputs);
        let Some(hash) = node.name_hash else { return Err(StructureDiagnosticKind::Name) };
        if node.bad_name {
            return Err(StructureDiagnosticKind::Name);
        }
        self.insert(hash);
        self.look_up_all(&node.colocated);
        self.note_loop(node.loop_role);
        if !node.has_operation {
            return Err(StructureDiagnosticKind::NoOperation);
        }
        if node.bad_input_order {
            return Err(StructureDiagnosticKind::InputOrder);
        }
        Ok(())
    }

    #[inline]
    fn look_up(&mut self, hash: u64) {
        if self.recent.get(recent(hash)) != Some(&hash) {
            self.names.look_up(hash, EdgeKind::CONTROL);
        }
    }

    /// Looks up the inputs of a node of this signature, and records the kinds of the edges.
    #[inline]
    fn look_up_edges(
        &mut self,
        node: &NodeInProgress,
        signature: FastSignature,
        node_signatures: &mut FastSignatures<'_>,
    ) {
        let mut position = 0;
        for (hash, output) in node.inputs.iter().zip(&node.outputs) {
            let mut edge = Some(EdgeKind::CONTROL);
            if *output != Output::CONTROL {
                edge = output
                    .number()
                    .and_then(|output| EdgeKind::into_node(signature, position, output));
                position += 1;
            }
            let edge = edge.unwrap_or_else(|| node_signatures.give_up());
            match self.recent.get(recent(*hash)) {
                Some(known) if is_same_name(*known, *hash) => {
                    node_signatures.edge(edge.out_of(signature_of(*known)))
                }
                _ => self.names.look_up(*hash, edge),
            }
        }
    }

    fn look_up_all(&mut self, hashes: &[u64]) {
        for hash in hashes {
            self.look_up(*hash);
        }
    }

    #[inline]
    fn insert(&mut self, hash: u64) {
        self.names.insert(hash);
        if let Some(slot) = self.recent.get_mut(recent(hash)) {
            *slot = hash;
        }
    }
}
