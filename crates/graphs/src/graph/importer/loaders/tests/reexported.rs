//! Tests of calls of functions after these have got their names from Python.

use super::{INPUT, Kind, Loader, function, kind, node, together};
use crate::graph::BodyDiagnosticKind;

const CALL: &str = "node { name: 'c' op: 'f' input: 'x' } ";
const DTYPE: &str = "attr { key: 'dtype' value { type: DT_FLOAT } }";

fn index(number: u32) -> String {
    format!(
        "attr {{ key: 'T' value {{ type: DT_FLOAT }} }} attr {{ key: 'index' value {{ i: {number} }} }}"
    )
}

/// Returns a function without arguments and results.
fn empty(name: &str, nodes: &str) -> String {
    format!("library {{ function {{ signature {{ name: '{name}' }} {nodes} }} }} ")
}

#[test]
fn function_loaded_twice_is_unresolved_for_those_loaded_between() {
    let calls = function("f", &node("d", "t", &[], ""), "a");
    let (one, other) = (empty("t", ""), empty("t", &node("n", "NoOp", &[], "")));
    let graph = |libraries: &[String]| format!("{INPUT} {CALL} {}", together(libraries));
    for twice in [[one.clone(), other.clone()], [one.clone(), one.clone()]] {
        let [first, second] = twice;
        for order in [
            [calls.clone(), first.clone(), second.clone()],
            [first.clone(), calls.clone(), second.clone()],
            [first.clone(), second.clone(), calls.clone()],
        ] {
            assert_eq!(kind(Loader::Load, &graph(&order)), Some(Kind::UnknownOperation));
            // The function is not checked if no node of the graph calls it.
            assert_eq!(kind(Loader::Load, &together(&order)), None);
        }
    }
    // The same through another function; a call of a function in an attribute is not checked.
    let outer = function("f", &node("d", "g", &["a"], ""), "a");
    let inner = function("g", &node("d", "t", &[], ""), "a");
    let deep = graph(&[outer, inner, one.clone(), other.clone()]);
    assert_eq!(kind(Loader::Load, &deep), Some(Kind::UnknownOperation));
    let target = "attr { key: 'Tin' value { list { } } } attr { key: 'Tout' value { list { } } }
        attr { key: 'f' value { func { name: 't' } } }";
    let partitioned = function("f", &node("d", "PartitionedCall", &[], target), "a");
    assert_eq!(kind(Loader::Load, &graph(&[partitioned, one.clone(), other])), None);
    assert_eq!(kind(Loader::Load, &graph(&[calls, one])), None);
}

#[test]
fn a_loaded_call_gives_what_arguments_and_results_by_hand_ask_for() {
    let input = node("p", "Placeholder", &[], DTYPE);
    let result = input + &node("r", "_Retval", &["p:output:0"], &index(0));
    let argument = node("r", "_Arg", &[], &index(1));
    let diagnostics = [BodyDiagnosticKind::FewOutputs, BodyDiagnosticKind::FewInputs];
    for (nodes, expected) in [&result, &argument].into_iter().zip(diagnostics) {
        let load = |call: &str| {
            let calls = function("f", call, "a");
            kind(Loader::Load, &together(&[calls, empty("h", nodes)]))
        };
        let Some(Kind::Structure(diagnostic)) = load(&node("c", "h", &[], "")) else {
            panic!("accepted")
        };
        assert_eq!(diagnostic.body.map(|body| body.kind), Some(expected));
        let disabled = "attr { key: '_disable_call_shape_inference' value { b: true } }";
        assert_eq!(load(&node("c", "h", &[], disabled)), None);
        let target = "attr { key: 'Tin' value { list { } } }
            attr { key: 'Tout' value { list { } } } attr { key: 'f' value { func { name: 'h' } } }";
        assert_eq!(load(&node("c", "PartitionedCall", &[], target)), None);
    }
}

#[test]
fn python_reads_the_type_of_an_argument_that_names_an_attribute_as_well() {
    let with = |argument: &str| {
        format!(
            "library {{ function {{ signature {{ name: 'f'
               input_arg {{ name: 'a' {argument} }} attr {{ name: 'T' type: 'type' }} }} }} }} "
        )
    };
    assert_eq!(kind(Loader::LoadV1, &with("type: DT_FLOAT type_attr: 'T'")), None);
    assert_eq!(kind(Loader::LoadV1, &with("type_attr: 'T'")), Some(Kind::Python));
    assert_eq!(kind(Loader::LoadV1, &with("type: 99 type_attr: 'T'")), Some(Kind::Python));
}

#[test]
fn a_function_is_loaded_after_those_that_attributes_of_any_name_have() {
    for key in ["_note", "_output_shapes", "note"] {
        for value in ["func { name: 'g' }", "list { func { name: 'g' } }"] {
            let attribute = format!("{DTYPE} attr {{ key: '{key}' value {{ {value} }} }}");
            let noted = node("n", "Placeholder", &[], &attribute);
            let other = node("m", "Placeholder", &[], DTYPE);
            for nodes in [noted.clone() + &other, other + &noted] {
                let back = function("g", &node("c", "f", &["a"], ""), "a");
                let both = together(&[function("f", &nodes, "a"), back]);
                assert_eq!(kind(Loader::Load, &both), Some(Kind::Python), "{nodes}");
                let unresolved = function("f", &nodes, "a");
                assert_eq!(kind(Loader::Load, &unresolved), Some(Kind::Python), "{nodes}");
            }
        }
    }
}

#[test]
fn a_function_that_is_there_for_a_call_by_name_is_there_for_others_in_the_function() {
    let types = |inputs: &str, outputs: &str| {
        format!(
            "attr {{ key: 'Tin' value {{ list {{ {inputs} }} }} }}
             attr {{ key: 'Tout' value {{ list {{ {outputs} }} }} }}
             attr {{ key: 'f' value {{ func {{ name: 'h' }} }} }} "
        )
    };
    let float = "type: DT_FLOAT";
    let named = node("c", "h", &["a"], "");
    let whole = node("c", "PartitionedCall", &["a"], &types(float, float));
    let cases = [
        (node("d", "PartitionedCall", &[], &types("", float)), BodyDiagnosticKind::FewInputs),
        (node("d", "PartitionedCall", &["a"], &types(float, "")), BodyDiagnosticKind::FewOutputs),
    ];
    for (call, expected) in cases {
        let load = |nodes: &str| {
            let calling = function("f", nodes, "a");
            kind(Loader::Load, &together(&[calling, function("h", "", "a")]))
        };
        for nodes in [format!("{named}{call}"), format!("{call}{named}")] {
            let Some(Kind::Structure(found)) = load(&nodes) else { panic!("accepted: {nodes}") };
            assert_eq!(found.body.map(|body| body.kind), Some(expected));
        }
        assert_eq!(load(&format!("{whole}{call}")), None);
    }
}
