//! Tests of graphs as bytes, read as whole nodes and field by field.

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
};

use proptest::prelude::*;

use super::{
    attributes::Attributes,
    fast::{Depth, GraphVisitor, ScannedGraph},
    function_names::FunctionNames,
    importer::{self, FunctionMemo, Library},
    index::{GraphSize, IndexRequest, IndexVisitor, RequestedSignatures},
    read::apply,
    release::Releases,
    source::{Extent, Source},
    *,
};
use crate::{
    files::ReadAt,
    scan::{Piece, Step, Visitor},
    schema::{Field, GRAPH_DEF, MessageId},
};
pub(super) use serdes_testkit::fields::field;

mod same_functions;

/// Returns the attributes of a node with these values, which are given as text.
pub(super) fn attributes_of(values: &[(&str, &str)]) -> Attributes {
    let text = serdes_testkit::fields::attributes(values).into_bytes();
    let place = Extent { start: 0, end: text.len() as u64 };
    let source = Source::new(&text, Message::GraphDef, Form::Text);
    node_at::read(source, place, None, i32::MAX).unwrap().attributes
}

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
    let diagnostic = |parts: &[Vec<u8>]| {
        let graph = read_graph(parts);
        let before = graph.deprecated_before_diagnostic().len();
        (graph.structure.map(|diagnostic| (diagnostic.kind, diagnostic.node)), before)
    };
    let a = node_of("a", "NoOp", &[]);
    let node = |name: &str| node_of("b", "NoOp", &[&beside(name)]);
    let unresolved = Some((StructureDiagnosticKind::UnknownColocation, "b".to_owned()));
    assert_eq!(diagnostic(&[a.clone(), node("a")]), (None, 0));
    assert_eq!(diagnostic(&[node("a"), a.clone()]), (None, 0));
    assert_eq!(diagnostic(&[node("b")]), (None, 0));
    assert_eq!(diagnostic(&[a.clone(), node("c")]), (unresolved.clone(), 0));
    // The last attribute of a key counts, and its fields may come in another order.
    let twice = |first: &str, last: &str| node_of("b", "NoOp", &[&beside(first), &beside(last)]);
    assert_eq!(diagnostic(&[twice("c", "b")]), (None, 0));
    assert_eq!(diagnostic(&[twice("b", "c")]), (unresolved.clone(), 0));
    let list = field(2, &field(1, &field(2, b"loc:@c")));
    let turned = field(5, &[list, field(1, b"_class")].concat());
    assert_eq!(diagnostic(&[node_of("b", "NoOp", &[&turned])]), (unresolved.clone(), 0));
    // The diagnostic that the importer reaches first.
    let old = |rest: &[&[u8]]| node_of("old", "Old", rest);
    assert_eq!(diagnostic(&[old(&[]), node("c")]), (unresolved.clone(), 1));
    assert_eq!(diagnostic(&[node("c"), old(&[])]), (unresolved.clone(), 0));
    assert_eq!(
        diagnostic(&[old(&[&field(3, b"^z")]), node("c"), node_of("z", "NoOp", &[])]),
        (unresolved, 0)
    );
}

#[test]
fn a_loop_that_begins_with_what_comes_back_alone_never_begins() {
    let placeholder = node_of("p", "Placeholder", &[]);
    let next = node_of("n", "NextIteration", &[&field(3, b"p")]);
    let merge =
        |inputs: [&[u8]; 2]| node_of("m", "Merge", &[&field(3, inputs[0]), &field(3, inputs[1])]);
    let graph = read_graph(&[placeholder.clone(), next.clone(), merge([b"n", b"n"])]);
    assert_eq!(graph.structure.unwrap().kind, StructureDiagnosticKind::Cycle);
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
        let options = ReadOptions::default().with_release(release);
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

/// A visitor that gets every field, also of messages that it would take whole.
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

/// Returns the results of a walk that reads field by field, and of one that reads whole messages.
fn both(bytes: &[u8], depth: Depth) -> [Result<Vec<ScannedGraph>, String>; 2] {
    let size = bytes.len() as u64;
    let source = Source::new(&bytes, Message::GraphDef, Form::Binary);
    let mut slow = Slow(visitor(size, depth));
    let mut fast = visitor(size, depth);
    let slow = source.walk(&mut slow).map(|()| slow.0.finish());
    let fast = source.walk(&mut fast).map(|()| fast.finish());
    [slow, fast].map(|found| match found {
        Ok((found, _)) => Ok(found),
        Err(error) => Err(error.to_string()),
    })
}

/// Judges the nodes outside functions, in the importer's order.
fn in_order(bytes: &[u8], scanned: &mut ScannedGraph) {
    let (operations, release) = (DeprecatedOperations::tensorflow(), i32::MAX);
    let functions = &FunctionNames::default();
    let request = IndexRequest {
        meta_graph: 0,
        size: GraphSize::default(),
        release,
        operations,
        functions,
        edges: true,
        calls: false,
        duplicate_functions: false,
        uses: false,
        node_signatures: RequestedSignatures::None,
        ignored_in_functions: true,
        releases: Releases::NONE,
    };
    let source = Source::new(&bytes, Message::GraphDef, Form::Binary);
    let mut visitor = IndexVisitor::new(source, request);
    source.walk(&mut visitor).unwrap();
    let index = visitor.finish().unwrap().index;
    let memo = &FunctionMemo::default();
    let (names, releases, follows_shapes) = (functions, Releases::NONE, false);
    let library = Library { source, names, memo, releases, release, follows_shapes };
    let structure = importer::judge(library, &index).unwrap();
    apply(source, &mut scanned.meta_graph.graph, structure, operations, request).unwrap();
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
    let [mut slow, fast] =
        both(&graph.concat(), Depth::Whole).map(|found| found.unwrap().remove(0));
    assert!(slow.needs_order && !fast.needs_order);
    in_order(&graph.concat(), &mut slow);
    assert!(slow.meta_graph.graph.structure.is_none());
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
                    // Read field by field, the list of any attribute counts as a colocation. The
                    // second step decides.
                    prop_assert!(slow.needs_order || !fast.needs_order);
                    if slow.needs_order && !fast.needs_order {
                        in_order(&bytes, slow);
                        slow.needs_order = false;
                    }
                }
            }
            prop_assert_eq!(format!("{slow:?}"), format!("{fast:?}"));
        }
    }
}

/// A file that counts the bytes that are read from it.
pub(super) struct Counted {
    pub(super) bytes: Vec<u8>,
    pub(super) read: AtomicU64,
}

impl ReadAt for Counted {
    fn size(&self) -> io::Result<u64> {
        self.bytes.size()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let count = self.bytes.read_at(buffer, offset)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Returns nodes that are used before they are written, enough for several windows, and then these
/// parts.
fn turned_around(last: &[Vec<u8>]) -> Vec<u8> {
    let node = |number: usize| {
        let input = format!("^n{}", number + 1);
        node_of(&format!("n{number}"), "NoOp", &[&field(3, input.as_bytes())])
    };
    let nodes: Vec<_> = (0..20_000).map(node).chain([node_of("n20000", "NoOp", &[])]).collect();
    [nodes.concat(), last.concat()].concat()
}

#[test]
fn a_graph_is_read_at_most_twice_whatever_is_wrong_with_it() {
    let named = |name: &[u8]| field(1, &field(1, name));
    let function = |name: &[u8], rest: &[u8]| field(1, &[named(name), rest.to_vec()].concat());
    let node = |name: &[u8]| field(3, &[field(1, name), field(2, b"NoOp")].concat());
    let cycle = field(3, &[field(1, b"a"), field(2, b"NoOp"), field(3, b"^a")].concat());
    let signature = [field(1, b"g"), field(8, &[8, 100])].concat();
    let deprecated = field(1, &field(1, &signature));
    let call = |name: &str| node_of("call", name, &[]);
    for (last, diagnostic) in [
        (vec![], None),
        (vec![node_of("c", "NoOp", &[&field(3, b"^c")])], Some(StructureDiagnosticKind::Cycle)),
        (
            vec![node_of("c", "NoOp", &[&beside("z")])],
            Some(StructureDiagnosticKind::UnknownColocation),
        ),
        (
            vec![node_of("c", "NoOp", &[&field(3, b"z")])],
            Some(StructureDiagnosticKind::UnknownInput),
        ),
        (vec![node_of("n7", "NoOp", &[])], Some(StructureDiagnosticKind::Duplicate)),
        (
            vec![call("f"), field(2, &function(b"f", &cycle))],
            Some(StructureDiagnosticKind::CalledFunction),
        ),
        (
            vec![call("f"), field(2, &[function(b"f", &[]), function(b"f", &node(b"a"))].concat())],
            Some(StructureDiagnosticKind::DuplicateFunction),
        ),
        (vec![call("g"), field(2, &[deprecated, function(b"f", &cycle)].concat())], None),
    ] {
        let bytes = turned_around(&last);
        let size = bytes.len() as u64;
        let file = Counted { bytes, read: AtomicU64::new(0) };
        let options = ReadOptions::default();
        let graphs = read(&file, Message::GraphDef, Form::Binary, &options).unwrap();
        let found = graphs.meta_graphs[0].graph.structure.as_ref();
        assert_eq!(found.map(|diagnostic| diagnostic.kind), diagnostic);
        // Only a body, a name, and a header that crosses windows are read again.
        let read = file.read.into_inner();
        assert!(read <= 2 * size + 1024, "{diagnostic:?}: {read} of {size}");
    }
}

#[test]
fn a_diagnostic_is_found_and_named_in_the_text_form_as_in_the_binary_one() {
    let diagnostic = |text: &str| {
        let options = ReadOptions::default();
        let graphs = read(text.as_bytes(), Message::GraphDef, Form::Text, &options).unwrap();
        graphs.meta_graphs[0].graph.structure.as_ref().map(ToString::to_string)
    };
    let cycle = "it is part of a cycle, or depends on one";
    // Lists, both brackets, comments and names in pieces, directly before and behind the part that
    // is read again.
    let text = "node [ { name: 'a' op: 'NoOp' }, < op: 'NoOp' #}\n name: 'b\\'' 'c' >, {name:'d'}]";
    assert_eq!(diagnostic(text).unwrap(), {
        let name = "its name is empty or has characters that no node name can have";
        format!("node \"b'c\": {name}")
    });
    let text = "node{name:'a' op:'NoOp' input:'^b'}node{name:'b' op:'NoOp' input:'^a'}";
    assert_eq!(diagnostic(text).unwrap(), format!("node \"a\": {cycle}"));
    let text = "node { name: 'a' op: 'f' input: '^é' } node { name: 'é' op: 'NoOp' }";
    assert!(diagnostic(text).unwrap().starts_with("node \"é\""));
    let text = "library { function { signature { name: 'f' } node_def { name: 'x' op: 'g' } }
        # of a function that nobody calls
        function [ { signature { name: 'h' } node_def { name: 'x' } },
        < node_def < name: 'n' op: 'NoOp' >
          node_def: { # é
            name: 'm' \"m\" op: 'NoOp' input: '^mm' } signature: <name: 'g'; >> ] }
        node { name: 'c' op: 'f' input: '^d' } node { name: 'd' op: 'NoOp' }";
    let body = format!("function \"g\", \"mm\": {cycle}");
    let called = "it calls a function that cannot be built";
    assert_eq!(diagnostic(text).unwrap(), format!("node \"c\": {called} ({body})"));
}
