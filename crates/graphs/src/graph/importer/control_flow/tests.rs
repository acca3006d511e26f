use crate::{
    graph::{Form, ImportDiagnosticKind as Kind, Loader, Message, ReadOptions, read},
    ops::Registry,
};

fn attribute(key: &str, value: &str) -> String {
    format!("attr {{ key: '{key}' value {{ {value} }} }} ")
}

fn node(name: &str, operation: &str, inputs: &[&str], rest: &str) -> String {
    let inputs: String = inputs.iter().map(|input| format!("input: '{input}' ")).collect();
    format!("node_def {{ name: '{name}' op: '{operation}' {inputs} {rest} }} ")
}

fn placeholder(name: &str, data_type: &str) -> String {
    node(name, "Placeholder", &[], &attribute("dtype", &format!("type: {data_type}")))
}

fn float(name: &str, operation: &str, inputs: &[&str], rest: &str) -> String {
    node(name, operation, inputs, &(attribute("T", "type: DT_FLOAT") + rest))
}

fn enter(name: &str, input: &str, frame: &str) -> String {
    float(name, "Enter", &[input], &attribute("frame_name", &format!("s: '{frame}'")))
}

/// Returns the diagnostic that the C++ loader finds in a model that calls a function with these
/// nodes; the function returns a tensor of type `gives`.
fn found(nodes: &str, gives: &str) -> Option<Kind> {
    let body = placeholder("r", gives) + &placeholder("q", "DT_FLOAT") + nodes;
    let call = attribute("Tin", "list { }")
        + &attribute("Tout", &format!("list {{ type: {gives} }}"))
        + &attribute("f", "func { name: 'f' }");
    let text = format!(
        "meta_graphs {{ graph_def {{ node {{ name: 'c' op: 'StatefulPartitionedCall' {call} }}
           library {{ function {{ signature {{ name: 'f' output_arg {{ name: 'o' type: {gives} }} }}
             {body} ret {{ key: 'o' value: 'r:output:0' }} }} }} }} }}"
    );
    let registries = [Registry::tensorflow("2.16").unwrap()];
    let options = ReadOptions::default().with_registries(&registries);
    let graphs = read(text.as_bytes(), Message::SavedModel, Form::Text, &options).unwrap();
    let judgement = &graphs.meta_graphs[0].graph.judgements[0];
    for loader in [Loader::Import, Loader::LoadV1] {
        assert_eq!(judgement.diagnostic(loader), None, "{loader:?}");
    }
    judgement.diagnostic(Loader::Cpp).map(|diagnostic| diagnostic.kind.clone())
}

fn is_accepted(nodes: &str) -> bool {
    assert_eq!(found(nodes, "DT_FLOAT"), None, "nobody looks into it");
    match found(nodes, "DT_RESOURCE") {
        None => true,
        Some(kind) => {
            assert_eq!(kind, Kind::FunctionBody);
            false
        }
    }
}

#[test]
fn a_frame_has_a_name() {
    assert!(is_accepted(&enter("e", "q:output:0", "l")));
    assert!(!is_accepted(&enter("e", "q:output:0", "")));
    let missing = float("e", "Enter", &["q:output:0"], "");
    assert!(!is_accepted(&missing));
}

#[test]
fn what_takes_from_two_frames_can_never_run() {
    let entered = enter("e", "q:output:0", "l");
    let sum = |one: &str, other: &str| float("s", "AddV2", &[one, other], "");
    assert!(!is_accepted(&(entered.clone() + &sum("e:output:0", "q:output:0"))));
    assert!(is_accepted(&(entered.clone() + &sum("e:output:0", "e:output:0"))));
    let other = enter("d", "q:output:0", "l");
    assert!(is_accepted(&(entered.clone() + &other + &sum("e:output:0", "d:output:0"))));
    let left = float("x", "Exit", &["e:output:0"], "");
    assert!(is_accepted(&(entered.clone() + &left + &sum("x:output:0", "q:output:0"))));
    let waits = float("w", "Identity", &["e:output:0", "^q"], "");
    assert!(!is_accepted(&(entered + &waits)));
}

#[test]
fn a_loop_has_one_condition_and_one_loop_around_it() {
    let condition = |name: &str| node(name, "LoopCond", &["b:output:0"], "");
    let with = |rest: &str| is_accepted(&(placeholder("b", "DT_BOOL") + rest));
    assert!(with(&condition("l")));
    assert!(!with(&(condition("l") + &condition("m"))));
    assert!(with(&(condition("l") + &condition("a/LoopCounter"))));
    let entered = enter("e", "q:output:0", "l") + &enter("d", "e:output:0", "m");
    assert!(with(&entered));
    assert!(!with(&(entered + &enter("k", "q:output:0", "m"))));
}
