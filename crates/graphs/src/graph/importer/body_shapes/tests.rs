use crate::{
    graph::{
        BodyDiagnosticKind, Form, ImportDiagnostic, ImportDiagnosticKind as Kind, Loader, Message,
        ReadOptions, read,
    },
    ops::Registry,
};

const FLOAT: &str = "attr { key: 'T' value { type: DT_FLOAT } }";

/// Returns the diagnostic that a loader of 2.21 finds in a graph.
fn found(loader: Loader, text: &str) -> Option<ImportDiagnostic> {
    let registries = [Registry::tensorflow("2.21").unwrap()];
    let options = ReadOptions::default().with_registries(&registries);
    let text = format!("meta_graphs {{ graph_def {{ {text} versions {{ producer: 2000 }} }} }}");
    let graphs = read(text.as_bytes(), Message::SavedModel, Form::Text, &options).unwrap();
    graphs.meta_graphs[0].graph.judgements[0].diagnostic(loader).cloned()
}

/// Returns the diagnostic that the importer finds: its kind, function and node.
fn diagnostic(text: &str) -> Option<(Kind, Option<String>, String)> {
    found(Loader::Import, text)
        .map(|diagnostic| (diagnostic.kind, diagnostic.function, diagnostic.node))
}

fn refused(function: &str, node: &str) -> Option<(Kind, Option<String>, String)> {
    Some((Kind::Shape, Some(function.to_owned()), node.to_owned()))
}

/// Returns a function `a -> r` of floats.
fn function(name: &str, nodes: &str, returned: &str) -> String {
    format!(
        "library {{ function {{ signature {{ name: '{name}'
            input_arg {{ name: 'a' type: DT_FLOAT }} output_arg {{ name: 'r' type: DT_FLOAT }} }}
            {nodes} ret {{ key: 'r' value: '{returned}' }} }} }} "
    )
}

fn inputs(inputs: &[&str]) -> String {
    inputs.iter().map(|input| format!("input: '{input}' ")).collect()
}

/// Returns a node of a function.
fn inner(name: &str, operation: &str, names: &[&str], rest: &str) -> String {
    format!("node_def {{ name: '{name}' op: '{operation}' {} {rest} }} ", inputs(names))
}

/// Returns a node of the graph.
fn node(name: &str, operation: &str, names: &[&str], rest: &str) -> String {
    format!("node {{ name: '{name}' op: '{operation}' {} {rest} }} ", inputs(names))
}

/// Returns a placeholder for floats of this shape.
fn placeholder(name: &str, sizes: &[i64]) -> String {
    let sizes: String = sizes.iter().map(|size| format!("dim {{ size: {size} }} ")).collect();
    let rest = format!(
        "attr {{ key: 'dtype' value {{ type: DT_FLOAT }} }}
         attr {{ key: 'shape' value {{ shape {{ {sizes} }} }} }}"
    );
    node(name, "Placeholder", &[], &rest)
}

/// Returns the attributes of a constant vector of integers, which are in the field `field`.
fn integers(field: &str, numbers: &[i64]) -> String {
    let values: String = numbers.iter().map(|number| format!("{field}: {number} ")).collect();
    format!(
        "attr {{ key: 'dtype' value {{ type: DT_INT32 }} }}
         attr {{ key: 'value' value {{ tensor {{ dtype: DT_INT32
            tensor_shape {{ dim {{ size: {} }} }} {values} }} }} }}",
        numbers.len()
    )
}

fn partitioned_call(function: &str, results: &str) -> String {
    format!(
        "attr {{ key: 'Tin' value {{ list {{ type: DT_FLOAT }} }} }}
         attr {{ key: 'Tout' value {{ list {{ {results} }} }} }}
         attr {{ key: 'f' value {{ func {{ name: '{function}' }} }} }}"
    )
}

fn product() -> String {
    function("f", &inner("m", "MatMul", &["a", "a"], FLOAT), "m:product:0")
}

#[test]
fn a_function_is_looked_at_with_the_shapes_of_each_call() {
    let called = |sizes: &[i64]| {
        diagnostic(&(product() + &placeholder("x", sizes) + &node("c", "f", &["x"], "")))
    };
    assert_eq!(called(&[3, 3]), None);
    assert_eq!(called(&[-1, 3]), None, "what is not known may fit");
    assert_eq!(called(&[2, 3]), refused("f", "m"));
    let rest = partitioned_call("f", "type: DT_FLOAT");
    let twice = product()
        + &placeholder("x", &[3, 3])
        + &placeholder("y", &[2, 3])
        + &node("c", "f", &["x"], "")
        + &node("d", "PartitionedCall", &["y"], &rest);
    assert_eq!(diagnostic(&twice), refused("f", "m"), "of the second call");
    let untouched = rest + "attr { key: '_disable_call_shape_inference' value { b: true } }";
    let untouched = twice.replace(&partitioned_call("f", "type: DT_FLOAT"), &untouched);
    assert_eq!(diagnostic(&untouched), None);
}

#[test]
fn shapes_come_back_from_a_function_and_go_on_into_those_that_it_calls() {
    let identity = function("f", &inner("i", "Identity", &["a"], FLOAT), "i:output:0");
    let behind = |sizes: &[i64]| {
        let graph = placeholder("x", sizes) + &node("c", "f", &["x"], "");
        diagnostic(&(identity.clone() + &graph + &node("m", "MatMul", &["c", "c"], FLOAT)))
    };
    assert_eq!(behind(&[3, 3]), None);
    assert_eq!(behind(&[2, 3]), Some((Kind::Shape, None, "m".to_owned())));
    let rest = partitioned_call("f", "type: DT_FLOAT");
    let outer = function("g", &inner("p", "PartitionedCall", &["a"], &rest), "p:output:0");
    let both = (product() + &outer).replacen("} library {", "", 1);
    let both = both + &placeholder("x", &[2, 3]) + &node("c", "g", &["x"], "");
    assert_eq!(diagnostic(&both), refused("f", "m"));
}

#[test]
fn each_constant_of_a_function_is_its_own() {
    let reshaped = |sizes: &[i64]| {
        let types = format!("{FLOAT} attr {{ key: 'Tshape' value {{ type: DT_INT32 }} }}");
        let nodes = inner("k", "Const", &[], &integers("int_val", &[2, 2]))
            + &inner("l", "Const", &[], &integers("int_val", sizes))
            + &inner("s", "Reshape", &["a", "k:output:0"], &types)
            + &inner("t", "Reshape", &["a", "l:output:0"], &types);
        let graph = placeholder("x", &[4]) + &node("c", "f", &["x"], "");
        diagnostic(&(function("f", &nodes, "t:output:0") + &graph))
    };
    assert_eq!(reshaped(&[1, 4]), None);
    assert_eq!(reshaped(&[1, 3]), refused("f", "t"));
}

#[test]
fn integers_that_stand_in_the_field_of_another_type_are_none() {
    let reshaped = |field: &str, sizes: &[i64]| {
        let types = format!("{FLOAT} attr {{ key: 'Tshape' value {{ type: DT_INT32 }} }}");
        let graph = placeholder("x", &[4])
            + &node("k", "Const", &[], &integers(field, sizes))
            + &node("s", "Reshape", &["x", "k"], &types);
        diagnostic(&graph)
    };
    assert_eq!(reshaped("int_val", &[3, 2]), Some((Kind::Shape, None, "s".to_owned())));
    assert_eq!(reshaped("int64_val", &[3, 2]), None);
}

#[test]
fn a_function_that_is_loaded_alone_has_no_shapes_but_its_own() {
    let types = format!("{FLOAT} attr {{ key: 'Tshape' value {{ type: DT_INT32 }} }}");
    let reshaped = |sizes: &[i64]| {
        let nodes = inner("k", "Const", &[], &integers("int_val", sizes))
            + &inner("l", "Const", &[], &integers("int_val", &[3, 2]))
            + &inner("s", "Reshape", &["a", "k:output:0"], &types)
            + &inner("m", "MatMul", &["s:output:0", "s:output:0"], FLOAT);
        function("f", &nodes, "m:product:0")
    };
    assert_eq!(found(Loader::Load, &reshaped(&[2, 2])), None);
    let diagnostic = found(Loader::Load, &reshaped(&[2, 3])).unwrap();
    assert_eq!(
        (diagnostic.kind, &*diagnostic.node, &*diagnostic.operation),
        (Kind::Shape, "m", "MatMul")
    );
    assert_eq!(found(Loader::Import, &reshaped(&[2, 3])), None, "nobody calls it");
}

#[test]
fn what_a_call_has_no_room_for_comes_before_shapes() {
    let few = product()
        + &placeholder("x", &[2, 3])
        + &node("c", "PartitionedCall", &["x"], &partitioned_call("f", ""));
    let Some(Kind::Structure(few)) = found(Loader::Import, &few).map(|diagnostic| diagnostic.kind)
    else {
        panic!("no structure")
    };
    assert_eq!(few.body.unwrap().kind, BodyDiagnosticKind::FewOutputs);
}
