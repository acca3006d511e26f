//! Tests of the same graph in both forms: in the binary form nodes are recognised by their bytes,
//! in the text form each is read field by field.

use proptest::prelude::*;

use super::read;
use crate::{
    graph::{Form, Graphs, Message, ReadOptions, StructureDiagnosticKind, tests::field},
    ops::Registry,
};

/// A part of a message in both forms.
#[derive(Clone, Debug, Default)]
struct Both {
    binary: Vec<u8>,
    text: String,
}

impl Both {
    /// Returns a field that holds this message.
    fn message(number: u8, name: &str, content: &Self) -> Self {
        let text = format!("{name} {{ {} }} ", content.text);
        Self { binary: long_field(number, &content.binary), text }
    }

    fn string(number: u8, name: &str, value: &str) -> Self {
        Self { binary: field(number.into(), value.as_bytes()), text: format!("{name}: '{value}' ") }
    }

    fn number(number: u8, name: &str, value: u8) -> Self {
        Self { binary: vec![number << 3, value], text: format!("{name}: {value} ") }
    }

    fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        parts.into_iter().fold(Self::default(), |mut all, part| {
            all.binary.extend(part.binary);
            all.text.push_str(&part.text);
            all
        })
    }
}

/// Encodes a field whose length may need three bytes.
fn long_field(number: u8, content: &[u8]) -> Vec<u8> {
    if content.len() < 128 {
        return field(number.into(), content);
    }
    let length = content.len();
    let length = [length as u8 | 0x80, (length >> 7) as u8 | 0x80, (length >> 14) as u8];
    [&[number << 3 | 2], &length[..], content].concat()
}

fn attribute(key: &str, value: Both) -> Both {
    let entry = Both::all([Both::string(1, "key", key), Both::message(2, "value", &value)]);
    Both::message(5, "attr", &entry)
}

fn type_of(key: &str, data_type: u8) -> Both {
    attribute(key, Both::number(6, "type", data_type))
}

fn function(key: &str, name: &str) -> Both {
    attribute(key, Both::message(10, "func", &Both::string(1, "name", name)))
}

/// Returns a tensor of one dimension with this number of bytes; none has as many as the last one.
fn tensor(size: u8) -> Both {
    let size = match size {
        9 => Both { binary: [&[0x08][..], &[0xff; 9], &[1]].concat(), text: "size: -1 ".into() },
        size => Both::number(1, "size", size),
    };
    let shape = Both::message(2, "tensor_shape", &Both::message(2, "dim", &size));
    let tensor = Both::all([Both::number(1, "dtype", 1), shape]);
    attribute("value", Both::message(8, "tensor", &tensor))
}

fn types(key: &str, count: usize) -> Both {
    let list = Both { binary: field(6, &vec![1; count]), text: "type: DT_FLOAT ".repeat(count) };
    attribute(key, Both::message(1, "list", &list))
}

/// Returns the operation of a node, chosen by a small number.
fn operation_of(choice: u8, size: u8) -> Vec<Both> {
    let op = |name: &str| Both::string(2, "op", name);
    match choice {
        0..=2 => vec![op("Identity"), type_of("T", 1)],
        3 => vec![op("Identity"), type_of("T", 3)],
        4 => vec![op("Placeholder"), type_of("dtype", 1)],
        5..=6 => vec![op("Const"), type_of("dtype", 1), tensor(size)],
        7 => vec![op("NoOp")],
        8 => vec![op("Add"), type_of("T", 1)],
        9 => {
            let shapes = Both::message(1, "list", &Both::message(7, "shape", &Both::default()));
            vec![op("Identity"), type_of("T", 1), attribute("_output_shapes", shapes)]
        }
        10 => vec![op("PartitionedCall"), types("Tin", 1), types("Tout", 1), function("f", "f")],
        11 => vec![op("PartitionedCall"), types("Tin", 1), types("Tout", 1), function("f", "none")],
        12 => vec![op("g")],
        13 => vec![op("BatchMatrixDiag"), type_of("T", 1)],
        // An operation since 2.13, with a later attribute; an operation without a kernel.
        14 => vec![op("Merge"), type_of("T", 1), attribute("N", Both::number(3, "i", 2))],
        15 => vec![op("NextIteration"), type_of("T", 1)],
        16 => {
            let unbound = attribute("f", Both::string(9, "placeholder", "p"));
            vec![op("PartitionedCall"), types("Tin", 1), types("Tout", 1), unbound]
        }
        17 => vec![op("Identity"), type_of("T", 1), function("other", "none")],
        18 => vec![op("Identity"), attribute("T", Both::default())],
        _ => vec![op("NoSuchOperation")],
    }
}

fn node() -> impl Strategy<Value = Both> {
    let operation = prop_oneof![6 => 0_u8..9, 1 => 9_u8..20];
    let size = prop_oneof![9 => 0_u8..3, 1 => Just(9)];
    let operation =
        (operation, size).prop_map(|(choice, size)| Both::all(operation_of(choice, size)));
    let input = "(\\^)?n[0-7](:[0-2])?|n[0-3]|n[0-3]|n[0-3]";
    let inputs = proptest::collection::vec(input, 0..3);
    let inputs = inputs.prop_map(|mut inputs| {
        // Data inputs come first; other orders are tested elsewhere.
        inputs.sort_by_key(|input| input.starts_with('^'));
        Both::all(inputs.iter().map(|input| Both::string(3, "input", input)))
    });
    let device = prop_oneof![8 => Just(""), 1 => Just("/CPU:0"), 1 => Just("/x:y")];
    let device = device.prop_map(|device| Both::string(4, "device", device));
    let beside = prop_oneof![9 => Just(None), 1 => "n[0-9]".prop_map(Some)];
    let beside = beside.prop_map(|name| {
        let name = name.map(|name| Both::string(2, "s", &format!("loc:@{name}")));
        let list = name.map(|name| Both::message(1, "list", &name));
        list.map_or_else(Both::default, |list| attribute("_class", list))
    });
    (operation, inputs, device, beside).prop_map(|(operation, inputs, device, beside)| {
        Both::all([operation, inputs, device, beside])
    })
}

fn named(number: usize, node: Both) -> Both {
    Both::all([Both::string(1, "name", &format!("n{number}")), node])
}

/// Returns a function of one argument with these nodes.
fn library_function(name: &str, nodes: Vec<Both>) -> Both {
    let argument =
        |name: &str| Both::all([Both::string(1, "name", name), Both::number(3, "type", 1)]);
    let signature = Both::all([
        Both::string(1, "name", name),
        Both::message(2, "input_arg", &argument("x")),
        Both::message(3, "output_arg", &argument("y")),
    ]);
    let returned = Both::all([Both::string(1, "key", "y"), Both::string(2, "value", "x")]);
    let nodes = nodes.into_iter().enumerate();
    let nodes = nodes.map(|(number, node)| Both::message(3, "node_def", &named(number, node)));
    let parts = [Both::message(1, "signature", &signature), Both::message(4, "ret", &returned)];
    Both::message(1, "function", &Both::all(parts.into_iter().chain(nodes)))
}

/// Generates a node of a function, whose inputs name outputs in full.
fn body_node() -> impl Strategy<Value = Both> {
    let operation = prop_oneof![6 => 0_u8..8, 1 => 8_u8..20];
    (operation, 0_u8..3, proptest::option::of("x|n[0-2]:output:0|x")).prop_map(
        |(choice, size, input)| {
            let input = input.map(|input| Both::string(3, "input", &input));
            Both::all(operation_of(choice, size).into_iter().chain(input))
        },
    )
}

fn graph() -> impl Strategy<Value = Both> {
    let nodes = proptest::collection::vec(node(), 0..14);
    let first = Just(Both::all(operation_of(4, 0)));
    let bodies = proptest::collection::vec(proptest::collection::vec(body_node(), 0..8), 0..3);
    (first, nodes, bodies).prop_map(|(first, nodes, bodies)| {
        let nodes = [first].into_iter().chain(nodes).enumerate();
        let nodes = nodes.map(|(number, node)| Both::message(1, "node", &named(number, node)));
        let names = ["f", "g", "Relu"];
        let functions = names.iter().zip(bodies).map(|(name, body)| library_function(name, body));
        let library = Both::message(2, "library", &Both::all(functions));
        let versions = Both {
            binary: field(4, &[0x08, 0xe8, 0x07]),
            text: "versions { producer: 1000 }".to_owned(),
        };
        Both::all(nodes.chain([library, versions]))
    })
}

/// Returns the graph as a message of each kind.
fn messages(graph: &Both) -> [(Message, Both); 3] {
    let meta = Both::message(2, "graph_def", graph);
    let objects = Both::message(7, "object_graph_def", &Both::default());
    let saved = Both::message(2, "meta_graphs", &Both::all([meta.clone(), objects]));
    let saved = Both::all([Both::number(1, "saved_model_schema_version", 1), saved]);
    [
        (Message::GraphDef, graph.clone()),
        (Message::MetaGraphDef, meta),
        (Message::SavedModel, saved),
    ]
}

fn releases() -> Vec<Registry> {
    ["2.12", "2.21"].map(|release| Registry::tensorflow(release).unwrap()).into()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn a_graph_is_judged_alike_by_its_bytes_and_field_by_field(graph in graph()) {
        let registries = releases();
        for (message, both) in messages(&graph) {
            for registries in [&registries[..], &[]] {
                let options = ReadOptions::default().with_registries(registries);
                let read = |bytes: &[u8], form| {
                    let graphs: Graphs = read(bytes, message, form, &options).unwrap();
                    format!("{graphs:#?}")
                };
                let binary = read(&both.binary, Form::Binary);
                prop_assert_eq!(binary, read(both.text.as_bytes(), Form::Text), "{:?}", message);
            }
        }
    }
}

#[test]
fn constant_of_no_shape_is_found_behind_valid_ones() {
    let constant =
        |size| Both::all([Both::string(2, "op", "Const"), type_of("dtype", 1), tensor(size)]);
    let nodes = [1, 2, 9].into_iter().enumerate();
    let nodes =
        nodes.map(|(number, size)| Both::message(1, "node", &named(number, constant(size))));
    let graph = Both::all(nodes);
    let registries = releases();
    let options = ReadOptions::default().with_registries(&registries);
    for (message, both) in messages(&graph) {
        let graphs = read(both.binary.as_slice(), message, Form::Binary, &options).unwrap();
        for judgement in &graphs.meta_graphs[0].graph.judgements {
            let diagnostic = judgement.diagnostic(crate::graph::Loader::Import).unwrap();
            assert_eq!(diagnostic.node, "n2");
        }
    }
}

#[test]
fn a_loop_that_begins_with_two_inputs_from_outside_crashes_the_importer() {
    let structure = |inputs: &str, control: &str| {
        let text = format!(
            "node {{ name: 'x' op: 'Placeholder' attr {{ key: 'dtype' value {{ type: DT_FLOAT }} }} }}
             node {{ name: 'y' op: 'Placeholder' attr {{ key: 'dtype' value {{ type: DT_FLOAT }} }} }}
             node {{ name: 'm' op: 'Merge' {inputs} input: 'back' {control}
                attr {{ key: 'T' value {{ type: DT_FLOAT }} }}
                attr {{ key: 'N' value {{ i: 3 }} }} }}
             node {{ name: 'back' op: 'NextIteration' input: 'm'
                attr {{ key: 'T' value {{ type: DT_FLOAT }} }} }}
             versions {{ producer: 1000 }}"
        );
        let registries = releases();
        let mut found = Vec::new();
        for registries in [&[], &registries[..]] {
            let options = ReadOptions::default().with_registries(registries);
            let graphs = read(text.as_bytes(), Message::GraphDef, Form::Text, &options).unwrap();
            let graph = &graphs.meta_graphs[0].graph;
            let diagnostic = graph
                .structure
                .as_ref()
                .map(|diagnostic| (diagnostic.kind, diagnostic.node.clone()));
            for judgement in &graph.judgements {
                let import = judgement.diagnostic(crate::graph::Loader::Import);
                let kind = import.map(|diagnostic| format!("{:?}", diagnostic.kind));
                assert!(
                    diagnostic.is_none() || kind.is_some_and(|kind| kind.contains("LoopInputs"))
                );
            }
            found.push(diagnostic);
        }
        assert_eq!(found[0], found[1]);
        found.remove(0)
    };
    let crash = Some((StructureDiagnosticKind::LoopInputs, "m".to_owned()));
    assert_eq!(structure("input: 'x' input: 'y'", ""), crash);
    assert_eq!(structure("input: 'x' input: 'x'", "input: '^y'"), crash);
    assert_eq!(structure("input: 'x'", "input: '^y' input: '^x'"), None);
}
