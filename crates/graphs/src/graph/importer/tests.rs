use crate::graph::{
    BodyDiagnosticKind, Form, Graph, Message, ReadOptions, StructureDiagnosticKind, read,
    tests::field,
};

fn text(number: u8, text: &str) -> Vec<u8> {
    field(number.into(), text.as_bytes())
}

fn node(name: &str, operation: &str, inputs: &[&str]) -> Vec<u8> {
    let inputs = inputs.iter().map(|input| text(3, input)).collect::<Vec<_>>().concat();
    [text(1, name), text(2, operation), inputs].concat()
}

/// Encodes an argument or result of type DT_FLOAT, or without a type.
fn argument(name: &str, typed: bool) -> Vec<u8> {
    let data_type: &[u8] = if typed { &[0x18, 1] } else { &[] };
    [&text(1, name)[..], data_type].concat()
}

/// Encodes `f(x) -> y` with these nodes and this result.
fn unary(name: &str, nodes: &[Vec<u8>], returned: &str) -> Vec<u8> {
    let (x, y) = (argument("x", true), argument("y", true));
    let ret = field(4, &[text(1, "y"), text(2, returned)].concat());
    function(name, &[field(2, &x), field(3, &y)], nodes, &ret)
}

fn function(name: &str, signature: &[Vec<u8>], nodes: &[Vec<u8>], rest: &[u8]) -> Vec<u8> {
    let signature = [text(1, name), signature.concat()].concat();
    let nodes = nodes.iter().map(|node| field(3, node)).collect::<Vec<_>>().concat();
    field(1, &[&field(1, &signature)[..], &nodes, rest].concat())
}

fn graph(nodes: &[Vec<u8>], library: &[Vec<u8>]) -> Graph {
    let nodes = nodes.iter().map(|node| field(1, node)).collect::<Vec<_>>().concat();
    let library = library.concat();
    // The length of a whole library needs more bytes than that of a part.
    let length = library.len();
    let length = [0, 7, 14].map(|shift| (length >> shift) as u8 | 0x80);
    let length = [&length[..], &[(library.len() >> 21) as u8]].concat();
    let bytes = [nodes, vec![0x12], length, library].concat();
    let options = ReadOptions::default();
    let graphs = read(bytes.as_slice(), Message::GraphDef, Form::Binary, &options);
    graphs.unwrap().meta_graphs.remove(0).graph
}

/// Returns the diagnostic of a graph with one node that calls `f`.
fn diagnostic(library: &[Vec<u8>]) -> Option<(String, String, BodyDiagnosticKind)> {
    let found = graph(&[node("c", "f", &["p"]), node("p", "Placeholder", &[])], library);
    found.structure.map(|diagnostic| {
        assert_eq!(
            (diagnostic.kind, &*diagnostic.node),
            (StructureDiagnosticKind::CalledFunction, "c")
        );
        let body = diagnostic.body.unwrap();
        (body.function, body.part, body.kind)
    })
}

#[test]
fn a_function_that_is_called_must_be_one_that_can_be_built() {
    use BodyDiagnosticKind as Kind;

    let identity = |input: &str| node("i", "Identity", &[input]);
    let body = |nodes: &[Vec<u8>]| {
        let found = diagnostic(&[unary("f", nodes, "x")]);
        found.map(|(function, part, kind)| {
            assert_eq!(function, "f");
            (part, kind)
        })
    };
    for input in ["x", "x:0", "i:output", "^x", "^x:0", "^i", "^i:output:0"] {
        let nodes = [node("i", "NoOp", &[]), node("k", "NoOp", &[input])];
        assert_eq!(body(&nodes), None, "{input}");
    }
    for input in ["", "z", "z:output:0", "x:1", "x:", "x:output", "i:0", "i:", "^", "^z", "^i:0"] {
        let nodes = [node("i", "NoOp", &[]), node("k", "NoOp", &[input])];
        assert_eq!(body(&nodes), Some(("k".to_owned(), Kind::UnknownInput)), "{input}");
    }
    for (nodes, part, kind) in [
        (vec![node("a", "NoOp", &[]), node("a", "NoOp", &[])], "a", Kind::Duplicate),
        (vec![node("x", "NoOp", &[])], "x", Kind::Duplicate),
        (vec![node("y_RetVal", "NoOp", &[])], "y", Kind::Duplicate),
        (vec![node("a b", "NoOp", &[])], "a b", Kind::Name),
        (vec![text(2, "NoOp")], "", Kind::Name),
        (vec![node("a", "", &[])], "a", Kind::NoOperation),
        (vec![node("a", "Pack", &["^x", "x"])], "a", Kind::InputOrder),
        (vec![node("a", "NoOp", &["^a"])], "a", Kind::Cycle),
        (
            vec![identity("x"), node("a", "NoOp", &["^b"]), node("b", "NoOp", &["^a"])],
            "a",
            Kind::Cycle,
        ),
    ] {
        assert_eq!(body(&nodes), Some((part.to_owned(), kind)), "{nodes:?}");
    }
    assert_eq!(body(&[node("_a", "NoOp", &[]), node("y", "NoOp", &[])]), None);
    // An operation without outputs gives nothing to wait for.
    assert_eq!(body(&[node("n", "NoOp", &["^i"]), node("i", "Identity", &["n", "x"])]), None);
}

#[test]
fn a_function_says_what_it_returns() {
    use BodyDiagnosticKind as Kind;

    let returned = |text: &str| {
        let found = diagnostic(&[unary("f", &[node("i", "Identity", &["x"])], text)]);
        found.map(|(_, part, kind)| (part, kind))
    };
    for text in ["x", "x:0", "i:output", "i:output:0"] {
        assert_eq!(returned(text), None, "{text}");
    }
    for text in ["", "z", "i", "i:0", "^x", "x:1", "z:output:0", "y"] {
        assert_eq!(returned(text), Some(("y".to_owned(), Kind::UnknownResult)), "{text}");
    }
    let (x, y) = (field(2, &argument("x", true)), field(3, &argument("y", true)));
    let nothing = [function("f", &[x.clone(), y.clone()], &[], &[])];
    assert_eq!(diagnostic(&nothing).unwrap().2, Kind::NoResult);
    let returns = field(4, &[text(1, "y"), text(2, "x")].concat());
    let other = field(3, &[&text(1, "y")[..], &[0x18, 3]].concat());
    let other = [function("f", &[x.clone(), other], &[], &returns)];
    assert_eq!(diagnostic(&other).unwrap().2, Kind::ResultType);
    let untyped = [function("f", &[field(2, &argument("x", false))], &[], &[])];
    assert_eq!(diagnostic(&untyped), Some(("f".to_owned(), "x".to_owned(), Kind::NoType)));
    let list = field(2, &[argument("x", true), text(5, "N")].concat());
    let second = node("k", "NoOp", &["^x:1"]);
    assert_eq!(diagnostic(&[function("f", &[list], &[second], &[])]), None);
}

#[test]
fn a_loop_inside_of_a_function_is_no_cycle() {
    let body = |inputs: &[&str]| {
        let merge = node("m", "Merge", inputs);
        diagnostic(&[unary("f", &[merge, node("n", "NextIteration", &["m:output:0"])], "x")])
    };
    assert_eq!(body(&["x", "n:output:0"]), None);
    assert_eq!(body(&["n:output:0", "x", "^x"]), None);
    assert!(body(&["n:output:0", "n:output:0"]).is_some());
    assert!(body(&["x", "n:output:0", "^n"]).is_some());
    assert!(body(&["x", "x", "^n"]).is_some());
}

#[test]
fn the_diagnostic_of_a_function_is_one_of_those_that_call_it() {
    let bad = function("g", &[], &[node("a", "NoOp", &["^a"])], &[]);
    let call = |name: &str, to: &str| function(name, &[], &[node("n", to, &[])], &[]);
    let cycle = Some(("g".to_owned(), "a".to_owned(), BodyDiagnosticKind::Cycle));
    assert_eq!(diagnostic(&[call("f", "g"), bad.clone()]), cycle);
    assert_eq!(diagnostic(&[bad.clone(), call("h", "g"), call("f", "h")]), cycle);
    assert_eq!(diagnostic(&[call("h", "g"), bad.clone(), function("f", &[], &[], &[])]), None);
    let recursion = |library: &[Vec<u8>]| diagnostic(library).map(|(_, _, kind)| kind);
    assert_eq!(recursion(&[call("f", "f")]), Some(BodyDiagnosticKind::Recursion));
    assert_eq!(
        recursion(&[call("f", "g"), call("g", "h"), call("h", "g")]),
        Some(BodyDiagnosticKind::Recursion)
    );
    assert_eq!(recursion(&[call("h", "h"), call("f", "g"), call("g", "i")]), None);
    // As deep as a file can be.
    let chain = (0..20_000).map(|n| call(&format!("f{n}"), &format!("f{}", n + 1)));
    let mut chain: Vec<_> = chain.collect();
    chain.extend([call("f", "f0"), call("f20000", "g")]);
    assert_eq!(diagnostic(&chain), None);
    chain.push(bad);
    assert_eq!(diagnostic(&chain), cycle);
}

/// Encodes a PartitionedCall of `f` with this number of outputs, and further attributes.
fn partitioned(inputs: &[&str], outputs: usize, rest: &[u8]) -> Vec<u8> {
    let called = field(2, &field(10, &text(1, "f")));
    let types = field(2, &field(1, &field(6, &vec![1; outputs])));
    let attribute = |key: &str, value: &[u8]| field(5, &[&text(1, key)[..], value].concat());
    let attributes = [attribute("f", &called), attribute("Tout", &types)].concat();
    [&node("c", "PartitionedCall", inputs)[..], &attributes, rest].concat()
}

fn disabled(value: u8) -> Vec<u8> {
    let key = text(1, "_disable_call_shape_inference");
    field(5, &[key, field(2, &[0x28, value])].concat())
}

#[test]
fn a_call_is_by_operation_or_by_attribute_and_may_be_left_alone() {
    let kind = |nodes: &[Vec<u8>], library: &[Vec<u8>]| {
        let diagnostic = graph(nodes, library).structure?;
        Some(diagnostic.body.map_or(BodyDiagnosticKind::Name, |body| body.kind))
    };
    let bad = [function("f", &[], &[node("a", "NoOp", &["^a"])], &[])];
    let cycle = Some(BodyDiagnosticKind::Cycle);
    assert_eq!(kind(&[node("c", "NoOp", &[])], &bad), None);
    assert_eq!(kind(&[partitioned(&[], 0, &[])], &bad), cycle);
    assert_eq!(kind(&[partitioned(&[], 0, &disabled(1))], &bad), None);
    let call = node("c", "f", &[]);
    let with = |value: u8| [call.clone(), disabled(value)].concat();
    assert_eq!(kind(&[with(1)], &bad), None);
    assert_eq!(kind(&[with(0)], &bad), cycle);
    assert_eq!(kind(&[[with(1), disabled(0)].concat()], &bad), cycle);
    let p = || node("p", "Placeholder", &[]);
    let valid = [unary("f", &[], "x")];
    assert_eq!(kind(&[p(), partitioned(&["p"], 1, &[])], &valid), None);
    assert_eq!(kind(&[p(), partitioned(&["p", "^p"], 2, &[])], &valid), None);
    let few = kind(&[p(), partitioned(&["^p"], 1, &[])], &valid);
    assert_eq!(few, Some(BodyDiagnosticKind::FewInputs));
    let few = kind(&[p(), partitioned(&["p"], 0, &[])], &valid);
    assert_eq!(few, Some(BodyDiagnosticKind::FewOutputs));
    let untyped = [function("f", &[field(3, &argument("y", false))], &[], &[])];
    assert_eq!(kind(&[with(1)], &untyped), Some(BodyDiagnosticKind::NoType));
    // Types are not checked if only the attribute names the function.
    let untyped = [function("f", &[field(2, &argument("x", false))], &[], &[])];
    assert_eq!(kind(&[p(), partitioned(&["p"], 0, &[])], &untyped), None);
}

#[test]
fn a_call_is_come_to_in_the_order_of_visits() {
    let bad = [function("f", &[], &[node("a", "NoOp", &["^a"])], &[])];
    let before = |nodes: &[Vec<u8>]| {
        let graph = graph(nodes, &bad);
        let diagnostic = graph.structure.as_ref().unwrap().kind;
        (diagnostic, graph.deprecated_before_diagnostic().len())
    };
    let called = StructureDiagnosticKind::CalledFunction;
    let (old, call) = (node("o", "Old", &[]), node("c", "f", &[]));
    assert_eq!(before(&[old.clone(), call.clone()]), (called, 1));
    assert_eq!(before(&[call.clone(), old.clone()]), (called, 0));
    assert_eq!(before(&[node("c", "f", &["^o"]), old]), (called, 1));
    assert_eq!(before(&[node("q", "NoOp", &["^q"]), call.clone()]), (called, 0));
    let behind = [node("q", "NoOp", &["^q"]), node("c", "f", &["^q"])];
    assert_eq!(before(&behind), (StructureDiagnosticKind::Cycle, 0));
    assert_eq!(before(&[call.clone(), call]), (StructureDiagnosticKind::Duplicate, 0));
}

#[test]
fn of_two_calls_that_do_not_fit_the_first_one_in_the_function_is_named() {
    let results = |count: usize| {
        let one = |number| field(3, &argument(&format!("r{number}"), true));
        (0..count).map(one).collect::<Vec<_>>()
    };
    let returned = |count: usize| {
        let one = |n| field(4, &[text(1, &format!("r{n}")), text(2, "x:o:0")].concat());
        (0..count).map(one).collect::<Vec<_>>().concat()
    };
    let callee = |name: &str| function(name, &results(1), &[node("x", "NoOp", &[])], &returned(1));
    let call = |name: &str, to: &str| {
        let called = field(2, &field(10, &text(1, to)));
        let none = field(2, &field(1, &[]));
        let attribute = |key: &str, value: &[u8]| field(5, &[&text(1, key)[..], value].concat());
        let attributes = [attribute("f", &called), attribute("Tout", &none)].concat();
        [&node(name, "PartitionedCall", &[])[..], &attributes].concat()
    };
    for (first, second) in [("g", "h"), ("h", "g")] {
        let caller = function("f", &[], &[call("a", first), call("b", second)], &[]);
        // The answer is the same each time, however names are hashed.
        for _ in 0..8 {
            let found = diagnostic(&[callee("g"), callee("h"), caller.clone()]).unwrap();
            assert_eq!((found.0.as_str(), found.2), (first, BodyDiagnosticKind::FewOutputs));
        }
    }
}
