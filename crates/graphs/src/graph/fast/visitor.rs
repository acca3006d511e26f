//! Collects, during a walk over a graph, the facts that decide if TensorFlow accepts it.
//!
//! Depends on which fields of the messages matter. For each node it keeps a hash of the name, and
//! nothing else.

mod graphs;
mod library;

use std::collections::BTreeMap;

use super::{
    bodies::FastBodies,
    bounded::{add_bad_consumer, collect},
    edges::FastSignature,
    node_signatures::{FastSignatures, NodeBytes},
    nodes::{NodeInProgress, NodeTable},
    scanned_graph::ScannedGraph,
};
use crate::{
    graph::{
        DeprecatedOperations, Graph, MetaGraph,
        deprecated_uses::DeprecatedUses,
        devices::DeviceReader,
        function_names::{FunctionNames, LONGEST_NAME},
        raw_nodes::{Reference, SignatureCache},
        references::References,
        release::Releases,
        rules::{LoopRole, SHOWN_NAME, is_node_name},
        source::Extent,
    },
    scan::{Piece, Step, Visitor, is_ascii},
    schema::{
        ATTR_VALUE_LIST_VALUE, FUNCTION_DEF, FUNCTION_DEF_LIBRARY, Field, GRADIENT_DEF, GRAPH_DEF,
        META_GRAPH_DEF, META_GRAPH_DEF_META_INFO_DEF, MessageId, NODE_DEF, OP_DEF, OP_DEPRECATION,
        OP_LIST, REGISTERED_GRADIENT, SAVED_MODEL, SAVER_DEF, VERSION_DEF,
        fields::{
            attr_value_list_value, function_def, function_def_library, gradient_def, graph_def,
            meta_graph_def, meta_graph_def_meta_info_def, node_def, op_def, op_deprecation,
            op_list, registered_gradient, saved_model, version_def,
        },
        knows_field,
    },
};

/// The depth to which a graph is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Depth {
    /// Reads the versions and what distinguishes meta graphs; skips nodes.
    Versions,
    /// Reads everything.
    Whole,
    /// Reads everything, and counts operations by their type.
    Counted,
}

/// Limit on the bytes of tags and release names that are kept in total.
const MAXIMUM_TEXT: usize = 1 << 20;

/// The part of a file that a node belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeOwner {
    Outside,
    Graph,
    Function,
}

/// The visitor of GraphDef, MetaGraphDef and SavedModel.
pub(in super::super) struct GraphVisitor<'a> {
    depth: Depth,
    operations: &'a DeprecatedOperations,
    /// The GraphDef version of the release that is to read the graph.
    release: i32,
    root: MessageId,
    size: u64,
    meta_graphs: Vec<ScannedGraph>,
    /// True if there were more meta graphs, tags or operation types than the limits allow.
    overflow: bool,
    text_kept: usize,
    owner: NodeOwner,
    node: NodeInProgress,
    table: NodeTable,
    known: SignatureCache<FastSignature>,
    devices: DeviceReader,
    releases: Releases<'a>,
    /// True if the nodes outside functions are judged for releases.
    judges_nodes: bool,
    /// The node signatures, if nodes are checked for releases; `None` once a signature is invalid.
    node_signatures: Option<FastSignatures<'a>>,
    /// The known nodes of functions, if releases are given; `None` once a node has an unknown
    /// attribute.
    bodies: Option<FastBodies<'a>>,
    counts: BTreeMap<Vec<u8>, u64>,
    in_versions: bool,
    in_signature: bool,
    functions: FunctionNames,
    function: Vec<u8>,
    /// The position of the next message.
    begins: u64,
    /// The position of the current function.
    function_begins: u64,
    /// The position of the current part of a meta graph other than its graph.
    part_begins: u64,
    /// The version since which the current function declares itself deprecated.
    function_deprecated: Option<i32>,
    uses: DeprecatedUses,
    /// The pieces of the current string so far.
    text: Vec<u8>,
}

impl GraphVisitor<'_> {
    fn scanned(&mut self) -> Option<&mut ScannedGraph> {
        if self.overflow { None } else { self.meta_graphs.last_mut() }
    }

    fn meta_graph(&mut self) -> Option<&mut MetaGraph> {
        self.scanned().map(|scanned| &mut scanned.meta_graph)
    }

    fn graph(&mut self) -> Option<&mut Graph> {
        self.meta_graph().map(|meta_graph| &mut meta_graph.graph)
    }

    fn end_of_node(&mut self, at: u64) {
        let owner = self.owner;
        self.owner = NodeOwner::Outside;
        let structure =
            if owner == NodeOwner::Graph { self.table.add(&mut self.node, at) } else { Ok(()) };
        let deprecated = self.node.deprecated;
        let Some(graph) = self.graph() else { return };
        let nodes =
            if owner == NodeOwner::Function { &mut graph.function_nodes } else { &mut graph.nodes };
        *nodes += 1;
        // Almost no node takes the branches below.
        if let Err(diagnostic) = structure {
            self.end_of_bad_node(diagnostic);
        }
        if let Some(position) = deprecated {
            self.end_of_deprecated_node(position, owner == NodeOwner::Function);
        }
    }

    /// Handles a node in the canonical encoding.
    fn canonical_node(&mut self, bytes: &[u8], end: u64, depth: usize) -> bool {
        let Self { node, table, known, devices, .. } = self;
        node.begin_canonical();
        let mut has_bad_device = false;
        let canonical = known.read(bytes, depth, |reference| {
            match reference {
                Reference::Input(input, seen) => return table.canonical_input(node, input, seen),
                Reference::Colocated(name) => table.colocated(node, name),
                Reference::Device(device) => {
                    let is_valid = devices.is_device(device) && devices.is_session_device(device);
                    has_bad_device |= !is_valid;
                }
            }
            true
        });
        let Some(canonical) = canonical.filter(|canonical| is_node_name(canonical.name)) else {
            return false;
        };
        if !self.is_fast_operation(canonical.operation) {
            return false;
        }
        let role = LoopRole::of(canonical.operation);
        let signature =
            self.signature(canonical.operation, has_bad_device, NodeBytes { bytes, end, depth });
        let signature = signature.zip(self.node_signatures.as_mut());
        self.table.add_canonical(&self.node, canonical.name, role, end, signature);
        if let Some(graph) = self.graph() {
            graph.nodes += 1;
        }
        true
    }

    /// Handles a node of a function in the canonical encoding.
    fn canonical_body_node(&mut self, bytes: &[u8], end: u64, depth: usize) -> bool {
        let canonical = match &mut self.bodies {
            Some(bodies) => bodies.read(bytes, depth),
            None => self.known.read(bytes, depth, |_| true),
        };
        let Some(canonical) = canonical.filter(|canonical| is_ascii(canonical.name)) else {
            return false;
        };
        if !self.is_fast_operation(canonical.operation) {
            return false;
        }
        let node = NodeBytes { bytes, end, depth };
        let ignores_nothing =
            |bodies: &mut FastBodies<'_>| bodies.ignores_nothing(canonical.operation, node);
        if !self.bodies.as_mut().is_some_and(ignores_nothing) {
            self.bodies = None;
        }
        if let Some(graph) = self.graph() {
            graph.function_nodes += 1;
        }
        true
    }

    /// Returns true if an operation needs no slow path; counts it if counting was requested.
    fn is_fast_operation(&mut self, operation: &[u8]) -> bool {
        let is_fast = self.operations.position(operation).is_none()
            && !operation.is_empty()
            && is_ascii(operation);
        if is_fast && self.depth == Depth::Counted {
            self.count_operation(operation);
        }
        is_fast
    }

    /// Returns the node signature of a node in the canonical encoding, if requested. A signature
    /// that is invalid for some registry ends the search.
    #[inline]
    fn signature(
        &mut self,
        operation: &[u8],
        has_bad_device: bool,
        node: NodeBytes<'_>,
    ) -> Option<FastSignature> {
        let node_signatures = self.node_signatures.as_mut()?;
        let inputs = self.node.data_inputs();
        let signature = node_signatures.signature(&mut self.known, operation, inputs, node);
        if signature.is_none() || has_bad_device {
            self.node_signatures = None;
            return None;
        }
        signature
    }
}

impl Visitor for GraphVisitor<'_> {
    fn begins(&mut self, at: u64) {
        self.begins = at;
    }

    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        if !knows_field(self.release, message, field.number) {
            return Step::Over;
        }
        let whole = if self.depth == Depth::Versions { Step::Over } else { Step::Into };
        match (message, field.number) {
            (NODE_DEF, _) => whole,
            (GRAPH_DEF, graph_def::NODE) => {
                if whole == Step::Into {
                    // Only nodes in the canonical encoding are checked for registries.
                    self.node_signatures = None;
                    self.owner = NodeOwner::Graph;
                    self.node.clear();
                }
                whole
            }
            (GRAPH_DEF, graph_def::VERSIONS) => {
                self.in_versions = true;
                if let Some(graph) = self.graph() {
                    graph.has_versions = true;
                }
                Step::Into
            }
            (SAVED_MODEL, saved_model::META_GRAPHS) => {
                self.begin_meta_graph();
                Step::Into
            }
            (META_GRAPH_DEF, meta_graph_def::META_INFO_DEF | meta_graph_def::GRAPH_DEF) => {
                Step::Into
            }
            (OP_LIST, op_list::OP) => {
                if let Some(meta_graph) = self.meta_graph() {
                    meta_graph.listed_operations += 1;
                }
                whole
            }
            (META_GRAPH_DEF, meta_graph_def::SAVER_DEF) => {
                if let Some(meta_graph) = self.meta_graph() {
                    meta_graph.has_saver = true;
                }
                self.part_begins = self.begins;
                whole
            }
            (META_GRAPH_DEF, meta_graph_def::OBJECT_GRAPH_DEF) => {
                if let Some(meta_graph) = self.meta_graph() {
                    meta_graph.has_object_graph = true;
                }
                self.part_begins = self.begins;
                whole
            }
            (META_GRAPH_DEF, number) if References::has_field(number) => {
                self.part_begins = self.begins;
                whole
            }
            _ => {
                self.enter_function(message, field);
                whole
            }
        }
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, at: u64) {
        match (message, field.number) {
            (GRAPH_DEF, graph_def::NODE) | (FUNCTION_DEF, function_def::NODE_DEF) => {
                self.end_of_node(at)
            }
            (GRAPH_DEF, graph_def::VERSIONS) => self.in_versions = false,
            (FUNCTION_DEF, function_def::SIGNATURE) => self.in_signature = false,
            (FUNCTION_DEF_LIBRARY, function_def_library::FUNCTION) => self.end_of_function(at),
            (FUNCTION_DEF_LIBRARY, function_def_library::GRADIENT) => self.functions.end_gradient(),
            (FUNCTION_DEF_LIBRARY, function_def_library::REGISTERED_GRADIENTS) => {
                self.functions.end_registered();
            }
            (SAVED_MODEL, saved_model::META_GRAPHS) => self.end_of_graph(),
            (META_GRAPH_DEF, meta_graph_def::OBJECT_GRAPH_DEF) => {
                let part = Extent { start: self.part_begins, end: at };
                if let Some(scanned) = self.scanned() {
                    scanned.objects.add(part);
                }
            }
            (META_GRAPH_DEF, number) if References::has_field(number) => {
                let part = Extent { start: self.part_begins, end: at };
                if let Some(meta_graph) = self.meta_graph() {
                    meta_graph.references.add(number, part);
                }
            }
            _ => {}
        }
    }

    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        let stripped = meta_graph_def_meta_info_def::STRIPPED_DEFAULT_ATTRS;
        if (message, field.number) == (META_GRAPH_DEF_META_INFO_DEF, stripped) {
            if let Some(meta_graph) = self.meta_graph() {
                meta_graph.stripped_default_attrs = value != 0;
            }
            return;
        }
        // An int32 uses the low 32 bits of its varint.
        let value = value as u32 as i32;
        if (message, field.number) == (OP_DEPRECATION, op_deprecation::VERSION)
            && self.in_signature
            && self.function_deprecated.is_some()
        {
            self.function_deprecated = Some(value);
        }
        if message != VERSION_DEF || !self.in_versions {
            return;
        }
        if let Some(graph) = self.graph() {
            match field.number {
                version_def::PRODUCER => graph.versions.producer = value,
                version_def::MIN_CONSUMER => graph.versions.min_consumer = value,
                _ => add_bad_consumer(&mut graph.versions.bad_consumers, value),
            }
        }
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        match message {
            NODE_DEF if self.owner != NodeOwner::Outside => match field.number {
                node_def::NAME => {
                    if self.owner == NodeOwner::Graph {
                        self.table.name(&mut self.node, piece, is);
                    }
                    collect(&mut self.node.name, piece, is, SHOWN_NAME);
                }
                node_def::OP => {
                    self.node.operation(piece, is, self.operations);
                    if self.depth == Depth::Counted && is.first && is.last {
                        self.count_operation(piece);
                    }
                }
                node_def::INPUT if self.owner == NodeOwner::Graph => {
                    self.table.input(&mut self.node, piece, is)
                }
                _ => {}
            },
            ATTR_VALUE_LIST_VALUE if field.number == attr_value_list_value::S => {
                // This may be the list of another attribute, or one that is overridden: the slow
                // path decides.
                if let Some(name) = piece.strip_prefix(b"loc:@") {
                    self.table.colocated(&mut self.node, name);
                }
            }
            OP_DEF if self.in_signature && field.number == op_def::NAME => {
                collect(&mut self.function, piece, is, LONGEST_NAME + 1);
            }
            GRADIENT_DEF if field.number == gradient_def::FUNCTION_NAME => {
                self.functions.gradient_of(piece)
            }
            GRADIENT_DEF => self.functions.gradient_is(piece),
            REGISTERED_GRADIENT if field.number == registered_gradient::REGISTERED_OP_TYPE => {
                self.functions.registered_of(piece);
            }
            REGISTERED_GRADIENT => self.functions.registered_is(piece),
            SAVER_DEF => {
                if let Some(meta_graph) = self.meta_graph() {
                    meta_graph.saver.take(field.number, piece, is);
                }
            }
            META_GRAPH_DEF_META_INFO_DEF
                if matches!(
                    field.number,
                    meta_graph_def_meta_info_def::TAGS
                        | meta_graph_def_meta_info_def::TENSORFLOW_VERSION
                ) =>
            {
                collect(&mut self.text, piece, is, MAXIMUM_TEXT + 1);
                if is.last {
                    self.keep_text(field);
                }
            }
            _ => {}
        }
    }

    fn wants_packed(&self, message: MessageId) -> bool {
        message == VERSION_DEF && self.in_versions
    }

    fn wants_bytes(&self, message: MessageId, field: &'static Field) -> bool {
        (message, field.number) == (ATTR_VALUE_LIST_VALUE, attr_value_list_value::S)
            && self.owner == NodeOwner::Graph
    }

    fn wants_whole(&self, message: MessageId, field: &'static Field) -> bool {
        match (message, field.number) {
            (GRAPH_DEF, graph_def::NODE) => self.node_signatures.is_some(),
            (FUNCTION_DEF, function_def::NODE_DEF) => self.bodies.is_some(),
            _ => false,
        }
    }

    fn release(&self) -> i32 {
        self.release
    }

    #[inline]
    fn take(
        &mut self,
        message: MessageId,
        field: &'static Field,
        bytes: &[u8],
        end: u64,
        depth: usize,
    ) -> bool {
        match (message, field.number) {
            (GRAPH_DEF, graph_def::NODE) if self.depth != Depth::Versions => {
                self.canonical_node(bytes, end, depth)
            }
            (FUNCTION_DEF, function_def::NODE_DEF) if self.depth != Depth::Versions => {
                self.canonical_body_node(bytes, end, depth)
            }
            _ => false,
        }
    }
}
