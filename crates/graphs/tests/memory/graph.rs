//! Tests of the memory that the check of a graph takes.

use serdes_graphs::graph::{Form, Message, ReadOptions, read};
use serdes_operations::Registry;
use serdes_testkit::fields::field;

use crate::{MEMORY, counting};

const NODES: usize = 100_000;

/// 32 MiB for a million nodes.
const BYTES_PER_NODE: f64 = 33.55;

/// Memory for any graph: windows, facts about nodes and operations, and names that another thread
/// looks up.
const FOR_ALL: f64 = 1_200_000.0;

fn float(key: &str) -> Vec<u8> {
    field(5, &[field(1, key.as_bytes()), field(2, &[0x30, 1])].concat())
}

/// Returns placeholders, each followed by three sums of two earlier nodes: an input and a half per
/// node.
fn nodes() -> Vec<Vec<u8>> {
    let name = |number: usize| format!("scope/n{number}");
    let node = |number: usize| {
        let (operation, inputs) = match number % 4 {
            0 => ("Placeholder", vec![]),
            _ => ("AddV2", vec![name(number - 1), name(number / 2)]),
        };
        let key = if inputs.is_empty() { "dtype" } else { "T" };
        let inputs: Vec<u8> = inputs.iter().flat_map(|input| field(3, input.as_bytes())).collect();
        let head = [field(1, name(number).as_bytes()), field(2, operation.as_bytes())].concat();
        field(1, &[head, inputs, float(key)].concat())
    };
    (0..NODES).map(node).collect()
}

pub(crate) fn saved_model(graph: &[u8]) -> Vec<u8> {
    field(2, &field(2, graph))
}

/// Returns the peak memory in bytes of a check for the last `releases` releases.
pub(crate) fn peak(bytes: &[u8], message: Message, releases: usize) -> f64 {
    let names = Registry::releases().take(releases);
    let registries: Vec<_> = names.map(|name| Registry::tensorflow(name).unwrap()).collect();
    let options = ReadOptions::default().with_registries(&registries);
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let graphs = read(&bytes, message, Form::Binary, &options).unwrap();
    assert_eq!(graphs.meta_graphs.len(), 1);
    (MEMORY.peak_usage() - before) as f64
}

#[test]
fn the_check_of_a_million_nodes_takes_at_most_32_mib() {
    let _alone = counting();
    let nodes = nodes();
    let mut turned = nodes.clone();
    turned.rotate_left(1);
    let mut reversed = nodes.clone();
    reversed.reverse();
    let unknown = field(1, &[field(1, b"z"), field(2, b"NoSuchOperation")].concat());
    // Replaces the last node, which is not an input of another node.
    let faulty = [&nodes[..NODES - 1], &[unknown]].concat();
    for (name, graph) in [
        ("as written", nodes.concat()),
        ("one input later", turned.concat()),
        ("all inputs later", reversed.concat()),
        ("an unknown operation", faulty.concat()),
    ] {
        for (message, bytes) in
            [(Message::GraphDef, graph.clone()), (Message::SavedModel, saved_model(&graph))]
        {
            for releases in [0, 1, 10] {
                let peak = peak(&bytes, message, releases);
                let most = BYTES_PER_NODE * NODES as f64 + FOR_ALL;
                assert!(peak <= most, "{name}, {message:?}, {releases}: {peak} of {most}");
            }
        }
    }
}

/// Returns a function that has only a name.
fn empty_function(number: usize) -> Vec<u8> {
    field(1, &field(1, &field(1, format!("f{number:x}").as_bytes())))
}

#[test]
fn a_library_of_empty_functions_takes_8_times_the_file() {
    const FUNCTIONS: usize = 50_000;
    let _alone = counting();
    // 64 MiB per million functions.
    let room = (64 << 20) as f64 * FUNCTIONS as f64 / 1_000_000.0;
    let graph = field(2, &(0..FUNCTIONS).flat_map(empty_function).collect::<Vec<u8>>());
    for (message, bytes, releases) in [
        (Message::GraphDef, graph.clone(), 0),
        (Message::GraphDef, graph.clone(), 10),
        (Message::SavedModel, saved_model(&graph), 10),
    ] {
        let peak = peak(&bytes, message, releases);
        let most = 8.0 * bytes.len() as f64 + room + FOR_ALL;
        assert!(peak <= most, "{message:?}, {releases}: {peak} of {most}");
    }
}
