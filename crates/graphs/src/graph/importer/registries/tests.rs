use crate::{
    graph::{
        Form, Graph, ImportDiagnostic, ImportDiagnosticKind as Kind, Loader, Message, ReadOptions,
        StructureDiagnosticKind, read,
    },
    ops::{OperationDefinition, Registry},
};

const FLOAT: &str = "attr { key: 'T' value { type: DT_FLOAT } }";
const INPUT: &str =
    "node { name: 'a' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }";
const VERSIONS: &str = "versions { producer: 1000 }";

fn registries(releases: &[&str]) -> Vec<Registry> {
    releases.iter().map(|release| Registry::tensorflow(release).unwrap()).collect()
}

fn judged(text: &str, registries: &[Registry]) -> Graph {
    let options = ReadOptions::default().with_registries(registries);
    let text = format!("{VERSIONS} {text}");
    let graphs = read(text.as_bytes(), Message::GraphDef, Form::Text, &options).unwrap();
    graphs.meta_graphs.into_iter().next().unwrap().graph
}

/// Returns the diagnostic that the C import of a release finds.
fn diagnostic_in(release: &str, text: &str) -> Option<ImportDiagnostic> {
    let graph = judged(text, &registries(&[release]));
    graph.judgements[0].diagnostic(Loader::Import).cloned()
}

/// Returns the node that has a diagnostic in 2.12, and the diagnostic.
fn diagnostic(text: &str) -> Option<(String, Kind)> {
    diagnostic_in("2.12", text).map(|diagnostic| (diagnostic.node, diagnostic.kind))
}

fn node(name: &str, operation: &str, inputs: &[&str], rest: &str) -> String {
    let inputs: Vec<String> = inputs.iter().map(|input| format!("input: '{input}'")).collect();
    format!("node {{ name: '{name}' op: '{operation}' {} {rest} }} ", inputs.join(" "))
}

fn attribute(key: &str, value: &str) -> String {
    format!("attr {{ key: '{key}' value {{ {value} }} }}")
}

fn structure(kind: &Kind) -> StructureDiagnosticKind {
    let Kind::Structure(diagnostic) = kind else { panic!("{kind:?}") };
    diagnostic.kind
}

#[test]
fn each_step_of_the_import_finds_its_diagnostic() {
    let found = |rest: &str| diagnostic(&format!("{INPUT} {rest}")).map(|(_, kind)| kind);
    assert_eq!(found(&node("b", "Identity", &["a"], FLOAT)), None);
    assert_eq!(found(&node("b", "NoSuchOp", &["a"], "")), Some(Kind::UnknownOperation));
    let index = Some(Kind::OutputIndex { input: 0 });
    for input in ["a:1", "a:4294967297", "a:2147483648"] {
        assert_eq!(found(&node("b", "Identity", &[input], FLOAT)), index, "{input}");
    }
    // The number of an output is cut to 32 bits; -1 means no data, but still counts as an input.
    for input in ["a:4294967296", "a:4294967295"] {
        assert_eq!(found(&node("b", "Identity", &[input], FLOAT)), None, "{input}");
    }
    let missing = Some(Kind::AttributesMissing { attributes: vec!["T".to_owned()] });
    assert_eq!(found(&node("b", "Identity", &["a"], "")), missing);
    let wrong = Some(Kind::AttributeKind { attribute: "T".to_owned() });
    assert_eq!(found(&node("b", "Identity", &["a"], &attribute("T", "i: 1"))), wrong);
    assert_eq!(found(&node("b", "Identity", &["a", "a"], FLOAT)), Some(Kind::InputCount));
    assert_eq!(found(&node("b", "Identity", &["^a"], FLOAT)), Some(Kind::InputCount));
    let int = attribute("T", "type: DT_INT32");
    assert_eq!(found(&node("b", "Identity", &["a"], &int)), Some(Kind::InputType { input: 0 }));
    let old = found(&node("b", "BatchMatrixDiag", &["a"], FLOAT));
    assert!(matches!(old, Some(Kind::Deprecated(operation)) if operation.version <= 1000));
}

#[test]
fn at_one_node_the_earlier_step_is_reported() {
    let found = |rest: &str| diagnostic(&format!("{INPUT} {rest}")).map(|(_, kind)| kind).unwrap();
    let beside = attribute("_class", "list { s: 'loc:@nowhere' }");
    let unresolved = found(&node("b", "NoSuchOp", &["a:7"], &beside));
    assert_eq!(structure(&unresolved), StructureDiagnosticKind::UnknownColocation);
    assert_eq!(found(&node("b", "NoSuchOp", &["a:7"], "")), Kind::OutputIndex { input: 0 });
    let wrong = attribute("T", "i: 1");
    let attribute_first = found(&node("b", "MatMul", &["a"], &wrong));
    assert_eq!(attribute_first, Kind::AttributeKind { attribute: "T".to_owned() });
    assert_eq!(found(&node("b", "BatchMatrixDiag", &["a", "a"], FLOAT)), Kind::InputCount);
    let int = attribute("T", "type: DT_INT32");
    let old = found(&node("b", "BatchMatrixDiag", &["a"], &int));
    assert!(matches!(old, Kind::Deprecated(_)));
}

#[test]
fn nodes_are_looked_at_as_they_are_visited_and_the_first_diagnostic_ends_it() {
    let bad = |name: &str, inputs: &[&str]| node(name, "NoSuchOp", inputs, "");
    let names = |text: &str| diagnostic(&format!("{INPUT} {text}")).map(|(node, _)| node).unwrap();
    assert_eq!(names(&format!("{}{}", bad("x", &[]), bad("y", &[]))), "x");
    assert_eq!(names(&format!("{}{}", bad("x", &["y"]), bad("y", &[]))), "y");
    // A cycle is found after all nodes, and an edge that closes a loop after that.
    let cycle = node("p", "Identity", &["p"], FLOAT);
    assert_eq!(names(&format!("{cycle}{}", bad("y", &[]))), "y");
    let back = |back: &str, of: &str| {
        let merge = attribute("N", "i: 2");
        let merge = node("m", "Merge", &["a", back], &format!("{FLOAT} {merge}"));
        let data_type = if of == "m" { "type: DT_FLOAT" } else { "type: DT_INT32" };
        format!("{merge}{}", node("n", "NextIteration", &[of], &attribute("T", data_type)))
    };
    let found = |text: &str| diagnostic(&format!("{INPUT} {text}")).map(|(_, kind)| kind);
    assert_eq!(found(&back("n", "m")), None);
    assert_eq!(found(&back("n:1", "m")), Some(Kind::OutputIndex { input: 1 }));
    let int = back("n", "m:1");
    assert_eq!(found(&int), Some(Kind::InputType { input: 1 }));
    let both = found(&format!("{int}{cycle}")).unwrap();
    assert_eq!(structure(&both), StructureDiagnosticKind::Cycle);
}

#[test]
fn reference_is_accepted_as_value_and_no_value_as_reference() {
    let variable =
        "node { name: 'v' op: 'VariableV2' attr { key: 'dtype' value { type: DT_FLOAT } }
        attr { key: 'shape' value { shape {} } } }";
    let found =
        |rest: &str| diagnostic(&format!("{INPUT} {variable} {rest}")).map(|(_, kind)| kind);
    assert_eq!(found(&node("b", "Identity", &["v"], FLOAT)), None);
    assert_eq!(found(&node("b", "Assign", &["v", "a"], FLOAT)), None);
    let given = found(&node("b", "Assign", &["a", "a"], FLOAT));
    assert_eq!(given, Some(Kind::InputType { input: 0 }));
}

#[test]
fn every_release_is_judged_as_if_it_were_alone() {
    let releases = ["2.12", "2.14", "2.15", "2.21"];
    let int4 = node("c", "Placeholder", &[], &attribute("dtype", "type: DT_INT4"));
    let top = attribute("index_type", "type: DT_INT64");
    let top = node("t", "TopKV2", &["a", "k"], &format!("{FLOAT} {top}"));
    let k = node("k", "Placeholder", &[], &attribute("dtype", "type: DT_INT32"));
    let indices = node("i", "Identity", &["t:1"], &attribute("T", "type: DT_INT64"));
    for text in [
        int4.clone(),
        format!("{k}{top}{indices}"),
        format!("{k}{top}{indices}{int4}"),
        format!("{int4}{}", node("n", "NoSuchOp", &[], "")),
    ] {
        let text = format!("{INPUT} {text}");
        let together = judged(&text, &registries(&releases)).judgements;
        for (judgement, release) in together.iter().zip(releases) {
            let alone = diagnostic_in(release, &text);
            assert_eq!(judgement.diagnostic(Loader::Import), alone.as_ref(), "{release} {text}");
        }
    }
    let text = format!("{INPUT} {k}{top}{indices}");
    assert_eq!(diagnostic(&text).unwrap(), ("i".to_owned(), Kind::InputType { input: 0 }));
    assert_eq!(diagnostic_in("2.13", &text), None);
}

#[test]
fn a_diagnostic_says_what_was_found_and_what_was_expected() {
    let texts = |rest: &str| {
        let diagnostic = diagnostic_in("2.12", &format!("{INPUT} {rest}")).unwrap();
        (diagnostic.operation, diagnostic.found, diagnostic.expected)
    };
    let expected = |operation: &str, found: &str, expected: &str| {
        (operation.to_owned(), found.to_owned(), expected.to_owned())
    };
    let int = attribute("T", "type: DT_INT32");
    let typed = texts(&node("b", "Identity", &["a:0"], &int));
    assert_eq!(typed, expected("Identity", "DT_FLOAT from \"a:0\"", "DT_INT32"));
    let counted = texts(&node("b", "MatMul", &["a", "^a"], FLOAT));
    assert_eq!(counted, expected("MatMul", "1 input", "2 inputs"));
}

#[test]
fn ignored_attribute_is_reported_with_the_release_that_knows_it() {
    let multiply = |value: &str| {
        let grad = attribute("grad_a", value);
        node("m", "MatMul", &["a", "a"], &format!("{FLOAT} {grad}"))
    };
    let ignored = |text: &str| {
        let registries = registries(&["2.15", "2.16"]);
        let graph = judged(&format!("{INPUT} {text}"), &registries);
        graph.judgements.into_iter().map(|judgement| judgement.ignored).collect::<Vec<_>>()
    };
    let [older, newer] = &ignored(&multiply("b: true"))[..] else { panic!() };
    let [first] = &older[..] else { panic!("{older:?}") };
    assert_eq!((&*first.node, &*first.operation, &*first.attribute), ("m", "MatMul", "grad_a"));
    assert_eq!((first.since, first.nodes), (Some("2.16"), 1));
    assert!(newer.is_empty());
    assert!(ignored(&multiply("b: false")).iter().all(Vec::is_empty));
    // The same in a function, whether it is called or not.
    let body = multiply("b: true").replacen("node", "node_def", 1);
    let library = format!("library {{ function {{ {body} signature {{ name: 'f' }} }} }}");
    let both = ignored(&format!("{}{library}", multiply("b: true")));
    assert_eq!((both[0].len(), both[0][0].nodes, &both[0][0].function), (1, 2, &None));
    let inside = ignored(&library);
    assert_eq!(inside[0][0].function.as_deref(), Some("f"));
}

#[test]
fn a_function_cannot_have_the_name_of_an_operation_of_the_release() {
    let library = "library { function { signature { name: 'Conv' } } }";
    assert_eq!(diagnostic_in("2.13", library), None);
    let clash = diagnostic_in("2.14", library).unwrap();
    assert_eq!((clash.kind, clash.function.as_deref()), (Kind::FunctionName, Some("Conv")));
    // Of several diagnostics in the library that of the first function counts.
    let function =
        |name: &str, rest: &str| format!("function {{ signature {{ name: '{name}' }} {rest} }}");
    let other = "node_def { name: 'n' op: 'NoOp' }";
    let twice = format!("{}{}", function("f", ""), function("f", other));
    let first = |library: String| diagnostic(&format!("library {{ {library} }}")).unwrap().1;
    let duplicate = first(format!("{twice}{}", function("Add", "")));
    assert_eq!(structure(&duplicate), StructureDiagnosticKind::DuplicateFunction);
    assert_eq!(first(format!("{}{twice}", function("Add", ""))), Kind::FunctionName);
    // Names of nodes are checked before the library.
    let bad =
        diagnostic(&format!("{} library {{ {twice} }}", node("b b", "NoOp", &[], ""))).unwrap().1;
    assert_eq!(structure(&bad), StructureDiagnosticKind::Name);
}

#[test]
fn shapes_that_a_node_says_itself_are_as_many_as_its_outputs() {
    let found = |shapes: &str| {
        let rest = format!("{FLOAT} {}", attribute("_output_shapes", shapes));
        diagnostic(&format!("{INPUT} {}", node("b", "Identity", &["a"], &rest)))
            .map(|(_, kind)| kind)
    };
    for shapes in [
        "list { shape {} }",
        "list { shape { unknown_rank: true } }",
        "list { shape { dim { size: -1 } dim { size: 3 } } shape {} }",
        "list { shape {} shape { dim { size: -2 } } }",
        "list { i: 1 }",
        "s: 'x'",
    ] {
        assert_eq!(found(shapes), None, "{shapes}");
    }
    for shapes in [
        "list {}",
        "list { shape { dim { size: -2 } } }",
        "list { shape { unknown_rank: true dim { size: 1 } } }",
        "list { shape { dim { size: 9223372036854775807 } dim { size: 2 } } }",
    ] {
        assert_eq!(found(shapes), Some(Kind::Shape), "{shapes}");
    }
}

#[test]
fn a_call_of_what_only_a_caller_could_tell_is_refused_when_it_is_come_to() {
    let call = |rest: &str| {
        let types = [attribute("Tin", "list {}"), attribute("Tout", "list {}")].concat();
        let called = attribute("f", "placeholder: 'g'");
        let text = node("c", "PartitionedCall", &[], &format!("{types}{called}{rest}"));
        diagnostic(&text).map(|(_, kind)| kind)
    };
    assert_eq!(call(""), Some(Kind::AttributeKind { attribute: "f".to_owned() }));
    assert_eq!(call(&attribute("_disable_call_shape_inference", "b: true")), None);
    let few = call(&attribute("Tin", "list { type: DT_FLOAT }"));
    assert_eq!(few, Some(Kind::InputCount));
}

#[test]
fn an_operation_that_is_known_by_its_name_alone_may_have_anything() {
    let registry = Registry::tensorflow("2.12").unwrap();
    let registry = registry.with([OperationDefinition::of_name("Ours")]);
    let ours = node("o", "Ours", &["a", "a"], &attribute("x", "i: 1"));
    let behind = node("b", "Identity", &["o:5"], FLOAT);
    let shapes = node("s", "Ours", &[], &attribute("_output_shapes", "list {}"));
    let graph = judged(&format!("{INPUT} {ours}{behind}{shapes}"), &[registry]);
    assert_eq!(graph.judgements[0].diagnostic(Loader::Import), None);
}

#[test]
fn python_gives_an_attribute_without_a_value_its_default() {
    let empty = "attr { key: 'transpose_a' value {} }";
    let text = node("m", "MatMul", &["a", "a"], &format!("{FLOAT} {empty}"));
    let graph = judged(&format!("{INPUT} {text}"), &registries(&["2.12"]));
    let kind =
        |loader| graph.judgements[0].diagnostic(loader).map(|diagnostic| diagnostic.kind.clone());
    let wrong = Kind::AttributeKind { attribute: "transpose_a".to_owned() };
    assert_eq!((kind(Loader::Import), kind(Loader::LoadV1)), (Some(wrong), None));
}

#[test]
fn without_registries_nothing_is_judged_and_the_rest_is_the_same() {
    let text = format!("{INPUT} {}", node("b", "NoSuchOp", &["a"], ""));
    let with = judged(&text, &registries(&["2.12"]));
    let without = judged(&text, &[]);
    assert!(without.judgements.is_empty());
    let same = |graph: &Graph| (graph.nodes, graph.structure.clone(), graph.versions.clone());
    assert_eq!(same(&with), same(&without));
}
