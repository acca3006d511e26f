//! Collects, while the bytes of a graph pass by, what decides whether TensorFlow takes it.
//!
//! Knows which fields of the messages matter. It keeps a bounded amount for each node: a hash of its name, and nothing else.

use std::collections::BTreeMap;

use super::deprecation::DeprecatedOperations;
use super::functions::FunctionNames;
use super::plain::{self, Attributes, Reference};
use super::structure::{
    LoopRole, NodeInProgress, NodeTable, SHOWN_NAME, StructureFault, StructureFaultKind,
    is_node_name, shown,
};
use super::{DeprecatedOperation, DeprecatedUse, Graph, MetaGraph};
use crate::artifact::schema::{
    ATTR_VALUE_LIST_VALUE, FUNCTION_DEF, FUNCTION_DEF_LIBRARY, Field, GRADIENT_DEF, GRAPH_DEF,
    META_GRAPH_DEF, META_GRAPH_DEF_META_INFO_DEF, MessageId, NODE_DEF, OP_DEF, OP_DEPRECATION,
    OP_LIST, SAVED_MODEL, VERSION_DEF, knows_field,
};
use crate::wire::scan::{Piece, Step, Visitor, is_ascii};

/// How much of a graph is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
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

/// Bytes of a function's name that tell it from others.
const LONGEST_FUNCTION: usize = 1 << 16;

/// What a node belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    Graph,
    Function,
}

/// The visitor of GraphDef, MetaGraphDef and SavedModel.
pub(super) struct GraphVisitor<'a> {
    depth: Depth,
    operations: &'a DeprecatedOperations,
    /// The GraphDef version of the release that is to read the graph.
    release: i32,
    root: MessageId,
    size: u64,
    /// The only meta graph that is looked at, by its number; all if there is none.
    target: Option<usize>,
    pub(super) meta_graphs: Vec<MetaGraph>,
    /// Whether there were more meta graphs, tags or operation types than are kept.
    pub(super) overflow: bool,
    text_kept: usize,
    place: Place,
    node: NodeInProgress,
    table: NodeTable,
    attributes: Attributes,
    counts: BTreeMap<Vec<u8>, u64>,
    in_versions: bool,
    in_signature: bool,
    functions: FunctionNames,
    function: Vec<u8>,
    /// From which version on the function that is being read calls itself deprecated.
    function_deprecated: Option<i32>,
    /// Where the uses of the function that is being read begin: its name may come after its nodes.
    function_uses: usize,
    /// What the string that arrives in pieces has become so far.
    text: Vec<u8>,
}

impl<'a> GraphVisitor<'a> {
    pub(super) fn new(
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
            target: None,
            meta_graphs: Vec::new(),
            overflow: false,
            text_kept: 0,
            place: Place::Outside,
            node: NodeInProgress::default(),
            table: NodeTable::new(size),
            attributes: Attributes::new(),
            counts: BTreeMap::new(),
            in_versions: false,
            in_signature: false,
            functions: FunctionNames::default(),
            function: Vec::new(),
            function_deprecated: None,
            function_uses: 0,
            text: Vec::new(),
        };
        if root != SAVED_MODEL {
            visitor.meta_graphs.push(MetaGraph::default());
        }
        visitor
    }

    /// Looks at one meta graph alone; the others are stepped over.
    pub(super) fn of(mut self, target: usize) -> Self {
        self.target = Some(target);
        self
    }

    /// The meta graphs, complete.
    pub(super) fn finish(mut self) -> (Vec<MetaGraph>, bool) {
        if self.root != SAVED_MODEL {
            self.end_of_graph();
        }
        (self.meta_graphs, self.overflow)
    }

    fn meta_graph(&mut self) -> Option<&mut MetaGraph> {
        if self.overflow { None } else { self.meta_graphs.last_mut() }
    }

    fn graph(&mut self) -> Option<&mut Graph> {
        self.meta_graph().map(|meta_graph| &mut meta_graph.graph)
    }

    fn begin_meta_graph(&mut self) {
        if self.meta_graphs.len() == MAXIMUM_META_GRAPHS {
            self.overflow = true;
        } else {
            self.meta_graphs.push(MetaGraph::default());
        }
    }

    /// Hands what was collected outside the record over to it.
    fn end_of_graph(&mut self) {
        let counts = std::mem::take(&mut self.counts);
        let table = std::mem::replace(&mut self.table, NodeTable::new(self.size));
        let needs_order = table.needs_order();
        let functions = std::mem::take(&mut self.functions);
        if let Some(graph) = self.graph() {
            graph.needs_order = needs_order;
            graph.function_names = functions;
            graph.operations = counts
                .into_iter()
                .map(|(name, count)| (String::from_utf8_lossy(&name).into_owned(), count))
                .collect();
        }
    }

    fn end_of_node(&mut self, at: u64) {
        let place = self.place;
        self.place = Place::Outside;
        let structure =
            if place == Place::Graph { self.table.add(&mut self.node, at) } else { Ok(()) };
        let deprecated = self.node.deprecated;
        let Some(graph) = self.graph() else { return };
        let nodes =
            if place == Place::Function { &mut graph.function_nodes } else { &mut graph.nodes };
        *nodes += 1;
        // Almost every node ends here.
        if let Err(fault) = structure {
            self.end_of_bad_node(fault);
        }
        if let Some(position) = deprecated {
            self.end_of_deprecated_node(position, place == Place::Function);
        }
    }

    /// Takes a node of the common form.
    fn plain_node(&mut self, in_graph: bool, bytes: &[u8], end: u64, depth: usize) -> bool {
        let Self { node, table, attributes, .. } = self;
        node.begin_plain();
        let plain = plain::read(bytes, depth, attributes, |reference| {
            match reference {
                _ if !in_graph => {}
                Reference::Input(input, seen) => return table.plain_input(node, input, seen),
                Reference::Colocated(name) => table.colocated(node, name),
            }
            true
        });
        let Some(plain) = plain else { return false };
        if self.operations.position(plain.operation).is_some()
            || plain.operation.is_empty()
            || !is_ascii(plain.operation)
            || (in_graph && !is_node_name(plain.name))
            || (!in_graph && !is_ascii(plain.name))
        {
            return false;
        }
        if in_graph {
            let role = LoopRole::of(plain.operation);
            self.table.add_plain(&self.node, plain.name, role, end);
        }
        if self.depth == Depth::Counted {
            self.count_operation(plain.operation);
        }
        if let Some(graph) = self.graph() {
            *(if in_graph { &mut graph.nodes } else { &mut graph.function_nodes }) += 1;
        }
        true
    }

    #[cold]
    fn end_of_bad_node(&mut self, fault: StructureFaultKind) {
        let name = shown(&self.node.name);
        if let Some(graph) = self.graph() {
            graph.structure.get_or_insert_with(|| StructureFault::new(fault, &name));
        }
    }

    #[cold]
    fn end_of_deprecated_node(&mut self, position: u32, in_function: bool) {
        let operations = self.operations;
        let Some(operation) = operations.entries().get(position as usize) else { return };
        let node = shown(&self.node.name);
        let from = if in_function { self.function_uses } else { 0 };
        let Some(graph) = self.graph() else { return };
        let uses = if in_function {
            &mut graph.deprecated_in_functions
        } else {
            &mut graph.deprecated_nodes
        };
        let mut known = uses.get_mut(from..).unwrap_or_default().iter_mut();
        if let Some(found) = known.find(|found| found.operation.name == operation.name) {
            found.count += 1;
        } else if uses.len() < MAXIMUM_OPERATIONS {
            let operation = operation.clone();
            uses.push(DeprecatedUse { operation, node, function: None, count: 1 });
        }
    }

    fn end_of_function(&mut self) {
        let name = shown(&self.function);
        let from = self.function_uses;
        let deprecated = self.function_deprecated;
        self.functions.function(&self.function);
        if let Some(graph) = self.graph() {
            graph.functions += 1;
            if let Some(version) = deprecated
                && graph.deprecated_functions.len() < MAXIMUM_OPERATIONS
            {
                graph.deprecated_functions.push(DeprecatedOperation {
                    name: name.clone(),
                    version,
                    replacement: None,
                });
            }
            for found in graph.deprecated_in_functions.get_mut(from..).unwrap_or_default() {
                found.function = Some(name.clone());
            }
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
                4 => meta_graph.tags.push(text),
                _ => meta_graph.tensorflow_version = text,
            }
        }
    }
}

/// Versions that are listed before repetitions are dropped, so that a hostile list stays below the size of its bytes.
const LISTED: usize = 1 << 16;

fn add_bad_consumer(list: &mut Vec<i32>, version: i32) {
    if list.len() >= LISTED && list.len() == list.capacity() {
        list.sort_unstable();
        list.dedup();
    }
    list.push(version);
}

/// Collects a string that may come in pieces, up to a bound.
fn collect(text: &mut Vec<u8>, piece: &[u8], is: Piece, bound: usize) {
    if is.first {
        text.clear();
    }
    let room = bound.saturating_sub(text.len());
    text.extend_from_slice(piece.get(..piece.len().min(room)).unwrap_or_default());
}

impl Visitor for GraphVisitor<'_> {
    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        if !knows_field(self.release, message, field.number) {
            return Step::Over;
        }
        let whole = if self.depth == Depth::Versions { Step::Over } else { Step::Into };
        match (message, field.number) {
            (NODE_DEF, _) => whole,
            (GRAPH_DEF, 1) => {
                if whole == Step::Into {
                    self.place = Place::Graph;
                    self.node.clear();
                }
                whole
            }
            (GRAPH_DEF, 4) => {
                self.in_versions = true;
                if let Some(graph) = self.graph() {
                    graph.has_versions = true;
                }
                Step::Into
            }
            (SAVED_MODEL, 2) => {
                self.begin_meta_graph();
                let number = self.meta_graphs.len().saturating_sub(1);
                if self.target.is_none_or(|target| target == number) {
                    Step::Into
                } else {
                    Step::Over
                }
            }
            (META_GRAPH_DEF, 1 | 2) => Step::Into,
            (OP_LIST, 1) => {
                if let Some(meta_graph) = self.meta_graph() {
                    meta_graph.listed_operations += 1;
                }
                whole
            }
            (META_GRAPH_DEF, 3) => {
                if let Some(meta_graph) = self.meta_graph() {
                    meta_graph.has_saver = true;
                }
                whole
            }
            (META_GRAPH_DEF, 7) => {
                if let Some(meta_graph) = self.meta_graph() {
                    meta_graph.has_object_graph = true;
                }
                whole
            }
            (FUNCTION_DEF_LIBRARY, 1) => {
                self.function.clear();
                self.function_deprecated = None;
                self.function_uses =
                    self.graph().map_or(0, |graph| graph.deprecated_in_functions.len());
                whole
            }
            (FUNCTION_DEF_LIBRARY, 2) => {
                self.functions.begin_gradient();
                whole
            }
            (FUNCTION_DEF, 1) => {
                self.in_signature = true;
                whole
            }
            (OP_DEF, 8) if self.in_signature => {
                self.function_deprecated.get_or_insert(0);
                whole
            }
            (FUNCTION_DEF, 3) => {
                self.place = Place::Function;
                self.node.clear();
                whole
            }
            _ => whole,
        }
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, at: u64) {
        match (message, field.number) {
            (GRAPH_DEF, 1) | (FUNCTION_DEF, 3) => self.end_of_node(at),
            (GRAPH_DEF, 4) => self.in_versions = false,
            (FUNCTION_DEF, 1) => self.in_signature = false,
            (FUNCTION_DEF_LIBRARY, 1) => self.end_of_function(),
            (FUNCTION_DEF_LIBRARY, 2) => self.functions.end_gradient(),
            (SAVED_MODEL, 2) => self.end_of_graph(),
            _ => {}
        }
    }

    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        if message == META_GRAPH_DEF_META_INFO_DEF && field.number == 7 {
            if let Some(meta_graph) = self.meta_graph() {
                meta_graph.stripped_default_attrs = value != 0;
            }
            return;
        }
        // An int32 is the low half of its varint.
        let value = value as u32 as i32;
        if message == OP_DEPRECATION && self.in_signature && self.function_deprecated.is_some() {
            self.function_deprecated = Some(value);
        }
        if message != VERSION_DEF || !self.in_versions {
            return;
        }
        if let Some(graph) = self.graph() {
            match field.number {
                1 => graph.versions.producer = value,
                2 => graph.versions.min_consumer = value,
                _ => add_bad_consumer(&mut graph.versions.bad_consumers, value),
            }
        }
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        match message {
            NODE_DEF if self.place != Place::Outside => match field.number {
                1 => {
                    if self.place == Place::Graph {
                        self.table.name(&mut self.node, piece, is);
                    }
                    collect(&mut self.node.name, piece, is, SHOWN_NAME);
                }
                2 => {
                    self.node.operation(piece, is, self.operations);
                    if self.depth == Depth::Counted && is.first && is.last {
                        self.count_operation(piece);
                    }
                }
                3 if self.place == Place::Graph => self.table.input(&mut self.node, piece, is),
                _ => {}
            },
            ATTR_VALUE_LIST_VALUE if field.number == 2 => {
                // Another attribute's list at worst, or one that does not count: the second step looks more closely.
                if let Some(name) = piece.strip_prefix(b"loc:@") {
                    self.table.colocated(&mut self.node, name);
                }
            }
            OP_DEF if self.in_signature && field.number == 1 => {
                collect(&mut self.function, piece, is, LONGEST_FUNCTION)
            }
            GRADIENT_DEF if field.number == 1 => self.functions.gradient_of(piece),
            META_GRAPH_DEF_META_INFO_DEF if matches!(field.number, 4 | 5) => {
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
        message == ATTR_VALUE_LIST_VALUE && field.number == 2 && self.place == Place::Graph
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
            (GRAPH_DEF, 1) if self.depth != Depth::Versions => {
                self.plain_node(true, bytes, end, depth)
            }
            (FUNCTION_DEF, 3) if self.depth != Depth::Versions => {
                self.plain_node(false, bytes, end, depth)
            }
            _ => false,
        }
    }
}
