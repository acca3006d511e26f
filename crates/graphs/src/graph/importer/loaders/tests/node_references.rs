//! Tests of names in a meta graph outside its graph. The expected values were measured on
//! TensorFlow 2.12 and 2.21.

use super::{INPUT, Kind, Loader, found};

/// A graph with nodes of one output, two outputs and none, and a placeholder that they need.
const GRAPH: &str =
    "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }
    node { name: 'y' op: 'Identity' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }
    node { name: 'u' op: 'Unique' input: 'y' attr { key: 'T' value { type: DT_FLOAT } } }
    node { name: 'n' op: 'NoOp' }
    node { name: 'after' op: 'NoOp' input: '^y' }";

/// Returns true for each of `load_v1`, `load` and the C++ loader that accepts the graph with
/// `beside` in its meta graph.
fn accepted(beside: &str) -> [bool; 3] {
    [Loader::LoadV1, Loader::Load, Loader::Cpp].map(|loader| {
        let found = found("2.21", loader, GRAPH, beside).map(|diagnostic| diagnostic.kind);
        assert!(matches!(found, None | Some(Kind::NodeReference)), "{loader:?} {beside} {found:?}");
        found.is_none()
    })
}

const ALL: [bool; 3] = [true; 3];
const CPP: [bool; 3] = [false, false, true];
/// All loaders but `load` accept.
const V1: [bool; 3] = [true, false, true];
const NONE: [bool; 3] = [false; 3];

fn collection(key: &str, list: &str) -> String {
    format!("collection_def {{ key: '{key}' value {{ {list} }} }} ")
}

fn nodes(key: &str, names: &[&str]) -> String {
    let names: String = names.iter().map(|name| format!("value: '{name}' ")).collect();
    collection(key, &format!("node_list {{ {names} }}"))
}

/// Returns the inputs or outputs of a signature.
fn tensors(side: &str, infos: &[&str]) -> String {
    let entry = |(number, info): (usize, &&str)| {
        format!("{side} {{ key: 'k{number}' value {{ {info} }} }} ")
    };
    infos.iter().enumerate().map(entry).collect()
}

fn signature(inputs: &[&str], outputs: &[&str]) -> String {
    let named = |side: &str, names: &[&str]| {
        let infos: Vec<String> = names.iter().map(|name| format!("name: '{name}'")).collect();
        tensors(side, &infos.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let (inputs, outputs) = (named("inputs", inputs), named("outputs", outputs));
    format!("signature_def {{ key: 's' value {{ {inputs} {outputs} }} }} ")
}

#[test]
fn every_node_of_a_collection_is_there() {
    assert_eq!(accepted(&nodes("mine", &["y", "y:0", "u:1", "u:-2", "n"])), ALL);
    for name in ["missing", "missing:0", "y:1", "y:x", "", "^y", "n:0", "u:2"] {
        assert_eq!(accepted(&nodes("mine", &["y", name])), CPP, "{name}");
    }
    // Bytes and numbers name no nodes, except in messages that Python knows.
    for list in ["bytes_list { value: 'missing' }", "int64_list { value: 7 }", ""] {
        assert_eq!(accepted(&collection("mine", list)), ALL, "{list}");
    }
    for key in ["variables", "cond_context", "while_context", "queue_runners", "savers"] {
        assert_eq!(accepted(&collection(key, "bytes_list { value: '' }")), CPP, "{key}");
        assert!(accepted(&nodes(key, &["y"]))[0], "{key}");
    }
    let variable = |name: &str| {
        let text = format!("\\n\\{:03o}{name}\\022\\001n\\032\\001y", name.len());
        collection("variables", &format!("bytes_list {{ value: '{text}' }}"))
    };
    assert_eq!(accepted(&variable("y:0")), ALL);
    assert_eq!(accepted(&variable("w:0")), CPP);
    assert_eq!(accepted(&nodes("unbound_inputs", &["y"])), CPP);
    let diagnostic = found("2.16", Loader::LoadV1, GRAPH, &nodes("mine", &["y:1"])).unwrap();
    assert_eq!(diagnostic.found, "the collection \"mine\" names \"y:1\"");
    assert_eq!(diagnostic.expected, "a node or a tensor of the graph");
}

#[test]
fn one_operation_is_run_at_the_end() {
    let signature = |output: &str| {
        let key = "__saved_model_init_op";
        format!("signature_def {{ key: '{key}' value {{ {output} }} }}")
    };
    let named = |name: &str| {
        let key = "__saved_model_init_op";
        signature(&format!("outputs {{ key: '{key}' value {{ name: '{name}' }} }}"))
    };
    assert_eq!(accepted(&named("n")), ALL);
    assert_eq!(accepted(&named("missing")), NONE);
    // Then the C++ loader runs no node.
    assert_eq!(accepted(&named("")), CPP);
    assert_eq!(accepted(&named("n:0")), CPP);
    assert_eq!(accepted(&signature("outputs { key: 'other' value { name: 'n' } }")), NONE);
    for key in ["saved_model_main_op", "legacy_init_op"] {
        assert_eq!(accepted(&nodes(key, &["n"])), ALL, "{key}");
        assert_eq!(accepted(&nodes(key, &["n", "n"])), NONE, "{key}");
        assert_eq!(accepted(&nodes(key, &["missing"])), NONE, "{key}");
        assert_eq!(accepted(&nodes(key, &["n:x"])), NONE, "{key}");
        assert_eq!(accepted(&nodes(key, &["^n"])), CPP, "{key}");
        assert_eq!(accepted(&collection(key, "bytes_list { value: 'n' }")), NONE, "{key}");
        assert!(!accepted(&nodes(key, &["after"]))[1], "a placeholder that nobody feeds");
    }
    // The node that takes the path of an asset.
    let asset = |name: &str| format!("asset_file_def {{ tensor_info {{ name: '{name}' }} }} ");
    assert_eq!(accepted(&asset("y:0")), ALL);
    assert_eq!(accepted(&asset("missing:0")), V1);
    let main = nodes("saved_model_main_op", &["n"]);
    assert_eq!(accepted(&(main.clone() + &asset("missing:0"))), NONE);
    assert_eq!(accepted(&(main.clone() + &asset("y"))), CPP);
    assert_eq!(accepted(&(main + &asset("y:0") + &asset("y:0"))), [true, true, false]);
}

#[test]
fn the_saver_names_what_restores_variables() {
    let saver = |filename: &str, restore: &str| {
        format!(
            "saver_def {{ filename_tensor_name: '{filename}' save_tensor_name: 'missing'
               restore_op_name: '{restore}' }}"
        )
    };
    assert_eq!(accepted(&saver("x:0", "y")), ALL);
    for (filename, restore) in [("x", "y"), ("missing:0", "y"), ("", "y"), ("x:0", "missing")] {
        assert_eq!(accepted(&saver(filename, restore)), CPP, "{filename} {restore}");
    }
    assert_eq!(accepted(&saver("u:0", "y")), V1, "a placeholder that nobody feeds");
}

#[test]
fn a_signature_feeds_what_it_needs() {
    assert_eq!(accepted(&signature(&["x:0"], &["y:0", "u:1"])), ALL);
    assert_eq!(accepted(&signature(&["y:0"], &["u:0", "n"])), ALL);
    assert_eq!(accepted(&signature(&[], &["n"])), ALL);
    for (inputs, outputs) in [
        (&["missing:0"][..], &["n"][..]),
        (&["x"], &["y:0"]),
        (&["x:0"], &["y:1"]),
        (&["x:0"], &["y:x"]),
        (&[], &["y:0"]),
        (&[], &["x:0"]),
        (&[], &["after"]),
        (&["u:0"], &["y:0"]),
        (&["x:0", "x:0"], &["y:0"]),
    ] {
        assert_eq!(accepted(&signature(inputs, outputs)), V1, "{inputs:?} {outputs:?}");
    }
    let output = |info: &str| {
        format!(
            "signature_def {{ key: 's' value {{ {} {} }} }}",
            tensors("inputs", &["name: 'x:0'"]),
            tensors("outputs", &[info])
        )
    };
    let sparse = |values: &str| {
        format!(
            "coo_sparse {{ values_tensor_name: '{values}' indices_tensor_name: 'y:0'
               dense_shape_tensor_name: 'u:1' }}"
        )
    };
    assert_eq!(accepted(&output(&sparse("y:0"))), ALL);
    assert_eq!(accepted(&output(&sparse("y"))), V1);
    assert_eq!(accepted(&output("dtype: DT_FLOAT")), V1);
    // Models with objects are loaded by their objects.
    let objects = "object_graph_def { nodes { user_object { identifier: '_generic_user_object'
        version { producer: 1 min_consumer: 1 } } } }";
    assert_eq!(found("2.21", Loader::Load, INPUT, &(signature(&[], &["y:9"]) + objects)), None);
}
