use crate::{
    graph::{Form, Loader, Message, ReadOptions, read},
    ops::Registry,
};

const FLOAT: &str = "attr { key: 'T' value { type: DT_FLOAT } }";

/// Returns a call of `g` with this number of arguments.
fn call(name: &str, arguments: usize, more: &str) -> String {
    let inputs = "input: 'x' ".repeat(arguments);
    let number = format!("attr {{ key: 'N' value {{ i: {arguments} }} }}");
    format!("node_def {{ name: '{name}' op: 'g' {inputs} {more} {number} }} ")
}

fn by_name(name: &str, arguments: usize) -> String {
    call(name, arguments, "")
}

/// Returns a call of `g` through a node that names it in an attribute.
fn partitioned(name: &str, arguments: usize) -> String {
    let (inputs, types) = ("input: 'x' ".repeat(arguments), "type: DT_FLOAT ".repeat(arguments));
    format!(
        "node_def {{ name: '{name}' op: 'PartitionedCall' {inputs}
           attr {{ key: 'Tin' value {{ list {{ {types} }} }} }}
           attr {{ key: 'Tout' value {{ list {{ type: DT_FLOAT }} }} }}
           attr {{ key: 'f' value {{ func {{ name: 'g'
             attr {{ key: 'N' value {{ i: {arguments} }} }} }} }} }} }} "
    )
}

fn node(name: &str, operation: &str, inputs: &[&str], more: &str) -> String {
    let inputs: String = inputs.iter().map(|input| format!("input: '{input}' ")).collect();
    format!("node_def {{ name: '{name}' op: '{operation}' {inputs} {more} }} ")
}

/// Returns true if a graph is accepted that calls a function with these nodes and results. If the
/// call with two arguments comes first, `g` has more than the other call gives it.
fn is_accepted(nodes: &str, returned: &[&str]) -> bool {
    let results = (0..returned.len())
        .map(|number| format!("output_arg {{ name: 'y{number}' type: DT_FLOAT }} "));
    let returns = returned
        .iter()
        .enumerate()
        .map(|(number, from)| format!("ret {{ key: 'y{number}' value: '{from}' }} "));
    let (results, returns): (String, String) = (results.collect(), returns.collect());
    let text = format!(
        "node {{ name: 'p' op: 'Placeholder' attr {{ key: 'dtype' value {{ type: DT_FLOAT }} }} }}
         node {{ name: 'c' op: 'f' input: 'p' }}
         versions {{ producer: 1395 }}
         library {{
           function {{ signature {{ name: 'f' input_arg {{ name: 'x' type: DT_FLOAT }} {results} }}
             {nodes} {returns} }}
           function {{
             signature {{ name: 'g' input_arg {{ name: 'a' type: DT_FLOAT number_attr: 'N' }}
               output_arg {{ name: 'o' type: DT_FLOAT }} attr {{ name: 'N' type: 'int' }} }}
             node_def {{ name: 'p' op: 'Placeholder'
               attr {{ key: 'dtype' value {{ type: DT_FLOAT }} }} }}
             ret {{ key: 'o' value: 'p:output:0' }} }}
         }}"
    );
    let registries = [Registry::tensorflow("2.16").unwrap()];
    let options = ReadOptions::default().with_registries(&registries);
    let graphs = read(text.as_bytes(), Message::GraphDef, Form::Text, &options).unwrap();
    graphs.meta_graphs[0].graph.judgements[0].diagnostic(Loader::Import).is_none()
}

/// The outcomes are those of TensorFlow 2.12, 2.16 and 2.21.
#[test]
fn of_two_calls_the_one_that_shapes_are_asked_for_first_decides_what_a_function_is() {
    let (two, one) = (call("two", 2, ""), call("one", 1, ""));
    let (two_first, one_first) = ([&*two, &*one].concat(), [&*one, &*two].concat());
    assert!(is_accepted(&two_first, &["x"]), "the last one comes first");
    assert!(!is_accepted(&one_first, &["x"]));
    // The order among nodes without consumers counts, not the nodes that a call waits for.
    let waits = call("two", 2, "input: '^one'");
    assert!(is_accepted(&[&*waits, &*one].concat(), &["x"]));
    let ready_later = call("one", 1, "").replace("'x'", "'i:output:0'");
    let identity = node("i", "Identity", &["x"], FLOAT);
    assert!(is_accepted(&[&*ready_later, &*two, &*identity].concat(), &["x"]));
    // The inputs of another node are visited with that node.
    for nodes in [&two_first, &one_first] {
        let with = |last: String| format!("{nodes}{last}");
        let sum = |inputs: &[&str]| with(node("j", "AddV2", inputs, FLOAT));
        assert!(is_accepted(&sum(&["two:o:0", "one:o:0"]), &["x"]));
        assert!(!is_accepted(&sum(&["one:o:0", "two:o:0"]), &["x"]));
        assert!(!is_accepted(&with(node("j", "NoOp", &["^two"], "")), &["x"]));
        assert!(is_accepted(&with(node("j", "NoOp", &["^one"], "")), &["x"]));
        // Control inputs are visited after the others.
        let beside = |inputs: &[&str]| with(node("j", "Identity", inputs, FLOAT));
        assert!(is_accepted(&beside(&["two:o:0", "^one"]), &["x"]));
        assert!(!is_accepted(&beside(&["one:o:0", "^two"]), &["x"]));
        assert!(is_accepted(nodes, &["two:o:0", "one:o:0"]));
        assert!(!is_accepted(nodes, &["one:o:0", "two:o:0"]));
    }
}

#[test]
fn control_inputs_are_in_the_order_of_their_names() {
    for (two, one, takes) in [("two", "one", false), ("a", "b", true)] {
        let calls = [call(two, 2, ""), call(one, 1, "")];
        let inputs = [format!("^{two}"), format!("^{one}")];
        for turned in [false, true] {
            let mut inputs = [&*inputs[0], &*inputs[1]];
            if turned {
                inputs.reverse();
            }
            let waits = node("j", "NoOp", &inputs, "");
            let nodes = [&*calls[0], &*calls[1], &*waits].concat();
            assert_eq!(is_accepted(&nodes, &["x"]), takes, "{two} {one} {turned}");
            let nodes = [&*calls[1], &*calls[0], &*waits].concat();
            assert_eq!(is_accepted(&nodes, &["x"]), takes, "{two} {one} {turned}");
        }
    }
}

#[test]
fn call_order_counts_in_functions_valid_in_every_release() {
    let (two, one) = (partitioned("two", 2), partitioned("one", 1));
    let (two_first, one_first) = ([&*two, &*one].concat(), [&*one, &*two].concat());
    assert!(is_accepted(&two_first, &["x"]));
    assert!(!is_accepted(&one_first, &["x"]));
    let sum = |inputs: &[&str]| two_first.clone() + &node("j", "AddV2", inputs, FLOAT);
    assert!(is_accepted(&sum(&["two:output:0", "one:output:0"]), &["x"]));
    assert!(!is_accepted(&sum(&["one:output:0", "two:output:0"]), &["x"]));
    assert!(is_accepted(&one_first, &["two:output:0", "one:output:0"]));
    assert!(!is_accepted(&two_first, &["one:output:0", "two:output:0"]));
}

#[test]
fn call_order_that_is_undetermined_accepts_both_orders_or_none() {
    let loose = |many: usize| -> String {
        (0..many).map(|number| node(&format!("n{number}"), "NoOp", &[], "")).collect()
    };
    let forms: [fn(&str, usize) -> String; 2] = [by_name, partitioned];
    for call in forms {
        let (two, one) = (call("two", 2), call("one", 1));
        let orders = [[&*two, &*one].concat(), [&*one, &*two].concat()];
        for (nodes, takes) in orders.iter().zip([true, false]) {
            assert_eq!(is_accepted(&format!("{}{nodes}", loose(4)), &["x"]), takes);
            assert!(!is_accepted(&format!("{}{nodes}", loose(5)), &["x"]));
        }
        // The same for the control inputs of one node.
        let waits = |many: usize| {
            let names: Vec<String> = (0..many).map(|number| format!("^n{number}")).collect();
            let names: Vec<&str> =
                names.iter().map(String::as_str).chain(["^two", "^one"]).collect();
            loose(many) + &node("j", "NoOp", &names, "")
        };
        let certain = format!("{}{}", waits(6), orders[0]);
        let turned = certain.replace("'two'", "'a'").replace("^two", "^a");
        assert!(is_accepted(&certain, &["x"]) != is_accepted(&turned, &["x"]));
        assert!(!is_accepted(&format!("{}{}", waits(7), orders[0]), &["x"]));
        // Many edges that lead to no call, or all to one, leave the order as it is.
        let independent = loose(9);
        let many: Vec<String> = (0..9).map(|number| format!("^n{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).chain(["^one"]).collect();
        for many in [&many[..9], &many[..]] {
            let waits = node("j", "NoOp", many, "");
            assert!(is_accepted(&format!("{independent}{waits}{}", orders[0]), &["x"]));
        }
        let alike = [call("two", 1), call("one", 1)].concat();
        assert!(is_accepted(&format!("{}{alike}", loose(9)), &["x"]));
    }
}
