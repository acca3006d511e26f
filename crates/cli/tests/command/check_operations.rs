//! Tests of `serdes check` for verdicts that the operations of a release decide.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::testkit::{data, objects, root, serdes, status, text};

/// Writes a graph in text form.
fn graph(folder: &Path, nodes: &str) -> PathBuf {
    let path = folder.join("graph.pbtxt");
    fs::write(&path, format!("{nodes} versions {{ producer: 2474 }}")).unwrap();
    path
}

/// Returns the status and the first object of a check.
fn check(path: &Path, arguments: &[&str]) -> (i32, Value) {
    let found = serdes(&[&["check", text(path), "--json"][..], arguments].concat());
    (status(&found), objects(&found).remove(0))
}

#[test]
fn later_operation_is_refused_with_its_first_release() {
    let folder = tempfile::tempdir().unwrap();
    let path = graph(
        folder.path(),
        r#"node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_COMPLEX64 } } }
           node { name: "n" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
                  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
           node { name: "f" op: "FFTND" input: "x" input: "n" input: "n"
                  attr { key: "Tcomplex" value { type: DT_COMPLEX64 } } }"#,
    );
    let (code, object) = check(&path, &["--tensorflow", "2.12"]);
    let reason = &object["reasons"][0];
    assert_eq!((code, &reason["rule"]), (1, &"unknown_op".into()), "{object}");
    assert_eq!((&reason["found"], &reason["where"]), (&"FFTND".into(), &"f".into()));
    let message = reason["message"].as_str().unwrap();
    assert!(message.contains("it loads from TensorFlow 2.15 on"), "{message}");
    assert!(reason["remedy"].as_str().unwrap().contains("2.15"), "{reason}");
    assert_eq!(check(&path, &["--tensorflow", "2.15"]).0, 0);
    assert_eq!(check(&path, &["--consumer", "graph_def=1395"]).0, 1);
    // For a number that is not a release's, the operations are unknown.
    let (code, object) = check(&path, &["--consumer", "graph_def=1396"]);
    assert_eq!((code, &object["release"]), (0, &Value::Null));
    assert_eq!(object["warnings"][0]["rule"], "forward_compatibility");
}

#[test]
fn an_operation_of_ones_own_is_named_or_listed() {
    let folder = tempfile::tempdir().unwrap();
    let path = graph(folder.path(), r#"node { name: "a" op: "OurFusedOp" }"#);
    let (code, object) = check(&path, &[]);
    let reason = &object["reasons"][0];
    assert_eq!((code, &reason["rule"]), (1, &"unknown_op".into()), "{object}");
    assert!(reason["remedy"].as_str().unwrap().contains("--custom-op OurFusedOp"), "{reason}");
    assert_eq!(check(&path, &["--custom-op", "OurFusedOp"]).0, 0);
    assert_eq!(check(&path, &["--tensorflow", "all", "--custom-op", "OurFusedOp"]).0, 0);
    assert_eq!(check(&path, &["--custom-op", "Another"]).0, 1);
    let list = folder.path().join("list");
    fs::write(&list, "# ours\nOurFusedOp\n").unwrap();
    assert_eq!(check(&path, &["--ops", text(&list)]).0, 0);
    // A definition declares what its nodes need.
    fs::write(&list, r#"{"name": "OurFusedOp", "attrs": [{"name": "T", "type": "type"}]}"#)
        .unwrap();
    let (code, object) = check(&path, &["--ops", text(&list)]);
    assert_eq!((code, &object["reasons"][0]["rule"]), (1, &"missing_attribute".into()));
    fs::write(&list, "not a name").unwrap();
    assert_eq!(check(&path, &["--ops", text(&list)]).0, 2);
    assert_eq!(check(&path, &["--ops", "absent"]).0, 2);
    assert_eq!(check(&path, &["--custom-op", ""]).0, 2);
}

#[test]
fn own_operations_come_from_a_saved_model_or_a_list() {
    let field = |number: u8, content: &[u8]| {
        [&[number << 3 | 2, u8::try_from(content.len()).unwrap()][..], content].concat()
    };
    // An attribute without a default, which the node lacks.
    let attribute = field(4, &[field(1, b"T"), field(2, b"type")].concat());
    let list = |parts: &[u8]| field(1, &[&field(1, b"OurFusedOp")[..], parts].concat());
    let graph = field(1, &[field(1, b"a"), field(2, b"OurFusedOp")].concat());
    let graph = field(2, &[graph, field(4, &[0x08, 0xaa, 0x13])].concat());
    let folder = tempfile::tempdir().unwrap();
    let model = |name: &str, list: &[u8]| {
        let information = field(1, &[field(2, list), field(4, b"serve")].concat());
        let meta_graph = field(2, &[information, graph.clone()].concat());
        let directory = folder.path().join(name);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("saved_model.pb"), [&[8, 1], &meta_graph[..]].concat()).unwrap();
        directory
    };
    let own = model("own", &list(&[]));
    let strict = model("strict", &list(&attribute));
    assert_eq!(check(&own, &[]).0, 1);
    for listing in [&own, &own.join("saved_model.pb")] {
        assert_eq!(check(&own, &["--ops", text(listing)]).0, 0);
    }
    let (code, object) = check(&own, &["--ops", text(&strict)]);
    assert_eq!((code, &object["reasons"][0]["rule"]), (1, &"missing_attribute".into()));
    let serialized = folder.path().join("list.binpb");
    fs::write(&serialized, list(&[])).unwrap();
    assert_eq!(check(&own, &["--ops", text(&serialized)]).0, 0);
    fs::write(&serialized, list(&attribute)).unwrap();
    assert_eq!(check(&own, &["--ops", text(&serialized)]).0, 1);
    // The release decides which operations TensorFlow has, whatever the model lists.
    let newer = data("tensorflow/sm/sm_tf2_no_fingerprint");
    assert_eq!(check(&own, &["--ops", text(&newer)]).0, 1);
    let empty = model("empty", &[]);
    assert_eq!(check(&own, &["--ops", text(&empty)]).0, 2);
}

#[test]
fn forgotten_attribute_is_a_warning_unless_default() {
    let folder = tempfile::tempdir().unwrap();
    let path = |value: bool| {
        graph(
            folder.path(),
            &format!(
                r#"node {{ name: "x" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} }}
                   node {{ name: "m" op: "MatMul" input: "x" input: "x" attr {{ key: "T" value {{ type: DT_FLOAT }} }}
                          attr {{ key: "grad_a" value {{ b: {value} }} }} }}"#
            ),
        )
    };
    let of = ["--tensorflow", "2.12"];
    let (code, object) = check(&path(true), &of);
    assert_eq!((code, &object["warnings"][0]["rule"]), (0, &"attribute_dropped".into()));
    assert_eq!(object["warnings"][0]["where"], "m");
    assert_eq!(check(&path(true), &["--tensorflow", "2.12", "--strict"]).0, 1);
    let (code, object) = check(&path(false), &["--tensorflow", "2.12", "--strict"]);
    assert_eq!((code, &object["warnings"]), (0, &serde_json::json!([])));
    assert_eq!(check(&path(true), &["--tensorflow", "2.16", "--strict"]).0, 0);
}

#[test]
fn a_model_says_what_each_loader_does_and_one_of_them_decides() {
    let model = data("tensorflow/sm/tf1_two");
    let (_, object) = check(&model, &["--tags", "serve"]);
    let loaders = object["loaders"].as_object().unwrap();
    assert_eq!(loaders.keys().collect::<Vec<_>>(), ["cpp", "load", "load_v1"]);
    let graph = root().join("tests/data/rules/empty.pb");
    assert_eq!(check(&graph, &[]).1["loaders"], Value::Null);
    // Versions that tf.saved_model.load ignores.
    let differs = root().join("tests/data/rules/loader_differs");
    let (code, object) = check(&differs, &[]);
    assert_eq!((code, &object["loaders"]["load"]), (1, &"acceptable".into()), "{object}");
    assert_eq!(object["loaders"]["load_v1"], "unacceptable");
    let (code, object) = check(&differs, &["--loader", "load"]);
    assert_eq!((code, &object["verdict"]), (0, &"acceptable".into()), "{object}");
    let warnings = object["warnings"].as_array().unwrap();
    let about: Vec<&str> = warnings
        .iter()
        .filter(|warning| warning["rule"] == "loader_differs")
        .map(|warning| warning["message"].as_str().unwrap())
        .collect();
    assert_eq!(about.len(), 2, "{object}");
    assert!(about[0].contains("min_consumer"), "{object}");
    assert_eq!(status(&serdes(&["check", text(&differs), "--loader", "import"])), 2);
}
