//! Facts about nodes outside functions that loaders check but the importer does not.
//!
//! A walk over the graph records the first node of each operation, and the first with each of the
//! few properties that only loaders check.
//!
//! Depends on the encoding of graphs, but not on the individual loaders.

use std::collections::HashSet;

use crate::{
    GraphError,
    attributes::{AttributeReader, AttributeValue, Attributes, Text},
    devices::DeviceReader,
    function_names::FunctionNames,
    node_rules::SavedTensorDiagnostic,
    raw_nodes::{Reference, SignatureCache},
    rules::is_partitioned_call,
    scan::{Piece, Step, Visitor},
    schema::{
        Field, GRAPH_DEF, META_GRAPH_DEF, MessageId, NODE_DEF, SAVED_MODEL,
        fields::{graph_def, meta_graph_def, node_def, saved_model},
    },
    source::{Extent, MetaGraphSelector, Source},
    whole_text::WholeText,
};

/// Limit on the operations that are kept: more than any release has. In a graph with more, at least
/// one of the kept operations is unknown to every release.
const MOST_OPERATIONS: usize = 1 << 14;

/// Limit on the placeholder attributes that are kept.
const MOST_PLACEHOLDERS: usize = 1 << 10;

/// An operation and the first node that has it.
#[derive(Clone, Debug)]
pub struct FirstNode {
    /// The operation.
    pub operation: String,
    /// The extent of the node.
    pub place: Extent,
}

/// A node that refers to something by its name.
#[derive(Clone, Debug)]
pub struct ReferringNode {
    pub place: Extent,
    /// The name that it refers to.
    pub name: String,
}

/// A PartitionedCall that calls no function of the library.
#[derive(Clone, Debug)]
pub struct UnresolvedCall {
    pub place: Extent,
    pub target: UnresolvedTarget,
}

/// The target of such a call.
#[derive(Clone, Debug)]
pub enum UnresolvedTarget {
    /// The attribute is absent.
    Missing,
    /// A value that is not a function, as displayed.
    Other(String),
    /// A function of this name.
    Function(String),
}

/// A node with an attribute that is a placeholder.
#[derive(Clone, Debug)]
pub struct PlaceholderUse {
    pub place: Extent,
    pub operation: String,
    pub attribute: String,
}

/// The node facts of one graph that loaders check.
#[derive(Debug, Default)]
pub struct TopLevelNodes {
    /// The operations, in the order of their first nodes.
    pub operations: Vec<FirstNode>,
    /// The functions that attributes name, each with its first node, in the order of the nodes.
    functions: Vec<ReferringNode>,
    /// The functions that nodes call by PartitionedCall, likewise.
    calls: Vec<ReferringNode>,
    /// The first PartitionedCall that names no function at all.
    nameless_call: Option<UnresolvedCall>,
    /// True if any attribute is a placeholder.
    pub has_placeholder: bool,
    /// The placeholder attributes, with the first node of each operation that has it.
    pub placeholders: Vec<PlaceholderUse>,
    /// The first node whose attribute `value` a loader of SavedModels refuses.
    pub saved_tensor: Option<(Extent, SavedTensorDiagnostic)>,
    /// The first node with a device that no session can read.
    pub device: Option<ReferringNode>,
    known: KnownNames,
}

/// The number of entries of the lists.
#[derive(Debug, Default)]
struct KnownNames {
    operations: HashSet<Vec<u8>>,
    functions: HashSet<String>,
    calls: HashSet<String>,
}

/// Returns the first of `nodes` whose name is not a function of the library.
fn first_unresolved<'n>(
    nodes: &'n [ReferringNode],
    functions: &FunctionNames,
) -> Option<&'n ReferringNode> {
    nodes.iter().find(|node| functions.find(node.name.as_bytes()).is_none())
}

impl TopLevelNodes {
    /// Returns the first node with a function attribute that the library does not have.
    pub fn unresolved_function(&self, functions: &FunctionNames) -> Option<&ReferringNode> {
        first_unresolved(&self.functions, functions)
    }

    /// Returns the functions that nodes call by PartitionedCall, in the order of the first nodes.
    pub fn called_functions(&self) -> impl Iterator<Item = &str> {
        self.calls.iter().map(|call| &*call.name)
    }

    /// Returns the first PartitionedCall that calls no function of the library.
    pub fn unresolved_call(&self, functions: &FunctionNames) -> Option<UnresolvedCall> {
        let named = first_unresolved(&self.calls, functions).map(|node| UnresolvedCall {
            place: node.place,
            target: UnresolvedTarget::Function(node.name.clone()),
        });
        let nameless = self.nameless_call.clone();
        named.into_iter().chain(nameless).min_by_key(|call| call.place.start)
    }

    /// Adds the next node; one that is like an earlier one in its operation and attributes may be
    /// left out, unless it has a tensor whose shape may be invalid.
    pub fn add(&mut self, operation: &[u8], attributes: &Attributes, place: Extent) {
        let referring = |name: String| ReferringNode { place, name };
        let known = &mut self.known;
        if known.operations.len() < MOST_OPERATIONS && !known.operations.contains(operation) {
            known.operations.insert(operation.to_vec());
            let operation = String::from_utf8_lossy(operation).into_owned();
            self.operations.push(FirstNode { operation, place });
        }
        for (_, value) in attributes.iter() {
            for name in named_functions(value) {
                if known.functions.insert(name.clone()) {
                    self.functions.push(referring(name));
                }
            }
        }
        if is_partitioned_call(operation)
            && let Some(AttributeValue::Function(name)) = attributes.get("f")
        {
            let name = text_of(name.bytes.unwrap_or_default());
            if known.calls.insert(name.clone()) {
                self.calls.push(referring(name));
            }
        }
        if self.nameless_call.is_none() && is_partitioned_call(operation) {
            let target = match attributes.get("f") {
                None => Some(UnresolvedTarget::Missing),
                Some(AttributeValue::Function(_)) => None,
                Some(other) => Some(UnresolvedTarget::Other(other.to_string())),
            };
            self.nameless_call = target.map(|target| UnresolvedCall { place, target });
        }
        self.note_placeholders(operation, attributes, place);
        if self.saved_tensor.is_none() {
            let diagnostic = SavedTensorDiagnostic::of(operation, attributes);
            self.saved_tensor = diagnostic.map(|diagnostic| (place, diagnostic));
        }
    }

    /// Records that the next node, which is at `place`, has a device that sessions cannot parse.
    pub fn add_device(&mut self, name: String, place: Extent) {
        self.device.get_or_insert(ReferringNode { place, name });
    }

    fn note_placeholders(&mut self, operation: &[u8], attributes: &Attributes, place: Extent) {
        for (name, value) in attributes.iter() {
            let AttributeValue::Placeholder(of) = value else { continue };
            self.has_placeholder = true;
            let is_known = self.placeholders.iter().any(|other| {
                other.operation.as_bytes() == operation && other.attribute.as_bytes() == name
            });
            if of.length > 0 && !is_known && self.placeholders.len() < MOST_PLACEHOLDERS {
                let (operation, attribute) = (text_of(operation), text_of(name));
                self.placeholders.push(PlaceholderUse { place, operation, attribute });
            }
        }
    }

    /// Reads the facts of the meta graph with this number.
    pub fn read(source: Source<'_>, meta_graph: usize, release: i32) -> Result<Self, GraphError> {
        let mut visitor = MainVisitor {
            meta_graphs: MetaGraphSelector::of(source, meta_graph),
            release,
            begins: 0,
            start: 0,
            is_node: false,
            operation: Vec::new(),
            device: None,
            devices: DeviceReader::default(),
            attributes: AttributeReader::default(),
            text: WholeText::default(),
            known: SignatureCache::default(),
            nodes: Self::default(),
        };
        source.walk(&mut visitor)?;
        Ok(visitor.nodes)
    }
}

/// A walk over one graph.
struct MainVisitor {
    meta_graphs: MetaGraphSelector,
    release: i32,
    begins: u64,
    start: u64,
    is_node: bool,
    operation: Vec<u8>,
    /// The device of the node, if sessions cannot parse it.
    device: Option<String>,
    devices: DeviceReader,
    attributes: AttributeReader,
    text: WholeText,
    /// The nodes that were examined: nodes like them have no additional properties.
    known: SignatureCache<()>,
    nodes: TopLevelNodes,
}

impl MainVisitor {
    fn end_of_node(&mut self, end: u64) {
        self.is_node = false;
        self.known.learn(());
        let place = Extent { start: self.start, end };
        self.nodes.add(&self.operation, self.attributes.attributes(), place);
        if let Some(name) = self.device.take() {
            self.nodes.add_device(name, place);
        }
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the functions that a value names.
fn named_functions(value: AttributeValue<'_>) -> Vec<String> {
    let name = |name: Text<'_>| text_of(name.bytes.unwrap_or_default());
    match value {
        AttributeValue::List(list) => list.functions().map(name).collect(),
        AttributeValue::Function(function) => vec![name(function)],
        _ => Vec::new(),
    }
}

impl Visitor for MainVisitor {
    fn values(&self) -> Option<&dyn Visitor> {
        if self.is_node { Some(&self.attributes) } else { None }
    }

    fn values_mut(&mut self) -> Option<&mut dyn Visitor> {
        if self.is_node { Some(&mut self.attributes) } else { None }
    }

    fn begins(&mut self, at: u64) {
        self.begins = at;
    }

    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        let is_entered = match (message, field.number) {
            (SAVED_MODEL, saved_model::META_GRAPHS) => self.meta_graphs.enter(),
            (META_GRAPH_DEF, meta_graph_def::GRAPH_DEF) => true,
            (GRAPH_DEF, graph_def::NODE) => {
                self.is_node = true;
                self.start = self.begins;
                self.operation.clear();
                self.device = None;
                self.attributes.clear();
                true
            }
            _ if self.is_node => return self.attributes.enter(message, field),
            _ => false,
        };
        if is_entered { Step::Into } else { Step::Over }
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, at: u64) {
        if (message, field.number) == (GRAPH_DEF, graph_def::NODE) {
            self.end_of_node(at);
        } else if self.is_node {
            self.attributes.leave(message, field);
        }
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        if !self.is_node {
            return;
        }
        if message != NODE_DEF {
            return self.attributes.string(message, field, piece, is);
        }
        if !matches!(field.number, node_def::OP | node_def::DEVICE) {
            return;
        }
        let Some(text) = self.text.take(piece, is) else { return };
        if field.number == node_def::OP {
            self.operation.clear();
            self.operation.extend_from_slice(text);
        } else {
            self.device = (!self.devices.is_session_device(text)).then(|| text_of(text));
        }
    }

    fn release(&self) -> i32 {
        self.release
    }

    fn wants_whole(&self, message: MessageId, field: &'static Field) -> bool {
        (message, field.number) == (GRAPH_DEF, graph_def::NODE)
    }

    fn take(
        &mut self,
        message: MessageId,
        field: &'static Field,
        bytes: &[u8],
        _end: u64,
        depth: usize,
    ) -> bool {
        if (message, field.number) != (GRAPH_DEF, graph_def::NODE) {
            return false;
        }
        let devices = &mut self.devices;
        let canonical = self.known.read(bytes, depth, |reference| match reference {
            Reference::Device(device) => devices.is_session_device(device),
            _ => true,
        });
        canonical.is_some_and(|canonical| self.known.find(canonical.operation).is_some())
    }
}
