//! Collects, while the bytes of a graph pass by, what decides whether TensorFlow takes it.
//!
//! Knows which fields of the messages matter. It keeps a bounded amount for each node: a hash of
//! its name, and nothing else.

use std::collections::BTreeMap;

use super::{
    bodies::FastBodies,
    bounded::{add_bad_consumer, collect},
    edges::FastKind,
    kinds::{FastKinds, NodeBytes},
    nodes::{NodeInProgress, NodeTable},
};
use crate::{
    graph::{
        DeprecatedOperation, DeprecatedOperations, Graph, MetaGraph, StructureFault,
        StructureFaultKind,
        deprecated_uses::DeprecatedUses,
        devices::DeviceReader,
        function_names::{FunctionNames, LONGEST_NAME},
        index::TopLevelNodes,
        objects::ObjectGraph,
        raw_nodes::{Reference, SignatureCache},
        references::References,
        release::Releases,
        rules::{LoopRole, SHOWN_NAME, is_node_name, shown},
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
    /// The versions and what tells meta graphs apart; nodes are stepped over.
    Versions,
    /// Everything.
    Whole,
    /// Everything, and operations are counted by their type.
    Counted,
}

/// Meta graphs that are kept of one SavedModel; real ones have one to three.
const MAXIMUM_META_GRAPHS: usize = 1024;

/// Bytes of tags and release names that are kept in all.
const MAXIMUM_TEXT: usize = 1 << 20;

/// Operation types that are counted apart; TensorFlow registers about two thousand.
const MAXIMUM_OPERATIONS: usize = 1 << 16;

/// Functions that are deprecated themselves and are kept.
const MAXIMUM_DEPRECATED: usize = 1 << 16;

/// A meta graph after the fast walk.
#[derive(Debug, Default)]
pub(in super::super) struct ScannedGraph {
    pub(in super::super) meta_graph: MetaGraph,
    /// True if the importer may visit the nodes in another order than that of the file.
    pub(in super::super) needs_order: bool,
    /// The number of inputs of its nodes.
    pub(in super::super) inputs: u64,
    pub(in super::super) functions: FunctionNames,
    /// The node facts that loaders check, if every given registry is known to accept the nodes.
    pub(in super::super) accepted: Option<TopLevelNodes>,
    /// True if nodes of functions may have attributes that a given registry does not know.
    pub(in super::super) may_ignore_in_functions: bool,
    /// Functions that say of themselves that they are deprecated.
    pub(in super::super) deprecated_functions: Vec<DeprecatedOperation>,
    /// The extents of its object graph.
    pub(in super::super) objects: ObjectGraph,
}

impl ScannedGraph {
    /// Returns true if the graph needs no slow path.
    pub(in super::super) fn needs_no_slow_path(&self) -> bool {
        let no_functions = self.functions.is_empty() && !self.functions.repeated();
        self.deprecated_functions.is_empty()
            && (no_functions || self.fault_before_visits().is_some())
            && !self.needs_order
    }

    /// The fault with which every loader refuses the graph before it visits any node.
    pub(in super::super) fn fault_before_visits(&self) -> Option<&StructureFault> {
        // A node without an operation may call the function without a name.
        let is_call = |fault: &StructureFault| {
            fault.kind == StructureFaultKind::NoOperation && self.functions.find(b"").is_some()
        };
        let fault = self.meta_graph.graph.structure.as_ref();
        fault.filter(|fault| !self.needs_order && !is_call(fault))
    }
}

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
    /// True if there were more meta graphs, tags or operation types than the limits.
    overflow: bool,
    text_kept: usize,
    owner: NodeOwner,
    node: NodeInProgress,
    table: NodeTable,
    known: SignatureCache<FastKind>,
    devices: DeviceReader,
    releases: Releases<'a>,
    /// True if the nodes outside of functions are judged for releases.
    judges_nodes: bool,
    /// The kinds of the nodes, if releases ask, as long as all are valid.
    kinds: Option<FastKinds<'a>>,
    /// The known nodes of functions, if releases are given, until one has an unknown attribute.
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
    /// The position of the current part of a meta graph beside its graph.
    part_begins: u64,
    /// From which version on the function that is being read calls itself deprecated.
    function_deprecated: Option<i32>,
    uses: DeprecatedUses,
    /// The pieces of the current string so far.
    text: Vec<u8>,
}

impl<'a> GraphVisitor<'a> {
    pub(in super::super) fn new(
        root: MessageId,
        size: u64,
        depth: Depth,
        operations: &'a DeprecatedOperations,
        release: i32,
    ) -> Self {
        let mut visitor = Self {
            depth,
            operations,
            release,
            root,
            size,
            meta_graphs: Vec::new(),
            overflow: false,
            text_kept: 0,
            owner: NodeOwner::Outside,
            node: NodeInProgress::default(),
            table: NodeTable::new(size, false),
            known: SignatureCache::default(),
            devices: DeviceReader::default(),
            releases: Releases::NONE,
            judges_nodes: false,
            kinds: None,
            bodies: None,
            counts: BTreeMap::new(),
            in_versions: false,
            in_signature: false,
            functions: FunctionNames::default(),
            function: Vec::new(),
            begins: 0,
            function_begins: 0,
            part_begins: 0,
            function_deprecated: None,
            uses: DeprecatedUses::default(),
            text: Vec::new(),
        };
        if root != SAVED_MODEL {
            visitor.meta_graphs.push(ScannedGraph::default());
        }
        visitor
    }

    /// Judges the nodes for these releases as well; only those of functions unless
    /// `judges_nodes`.
    pub(in super::super) fn with_releases(
        self,
        releases: Releases<'a>,
        judges_nodes: bool,
    ) -> Self {
        let mut visitor = Self { releases, judges_nodes, ..self };
        visitor.begin_kinds();
        visitor
    }

    /// Makes ready for the nodes of a graph.
    fn begin_kinds(&mut self) {
        let is_asked = !self.releases.is_empty();
        self.bodies = is_asked.then(|| FastBodies::new(self.releases));
        if is_asked && self.judges_nodes {
            self.kinds = Some(FastKinds::new(self.releases));
            self.table = NodeTable::new(self.size, true);
            self.known = SignatureCache::default();
        }
    }

    /// The meta graphs, complete.
    pub(in super::super) fn finish(mut self) -> (Vec<ScannedGraph>, bool) {
        if self.root != SAVED_MODEL {
            self.end_of_graph();
        }
        (self.meta_graphs, self.overflow)
    }

    fn scanned(&mut self) -> Option<&mut ScannedGraph> {
        if self.overflow { None } else { self.meta_graphs.last_mut() }
    }

    fn meta_graph(&mut self) -> Option<&mut MetaGraph> {
        self.scanned().map(|scanned| &mut scanned.meta_graph)
    }

    fn graph(&mut self) -> Option<&mut Graph> {
        self.meta_graph().map(|meta_graph| &mut meta_graph.graph)
    }

    fn begin_meta_graph(&mut self) {
        if self.meta_graphs.len() == MAXIMUM_META_GRAPHS {
            self.overflow = true;
        } else {
            self.meta_graphs.push(ScannedGraph::default());
            self.begin_kinds();
        }
    }

    /// Hands what was collected outside the record over to it.
    fn end_of_graph(&mut self) {
        let counts = std::mem::take(&mut self.counts);
        let table = std::mem::replace(&mut self.table, NodeTable::new(self.size, false));
        let inputs = table.inputs();
        let (needs_order, edges) = table.needs_order();
        let functions = std::mem::take(&mut self.functions);
        let kinds = self.kinds.take().filter(|_| !needs_order);
        let accepted = kinds.and_then(|kinds| kinds.finish(&edges, &functions));
        let uses = std::mem::take(&mut self.uses);
        let may_ignore_in_functions = self.bodies.take().is_none() && !self.releases.is_empty();
        if let Some(scanned) = self.scanned() {
            scanned.needs_order = needs_order;
            scanned.inputs = inputs;
            scanned.accepted = accepted;
            scanned.may_ignore_in_functions = may_ignore_in_functions;
            scanned.functions = functions;
            let graph = &mut scanned.meta_graph.graph;
            (graph.deprecated_nodes, graph.deprecated_in_functions) = uses.finish();
            graph.operations = counts
                .into_iter()
                .map(|(name, count)| (String::from_utf8_lossy(&name).into_owned(), count))
                .collect();
        }
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
        // Almost every node ends here.
        if let Err(fault) = structure {
            self.end_of_bad_node(fault);
        }
        if let Some(position) = deprecated {
            self.end_of_deprecated_node(position, owner == NodeOwner::Function);
        }
    }

    /// Takes a node in the canonical encoding.
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
        let kind = self.kind(canonical.operation, has_bad_device, NodeBytes { bytes, end, depth });
        let kind = kind.zip(self.kinds.as_mut());
        self.table.add_canonical(&self.node, canonical.name, role, end, kind);
        if let Some(graph) = self.graph() {
            graph.nodes += 1;
        }
        true
    }

    /// Takes a node of a function in the canonical encoding.
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

    /// The kind of a node in the canonical encoding, where that is asked for. One that is not valid
    /// for everybody ends the asking.
    #[inline]
    fn kind(
        &mut self,
        operation: &[u8],
        has_bad_device: bool,
        node: NodeBytes<'_>,
    ) -> Option<FastKind> {
        let kinds = self.kinds.as_mut()?;
        let inputs = self.node.data_inputs();
        let kind = kinds.kind(&mut self.known, operation, inputs, node);
        if kind.is_none() || has_bad_device {
            self.kinds = None;
            return None;
        }
        kind
    }

    #[cold]
    fn end_of_bad_node(&mut self, fault: StructureFaultKind) {
        let name = shown(&self.node.name);
        if let Some(graph) = self.graph() {
            graph.structure.get_or_insert_with(|| StructureFault::new(fault, name));
        }
    }

    #[cold]
    fn end_of_deprecated_node(&mut self, position: u32, in_function: bool) {
        let operations = self.operations;
        let Some(operation) = operations.entries().get(position as usize) else { return };
        if in_function {
            self.uses.in_function(position, operation, &self.node.name);
        } else {
            self.uses.in_graph(position, operation, &self.node.name);
        }
    }

    fn end_of_function(&mut self, end: u64) {
        self.functions.function(&self.function, Extent { start: self.function_begins, end });
        self.uses.end_function(&self.function);
        let name = &self.function;
        let deprecated = self.function_deprecated.map(|version| DeprecatedOperation {
            name: shown(name),
            version,
            replacement: None,
        });
        if let Some(scanned) = self.scanned() {
            scanned.meta_graph.graph.functions += 1;
            if scanned.deprecated_functions.len() < MAXIMUM_DEPRECATED {
                scanned.deprecated_functions.extend(deprecated);
            }
        }
    }

    /// A message in the library of functions begins.
    fn enter_function(&mut self, message: MessageId, field: &'static Field) {
        match (message, field.number) {
            (FUNCTION_DEF_LIBRARY, function_def_library::FUNCTION) => {
                self.function.clear();
                self.function_begins = self.begins;
                self.function_deprecated = None;
                self.uses.begin_function();
            }
            (FUNCTION_DEF_LIBRARY, function_def_library::GRADIENT) => {
                self.functions.begin_gradient();
            }
            (FUNCTION_DEF_LIBRARY, function_def_library::REGISTERED_GRADIENTS) => {
                self.functions.begin_registered();
            }
            (FUNCTION_DEF, function_def::SIGNATURE) => self.in_signature = true,
            (OP_DEF, op_def::DEPRECATION) if self.in_signature => {
                self.function_deprecated.get_or_insert(0);
            }
            (FUNCTION_DEF, function_def::NODE_DEF) => {
                // Only nodes in the canonical encoding are looked at for ignored attributes.
                self.bodies = None;
                self.owner = NodeOwner::Function;
                self.node.clear();
            }
            _ => {}
        }
    }

    fn count_operation(&mut self, name: &[u8]) {
        if let Some(count) = self.counts.get_mut(name) {
            *count += 1;
        } else if self.counts.len() < MAXIMUM_OPERATIONS {
            self.counts.insert(name.to_vec(), 1);
        } else {
            self.overflow = true;
        }
    }

    /// A string of a meta graph's description, whole.
    fn keep_text(&mut self, field: &'static Field) {
        let text = std::mem::take(&mut self.text);
        self.text_kept += text.len() + size_of::<String>();
        if self.text_kept > MAXIMUM_TEXT {
            self.overflow = true;
            return;
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        if let Some(meta_graph) = self.meta_graph() {
            match field.number {
                meta_graph_def_meta_info_def::TAGS => meta_graph.tags.push(text),
                _ => meta_graph.tensorflow_version = text,
            }
        }
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
                    // Only nodes in the canonical encoding are looked at for registries.
                    self.kinds = None;
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
        // An int32 is the low half of its varint.
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
                // Another attribute's list at worst, or one that does not count: the slow path
                // decides.
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
            (GRAPH_DEF, graph_def::NODE) => self.kinds.is_some(),
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
