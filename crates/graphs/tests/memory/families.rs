//! Tests of the memory for checks of graphs that consist of many small items of one kind: at most 8
//! times the file, and 64 MiB per million items.

use serdes_graphs::graph::Message;
use serdes_testkit::fields::field;

use crate::{
    counting,
    graph::{peak, saved_model},
};

/// A little more than a power of two, so that lists and tables have just grown.
const COUNT: usize = 33_000;

/// Returns a short unique name for a number.
fn name(number: usize) -> String {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let (mut rest, mut name) = (number, String::new());
    loop {
        name.push(LETTERS[rest % 52] as char);
        rest /= 52;
        if rest == 0 {
            return name;
        }
    }
}

fn many(of: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    (0..COUNT).flat_map(of).collect()
}

fn node(name: &str, operation: &str, more: &[u8]) -> Vec<u8> {
    [&field(1, name.as_bytes())[..], &field(2, operation.as_bytes()), more].concat()
}

fn attribute(number: u64, key: &str, value: &[u8]) -> Vec<u8> {
    field(number, &[field(1, key.as_bytes()), field(2, value)].concat())
}

fn function(name: &str, more: &[u8]) -> Vec<u8> {
    field(1, &[&field(1, &field(1, name.as_bytes())), more].concat())
}

fn library(functions: &[u8]) -> Vec<u8> {
    field(2, functions)
}

/// Checks a graph, alone for one release and in a SavedModel for ten.
fn check_graph(graph: &[u8]) {
    check(graph, Message::GraphDef, 1);
    check(&saved_model(graph), Message::SavedModel, 10);
}

/// Checks a SavedModel of one meta graph for ten releases.
fn check_meta_graph(meta_graph: &[u8]) {
    check(&field(2, meta_graph), Message::SavedModel, 10);
}

/// Memory that does not grow with the file: windows, and bounded caches.
const BOUNDED: f64 = (10 << 20) as f64;

fn check(bytes: &[u8], message: Message, releases: usize) {
    // For a million items it is 64 MiB.
    let room = ((64 << 20) as f64 - BOUNDED) * COUNT as f64 / 1_000_000.0;
    let peak = peak(bytes, message, releases);
    let most = 8.0 * bytes.len() as f64 + room + BOUNDED;
    assert!(peak <= most, "{message:?}, {releases}: {peak} of {most}");
}

#[test]
fn functions_that_nodes_are_take_8_times_the_file() {
    let _alone = counting();
    let functions = library(&many(|number| function(&name(number), &[])));
    let nodes = many(|number| field(1, &node(&name(number), &name(number), &[])));
    check_graph(&[functions, nodes].concat());
}

#[test]
fn functions_that_nodes_name_take_8_times_the_file() {
    let _alone = counting();
    let functions = library(&many(|number| function(&name(number), &[])));
    let nodes =
        many(|number| field(1, &node(&name(number), "PartitionedCall", &call(&name(number)))));
    check_graph(&[functions, nodes].concat());
}

#[test]
fn functions_of_a_node_each_take_8_times_the_file() {
    let _alone = counting();
    let body = field(3, &node("n", "NoOp", &[]));
    check_graph(&library(&many(|number| function(&name(number), &body))));
}

#[test]
fn called_functions_of_a_node_each_take_8_times_the_file() {
    let _alone = counting();
    let body = field(3, &node("n", "NoOp", &[]));
    let functions = library(&many(|number| function(&name(number), &body)));
    let nodes = many(|number| field(1, &node(&name(number), &name(number), &[])));
    check_graph(&[functions, nodes].concat());
}

/// Returns the attributes of a node that calls a function by its name.
fn call(function: &str) -> Vec<u8> {
    let called = field(10, &field(1, function.as_bytes()));
    let types = |key| attribute(5, key, &field(1, &[]));
    [attribute(5, "f", &called), types("Tin"), types("Tout")].concat()
}

/// Returns functions each of which has a node that calls the next, and a node that calls the first.
fn chain(node_of: impl Fn(&str) -> Vec<u8>) -> Vec<u8> {
    let functions = many(|number| {
        let body = field(3, &node_of(&name(number + 1)));
        function(&name(number), if number + 1 < COUNT { &body } else { &[] })
    });
    [library(&functions), field(1, &node("c", &name(0), &[]))].concat()
}

#[test]
fn functions_that_are_nodes_in_others_take_8_times_the_file() {
    let _alone = counting();
    check_graph(&chain(|next| node("n", next, &[])));
}

#[test]
fn functions_that_others_name_take_8_times_the_file() {
    let _alone = counting();
    check_graph(&chain(|next| node("n", "PartitionedCall", &call(next))));
}

#[test]
fn called_functions_with_a_diagnostic_take_8_times_the_file() {
    let _alone = counting();
    // An operation that no release has, and an input that is not a node.
    for faulty in [node("n", "NoSuch", &[]), node("n", "NoOp", &field(3, b"^m"))] {
        let functions = library(&many(|number| function(&name(number), &field(3, &faulty))));
        let nodes = many(|number| field(1, &node(&name(number), &name(number), &[])));
        check_graph(&[functions, nodes].concat());
    }
}

#[test]
fn functions_with_arguments_take_8_times_the_file() {
    let _alone = counting();
    let number = |value: u8| vec![3 << 3, value];
    let signature = |own: &str| {
        let argument = [field(1, b"x"), number(1)].concat();
        let result = [field(1, b"y"), number(1)].concat();
        [field(1, own.as_bytes()), field(2, &argument), field(3, &result)].concat()
    };
    let returned = field(4, &[field(1, b"y"), field(2, b"x")].concat());
    check_graph(&library(&many(|number| {
        field(1, &[field(1, &signature(&name(number))), returned.clone()].concat())
    })));
}

#[test]
fn a_function_of_many_arguments_takes_8_times_the_file() {
    let _alone = counting();
    let arguments =
        many(|number| field(2, &[field(1, name(number).as_bytes()), vec![3 << 3, 1]].concat()));
    let signature = field(1, &[field(1, b"f"), arguments].concat());
    check_graph(&library(&field(1, &signature)));
}

#[test]
fn a_called_function_of_many_nodes_takes_8_times_the_file() {
    let _alone = counting();
    let nodes = many(|number| field(3, &node(&name(number), "NoOp", &[])));
    let called = field(1, &node("c", "f", &[]));
    check_graph(&[library(&function("f", &nodes)), called].concat());
}

#[test]
fn a_function_of_many_inputs_takes_8_times_the_file() {
    let _alone = counting();
    let inputs = many(|_| field(3, b"^a"));
    let nodes = [field(3, &node("a", "NoOp", &[])), field(3, &node("b", "NoOp", &inputs))].concat();
    let called = field(1, &node("c", "f", &[]));
    check_graph(&[library(&function("f", &nodes)), called].concat());
}

#[test]
fn functions_with_attributes_of_their_own_take_8_times_the_file() {
    let _alone = counting();
    check_graph(&library(&many(|number| {
        function(&name(number), &attribute(5, &name(number), &[0x28, 1]))
    })));
}

#[test]
fn a_function_of_many_attributes_takes_8_times_the_file() {
    let _alone = counting();
    let attributes = many(|number| attribute(5, &name(number), &[0x28, 1]));
    check_graph(&library(&function("f", &attributes)));
}

#[test]
fn functions_with_gradients_take_8_times_the_file() {
    let _alone = counting();
    let functions = many(|number| function(&name(number), &[]));
    let gradients = many(|number| {
        let next = name((number + 1) % COUNT);
        field(2, &[field(1, name(number).as_bytes()), field(2, next.as_bytes())].concat())
    });
    check_graph(&library(&[functions, gradients].concat()));
}

#[test]
fn registered_gradients_take_8_times_the_file() {
    let _alone = counting();
    let gradients = many(|number| field(3, &field(2, name(number).as_bytes())));
    check_graph(&library(&[function("f", &[]), gradients].concat()));
}

#[test]
fn functions_with_long_names_take_8_times_the_file() {
    let _alone = counting();
    check_graph(&library(&many(|number| function(&format!("{number:0100}"), &[]))));
}

#[test]
fn functions_that_come_twice_take_8_times_the_file() {
    let _alone = counting();
    check_graph(&library(&many(|number| function(&name(number / 2), &[]))));
}

#[test]
fn a_node_of_many_inputs_takes_8_times_the_file() {
    let _alone = counting();
    let inputs = many(|_| field(3, b"^a"));
    let nodes = [field(1, &node("a", "NoOp", &[])), field(1, &node("b", "NoOp", &inputs))];
    check_graph(&nodes.concat());
}

#[test]
fn a_node_of_many_inputs_of_data_takes_8_times_the_file() {
    let _alone = counting();
    let inputs = many(|_| field(3, b"a"));
    let float = |key| attribute(5, key, &[0x30, 1]);
    let count = [vec![0x18], vec![0xe8, 0x81, 0x02]].concat();
    let more = [inputs, float("T"), attribute(5, "N", &count)].concat();
    let nodes =
        [field(1, &node("a", "Placeholder", &float("dtype"))), field(1, &node("b", "AddN", &more))];
    check_graph(&nodes.concat());
}

#[test]
fn a_node_of_many_attributes_takes_8_times_the_file() {
    let _alone = counting();
    let attributes = many(|number| attribute(5, &name(number), &[0x28, 1]));
    check_graph(&field(1, &node("a", "NoOp", &attributes)));
}

#[test]
fn nodes_with_attributes_of_their_own_take_8_times_the_file() {
    let _alone = counting();
    check_graph(&many(|number| {
        let own = attribute(5, &format!("_{}", name(number)), &[0x28, 1]);
        field(1, &node(&name(number), "NoOp", &own))
    }));
}

#[test]
fn nodes_without_a_diagnostic_take_8_times_the_file() {
    let _alone = counting();
    check_graph(&many(|number| field(1, &node(&name(number), "NoOp", &[]))));
}

#[test]
fn nodes_beside_missing_ones_take_8_times_the_file() {
    let _alone = counting();
    check_graph(&many(|number| {
        let beside = field(1, &field(2, format!("loc:@_{}", name(number)).as_bytes()));
        field(1, &node(&name(number), "NoOp", &attribute(5, "_class", &beside)))
    }));
}

#[test]
fn small_constants_take_8_times_the_file() {
    let _alone = counting();
    check_graph(&many(|number| {
        let tensor = [vec![0x08, 3], field(7, &[number as u8 & 127])].concat();
        let more = [attribute(5, "dtype", &[0x30, 3]), attribute(5, "value", &field(8, &tensor))];
        field(1, &node(&name(number), "Const", &more.concat()))
    }));
}

#[test]
fn a_list_of_small_tensors_takes_8_times_the_file() {
    let _alone = counting();
    let tensors = many(|_| field(8, &[0x08, 3]));
    check_graph(&field(1, &node("a", "NoOp", &attribute(5, "_t", &field(1, &tensors)))));
}

#[test]
fn a_list_of_numbers_takes_8_times_the_file() {
    let _alone = counting();
    let numbers = field(3, &many(|_| vec![1]));
    check_graph(&field(1, &node("a", "NoOp", &attribute(5, "_t", &field(1, &numbers)))));
}

#[test]
fn a_list_of_types_takes_8_times_the_file() {
    let _alone = counting();
    let types = field(6, &many(|number| vec![1 + number as u8 % 2]));
    check_graph(&field(1, &node("a", "NoOp", &attribute(5, "Tout", &field(1, &types)))));
}

#[test]
fn output_shapes_take_8_times_the_file() {
    let _alone = counting();
    let shapes = many(|_| field(7, &[]));
    let more = attribute(5, "_output_shapes", &field(1, &shapes));
    check_graph(&field(1, &node("a", "NoOp", &more)));
}

#[test]
fn sizes_of_a_placeholder_take_8_times_the_file() {
    let _alone = counting();
    let sizes = many(|_| field(2, &[]));
    let more = [attribute(5, "dtype", &[0x30, 1]), attribute(5, "shape", &field(7, &sizes))];
    check_graph(&field(1, &node("a", "Placeholder", &more.concat())));
}

#[test]
fn placeholders_of_their_own_shapes_take_8_times_the_file() {
    let _alone = counting();
    check_graph(&many(|number| {
        let size =
            [8, 128 | (number & 127) as u8, 128 | (number >> 7 & 127) as u8, (number >> 14) as u8];
        let shape = field(7, &field(2, &size));
        let more = [attribute(5, "dtype", &[0x30, 1]), attribute(5, "shape", &shape)];
        field(1, &node(&name(number), "Placeholder", &more.concat()))
    }));
}

#[test]
fn signatures_take_8_times_the_file() {
    let _alone = counting();
    check_meta_graph(&many(|number| field(5, &field(1, name(number).as_bytes()))));
}

#[test]
fn tensors_of_signatures_take_8_times_the_file() {
    let _alone = counting();
    let tensors = many(|number| {
        field(1, &[field(1, name(number).as_bytes()), field(2, &field(1, b"a"))].concat())
    });
    let signature = field(5, &[field(1, b"s"), field(2, &tensors)].concat());
    check_meta_graph(&[field(2, &field(1, &node("a", "NoOp", &[]))), signature].concat());
}

#[test]
fn collections_take_8_times_the_file() {
    let _alone = counting();
    check_meta_graph(&many(|number| field(4, &field(1, name(number).as_bytes()))));
}

#[test]
fn values_of_collections_take_8_times_the_file() {
    let _alone = counting();
    for kind in [1, 2] {
        let values = field(kind, &many(|_| field(1, b"a")));
        let collection = field(4, &[field(1, b"s"), field(2, &values)].concat());
        check_meta_graph(&[field(2, &field(1, &node("a", "NoOp", &[]))), collection].concat());
    }
}

#[test]
fn assets_take_8_times_the_file() {
    let _alone = counting();
    check_meta_graph(&many(|number| field(6, &field(2, name(number).as_bytes()))));
}

#[test]
fn listed_operations_take_8_times_the_file() {
    let _alone = counting();
    check_meta_graph(&field(1, &field(2, &many(|_| field(1, &[])))));
}

fn objects(nodes: &[u8]) -> Vec<u8> {
    field(7, nodes)
}

#[test]
fn empty_objects_take_8_times_the_file() {
    let _alone = counting();
    check_meta_graph(&objects(&many(|_| field(1, &[]))));
}

#[test]
fn children_of_objects_take_8_times_the_file() {
    let _alone = counting();
    let children =
        many(|number| field(1, &[vec![8, 1], field(2, name(number).as_bytes())].concat()));
    let user = field(4, &field(1, b"_generic_user_object"));
    let all = [field(1, &[children, user.clone()].concat()), field(1, &user)].concat();
    check_meta_graph(&objects(&all));
}

#[test]
fn variables_take_8_times_the_file() {
    let _alone = counting();
    let variable = field(1, &field(7, &[8, 1]));
    check_meta_graph(&objects(&many(|_| variable.clone())));
}

#[test]
fn concrete_functions_take_8_times_the_file() {
    let _alone = counting();
    let functions = many(|number| function(&name(number), &[]));
    let concrete = many(|number| field(2, &field(1, name(number).as_bytes())));
    let user = field(1, &field(4, &field(1, b"_generic_user_object")));
    let graph = field(2, &library(&functions));
    check_meta_graph(&[graph, objects(&[user, concrete].concat())].concat());
}

#[test]
fn structures_of_functions_take_8_times_the_file() {
    let _alone = counting();
    let values = field(51, &many(|_| field(1, &[])));
    let concrete = field(2, &[field(1, b"f"), field(2, &field(3, &values))].concat());
    let user = field(1, &field(4, &field(1, b"_generic_user_object")));
    let graph = field(2, &library(&function("f", &[])));
    check_meta_graph(&[graph, objects(&[user, concrete].concat())].concat());
}
