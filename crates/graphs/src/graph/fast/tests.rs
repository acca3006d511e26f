//! Tests of the fast walk with registries: it accepts what each of them accepts, and leaves
//! everything else to the index.

use std::sync::atomic::AtomicU64;

use crate::{
    graph::{
        DeprecatedOperations, Form, Graph, IgnoredAttribute, ImportDiagnosticKind as Kind, Loader,
        Message, ReadOptions,
        fast::{Depth, GraphVisitor},
        read,
        release::Releases,
        source::Source,
        tests::{Counted, field},
    },
    ops::Registry,
};

fn registries(releases: &[&str]) -> Vec<Registry> {
    releases.iter().map(|release| Registry::tensorflow(release).unwrap()).collect()
}

/// Encodes an attribute that is a type.
fn type_of(key: &str, data_type: u8) -> Vec<u8> {
    field(5, &[field(1, key.as_bytes()), field(2, &[0x30, data_type])].concat())
}

fn node(name: &str, operation: &str, inputs: &[&str], rest: &[Vec<u8>]) -> Vec<u8> {
    let inputs: Vec<u8> = inputs.iter().flat_map(|input| field(3, input.as_bytes())).collect();
    let head = [field(1, name.as_bytes()), field(2, operation.as_bytes()), inputs];
    field(1, &[head.concat(), rest.concat()].concat())
}

fn input(name: &str, data_type: u8) -> Vec<u8> {
    node(name, "Placeholder", &[], &[type_of("dtype", data_type)])
}

fn identity(name: &str, from: &str, data_type: u8) -> Vec<u8> {
    node(name, "Identity", &[from], &[type_of("T", data_type)])
}

/// Returns the verdict on the graph, and how often its bytes were read.
fn judged(parts: &[Vec<u8>], registries: &[Registry]) -> (Graph, f64) {
    let bytes = [parts.concat(), field(4, &[0x08, 0xe8, 0x07])].concat();
    let size = bytes.len() as f64;
    let file = Counted { bytes, read: AtomicU64::new(0) };
    let options = ReadOptions::default().with_registries(registries).with_shapes(false);
    let graphs = read(&file, Message::GraphDef, Form::Binary, &options).unwrap();
    let graph = graphs.meta_graphs.into_iter().next().unwrap().graph;
    (graph, file.read.into_inner() as f64 / size)
}

fn diagnostic(graph: &Graph) -> Option<Kind> {
    graph.judgements[0].diagnostic(Loader::Import).map(|diagnostic| diagnostic.kind.clone())
}

/// Returns this number of nodes in a chain, more than a window and one thread hold.
fn chain(length: usize) -> Vec<Vec<u8>> {
    let next = |number: usize| {
        let before = number.checked_sub(1).map_or("a".to_owned(), |before| format!("n{before}"));
        identity(&format!("n{number}"), &before, 1)
    };
    [input("a", 1)].into_iter().chain((0..length).map(next)).collect()
}

#[test]
fn a_graph_that_all_releases_take_is_read_once() {
    let all: Vec<&str> = Registry::releases().collect();
    for registries in [registries(&["2.12"]), registries(&all)] {
        for length in [3, 3000, 70_000] {
            let (graph, reads) = judged(&chain(length), &registries);
            assert_eq!(graph.judgements.len(), registries.len());
            let is_accepted =
                |loader| graph.judgements.iter().all(|one| one.diagnostic(loader).is_none());
            assert!(Loader::ALL.iter().copied().all(is_accepted));
            assert!(reads < 1.1, "{length}: {reads}");
        }
    }
}

#[test]
fn an_edge_is_looked_at_however_far_its_node_is() {
    let registries = registries(&["2.12"]);
    for length in [1, 3000, 70_000] {
        // Valid edges to the first node of the graph.
        let far = [chain(length), vec![identity("z", "a", 1), identity("y", "^a", 1)]].concat();
        assert_eq!(diagnostic(&judged(&far, &registries).0), Some(Kind::InputCount));
        for (last, expected) in [
            (identity("z", "a", 1), None),
            (identity("z", "a", 3), Some(Kind::InputType { input: 0 })),
            (identity("z", "a:1", 1), Some(Kind::OutputIndex { input: 0 })),
            (identity("z", "a:70000", 1), Some(Kind::OutputIndex { input: 0 })),
            (identity("z", "a:4294967296", 1), None),
            (identity("z", "n0", 3), Some(Kind::InputType { input: 0 })),
            (node("z", "NoSuchOp", &["a"], &[]), Some(Kind::UnknownOperation)),
        ] {
            let graph = judged(&[chain(length), vec![last.clone()]].concat(), &registries).0;
            assert_eq!(diagnostic(&graph), expected, "{length} {last:?}");
        }
    }
}

#[test]
fn what_one_release_alone_refuses_is_left_to_the_index() {
    let registries = registries(&["2.14", "2.15"]);
    // INT4 exists since 2.15.
    let (graph, reads) = judged(&[chain(3000), vec![input("i", 29)]].concat(), &registries);
    let expected = Kind::AttributeType { attribute: "dtype".to_owned() };
    assert_eq!(diagnostic(&graph), Some(expected));
    assert_eq!(graph.judgements[1].diagnostic(Loader::Import), None);
    assert!(reads > 1.5);
}

#[test]
fn tensors_of_one_key_are_of_one_signature_and_what_else_differs_is_not() {
    let registries = registries(&["2.12"]);
    let constant = |name: &str, data_type: u8, content: &[u8]| {
        let tensor = [&[0x08, data_type][..], &field(2, b""), &field(4, content)].concat();
        let value = field(5, &[field(1, b"value"), field(2, &field(8, &tensor))].concat());
        node(name, "Const", &[], &[type_of("dtype", data_type), value])
    };
    let constants = |data_type: u8| {
        let one = move |number: u32| {
            let length = if number.is_multiple_of(2) { 4 } else { 400 };
            constant(&format!("c{number}"), data_type, &[number as u8; 400][..length])
        };
        (0..300).map(one).collect::<Vec<_>>()
    };
    let (graph, reads) = judged(&constants(1), &registries);
    assert_eq!(diagnostic(&graph), None);
    assert!(reads < 1.1, "{reads}");
    let other = [constants(1), vec![identity("z", "c7", 3)]].concat();
    assert_eq!(diagnostic(&judged(&other, &registries).0), Some(Kind::InputType { input: 0 }));
    // More attributes and more keys of tensors than are distinguished: the verdict is the same.
    let many = (0..20).map(|key| field(5, &field(1, format!("_k{key}").as_bytes())));
    let rest: Vec<Vec<u8>> = [type_of("T", 1)].into_iter().chain(many).collect();
    let odd = node("o", "Identity", &["c0"], &rest);
    assert_eq!(diagnostic(&judged(&[constants(1), vec![odd]].concat(), &registries).0), None);
}

#[test]
fn more_signatures_than_have_numbers_are_left_to_the_index() {
    let registries = registries(&["2.12"]);
    let wide = |number: usize| {
        let count = [&[0x18][..], &[(number % 128) as u8 | 0x80, (number / 128) as u8]].concat();
        let count = field(5, &[field(1, b"N"), field(2, &count)].concat());
        let inputs = vec!["a"; number];
        node(&format!("w{number}"), "AddN", &inputs, &[type_of("T", 1), count])
    };
    let last = node("z", "AddN", &["a"], &[type_of("T", 3), type_of("N", 1)]);
    let nodes: Vec<_> = [input("a", 1)].into_iter().chain((1..1100).map(wide)).collect();
    assert_eq!(diagnostic(&judged(&nodes, &registries).0), None);
    let wrong = [nodes, vec![last]].concat();
    let expected = Kind::AttributeKind { attribute: "N".to_owned() };
    assert_eq!(diagnostic(&judged(&wrong, &registries).0), Some(expected));
}

#[test]
fn what_nodes_of_functions_drop_is_found_and_counted_however_they_are_written() {
    let flag = |key: &str, value: u8| {
        field(5, &[field(1, key.as_bytes()), field(2, &[0x28, value])].concat())
    };
    let product = |name: &str, rest: &[Vec<u8>]| {
        let rest = [&[type_of("T", 1)], rest].concat();
        node(name, "MatMul", &["x", "y"], &rest).split_off(2)
    };
    // The value before the key is not the canonical encoding.
    let turned = field(5, &[field(2, &[0x28, 1]), field(1, b"grad_a")].concat());
    let default = product("default", &[flag("grad_a", 0)]);
    let dropping = product("dropping", &[flag("grad_a", 1)]);
    let other = product("other", &[turned]);
    let function = |name: &str, nodes: &[&Vec<u8>]| {
        let nodes: Vec<u8> = nodes.iter().flat_map(|node| field(3, node)).collect();
        field(1, &[field(1, &field(1, name.as_bytes())), nodes].concat())
    };
    let of_graph = |functions: &[Vec<u8>]| {
        let library = field(2, &functions.concat());
        let (graph, times) = judged(&[input("a", 1), library], &registries(&["2.12", "2.21"]));
        let ignored = graph.judgements.iter().map(|judgement| {
            let ignored = judgement.ignored.iter();
            let found =
                |one: &IgnoredAttribute| (one.function.clone(), one.node.clone(), one.nodes);
            ignored.map(found).collect::<Vec<_>>()
        });
        (ignored.collect::<Vec<_>>(), times)
    };
    let found = |function: &str, node: &str, nodes: u64| {
        vec![vec![(Some(function.to_owned()), node.to_owned(), nodes)], Vec::new()]
    };
    let nothing = vec![Vec::new(), Vec::new()];
    assert_eq!(of_graph(&[function("f", &[&default, &default])]).0, nothing);
    let both = [function("f", &[&default]), function("g", &[&dropping, &default, &dropping])];
    assert_eq!(of_graph(&both).0, found("g", "dropping", 2));
    assert_eq!(of_graph(&[function("f", &[&default, &other])]).0, found("f", "other", 1));
}

#[test]
fn of_functions_that_drop_nothing_nobody_looks_at_a_node_again() {
    let function = |name: usize| {
        let nodes = (0..300).flat_map(|number| {
            let node = node(&format!("n{number}"), "Identity", &["x"], &[type_of("T", 1)]);
            field(3, &node[2..])
        });
        let signature = field(1, &field(1, format!("f{name}").as_bytes()));
        field(2, &field(1, &[signature, nodes.collect()].concat()))
    };
    let registries = registries(&["2.12"]);
    let may_ignore = |bytes: &[u8]| {
        let source = Source::new(&bytes, Message::GraphDef, Form::Binary);
        let (deprecated, size) = (DeprecatedOperations::tensorflow(), bytes.len() as u64);
        let root = source.message();
        let mut visitor = GraphVisitor::new(root, size, Depth::Whole, deprecated, i32::MAX)
            .with_releases(Releases::new(&registries), true);
        source.walk(&mut visitor).unwrap();
        visitor.finish().0[0].may_ignore_in_functions
    };
    // Several windows, so that some nodes cross from one into the next.
    let functions: Vec<u8> = (0..200).flat_map(function).collect();
    assert!(functions.len() > 1 << 20);
    assert!(!may_ignore(&functions));
    let twice = node("n", "Relu", &["x"], &[field(2, b"Identity")]);
    let twice = field(1, &[field(1, &field(1, b"g")), field(3, &twice[2..])].concat());
    assert!(may_ignore(&[functions, field(2, &twice)].concat()), "a node of another form");
}
