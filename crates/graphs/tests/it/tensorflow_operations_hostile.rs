//! Tests of graphs made to cost much: each is judged for ten releases, the file is read a few times
//! at most, and the answer is the importer's.

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
};

use serdes_files::ReadAt;
use serdes_graphs::graph::{self, Form, Graph, ImportDiagnosticKind, Loader, Message, ReadOptions};
use serdes_operations::Registry;
use serdes_testkit::fields::field;

/// Limit on the number of reads of a whole file: the walk over the operations, the walk over the
/// edges, and for each of ten releases another read of the node with the diagnostic, which may be
/// the whole file.
const MOST_READS: u64 = 16;
/// Names in a diagnostic are cut to this many bytes, and a value is shown with the attribute's
/// name.
const LONGEST_TEXT: usize = 1024;

/// A file in memory that counts the bytes that are read from it.
struct Counted {
    bytes: Vec<u8>,
    read: AtomicU64,
}

impl ReadAt for Counted {
    fn size(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let count = self.bytes.read_at(buffer, offset)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Encodes a field with a number.
fn number(field: u64, value: i64) -> Vec<u8> {
    let mut out = Vec::new();
    varint(field << 3, &mut out);
    varint(value as u64, &mut out);
    out
}

/// Encodes the attribute `name` with the content of an AttrValue.
fn attribute(name: &str, value: &[u8]) -> Vec<u8> {
    field(5, &[field(1, name.as_bytes()), field(2, value)].concat())
}

fn data_type(name: &str, data_type: i64) -> Vec<u8> {
    attribute(name, &number(6, data_type))
}

fn node(name: &str, operation: &str, inputs: &[&str], attributes: &[u8]) -> Vec<u8> {
    let inputs: Vec<u8> = inputs.iter().flat_map(|input| field(3, input.as_bytes())).collect();
    let parts = [&field(1, name.as_bytes()), &field(2, operation.as_bytes()), &inputs];
    [parts.map(Vec::as_slice).concat(), attributes.to_vec()].concat()
}

/// Encodes a function without arguments and results.
fn function(name: &str, nodes: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let nodes: Vec<u8> = nodes.into_iter().flat_map(|node| field(3, &node)).collect();
    [field(1, &field(1, name.as_bytes())), nodes].concat()
}

fn graph(
    nodes: impl IntoIterator<Item = Vec<u8>>,
    functions: impl IntoIterator<Item = Vec<u8>>,
) -> Vec<u8> {
    let mut out: Vec<u8> = nodes.into_iter().flat_map(|node| field(1, &node)).collect();
    let library: Vec<u8> = functions.into_iter().flat_map(|function| field(1, &function)).collect();
    out.extend(field(2, &library));
    out.extend(field(4, &number(1, 1395)));
    out
}

fn float(name: &str) -> Vec<u8> {
    node(name, "Placeholder", &[], &data_type("dtype", 1))
}

/// Reads the graph for every release. Asserts that the file was not read too often, and that all
/// diagnostics of releases and loaders are cut to the limit.
fn judge(bytes: Vec<u8>) -> Graph {
    judge_as(Message::GraphDef, bytes)
}

fn judge_as(message: Message, bytes: Vec<u8>) -> Graph {
    let registries: Vec<Registry> =
        Registry::releases().map(|release| Registry::tensorflow(release).unwrap()).collect();
    let source = Counted { bytes, read: AtomicU64::new(0) };
    let options = ReadOptions::default().with_registries(&registries);
    let graphs = graph::read(&source, message, Form::Binary, &options).unwrap();
    let read = source.read.load(Ordering::Relaxed);
    // Short parts are read completely if they are needed again.
    let most = MOST_READS * source.bytes.len() as u64 + 256 * 1024;
    assert!(read <= most, "{read} bytes were read of {}", source.bytes.len());
    let graph = graphs.meta_graphs.into_iter().next().unwrap().graph;
    assert_eq!(graph.judgements.len(), registries.len());
    for judgement in &graph.judgements {
        for diagnostic in Loader::ALL.iter().filter_map(|loader| judgement.diagnostic(*loader)) {
            for text in
                [&diagnostic.node, &diagnostic.operation, &diagnostic.found, &diagnostic.expected]
            {
                assert!(text.len() <= LONGEST_TEXT, "{} bytes are shown", text.len());
            }
        }
        assert!(judgement.ignored.len() <= 1024);
    }
    graph
}

/// Returns the first diagnostic in the import of the newest release.
fn diagnostic(graph: &Graph) -> Option<&ImportDiagnosticKind> {
    graph.judgements.last().unwrap().diagnostic(Loader::Import).map(|diagnostic| &diagnostic.kind)
}

#[test]
fn a_node_with_more_attributes_than_are_looked_at_is_never_taken() {
    let unknown = |count| -> Vec<u8> {
        (0..count).flat_map(|number| attribute(&format!("a{number}"), &[])).collect()
    };
    let taken = [unknown(1_000_000), data_type("dtype", 1)].concat();
    let found = judge(graph([node("x", "Placeholder", &[], &taken)], []));
    assert_eq!(diagnostic(&found), Some(&ImportDiagnosticKind::Oversized));
    let taken = [unknown(20_000), data_type("dtype", 1)].concat();
    assert_eq!(diagnostic(&judge(graph([node("x", "Placeholder", &[], &taken)], []))), None);
    let found = judge(graph([node("x", "Placeholder", &[], &unknown(20_000))], []));
    assert!(
        matches!(diagnostic(&found), Some(ImportDiagnosticKind::AttributesMissing { .. })),
        "{found:?}"
    );
}

#[test]
fn of_many_values_of_an_attribute_the_last_counts() {
    let values =
        |count, last| [data_type("dtype", 1).repeat(count), data_type("dtype", last)].concat();
    let of = |values: Vec<u8>| judge(graph([node("x", "Placeholder", &[], &values)], []));
    assert_eq!(diagnostic(&of(values(10_000, 3))), None);
    let found = of(values(10_000, 99));
    assert!(
        matches!(diagnostic(&found), Some(ImportDiagnosticKind::AttributeType { .. })),
        "{found:?}"
    );
    // A million values may exceed the limit on what is read, but the graph is never accepted for
    // that.
    assert!(diagnostic(&of(values(1_000_000, 99))).is_some());
}

#[test]
fn lists_of_any_length_are_counted_and_not_kept() {
    let inputs = vec!["x"; 100_000];
    let list = |count: usize, one: i64| {
        let types: Vec<u8> = std::iter::repeat_n(one as u8, count).collect();
        attribute("T", &field(1, &field(6, &types)))
    };
    let of =
        |types: Vec<u8>| judge(graph([float("x"), node("y", "IdentityN", &inputs, &types)], []));
    assert_eq!(diagnostic(&of(list(100_000, 1))), None);
    assert_eq!(diagnostic(&of(list(3_000_000, 1))), Some(&ImportDiagnosticKind::InputCount));
    assert!(matches!(
        diagnostic(&of(list(3_000_000, 99))),
        Some(ImportDiagnosticKind::AttributeType { .. })
    ));
    let other = diagnostic(&of(list(100_000, 3))).cloned();
    assert_eq!(other, Some(ImportDiagnosticKind::InputType { input: 0 }));
}

#[test]
fn a_number_of_inputs_costs_nothing_however_large_it_is() {
    for count in [2, i64::from(i32::MAX), 1 << 31, 1 << 40, i64::MAX] {
        let attributes = [attribute("N", &number(3, count)), data_type("T", 1)].concat();
        let found = judge(graph([float("x"), node("y", "AddN", &["x"], &attributes)], []));
        let expected = diagnostic(&found).unwrap();
        match count {
            _ if count <= i64::from(i32::MAX) => {
                assert_eq!(expected, &ImportDiagnosticKind::InputCount)
            }
            _ => {
                assert!(
                    matches!(expected, ImportDiagnosticKind::AttributeNumber { .. }),
                    "{expected:?}"
                )
            }
        }
    }
}

#[test]
fn names_of_a_megabyte_are_compared_and_not_shown() {
    let long = "n".repeat(1 << 20);
    let found = judge(graph([node("x", &long, &[], &[])], []));
    assert_eq!(diagnostic(&found), Some(&ImportDiagnosticKind::UnknownOperation));
    let value = attribute(&long, &field(2, long.as_bytes()));
    let taken = [value, data_type("dtype", 1)].concat();
    let nodes = [
        node(&long, "Placeholder", &[], &taken),
        node("y", "Identity", &[&long], &data_type("T", 3)),
    ];
    let found = judge(graph(nodes, []));
    assert_eq!(diagnostic(&found), Some(&ImportDiagnosticKind::InputType { input: 0 }));
    let padding = [
        data_type("T", 1),
        attribute("padding", &field(2, long.as_bytes())),
        attribute("strides", &field(1, &field(3, &[1, 1, 1, 1]))),
    ];
    let found = judge(graph([float("x"), node("y", "Conv2D", &["x", "x"], &padding.concat())], []));
    assert!(
        matches!(diagnostic(&found), Some(ImportDiagnosticKind::AttributeNotAllowed { .. })),
        "{found:?}"
    );
}

/// Returns the first diagnostic in the import of the newest release, for a graph that calls the
/// function, as a graph and as a SavedModel.
fn diagnostic_of_called(function: &[u8]) -> Option<ImportDiagnosticKind> {
    let bytes = graph([node("c", "f", &[], &[])], [function.to_vec()]);
    let found = judge(bytes.clone());
    let loaded = judge_as(Message::SavedModel, field(2, &field(2, &bytes)));
    assert_eq!(diagnostic(&found), diagnostic(&loaded));
    diagnostic(&found).cloned()
}

#[test]
fn names_of_a_megabyte_in_functions_are_compared_and_not_shown() {
    // An input has more than a name.
    let long = "n".repeat((1 << 20) - 16);
    let too_long = "n".repeat((1 << 20) + 1);
    let of = |nodes: &[Vec<u8>]| diagnostic_of_called(&function("f", nodes.to_vec()));
    let given = node(&long, "Placeholder", &[], &data_type("dtype", 1));
    let input = format!("{long}:output:0");
    let used = node("i", "Identity", &[&input], &data_type("T", 1));
    assert_eq!(of(&[given.clone(), used]), None);
    let used = node("i", "Identity", &[&input], &data_type("T", 3));
    let found = of(&[given, used]);
    assert!(matches!(found, Some(ImportDiagnosticKind::InputType { .. })), "{found:?}");
    assert_eq!(of(&[node("n", &long, &[], &[])]), Some(ImportDiagnosticKind::UnknownOperation));
    assert_eq!(of(&[node(&too_long, "NoOp", &[], &[])]), Some(ImportDiagnosticKind::Oversized));
    let value = attribute(&long, &field(2, long.as_bytes()));
    assert_eq!(of(&[node("n", "NoOp", &[], &value)]), None);
    let function_of = attribute("f", &field(10, &field(1, long.as_bytes())));
    judge_as(
        Message::SavedModel,
        field(2, &field(2, &graph([node("c", "PartitionedCall", &[], &function_of)], []))),
    );
    // Names of functions are compared up to 64 KiB.
    let named = function(&long, [node("n", "NoOp", &[], &[])]);
    let found = judge(graph([node("c", &long, &[], &[])], [named]));
    assert_eq!(diagnostic(&found), Some(&ImportDiagnosticKind::UnknownOperation));
}

#[test]
fn a_hundred_thousand_functions_that_call_each_other_in_a_row_are_followed() {
    let library = |count: usize, last: &'static str| {
        (0..count).map(move |number| {
            let next = format!("f{}", number + 1);
            function(
                &format!("f{number}"),
                [node("n", if number + 1 < count { &next } else { last }, &[], &[])],
            )
        })
    };
    let call = || [node("c", "f0", &[], &[])];
    assert_eq!(diagnostic(&judge(graph(call(), library(100_000, "NoOp")))), None);
    let found = judge(graph(call(), library(20_000, "NoSuchOp")));
    assert_eq!(diagnostic(&found), Some(&ImportDiagnosticKind::UnknownOperation));
    // A recursive call, which ends the process of the importer.
    assert!(diagnostic(&judge(graph(call(), library(20_000, "f0")))).is_some());
}

#[test]
fn a_tree_of_calls_is_as_large_as_its_functions() {
    let library = (0..64).map(|number| {
        let next = if number < 63 { format!("f{}", number + 1) } else { "NoOp".to_owned() };
        function(&format!("f{number}"), [node("a", &next, &[], &[]), node("b", &next, &[], &[])])
    });
    assert_eq!(diagnostic(&judge(graph([node("c", "f0", &[], &[])], library))), None);
}

#[test]
fn a_function_that_is_called_again_and_again_is_looked_at_once() {
    let body = (0..5_000).map(|number| node(&format!("n{number}"), "NoOp", &[], &[]));
    let calls = (0..20_000).map(|number| node(&format!("c{number}"), "f", &[], &[]));
    assert_eq!(diagnostic(&judge(graph(calls, [function("f", body)]))), None);
}

#[test]
fn nodes_that_are_all_different_are_judged_one_by_one() {
    let nodes = (0..100_000).map(|which: i64| {
        let value = [data_type("dtype", 1), attribute("_number", &number(3, which))].concat();
        node(&format!("n{which}"), "Placeholder", &[], &value)
    });
    let other = node("last", "NoSuchOp", &[], &[]);
    let found = judge(graph(nodes.chain([other]), []));
    assert_eq!(diagnostic(&found), Some(&ImportDiagnosticKind::UnknownOperation));
}

#[test]
fn a_chain_of_nodes_written_backwards_is_visited_to_its_end() {
    let count = 50_000;
    let chain = (0..count).rev().map(|number| match number {
        0 => float("n0"),
        _ => {
            let kind = if number == count - 1 { 3 } else { 1 };
            let input = format!("n{}", number - 1);
            node(&format!("n{number}"), "Identity", &[&input], &data_type("T", kind))
        }
    });
    assert_eq!(
        diagnostic(&judge(graph(chain, []))),
        Some(&ImportDiagnosticKind::InputType { input: 0 })
    );
}

#[test]
fn values_that_nest_without_end_are_refused_without_recursion() {
    let mut value = Vec::new();
    for _ in 0..2_000 {
        // NameAttrList with an attribute in an AttrValue.
        value = field(10, &field(2, &field(2, &value)));
    }
    let bytes = graph([node("x", "NoOp", &[], &attribute("a", &value))], []);
    let registries = [Registry::tensorflow("2.21").unwrap()];
    let options = ReadOptions::default().with_registries(&registries);
    let error = graph::read(&bytes, Message::GraphDef, Form::Binary, &options).unwrap_err();
    assert!(error.to_string().contains("100 messages"), "{error}");
    let text = "node{attr{key:\"a\" value{list{func{attr{value{".repeat(10_000).into_bytes();
    assert!(graph::read(&text, Message::GraphDef, Form::Text, &options).is_err());
}
