//! Tests of functions and gradients that occur twice in a library.

use serdes_testkit::fields::field;

use crate::graph::{Form, Message, ReadOptions, StructureDiagnosticKind, read};

/// Encodes a function with this signature and these fields.
fn function(signature: &[u8], rest: &[&[u8]]) -> Vec<u8> {
    let signature = [&field(1, b"f"), signature].concat();
    field(1, &[&field(1, &signature)[..], &rest.concat()].concat())
}

fn node(parts: &[&[u8]]) -> Vec<u8> {
    field(3, &[&field(1, b"n")[..], &field(2, b"NoOp"), &parts.concat()].concat())
}

fn attribute(number: u8, key: &[u8], value: u8) -> Vec<u8> {
    field(number.into(), &[&field(1, key)[..], &field(2, &[0x18, value])].concat())
}

/// Returns the diagnostic of a graph with this library, which is the same in every kind of message.
fn diagnostic(library: &[&[u8]]) -> Option<StructureDiagnosticKind> {
    let graph = field(2, &library.concat());
    let meta_graph = field(2, &graph);
    let model = field(2, &meta_graph);
    let messages = [
        (Message::GraphDef, graph),
        (Message::MetaGraphDef, meta_graph),
        (Message::SavedModel, model),
    ];
    let [alone, diagnostics @ ..] = messages.map(|(message, bytes)| {
        let graphs = read(bytes.as_slice(), message, Form::Binary, &ReadOptions::default());
        let graph = graphs.unwrap().meta_graphs.remove(0).graph;
        graph.structure.map(|diagnostic| {
            assert_eq!(diagnostic.node, "f");
            assert!(diagnostic.to_string().starts_with("function"), "{diagnostic}");
            diagnostic.kind
        })
    });
    assert_eq!(diagnostics, [alone; 2]);
    alone
}

#[test]
fn a_function_may_come_again_if_it_is_the_same() {
    let original = function(b"", &[]);
    let (p, q) = (attribute(5, b"p", 1), attribute(5, b"q", 2));
    let (x, y) = (field(3, b"x"), field(3, b"y"));
    let (control_x, control_y) = (field(3, b"^x"), field(3, b"^y"));
    let second = field(3, &[field(1, b"m"), field(2, b"NoOp")].concat());
    let first = node(&[&x]);
    for [one, other] in [
        [original.clone(), original.clone()],
        [function(b"", &[&p, &q]), function(b"", &[&q, &p])],
        [function(b"", &[&node(&[&p, &q])]), function(b"", &[&node(&[&q, &p])])],
        [function(b"", &[&first, &second]), function(b"", &[&second, &first])],
        [
            function(b"", &[&node(&[&control_x, &control_y])]),
            function(b"", &[&node(&[&control_y, &control_x])]),
        ],
        [function(b"", &[&node(&[&attribute(5, b"_p", 1)])]), function(b"", &[&node(&[])])],
        [function(&[0x88, 1, 0], &[]), original.clone()],
        [function(&field(1, b"f"), &[]), original.clone()],
        [field(1, &[field(1, &field(1, b"f")), field(1, b"")].concat()), original.clone()],
        [function(&[0x88, 1, 1, 0x88, 1, 0], &[]), original.clone()],
        [function(b"", &[&field(8, &[8, 0, 16, 1])]), original.clone()],
        [function(b"", &[&node(&[&x]), &node(&[])]), function(b"", &[&node(&[])])],
    ] {
        assert_eq!(diagnostic(&[&one, &other]), None, "{one:?} {other:?}");
    }
    let different = Some(StructureDiagnosticKind::DuplicateFunction);
    for [one, other] in [
        [function(b"", &[&first]), original.clone()],
        [function(b"", &[&node(&[&x, &y])]), function(b"", &[&node(&[&y, &x])])],
        [function(b"", &[&p]), function(b"", &[&attribute(5, b"p", 3)])],
        [function(b"", &[&attribute(5, b"_p", 1)]), original.clone()],
        [function(&[0x88, 1, 1], &[]), original.clone()],
        [function(&field(6, b"what it does"), &[]), original.clone()],
        [function(b"", &[&field(4, &field(1, b"y"))]), original.clone()],
        [function(b"", &[&node(&[]), &node(&[])]), function(b"", &[&node(&[]), &node(&[])])],
        [function(b"", &[&node(&[]), &node(&[&x])]), function(b"", &[&node(&[])])],
    ] {
        assert_eq!(diagnostic(&[&one, &other]), different, "{one:?} {other:?}");
        assert_eq!(diagnostic(&[&other, &one, &one]), different, "{one:?} {other:?}");
    }
}

#[test]
fn a_function_has_one_gradient() {
    let gradient = |of: &[u8]| field(2, &[field(1, b"f"), field(2, of)].concat());
    let (g, h, none) = (gradient(b"g"), gradient(b"h"), gradient(b""));
    assert_eq!(diagnostic(&[&g, &g]), None);
    assert_eq!(diagnostic(&[&none, &g, &g]), None);
    assert_eq!(diagnostic(&[&g, &h]), Some(StructureDiagnosticKind::SecondGradient));
    let nobodys = |of: &[u8]| field(2, &field(2, of));
    let bytes = field(2, &[nobodys(b"g"), nobodys(b"h")].concat());
    let graphs = read(bytes.as_slice(), Message::GraphDef, Form::Binary, &ReadOptions::default());
    let found = graphs.unwrap().meta_graphs.remove(0).graph.structure.unwrap();
    assert_eq!((found.kind, found.node.as_str()), (StructureDiagnosticKind::SecondGradient, ""));
    let different = [function(b"", &[&node(&[])]), function(b"", &[])].concat();
    assert_eq!(diagnostic(&[&g, &h, &different]), Some(StructureDiagnosticKind::DuplicateFunction));
}
