//! Tests that the built-in table of operations holds exactly what was read from the releases.
//!
//! `cargo xtask ops` writes the table and runs no other test: those would use the old table, which
//! is built in until the crate is built again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value as Json;
use serdes_operations::{
    ArgumentSource, AttributeKind, History, OperationDefinition, Registry, ReleaseRecord, Value,
};

const REGENERATE: &str = "SERDES_REGENERATE_OPS";
/// Limit on the table's size in the program, in bytes.
const MOST_BYTES: usize = 400_000;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn json(name: &str) -> Json {
    let folder = path("../../tests/data/tensorflow/ops");
    serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap()
}

fn texts(json: &Json) -> Option<BTreeSet<String>> {
    Some(json.as_array()?.iter().map(|text| text.as_str().unwrap().to_owned()).collect())
}

fn definitions(json: &Json) -> BTreeMap<String, OperationDefinition> {
    let entries = json.as_object().into_iter().flatten();
    entries
        .map(|(name, json)| {
            (name.clone(), OperationDefinition::from_json(Some(name), json).unwrap())
        })
        .collect()
}

/// Returns the release after `before`; `json` has the differences.
fn step(before: &ReleaseRecord, json: &Json) -> ReleaseRecord {
    let text = |key: &str| json[key].as_str().unwrap().to_owned();
    let mut release = before.clone();
    (release.name, release.measured) = (text("release"), text("measured"));
    release.graph_def_version = json["graph_def_version"].as_i64().unwrap() as i32;
    let types = json["datatypes"].as_object().unwrap().values();
    release.types.extend(types.map(|number| number.as_i64().unwrap() as i32).filter(|n| *n > 0));
    for name in texts(&json["remove"]).unwrap_or_default() {
        assert!(release.operations.remove(&name).is_some(), "{name} was not there");
    }
    for key in ["ops", "change", "add"] {
        release.operations.extend(definitions(&json[key]));
    }
    for (key, set) in [
        ("no_shape_fn", &mut release.without_shape_function),
        ("no_cpu_kernel", &mut release.without_cpu_kernel),
        ("python_only", &mut release.python_only),
    ] {
        if let Some(names) = texts(&json[key]) {
            *set = names;
        }
    }
    assert_eq!(release.operations.len() as u64, json["op_count"].as_u64().unwrap());
    release
}

fn history() -> History {
    let mut releases = vec![step(&ReleaseRecord::default(), &json("base.json"))];
    let deltas = json("deltas.json");
    let mut names: Vec<&String> = deltas.as_object().unwrap().keys().collect();
    names.sort_by_key(|name| {
        name.split('.').map(|part| part.parse::<u32>().unwrap()).collect::<Vec<_>>()
    });
    for name in names {
        let next = step(releases.last().unwrap(), &deltas[name]);
        releases.push(next);
    }
    History { releases }
}

#[test]
fn the_table_is_made_of_what_was_read_from_the_releases() {
    let file = path("src/tensorflow.ops");
    let bytes = history().to_bytes();
    if std::env::var_os(REGENERATE).is_some() {
        fs::write(&file, &bytes).unwrap();
    }
    assert!(bytes.len() <= MOST_BYTES, "{} bytes", bytes.len());
    assert!(fs::read(&file).unwrap() == bytes, "write it anew with {REGENERATE}=1");
}

#[test]
fn every_operation_of_every_release_is_found_as_it_was_read() {
    let history = history();
    assert!(Registry::releases().eq(history.releases.iter().map(|release| release.name.as_str())));
    for release in &history.releases {
        let registry = Registry::tensorflow(&release.name).unwrap();
        assert_eq!(registry.measured_release(), release.measured);
        assert_eq!(registry.graph_def_version(), release.graph_def_version);
        for (name, definition) in &release.operations {
            let operation = registry.operation(name).unwrap();
            assert_eq!(&operation.to_definition(), definition, "{name} in {}", release.name);
            let has = |set: &BTreeSet<String>| set.contains(name);
            assert_eq!(operation.has_shape_function(), !has(&release.without_shape_function));
            assert_eq!(operation.has_cpu_kernel(), !has(&release.without_cpu_kernel));
            assert_eq!(operation.is_python_only(), has(&release.python_only));
        }
        assert!(
            registry.operations().map(|operation| operation.name()).eq(release.operations.keys())
        );
        for number in -1..200 {
            assert_eq!(registry.has_type(number), release.types.contains(&number), "{number}");
        }
    }
}

#[test]
fn the_json_form_of_an_operation_comes_back() {
    for operation in Registry::tensorflow("2.21").unwrap().operations() {
        let definition = operation.to_definition();
        assert_eq!(
            OperationDefinition::from_json(None, &definition.to_json()).unwrap(),
            definition
        );
    }
}

/// Returns the JSON with the shortest form of 32-bit floats; the releases' files have them as
/// 64-bit floats.
fn shortened(json: &Json) -> Json {
    match json {
        Json::Number(number) if number.is_f64() => {
            let short = (number.as_f64().unwrap() as f32).to_string();
            short.parse::<f64>().unwrap().into()
        }
        Json::Array(values) => values.iter().map(shortened).collect(),
        Json::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), shortened(value))).collect()
        }
        other => other.clone(),
    }
}

#[test]
fn the_json_form_is_the_one_that_the_releases_were_read_into() {
    let base = json("base.json");
    for (name, json) in base["ops"].as_object().unwrap() {
        let mut printed = OperationDefinition::from_json(Some(name), json).unwrap().to_json();
        printed.as_object_mut().unwrap().remove("name");
        assert_eq!(printed, shortened(json), "{name}");
    }
}

#[test]
fn an_operation_says_when_it_came_and_went() {
    let of = |name| Registry::operation_of_any_release(name).unwrap();
    assert_eq!(
        (of("Conv").first_release(), of("Conv").last_release()),
        (Some("2.14"), Some("2.21"))
    );
    assert_eq!(of("MatMul").first_release(), Some("2.12"));
    assert_eq!(of("TfLiteSubgraphExecute").last_release(), Some("2.18"));
    assert!(Registry::operation_of_any_release("NoSuchOpEver").is_none());
    assert!(Registry::operation_of_any_release("").is_none());
}

#[test]
fn arguments_and_attributes_are_read_where_they_lie() {
    let registry = Registry::tensorflow("2.16.2").unwrap();
    let conv = registry.operation("Conv2D").unwrap();
    let inputs: Vec<_> = conv.inputs().map(|input| (input.name(), input.source())).collect();
    let by_t = ArgumentSource::Attribute("T");
    assert_eq!(inputs, [("input", by_t), ("filter", by_t)]);
    let strides = conv.attribute("strides").unwrap();
    assert_eq!(Some(strides.kind()), AttributeKind::from_name("list(int)"));
    assert!(strides.default().is_none(), "strides are required");
    let padding = conv.attribute("padding").unwrap().allowed().unwrap();
    let padding: Vec<_> = padding
        .map(|value| match value {
            Value::String(bytes) => bytes,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(padding, [&b"SAME"[..], b"VALID", b"EXPLICIT"]);
}

#[test]
fn releases_that_are_not_known_are_refused_with_those_that_are() {
    for release in ["2.11", "2.22", "2.1", "2.120", "2.12.x", "2.12.", "", "v2.12"] {
        let error = Registry::tensorflow(release).unwrap_err();
        assert!(error.to_string().contains("2.12, 2.13"), "{error}");
    }
    assert_eq!(Registry::tensorflow("2.12.1").unwrap().release(), "2.12");
}

#[test]
fn a_list_of_ones_own_comes_before_the_release() {
    let mut ours = OperationDefinition::new("MatMul");
    ours.is_stateful = true;
    let plain = Registry::tensorflow("2.21").unwrap();
    let registry = plain.clone().with([ours, OperationDefinition::new("OurFusedOp")]);
    assert!(registry.operation("MatMul").unwrap().is_stateful());
    assert_eq!(registry.operation("OurFusedOp").unwrap().first_release(), None);
    assert_eq!(registry.operations().count(), plain.operations().count() + 1);
    let twice = registry.with([OperationDefinition::new("MatMul")]);
    assert!(!twice.operation("MatMul").unwrap().is_stateful(), "the last list is asked first");
    assert_eq!(twice.operations().count(), plain.operations().count() + 1);
}

#[test]
fn a_list_that_is_none_says_what_is_wrong() {
    for (json, named) in [
        (r#"[]"#, "an object"),
        (r#"{}"#, "the operation's name"),
        (r#"{"name": ""}"#, "the operation's name"),
        (r#"{"name": "A", "inputs": {}}"#, "an array"),
        (r#"{"name": "A", "inputs": [1]}"#, "an object an entry"),
        (r#"{"name": "A", "inputs": [{"name": "x"}]}"#, "exactly one of"),
        (
            r#"{"name": "A", "inputs": [{"name": "x", "type": "DT_FLOAT", "type_attr": "T"}]}"#,
            "exactly one of",
        ),
        (r#"{"name": "A", "inputs": [{"name": "x", "type": "float"}]}"#, "DT_FLOAT"),
        (r#"{"name": "A", "attrs": [{"name": "a", "type": "integer"}]}"#, "a kind such as"),
        (
            r#"{"name": "A", "attrs": [{"name": "a", "type": "int", "default": "x"}]}"#,
            "attribute's kind",
        ),
        (
            r#"{"name": "A", "attrs": [{"name": "a", "type": "list(int)", "default": 1}]}"#,
            "attribute's kind",
        ),
        (r#"{"name": "A", "attrs": [{"name": "a", "type": "int", "minimum": 1.5}]}"#, "an integer"),
        (r#"{"name": "A", "is_stateful": 1}"#, "true or false"),
        (r#"{"name": "A", "deprecation": 9999999999}"#, "32 bits"),
    ] {
        let json: Json = serde_json::from_str(json).unwrap();
        let error = OperationDefinition::from_json(None, &json).unwrap_err().to_string();
        assert!(error.contains(named), "{json}: {error}");
    }
}
