//! TensorFlow graphs: GraphDef, MetaGraphDef and SavedModel, in their binary and text forms.
//!
//! Two depths. [`versions`] steps over everything but the versions, so that a graph of any size is read in the time that its
//! top-level fields take. [`read`] checks every nested message as a real parser does, in a window of bounded size, and finds what
//! TensorFlow's importer looks at: versions, deprecated operations, whether the nodes fit together.
//!
//! Knows the messages and what their importer does with them. It must never know who asks: whether a consumer may take a graph is
//! decided in [`check`](crate::check).

mod bodies;
mod calls;
mod characters;
mod deprecation;
mod functions;
mod names;
mod order;
mod plain;
mod structure;
mod visitor;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

pub use bodies::{BodyFault, BodyFaultKind};
pub use deprecation::{DeprecatedOperation, DeprecatedOperations, DeprecationListError};
pub use structure::{StructureFault, StructureFaultKind};

use self::bodies::BodiesVisitor;
use self::functions::{FunctionNames, FunctionsVisitor};
use self::order::{Order, OrderVisitor};
use self::visitor::{Depth, GraphVisitor};
use super::schema::{GRAPH_DEF, META_GRAPH_DEF, MessageId, SAVED_MODEL, TENSORFLOW};
use super::text::{self, TextError};
use crate::read_at::ReadAt;
use crate::version::VersionDef;
use crate::wire::scan::{ScanError, Visitor, WireError, scan};

/// Which message a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Message {
    /// `tensorflow.GraphDef`: a `.pb` file.
    GraphDef,
    /// `tensorflow.MetaGraphDef`: a `.meta` file beside a checkpoint.
    MetaGraphDef,
    /// `tensorflow.SavedModel`: `saved_model.pb`.
    SavedModel,
}

impl Message {
    fn id(self) -> MessageId {
        match self {
            Self::GraphDef => GRAPH_DEF,
            Self::MetaGraphDef => META_GRAPH_DEF,
            Self::SavedModel => SAVED_MODEL,
        }
    }
}

/// How a message is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// The wire format.
    Binary,
    /// The text format (`.pbtxt`).
    Text,
}

/// Why a graph cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// No parser takes the bytes. TensorFlow says INVALID_ARGUMENT for a graph and DATA_LOSS for a SavedModel.
    #[error(
        "no protobuf parser takes this file: {0}; the file is damaged, cut off, or of another kind"
    )]
    Malformed(#[from] WireError),
    /// The text is not the text form of the message.
    #[error("this is not the text form of the message: {0}")]
    Text(#[from] TextError),
    /// The system could not read the file.
    #[error("cannot read the file: {0}")]
    Io(#[from] io::Error),
}

impl From<ScanError> for GraphError {
    fn from(error: ScanError) -> Self {
        match error {
            ScanError::Wire(error) => Self::Malformed(error),
            ScanError::Io(error) => Self::Io(error),
        }
    }
}

impl From<text::ScanError> for GraphError {
    fn from(error: text::ScanError) -> Self {
        match error {
            text::ScanError::Text(error) => Self::Text(error),
            text::ScanError::Io(error) => Self::Io(error),
        }
    }
}

/// What a file holds: one meta graph for a GraphDef or MetaGraphDef, any number for a SavedModel.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Graphs {
    /// In the order of the file.
    pub meta_graphs: Vec<MetaGraph>,
    /// Whether there was more than is kept (1024 meta graphs, 1 MiB of tags, 65536 operation types): what is here is then incomplete.
    pub overflow: bool,
}

/// A graph with what is written around it. For a bare GraphDef everything but the graph is empty.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct MetaGraph {
    /// What it is for: `serve`, `train`, `gpu`.
    pub tags: Vec<String>,
    /// The release that wrote it, as it calls itself.
    pub tensorflow_version: String,
    /// Whether its writer left out the attributes that have their default value, so that a consumer which does not know them yet can
    /// read it all the same.
    pub stripped_default_attrs: bool,
    /// How many operations its writer lists as those that the graph uses (`stripped_op_list`); 0 unless the whole graph is
    /// [read](read()).
    pub listed_operations: u64,
    /// Whether it says how to save and restore variables, so that variables belong to it.
    pub has_saver: bool,
    /// Whether it has the object graph of the TF2 format.
    pub has_object_graph: bool,
    /// The graph itself.
    pub graph: Graph,
}

/// What decides about a graph.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Graph {
    /// The versions; zeros if there are none.
    pub versions: VersionDef,
    /// Whether there are versions at all.
    pub has_versions: bool,
    /// Nodes outside of functions.
    pub nodes: u64,
    /// Functions of the library.
    pub functions: u64,
    /// Nodes inside of functions.
    pub function_nodes: u64,
    /// How many nodes, inside and outside of functions, each operation type has; empty unless asked for.
    pub operations: BTreeMap<String, u64>,
    /// Operations on the list of deprecated ones, each with its first node, in the order in which the importer visits them.
    pub deprecated_nodes: Vec<DeprecatedUse>,
    /// The same inside of functions, once a function, in the order of the file.
    pub deprecated_in_functions: Vec<DeprecatedUse>,
    /// Why the nodes or functions do not fit together, if they do not.
    pub structure: Option<StructureFault>,
    /// Whether the nodes have to be visited in another order than the one they are written in.
    needs_order: bool,
    /// The names of the functions.
    function_names: FunctionNames,
    /// Functions that say of themselves that they are deprecated: the importer asks nobody else about a node that calls one.
    deprecated_functions: Vec<DeprecatedOperation>,
    /// How many of `deprecated_nodes` the importer visits before it comes to a fault that it finds on the way.
    visited_before_fault: usize,
}

impl Graph {
    /// The operations on the list that the importer comes to before it comes to [`structure`](Self::structure): none where the fault
    /// is one that it looks for before it visits nodes, all where there is no fault.
    #[must_use]
    pub fn deprecated_before_fault(&self) -> &[DeprecatedUse] {
        let count = match self.structure.as_ref().map(|fault| fault.kind) {
            None | Some(StructureFaultKind::Cycle) => self.deprecated_nodes.len(),
            Some(kind) if kind.is_found_on_the_way() => self.visited_before_fault,
            Some(_) => 0,
        };
        self.deprecated_nodes.get(..count).unwrap_or(&self.deprecated_nodes)
    }
}

/// Nodes whose operation is on the list of deprecated ones.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeprecatedUse {
    /// The entry of the list.
    pub operation: DeprecatedOperation,
    /// The first of the nodes.
    pub node: String,
    /// The function that they are in.
    pub function: Option<String>,
    /// How many there are.
    pub count: u64,
}

/// Reads the versions of every graph in `source`, and what tells the meta graphs of a SavedModel apart, stepping over everything else.
///
/// The binary form is read in a window of at most 256 KiB, however large the file is. What is stepped over is not checked: a file
/// that is damaged there is read without complaint.
///
/// ```
/// use serdes::artifact::graph::{self, Form, Message};
///
/// let bytes: &[u8] = &[0x22, 0x03, 0x08, 0xaa, 0x13]; // versions { producer: 2474 }
/// let graphs = graph::versions(bytes, Message::GraphDef, Form::Binary)?;
/// assert_eq!(graphs.meta_graphs[0].graph.versions.producer, 2474);
/// # Ok::<(), serdes::artifact::graph::GraphError>(())
/// ```
///
/// # Errors
/// [`GraphError`], if no parser would take the file or the system cannot read it.
pub fn versions(
    source: &(impl ReadAt + ?Sized),
    message: Message,
    form: Form,
) -> Result<Graphs, GraphError> {
    let none = DeprecatedOperations::default();
    let mut visitor =
        GraphVisitor::new(message.id(), source.size()?, Depth::Versions, &none, i32::MAX);
    walk(source, message, form, &mut visitor)?;
    let (meta_graphs, overflow) = visitor.finish();
    Ok(Graphs { meta_graphs, overflow })
}

/// How [`read`] reads.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReadOptions<'a> {
    /// The operations to look for.
    pub deprecated: &'a DeprecatedOperations,
    /// Whether to count operations by their type.
    pub count_operations: bool,
    /// The GraphDef version of the release that is to read the graph: older ones do not know every field, which a parser of the
    /// binary form steps over and one of the text form refuses; theirs also takes some numbers and escapes otherwise. The default
    /// knows everything that TensorFlow 2.21 does.
    pub release: i32,
}

impl Default for ReadOptions<'_> {
    fn default() -> Self {
        Self {
            deprecated: DeprecatedOperations::tensorflow(),
            count_operations: false,
            release: i32::MAX,
        }
    }
}

/// Reads every graph in `source`, checking every nested message.
///
/// # Errors
/// [`GraphError`], if no parser would take the file or the system cannot read it. A graph whose nodes do not fit together is no
/// error here: see [`Graph::structure`].
pub fn read(
    source: &(impl ReadAt + ?Sized),
    message: Message,
    form: Form,
    options: &ReadOptions<'_>,
) -> Result<Graphs, GraphError> {
    let depth = if options.count_operations { Depth::Counted } else { Depth::Whole };
    let mut visitor =
        GraphVisitor::new(message.id(), source.size()?, depth, options.deprecated, options.release);
    walk(source, message, form, &mut visitor)?;
    let (mut meta_graphs, overflow) = visitor.finish();
    for (target, meta_graph) in meta_graphs.iter_mut().enumerate() {
        let functions = std::mem::take(&mut meta_graph.graph.deprecated_functions);
        let mut deprecated = Cow::Borrowed(options.deprecated);
        if !functions.is_empty() {
            deprecated = Cow::Owned(options.deprecated.clone().with(functions));
            let size = source.size()?;
            let mut visitor =
                GraphVisitor::new(message.id(), size, depth, &deprecated, options.release)
                    .of(target);
            walk(source, message, form, &mut visitor)?;
            if let Some(again) = visitor.finish().0.into_iter().nth(target) {
                meta_graph.graph = again.graph;
            }
        }
        let graph = &mut meta_graph.graph;
        let order = || OrderVisitor::new(message.id(), target, &deprecated, options.release);
        if graph.needs_order {
            find_order(source, message, form, order)?.apply(graph, &deprecated);
        }
        let names = std::mem::take(&mut graph.function_names);
        if !on_the_way(graph) {
            continue;
        }
        if names.repeated() {
            // Functions are added before the nodes are visited.
            let mut visitor = FunctionsVisitor::new(target, options.release);
            walk(source, message, form, &mut visitor)?;
            if let Some(fault) = visitor.finish() {
                graph.structure = Some(fault);
                continue;
            }
        }
        if names.is_empty() {
            continue;
        }
        let mut bodies = BodiesVisitor::new(target, names, options.release);
        walk(source, message, form, &mut bodies)?;
        if !bodies.second() {
            continue;
        }
        walk(source, message, form, &mut bodies)?;
        let faults = bodies.faults();
        if faults.is_empty() {
            continue;
        }
        let calling = || order().calling(&faults);
        let found = find_order(source, message, form, calling)?;
        let node = found.wanted();
        found.apply(graph, &deprecated);
        if let Some(fault) = &mut graph.structure
            && fault.kind == StructureFaultKind::CalledFunction
            && let Some(call) = faults.iter().find(|call| Some(call.node) == node)
        {
            bodies.find(call.fault);
            walk(source, message, form, &mut bodies)?;
            fault.body = bodies.found();
        }
    }
    Ok(Graphs { meta_graphs, overflow })
}

/// Whether the importer comes as far as visiting the nodes.
fn on_the_way(graph: &Graph) -> bool {
    graph.structure.as_ref().is_none_or(|fault| fault.kind.is_found_on_the_way())
}

/// Visits the nodes of one graph in the importer's order.
fn find_order<'a>(
    source: &(impl ReadAt + ?Sized),
    message: Message,
    form: Form,
    visitor: impl Fn() -> OrderVisitor<'a>,
) -> Result<Order, GraphError> {
    let mut edges = visitor();
    walk(source, message, form, &mut edges)?;
    edges.second();
    walk(source, message, form, &mut edges)?;
    let mut order = edges.finish();
    if let Some(number) = order.wanted() {
        let mut visitor = visitor().finding(number);
        walk(source, message, form, &mut visitor)?;
        order.name(visitor.found());
    }
    Ok(order)
}

fn walk<V: Visitor>(
    source: &(impl ReadAt + ?Sized),
    message: Message,
    form: Form,
    visitor: &mut V,
) -> Result<(), GraphError> {
    match form {
        Form::Binary => Ok(scan(source, TENSORFLOW, message.id(), visitor)?),
        Form::Text => Ok(text::scan(source, message.id(), visitor)?),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::plain::tests::field;
    use super::*;
    use crate::artifact::schema::Field;
    use crate::wire::scan::{Piece, Step};

    fn node_of(name: &str, operation: &str, rest: &[&[u8]]) -> Vec<u8> {
        let node = [field(1, name.as_bytes()), field(2, operation.as_bytes()), rest.concat()];
        field(1, &node.concat())
    }

    fn beside(name: &str) -> Vec<u8> {
        let list = field(2, &field(1, &field(2, format!("loc:@{name}").as_bytes())));
        field(5, &[field(1, b"_class"), list].concat())
    }

    fn read_graph(parts: &[Vec<u8>]) -> Graph {
        let options = ReadOptions::default();
        let graphs = read(parts.concat().as_slice(), Message::GraphDef, Form::Binary, &options);
        graphs.unwrap().meta_graphs.remove(0).graph
    }

    #[test]
    fn a_node_is_beside_one_that_is_there() {
        let fault = |parts: &[Vec<u8>]| {
            let graph = read_graph(parts);
            let before = graph.deprecated_before_fault().len();
            (graph.structure.map(|fault| (fault.kind, fault.node)), before)
        };
        let a = node_of("a", "NoOp", &[]);
        let node = |name: &str| node_of("b", "NoOp", &[&beside(name)]);
        let lost = Some((StructureFaultKind::UnknownColocation, "b".to_owned()));
        assert_eq!(fault(&[a.clone(), node("a")]), (None, 0));
        assert_eq!(fault(&[node("a"), a.clone()]), (None, 0));
        assert_eq!(fault(&[node("b")]), (None, 0));
        assert_eq!(fault(&[a.clone(), node("c")]), (lost.clone(), 0));
        // The last attribute of a key counts, and what it says may come in another order.
        let twice =
            |first: &str, last: &str| node_of("b", "NoOp", &[&beside(first), &beside(last)]);
        assert_eq!(fault(&[twice("c", "b")]), (None, 0));
        assert_eq!(fault(&[twice("b", "c")]), (lost.clone(), 0));
        let list = field(2, &field(1, &field(2, b"loc:@c")));
        let turned = field(5, &[list, field(1, b"_class")].concat());
        assert_eq!(fault(&[node_of("b", "NoOp", &[&turned])]), (lost.clone(), 0));
        // What the importer comes to first.
        let old = |rest: &[&[u8]]| node_of("old", "Old", rest);
        assert_eq!(fault(&[old(&[]), node("c")]), (lost.clone(), 1));
        assert_eq!(fault(&[node("c"), old(&[])]), (lost.clone(), 0));
        assert_eq!(
            fault(&[old(&[&field(3, b"^z")]), node("c"), node_of("z", "NoOp", &[])]),
            (lost, 0)
        );
    }

    #[test]
    fn a_loop_that_begins_with_what_comes_back_alone_never_begins() {
        let placeholder = node_of("p", "Placeholder", &[]);
        let next = node_of("n", "NextIteration", &[&field(3, b"p")]);
        let merge = |inputs: [&[u8]; 2]| {
            node_of("m", "Merge", &[&field(3, inputs[0]), &field(3, inputs[1])])
        };
        let graph = read_graph(&[placeholder.clone(), next.clone(), merge([b"n", b"n"])]);
        assert_eq!(graph.structure.unwrap().kind, StructureFaultKind::Cycle);
        let graph = read_graph(&[placeholder, next, merge([b"p", b"n"])]);
        assert!(graph.structure.is_none());
    }

    #[test]
    fn a_function_that_calls_itself_deprecated_is_like_an_operation_of_the_list() {
        let signature = [field(1, b"f"), field(8, &[8, 100])].concat();
        let library = field(2, &field(1, &field(1, &signature)));
        let call = node_of("call", "f", &[]);
        let uses = |parts: &[Vec<u8>]| read_graph(parts).deprecated_nodes;
        assert_eq!(uses(&[call.clone(), field(2, &field(1, &field(1, &field(1, b"f"))))]), []);
        let found = uses(&[node_of("a", "NoOp", &[]), call, library]);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].operation.name.as_str(), found[0].operation.version), ("f", 100));
        assert_eq!(found[0].node, "call");
    }

    #[test]
    fn a_text_is_read_as_the_release_reads_it() {
        let takes = |release: i32, text: &str| {
            let text =
                format!("node {{ name: 'a' op: 'NoOp' attr {{ key: 'k' value {{ {text} }} }} }}");
            let options = ReadOptions { release, ..ReadOptions::default() };
            read(text.as_bytes(), Message::GraphDef, Form::Text, &options).is_ok()
        };
        for (text, old, new) in [
            ("type: 1", true, true),
            ("type: 01", false, false),
            ("i: 01", true, true),
            ("f: 00.5", true, false),
            ("f: 0.5F", false, true),
            ("s: '\\400'", true, false),
            ("s: '\\ud800'", true, false),
            ("s: '\\U0010ffff'", true, true),
            ("s: '\\U00110000'", false, false),
            ("placeholder: '\\u00e9'", false, true),
        ] {
            assert_eq!((takes(1766, text), takes(2474, text)), (old, new), "{text}");
        }
    }

    /// A visitor that is told of every field, also of those that it would take in one go.
    struct Slow<'a>(GraphVisitor<'a>);

    impl Visitor for Slow<'_> {
        fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
            self.0.enter(message, field)
        }
        fn leave(&mut self, message: MessageId, field: &'static Field, at: u64) {
            self.0.leave(message, field, at);
        }
        fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
            self.0.integer(message, field, value);
        }
        fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
            self.0.string(message, field, piece, is);
        }
        fn wants_packed(&self, message: MessageId) -> bool {
            self.0.wants_packed(message)
        }
        fn wants_bytes(&self, message: MessageId, field: &'static Field) -> bool {
            self.0.wants_bytes(message, field)
        }
    }

    fn visitor(size: u64, depth: Depth) -> GraphVisitor<'static> {
        GraphVisitor::new(GRAPH_DEF, size, depth, DeprecatedOperations::tensorflow(), i32::MAX)
    }

    /// What is found field by field, and what is found in one go.
    fn both(bytes: &[u8], depth: Depth) -> [Result<Vec<Graph>, String>; 2] {
        let (form, size) = (Form::Binary, bytes.len() as u64);
        let mut slow = Slow(visitor(size, depth));
        let mut fast = visitor(size, depth);
        let slow = walk(bytes, Message::GraphDef, form, &mut slow).map(|()| slow.0.finish());
        let fast = walk(bytes, Message::GraphDef, form, &mut fast).map(|()| fast.finish());
        [slow, fast].map(|found| match found {
            Ok((found, _)) => Ok(found.into_iter().map(|found| found.graph).collect()),
            Err(error) => Err(error.to_string()),
        })
    }

    /// What the second step makes of a graph.
    fn in_order(bytes: &[u8], mut graph: Graph) -> Graph {
        let operations = DeprecatedOperations::tensorflow();
        let order = || OrderVisitor::new(GRAPH_DEF, 0, operations, i32::MAX);
        let order = find_order(bytes, Message::GraphDef, Form::Binary, order).unwrap();
        order.apply(&mut graph, operations);
        graph
    }

    fn node() -> impl Strategy<Value = Vec<u8>> {
        let name = prop_oneof!["[a-d]", "[a-c]", "_a", "[a-d]:0", "\\^[a-d]", "\\PC{0,3}"];
        let operation = prop_oneof![Just("NoOp".to_owned()), Just("Old".to_owned()), "\\PC{0,2}"];
        let attribute = prop_oneof![
            Just(vec![0x0a, 1, b'T', 0x12, 2, 0x30, 1]),
            Just(vec![0x0a, 1, b'T', 0x12, 2, 0x30]),
            "[a-z]{0,120}".prop_map(|text| field(2, &field(2, text.as_bytes()))),
            proptest::collection::vec(any::<u8>(), 0..12),
        ];
        let inputs = proptest::collection::vec("(\\^)?[a-d](:[0-9]{1,2})?", 0..3);
        let class = prop_oneof![Just(Vec::new()), "[a-d_]".prop_map(|name| beside(&name))];
        let attributes = proptest::collection::vec(attribute, 0..3);
        (
            proptest::collection::vec(name, 0..3),
            proptest::collection::vec(operation, 0..3),
            inputs,
            attributes,
            class,
        )
            .prop_map(|(names, operations, inputs, attributes, class)| {
                let mut parts = Vec::new();
                parts.extend(names.iter().map(|name| field(1, name.as_bytes())));
                parts.extend(operations.iter().map(|name| field(2, name.as_bytes())));
                parts.extend(inputs.iter().map(|input| field(3, input.as_bytes())));
                parts.extend(attributes.iter().map(|attribute| field(5, attribute)));
                parts.push(class);
                parts.concat()
            })
    }

    #[test]
    fn a_list_of_another_attribute_places_a_node_beside_none() {
        let list = field(2, &field(1, &field(2, b"loc:@missing")));
        let attribute = field(5, &[field(1, b"_clasp"), list].concat());
        let graph = [node_of("a", "NoOp", &[&attribute])];
        assert!(read_graph(&graph).structure.is_none());
        let [slow, fast] =
            both(&graph.concat(), Depth::Whole).map(|found| found.unwrap().remove(0));
        assert!(slow.needs_order && !fast.needs_order);
        assert!(in_order(&graph.concat(), slow).structure.is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn a_node_that_is_read_in_one_go_is_the_one_that_is_read_field_by_field(
            nodes in proptest::collection::vec(node(), 0..6),
            inner in proptest::collection::vec(node(), 0..3),
            damage in proptest::option::of((any::<proptest::sample::Index>(), any::<u8>())),
        ) {
            let function = field(1, &inner.iter().map(|node| field(3, node)).collect::<Vec<_>>().concat());
            let mut bytes = nodes.iter().map(|node| field(1, node)).collect::<Vec<_>>().concat();
            bytes.extend(field(2, &function));
            if let Some((at, byte)) = damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            for depth in [Depth::Whole, Depth::Counted, Depth::Versions] {
                let [mut slow, mut fast] = both(&bytes, depth);
                if let (Ok(slow), Ok(fast)) = (&mut slow, &mut fast) {
                    for (slow, fast) in slow.iter_mut().zip(fast) {
                        // Field by field, the list of any attribute counts as one of nodes to be beside. The second step knows.
                        prop_assert!(slow.needs_order || !fast.needs_order);
                        if slow.needs_order && !fast.needs_order {
                            *slow = in_order(&bytes, std::mem::take(slow));
                            slow.needs_order = false;
                        }
                    }
                }
                prop_assert_eq!(format!("{slow:?}"), format!("{fast:?}"));
            }
        }
    }
}
