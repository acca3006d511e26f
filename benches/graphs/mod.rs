//! Graphs of any size, encoded as TensorFlow encodes them, in forms whose checks cost differently:
//! bare, with nodes used before they are defined, with devices, with functions, as SavedModels.

use serdes_graphs::graph::Message;

/// A graph in a file.
pub(crate) struct Written {
    pub(crate) name: &'static str,
    pub(crate) message: Message,
    pub(crate) bytes: Vec<u8>,
}

/// Returns a graph of about `nodes` nodes in each form.
pub(crate) fn forms(nodes: usize) -> impl Iterator<Item = Written> {
    type Form = (&'static str, Message, fn(usize) -> Vec<u8>);
    let forms: [Form; 9] = [
        ("bare graph", Message::GraphDef, |nodes| graph(&mixed(nodes), &[])),
        ("graph with devices", Message::GraphDef, |nodes| {
            let device = field(4, b"/device:CPU:0");
            let with_device = |node: Vec<u8>| [node, device.clone()].concat();
            let nodes: Vec<_> = mixed(nodes).into_iter().map(with_device).collect();
            graph(&nodes, &[])
        }),
        ("graph with an input that comes later", Message::GraphDef, |nodes| {
            let mut nodes = mixed(nodes);
            nodes.rotate_left(1);
            graph(&nodes, &[])
        }),
        ("graph that calls functions", Message::GraphDef, |nodes| {
            graph(&[mixed(nodes), calls(5)].concat(), &library(5, 20))
        }),
        ("graph of large functions", Message::GraphDef, |nodes| {
            graph(&[mixed(20), calls(100)].concat(), &library(100, nodes / 100))
        }),
        ("SavedModel of TF1", Message::SavedModel, |nodes| {
            saved_model(&graph(&[mixed(nodes), calls(5)].concat(), &library(5, 20)), false)
        }),
        ("SavedModel of TF2", Message::SavedModel, |nodes| {
            let library = library(100, nodes / 100);
            saved_model(&graph(&[mixed(20), calls(100)].concat(), &library), true)
        }),
        ("SavedModel with functions that no node calls", Message::SavedModel, |nodes| {
            saved_model(&graph(&mixed(20), &library(100, nodes / 100)), false)
        }),
        ("SavedModel that no release takes", Message::SavedModel, |nodes| {
            let unknown = vec![node("unknown", "NoSuchOperation", &[], &[])];
            let nodes = [mixed(nodes), calls(5), unknown].concat();
            saved_model(&graph(&nodes, &library(5, 20)), false)
        }),
    ];
    forms.into_iter().map(move |(name, message, make)| Written {
        name,
        message,
        bytes: make(nodes),
    })
}

/// Returns a field of bytes or a message.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(content);
    bytes
}

fn attribute(key: &str, value: &[u8]) -> Vec<u8> {
    field(5, &[field(1, key.as_bytes()), field(2, value)].concat())
}

/// Returns an attribute with the value DT_FLOAT.
fn float(key: &str) -> Vec<u8> {
    attribute(key, &[0x30, 1])
}

fn node(name: &str, operation: &str, inputs: &[String], attributes: &[Vec<u8>]) -> Vec<u8> {
    let inputs: Vec<u8> = inputs.iter().flat_map(|input| field(3, input.as_bytes())).collect();
    let head = [field(1, name.as_bytes()), field(2, operation.as_bytes()), inputs];
    [head.concat(), attributes.concat()].concat()
}

fn graph(nodes: &[Vec<u8>], functions: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes: Vec<u8> = nodes.iter().flat_map(|node| field(1, node)).collect();
    if !functions.is_empty() {
        bytes.extend(field(2, &functions.concat()));
    }
    bytes.extend(field(4, &[0x08, 0xaa, 0x13]));
    bytes
}

/// Returns a node: in turn a Const with its own value, an operation on it, and sums and products
/// with much earlier nodes.
fn one(number: usize, name: impl Fn(usize) -> String, output: impl Fn(usize) -> String) -> Vec<u8> {
    let far = |salt: usize| output((number.wrapping_mul(2_654_435_761) ^ salt) % number.max(1));
    let before = || output(number - 1);
    match number % 4 {
        0 => {
            let content = field(4, &(number as u32).to_le_bytes());
            let tensor = [&[0x08, 1][..], &field(2, b""), &content].concat();
            let value = attribute("value", &field(8, &tensor));
            node(&name(number), "Const", &[], &[float("dtype"), value])
        }
        1 => node(&name(number), "Identity", &[before()], &[float("T")]),
        2 => node(&name(number), "AddV2", &[before(), far(77)], &[float("T")]),
        _ => node(&name(number), "Mul", &[before(), far(12_345)], &[float("T")]),
    }
}

fn mixed(nodes: usize) -> Vec<Vec<u8>> {
    let name = |number: usize| format!("layer_{}/n{number}", number % 97);
    (0..nodes).map(|number| one(number, name, name)).collect()
}

/// Returns functions of `nodes` nodes, with one argument, that return one of their nodes.
fn library(functions: usize, nodes: usize) -> Vec<Vec<u8>> {
    let argument = |name: &str| [field(1, name.as_bytes()), vec![0x18, 1]].concat();
    let name = |number: usize| format!("block/n{number}");
    let output = |number: usize| match number % 4 {
        0 | 1 => format!("block/n{number}:output:0"),
        _ => format!("block/n{number}:z:0"),
    };
    let function = |number: usize| {
        let named = field(1, format!("f{number}").as_bytes());
        let signature = [named, field(2, &argument("x")), field(3, &argument("y"))].concat();
        let nodes: Vec<u8> =
            (0..nodes).flat_map(|node| field(3, &one(node, name, output))).collect();
        let returned = [field(1, b"y"), field(2, output(0).as_bytes())].concat();
        field(1, &[field(1, &signature), nodes, field(4, &returned)].concat())
    };
    (0..functions).map(function).collect()
}

/// Returns a call of each of the first functions.
fn calls(functions: usize) -> Vec<Vec<u8>> {
    let call = |number: usize| {
        let list = field(1, &field(6, &[1]));
        let function = field(10, &field(1, format!("f{number}").as_bytes()));
        let types = [attribute("Tin", &list), attribute("Tout", &list)].concat();
        let input = ["layer_1/n1".to_owned()];
        let attributes = [types, attribute("f", &function)];
        node(&format!("call{number}"), "StatefulPartitionedCall", &input, &attributes)
    };
    (0..functions).map(call).collect()
}

fn saved_model(graph: &[u8], has_objects: bool) -> Vec<u8> {
    let info = field(1, &[field(4, b"serve"), field(5, b"2.21.0")].concat());
    let objects = if has_objects { field(7, b"") } else { Vec::new() };
    let meta_graph = [info, field(2, graph), objects].concat();
    [vec![0x08, 1], field(2, &meta_graph)].concat()
}
