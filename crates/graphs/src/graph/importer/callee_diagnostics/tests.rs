use crate::{
    graph::{
        BodyDiagnosticKind, Form, Graph, ImportDiagnostic, ImportDiagnosticKind as Kind, Loader,
        Message, ReadOptions, read,
    },
    ops::{OperationDefinition, Registry},
};

const SIGNATURE: &str = "name: 'f' input_arg { name: 'a' type: DT_FLOAT }
    output_arg { name: 'r' type: DT_FLOAT }";
const INPUT: &str =
    "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }";
const FLOAT: &str = "attr { key: 'T' value { type: DT_FLOAT } }";

fn judged(text: &str, registries: &[Registry]) -> Graph {
    let options = ReadOptions::default().with_registries(registries);
    let graphs = read(text.as_bytes(), Message::GraphDef, Form::Text, &options).unwrap();
    graphs.meta_graphs.into_iter().next().unwrap().graph
}

/// Returns the diagnostic that the C import of 2.21 finds in a graph.
fn diagnostic(text: &str) -> Option<ImportDiagnostic> {
    let registries = [Registry::tensorflow("2.21").unwrap()];
    judged(text, &registries).judgements[0].diagnostic(Loader::Import).cloned()
}

fn kind(text: &str) -> Option<Kind> {
    diagnostic(text).map(|diagnostic| diagnostic.kind)
}

fn function(signature: &str, nodes: &str, returned: &str) -> String {
    format!(
        "library {{ function {{ signature {{ {signature} }} {nodes}
            ret {{ key: 'r' value: '{returned}' }} }} }} "
    )
}

fn node(name: &str, operation: &str, inputs: &[&str], rest: &str) -> String {
    let inputs: Vec<String> = inputs.iter().map(|input| format!("input: '{input}'")).collect();
    format!("node_def {{ name: '{name}' op: '{operation}' {} {rest} }} ", inputs.join(" "))
}

fn call(inputs: &[&str], rest: &str) -> String {
    let inputs: Vec<String> = inputs.iter().map(|input| format!("input: '{input}'")).collect();
    format!("{INPUT} node {{ name: 'c' op: 'f' {} {rest} }} ", inputs.join(" "))
}

/// Returns a graph that calls `f(a) -> r`, which has these nodes and returns `returned`.
fn called(nodes: &str, returned: &str) -> String {
    format!("{}{}", function(SIGNATURE, nodes, returned), call(&["x"], ""))
}

fn in_body(nodes: &str, returned: &str) -> Option<Kind> {
    kind(&called(nodes, returned))
}

fn attribute(key: &str, value: &str) -> String {
    format!("attr {{ key: '{key}' value {{ {value} }} }}")
}

fn missing(name: &str) -> Option<Kind> {
    Some(Kind::AttributesMissing { attributes: vec![name.to_owned()] })
}

#[test]
fn a_body_is_built_as_the_release_builds_it() {
    let identity = |rest: &str| node("i", "Identity", &["a"], rest);
    assert_eq!(in_body(&identity(FLOAT), "i:output:0"), None);
    let unknown = in_body(&node("i", "NoSuchOp", &["a"], ""), "a");
    assert_eq!(unknown, Some(Kind::UnknownOperation), "also of a node that nothing uses");
    assert_eq!(in_body(&identity(""), "i:output:0"), missing("T"));
    assert_eq!(in_body(&identity(FLOAT), "i:out:0"), Some(Kind::FunctionBody));
    assert_eq!(in_body(&identity(FLOAT), "i:output:1"), Some(Kind::FunctionBody));
    // A value of the wrong kind counts as the invalid type, and is found at the next edge.
    let wrong = Some(Kind::InputType { input: 0 });
    for value in ["i: 1", "type: DT_INT32", "type: 77", "list { type: DT_FLOAT }"] {
        assert_eq!(in_body(&identity(&attribute("T", value)), "i:output:0"), wrong, "{value}");
    }
    let two = node("i", "Identity", &["a", "a"], FLOAT);
    assert_eq!(in_body(&two, "i:output:0"), Some(Kind::InputCount));
    assert_eq!(in_body(&node("i", "Identity", &[], FLOAT), "a"), Some(Kind::InputCount));
    let control = node("i", "Identity", &["a", "^n"], FLOAT) + &node("n", "NoOp", &[], "");
    assert_eq!(in_body(&control, "i:output:0"), None);
}

#[test]
fn what_no_type_depends_on_is_not_looked_at_in_a_body() {
    let matrices = |rest: &str| node("m", "MatMul", &["a", "a"], &format!("{FLOAT} {rest}"));
    let wrong_kind = matrices(&attribute("transpose_a", "i: 1"));
    let shape = Some(Kind::Shape);
    assert_eq!(in_body(&wrong_kind, "m:product:0"), shape, "its shape function reads it");
    let unknown = matrices(&attribute("not_there", "b: true"));
    assert_eq!(in_body(&unknown, "m:product:0"), None);
    // A type that is not allowed and fits every edge.
    let text = attribute("T", "type: DT_STRING");
    let strings = node("s", "Placeholder", &[], &attribute("dtype", "type: DT_STRING"))
        + &node("q", "Sqrt", &["s:output:0"], &text);
    assert_eq!(in_body(&strings, "a"), None);
    // Deprecated operations are accepted.
    let old = node("o", "BatchMatrixDiag", &["a"], FLOAT);
    assert_eq!(in_body(&old, "o:output:0"), None);
}

#[test]
fn lists_of_arguments_are_counted_by_their_attributes() {
    let sum = |number: i64, inputs: &[&str]| {
        let number = attribute("N", &format!("i: {number}"));
        in_body(&node("s", "AddN", inputs, &format!("{FLOAT} {number}")), "s:sum:0")
    };
    assert_eq!(sum(2, &["a", "a"]), None);
    assert_eq!(sum(2, &["a"]), Some(Kind::InputCount));
    assert_eq!(sum(1, &["a", "a"]), Some(Kind::InputCount));
    // The importer does not check the minimum.
    assert_eq!(sum(0, &[]), None);
    let negative = Kind::AttributeNumber { attribute: "N".to_owned() };
    let split = |number: &str| {
        let number = attribute("N", number);
        let unpack = node("s", "IdentityN", &["a"], &attribute("T", "list { type: DT_FLOAT }"));
        in_body(&(unpack + &node("p", "Pack", &["a"], &format!("{FLOAT} {number}"))), "s:output:0")
    };
    assert_eq!(split("i: 1"), None);
    assert_eq!(split("i: -1"), Some(negative));
    // A list is named as a whole, or by its elements.
    let list = "list { type: DT_FLOAT type: DT_FLOAT }";
    let both = node("l", "IdentityN", &["a", "a"], &attribute("T", list));
    let number = attribute("N", "i: 2");
    let adds = |inputs: &[&str]| {
        let sum = node("s", "AddN", inputs, &format!("{FLOAT} {number}"));
        in_body(&format!("{both}{sum}"), "s:sum:0")
    };
    for inputs in [&["l:output"][..], &["l:output:0", "l:output:1"], &["l:output:1", "a:0"]] {
        assert_eq!(adds(inputs), None, "{inputs:?}");
    }
    assert_eq!(adds(&["a", "l:output"]), Some(Kind::InputCount), "too long for what is left");
    assert_eq!(adds(&["l:output:2", "a"]), Some(Kind::FunctionBody));
    assert_eq!(adds(&["l:output:00", "a"]), Some(Kind::FunctionBody));
}

#[test]
fn a_call_fills_in_what_the_body_leaves_to_it() {
    let signature = "name: 'f' input_arg { name: 'a' type_attr: 'U' }
        output_arg { name: 'r' type_attr: 'U' } attr { name: 'U' type: 'type' }";
    let nodes = node("i", "Identity", &["a"], &attribute("T", "placeholder: 'U'"));
    let generic = function(signature, &nodes, "i:output:0");
    let with = |rest: &str| kind(&format!("{generic}{}", call(&["x"], rest)));
    assert_eq!(with(&attribute("U", "type: DT_FLOAT")), None);
    assert_eq!(with(""), missing("U"));
    // The second call of a function is not checked.
    let again =
        "node { name: 'y' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } } }
        node { name: 'd' op: 'f' input: 'y' attr { key: 'U' value { type: DT_STRING } } }";
    let float = attribute("U", "type: DT_FLOAT");
    assert_eq!(kind(&format!("{generic}{}{again}", call(&["x"], &float))), None);
    // The body was instantiated for two tensors, but the second call has one.
    let list = "name: 'f' input_arg { name: 'a' type: DT_FLOAT number_attr: 'N' }
        output_arg { name: 'r' type: DT_FLOAT } attr { name: 'N' type: 'int' }";
    let counted = |number: &str, inputs: &[&str]| call(inputs, &attribute("N", number));
    let second = "node { name: 'd' op: 'f' input: 'x' attr { key: 'N' value { i: 1 } } }";
    let body = function(list, "", "a:0");
    assert_eq!(kind(&format!("{body}{}", counted("i: 2", &["x", "x"]))), None);
    let both = kind(&format!("{body}{}{second}", counted("i: 2", &["x", "x"])));
    let Some(Kind::Structure(found)) = both else { panic!("no structure") };
    assert_eq!(found.body.unwrap().kind, BodyDiagnosticKind::FewInputs);
    let partitioned = |given: &str| {
        kind(&format!(
            "{generic}{INPUT} node {{ name: 'c' op: 'PartitionedCall' input: 'x'
                {} {} attr {{ key: 'f' value {{ func {{ name: 'f' {given} }} }} }} }}",
            attribute("Tin", "list { type: DT_FLOAT }"),
            attribute("Tout", "list { type: DT_FLOAT }"),
        ))
    };
    assert_eq!(partitioned(&float), None);
    assert_eq!(partitioned(""), missing("U"));
    let wrong = Kind::AttributeKind { attribute: "U".to_owned() };
    assert_eq!(partitioned(&attribute("U", "i: 1")), Some(wrong));
    assert_eq!(partitioned(&attribute("U", "type: DT_STRING")), None);
    // An attribute that the call does not give, or that has no value, cannot be bound, even where
    // it is never read.
    let unbound = Some(Kind::FunctionBody);
    for rest in [attribute("x", "placeholder: 'V'"), attribute("_x", "")] {
        let nodes = node("i", "Identity", &["a"], &format!("{FLOAT} {rest}"));
        assert_eq!(in_body(&nodes, "i:output:0"), unbound, "{rest}");
    }
}

#[test]
fn a_call_in_a_body_says_which_function_it_calls() {
    let types = attribute("Tin", "list { }") + &attribute("Tout", "list { }");
    let inner =
        |rest: &str| in_body(&node("c", "PartitionedCall", &[], &(rest.to_owned() + &types)), "a");
    assert_eq!(inner(&attribute("f", "func { name: 'nowhere' }")), None);
    assert_eq!(inner(""), missing("f"));
    let wrong = Some(Kind::AttributeKind { attribute: "f".to_owned() });
    assert_eq!(inner(&attribute("f", "i: 1")), wrong);
    let disabled = attribute("_disable_call_shape_inference", "b: true");
    assert_eq!(inner(&disabled), None);
}

#[test]
fn attributes_reach_functions_through_functions() {
    let inner = "function { signature { name: 'g' input_arg { name: 'a' type_attr: 'V' }
        output_arg { name: 'r' type_attr: 'V' } attr { name: 'V' type: 'type' } }
        node_def { name: 's' op: 'Sqrt' input: 'a' attr { key: 'T' value { placeholder: 'V' } } }
        ret { key: 'r' value: 's:y:0' } }";
    let outer = |given: &str| {
        let node = node("c", "g", &["a"], &attribute("V", given));
        let outer = function(
            "name: 'f' input_arg { name: 'a' type_attr: 'U' }
                output_arg { name: 'r' type_attr: 'U' } attr { name: 'U' type: 'type' }",
            &node,
            "c:r:0",
        );
        format!(
            "{}{}",
            outer.replacen("library {", &format!("library {{ {inner}"), 1),
            call(&["x"], &attribute("U", "type: DT_FLOAT")),
        )
    };
    assert_eq!(kind(&outer("placeholder: 'U'")), None);
    assert_eq!(kind(&outer("type: DT_INT32")), Some(Kind::InputType { input: 0 }));
    assert_eq!(kind(&outer("placeholder: 'W'")), Some(Kind::FunctionBody));
}

#[test]
fn a_diagnostic_names_the_function_and_the_node() {
    let text = called(&node("n", "NoSuchOp", &["a"], ""), "a");
    let found = diagnostic(&text).unwrap();
    assert_eq!(found.function.as_deref(), Some("f"));
    assert_eq!((found.node.as_str(), found.operation.as_str()), ("n", "NoSuchOp"));
    let cycle = node("p", "NoOp", &["^q"], "") + &node("q", "NoOp", &["^p"], "");
    let Some(Kind::Structure(found)) = in_body(&cycle, "a") else { panic!("no structure") };
    assert_eq!(found.node, "c");
    assert_eq!(found.body.unwrap().kind, BodyDiagnosticKind::Cycle);
}

#[test]
fn each_release_builds_the_body_with_its_own_operations() {
    let releases = ["2.13", "2.14", "2.20", "2.21"].map(|name| Registry::tensorflow(name).unwrap());
    let mesh = called(&node("w", "DecodeJxl", &["n:r:0"], ""), "a");
    let graph = judged(&mesh, &releases);
    let unknown = graph.judgements.iter().map(|judgement| {
        let diagnostic = judgement.diagnostic(Loader::Import).unwrap();
        diagnostic.kind == Kind::UnknownOperation
    });
    assert_eq!(unknown.collect::<Vec<_>>(), [true, true, true, false]);
    let custom = [releases[0].clone().with([OperationDefinition::new("OurOp")])];
    let ours = called(&node("o", "OurOp", &[], ""), "a");
    assert_eq!(judged(&ours, &custom).judgements[0].diagnostic(Loader::Import), None);
    assert_eq!(kind(&ours), Some(Kind::UnknownOperation));
}

#[test]
fn chains_and_trees_of_calls_are_judged_once_a_function() {
    // f0 calls f1 twice, f1 calls f2 twice, and so on: 2 to the power of 200 calls.
    let function = |number: u32, nodes: &str| {
        format!("function {{ signature {{ name: 'f{number}' }} {nodes} }} ")
    };
    let twice = |number: u32| {
        let to = format!("f{}", number + 1);
        function(number, &(node("p", &to, &[], "") + &node("q", &to, &[], "")))
    };
    let tree: String = (0..200).map(twice).collect();
    let call = "node { name: 'c' op: 'f0' }";
    let end = |nodes: &str| format!("library {{ {tree} {} }} {call}", function(200, nodes));
    assert_eq!(kind(&end("")), None);
    let found = diagnostic(&end(&node("n", "NoSuchOp", &[], ""))).unwrap();
    assert_eq!(found.function.as_deref(), Some("f200"));
    assert!(kind(&end(&node("n", "f0", &[], ""))).is_some());
}

#[test]
fn a_default_is_for_placeholders_and_for_nodes_of_the_function_itself() {
    let signature = "name: 'f' input_arg { name: 'a' type_attr: 'U' }
        output_arg { name: 'r' type_attr: 'U' }
        attr { name: 'U' type: 'type' default_value { type: DT_FLOAT } }";
    let nodes = node("i", "Identity", &["a"], &attribute("T", "placeholder: 'U'"));
    let generic = function(signature, &nodes, "i:output:0");
    assert_eq!(kind(&format!("{generic}{}", call(&["x"], ""))), None);
    // The arguments lack the attributes that a PartitionedCall does not give.
    let partitioned = |given: &str| {
        kind(&format!(
            "{generic}{INPUT} node {{ name: 'c' op: 'PartitionedCall' input: 'x'
                {} {} attr {{ key: 'f' value {{ func {{ name: 'f' {given} }} }} }} }}",
            attribute("Tin", "list { type: DT_FLOAT }"),
            attribute("Tout", "list { type: DT_FLOAT }"),
        ))
    };
    assert_eq!(partitioned(&attribute("U", "type: DT_FLOAT")), None);
    let missing = Kind::AttributesMissing { attributes: vec!["U".to_owned()] };
    assert_eq!(partitioned(""), Some(missing));
}

#[test]
fn a_result_that_should_be_a_reference_is_one() {
    let signature = "name: 'f' input_arg { name: 'a' type: DT_FLOAT }
        output_arg { name: 'r' type: DT_FLOAT is_ref: true }";
    let with = |nodes: &str, returned: &str| {
        kind(&format!("{}{}", function(signature, nodes, returned), call(&["x"], "")))
    };
    let variable = attribute("dtype", "type: DT_FLOAT") + &attribute("shape", "shape { }");
    assert_eq!(with(&node("v", "VariableV2", &[], &variable), "v:ref:0"), None);
    let copied = node("i", "Identity", &["a"], FLOAT);
    assert_eq!(with(&copied, "i:output:0"), Some(Kind::InputType { input: 0 }));
}

#[test]
fn what_a_function_that_is_an_attribute_leaves_open_cannot_be_bound() {
    let with = |given: &str| {
        let branch = |name: &str| attribute(name, &format!("func {{ name: 'g' {given} }}"));
        let types = attribute("Tin", "list { }") + &attribute("Tout", "list { }");
        let rest = attribute("Tcond", "type: DT_FLOAT") + &types;
        let rest = rest + &branch("then_branch") + &branch("else_branch");
        in_body(&node("w", "If", &["a"], &rest), "a")
    };
    assert_eq!(with(""), None);
    assert_eq!(with(&attribute("x", "i: 1")), None);
    assert_eq!(with("attr { key: 'x' value { } }"), Some(Kind::FunctionBody));
    assert_eq!(with(&attribute("x", "placeholder: 'U'")), Some(Kind::FunctionBody));
    let inner = "func { name: 'h' attr { key: 'y' value { } } }";
    assert_eq!(with(&attribute("x", inner)), Some(Kind::FunctionBody));
    assert_eq!(with(&attribute("x", &format!("list {{ {inner} }}"))), Some(Kind::FunctionBody));
    assert_eq!(with(&attribute("x", "s: 'text'")), None);
}

#[test]
fn a_list_of_types_counts_in_a_body_whatever_else_is_in_it() {
    let types = |values: &str| attribute("T", &format!("list {{ {values} }}"));
    for values in ["type: DT_FLOAT", "b: true type: DT_FLOAT", "type: DT_FLOAT i: 3"] {
        let nodes = node("i", "IdentityN", &["a"], &types(values));
        assert_eq!(in_body(&nodes, "i:output:0"), None, "{values}");
    }
    let none = node("i", "IdentityN", &["a"], &types("b: true"));
    assert_eq!(in_body(&none, "a"), Some(Kind::InputCount));
}

#[test]
fn nodes_of_one_name_are_told_from_each_other_by_their_outputs_until_they_are_nodes_of_a_graph() {
    let twins = node("n", "Identity", &["a"], FLOAT)
        + &node("n", "Shape", &["a"], FLOAT)
        + &node("n", "Sqrt", &["a"], FLOAT);
    // `Identity` and `Shape` have an output of the same name.
    let Some(Kind::Structure(found)) = in_body(&twins, "a") else { panic!("no structure") };
    assert_eq!(found.body.unwrap().kind, BodyDiagnosticKind::Duplicate);
    // If the nodes differ otherwise, their inputs are checked first.
    let others = node("n", "Identity", &["a"], FLOAT) + &node("n", "Sqrt", &["a", "a"], FLOAT);
    assert_eq!(in_body(&others, "a"), Some(Kind::InputCount));
}

#[test]
fn a_call_has_as_many_results_as_the_body_names_by_hand() {
    let hand = node("h", "_Retval", &["a"], &(FLOAT.to_owned() + &attribute("index", "i: 1")));
    let Some(Kind::Structure(found)) = in_body(&hand, "a") else { panic!("no structure") };
    assert_eq!(found.body.unwrap().kind, BodyDiagnosticKind::FewOutputs);
    let first = node("h", "_Retval", &["a"], &(FLOAT.to_owned() + &attribute("index", "i: 0")));
    assert_eq!(in_body(&first, "a"), None);
}

#[test]
fn a_list_of_no_tensors_is_nothing_to_wait_for() {
    let list = |types: &str| format!("list {{ {types} }}");
    let identity = |name: &str, inputs: &[&str], types: &str| {
        node(name, "IdentityN", inputs, &attribute("T", &list(types)))
    };
    // The node names an output of its own that does not exist.
    let call = |tout: &str| {
        let rest = attribute("Tin", &list("type: DT_FLOAT"))
            + &attribute("Tout", &list(tout))
            + &attribute("f", "func { name: 'nobody' }")
            + &attribute("_disable_call_shape_inference", "b: true");
        node("p", "PartitionedCall", &["p:output", "a"], &rest)
    };
    assert_eq!(in_body(&call(""), "a"), None);
    assert_eq!(in_body(&call("type: DT_FLOAT"), "a"), Some(Kind::InputCount));
    let own = identity("i", &["i:output"], "type: DT_FLOAT");
    let Some(Kind::Structure(found)) = in_body(&own, "a") else { panic!("no structure") };
    assert_eq!(found.body.unwrap().kind, BodyDiagnosticKind::Cycle);
}

#[test]
fn what_is_wrong_with_one_of_two_that_call_each_other_comes_before_that_they_do() {
    let calling =
        |name: &str, nodes: &str| format!("function {{ signature {{ name: '{name}' }} {nodes} }} ");
    let graph = |nodes: &str| {
        let first = calling("f", &node("again", "g", &[], ""));
        let second = calling("g", &(node("back", "f", &[], "") + nodes));
        format!("library {{ {first} {second} }} node {{ name: 'c' op: 'f' }} ")
    };
    let Some(Kind::Structure(found)) = kind(&graph("")) else { panic!("no structure") };
    assert_eq!(found.body.unwrap().kind, BodyDiagnosticKind::Recursion);
    assert_eq!(kind(&graph(&node("n", "NoSuchOp", &[], ""))), Some(Kind::UnknownOperation));
}

#[test]
fn of_several_tensors_the_kind_of_the_type_is_asked_for() {
    let of = |operation: &str, value: &str| {
        in_body(&node("n", operation, &[], &(attribute("T", value) + &attribute("N", "i: 2"))), "a")
    };
    let no_type = Kind::AttributeKind { attribute: "T".to_owned() };
    for value in ["i: 1", "shape { }", "list { }", "s: 'x'"] {
        assert_eq!(of("NPolymorphicRestrictOut", value), Some(no_type.clone()), "{value}");
        let one = in_body(&node("n", "Placeholder", &[], &attribute("dtype", value)), "a");
        assert_eq!(one, None, "{value}");
    }
    assert_eq!(of("NPolymorphicRestrictOut", "type: DT_BOOL"), None);
}

#[test]
fn what_is_in_a_cycle_or_behind_one_is_never_asked_for_its_references() {
    let reference = |input: &str| node("r", "RefIdentity", &[input], FLOAT);
    let back = node("k", "Identity", &["r:output:0"], FLOAT);
    let Some(Kind::Structure(found)) = in_body(&(reference("k:output:0") + &back), "a") else {
        panic!("no structure")
    };
    assert_eq!(found.body.unwrap().kind, BodyDiagnosticKind::Cycle);
    let beside = node("i", "Identity", &["k:output:0"], FLOAT)
        + &node("k", "Identity", &["i:output:0"], FLOAT)
        + &reference("a");
    assert_eq!(in_body(&beside, "a"), Some(Kind::InputType { input: 0 }));
}

#[test]
fn of_two_calls_the_one_that_comes_first_finds_what_is_wrong_with_it() {
    let generic = "function { signature { name: 'g' attr { name: 'N' type: 'int' }
        input_arg { name: 'a' type: DT_FLOAT number_attr: 'N' } } } ";
    let call = |name: &str, inputs: &[&str], types: &str, given: &str| {
        let rest = attribute("Tin", &format!("list {{ {types} }}"))
            + &attribute("Tout", "list { }")
            + &attribute("f", &format!("func {{ name: 'g' {given} }}"));
        node(name, "PartitionedCall", inputs, &rest)
    };
    let whole = call("whole", &["a"], "type: DT_FLOAT", &attribute("N", "i: 1"));
    let again = call("again", &[], "", "");
    let graph =
        |nodes: &str| called(nodes, "a").replacen("library {", &format!("library {{ {generic}"), 1);
    assert_eq!(kind(&graph(&format!("{whole}{again}"))), missing("N"));
    let Some(Kind::Structure(found)) = kind(&graph(&format!("{again}{whole}"))) else {
        panic!("no structure")
    };
    assert_eq!(found.body.unwrap().kind, BodyDiagnosticKind::FewInputs);
}
