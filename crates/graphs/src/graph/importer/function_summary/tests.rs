use super::*;
use crate::graph::{
    Form, Message,
    importer::{
        FunctionMemo, Library,
        binding::{Binding, Scope},
        concrete_functions::{ConcreteFunction, ConcreteFunctions, LoadDefinitions},
        function_graph::{reexport, signatures_in_graph},
        instantiate::instantiate,
        signatures::{ReleaseDefinitions, Signatures},
    },
    source::{Extent, Source},
    tests::field,
};

const RELEASES: [&str; 3] = ["2.12", "2.16", "2.21"];

fn text(number: u8, text: &str) -> Vec<u8> {
    field(number.into(), text.as_bytes())
}

fn attribute(name: &str, value: &[u8]) -> Vec<u8> {
    field(5, &[text(1, name), field(2, value)].concat())
}

fn data_type(name: &str, data_type: u8) -> Vec<u8> {
    attribute(name, &[0x30, data_type])
}

fn node(name: &str, operation: &str, inputs: &[&str], attributes: &[Vec<u8>]) -> Vec<u8> {
    let inputs: Vec<u8> = inputs.iter().flat_map(|input| text(3, input)).collect();
    field(3, &[text(1, name), text(2, operation), inputs, attributes.concat()].concat())
}

fn identity(name: &str, input: &str) -> Vec<u8> {
    node(name, "Identity", &[input], &[data_type("T", 1)])
}

/// Returns `f(x: float) -> y: float` with these nodes and this result.
fn function(nodes: &[Vec<u8>], returned: &str) -> Vec<u8> {
    unary(1, nodes, returned)
}

/// Returns such a function of another type.
fn unary(data_type: u8, nodes: &[Vec<u8>], returned: &str) -> Vec<u8> {
    let argument = |name: &str| [text(1, name), vec![0x18, data_type]].concat();
    let signature = [text(1, "f"), field(2, &argument("x")), field(3, &argument("y"))].concat();
    let returned = field(4, &[text(1, "y"), text(2, returned)].concat());
    [field(1, &signature), nodes.concat(), returned].concat()
}

/// Returns for each release true if a function is trivially valid. Asserts that the importer's
/// checks, node by node, accept such a function as well.
fn is_trivially_valid(bytes: &[u8]) -> [bool; 3] {
    let registries = RELEASES.map(|release| Registry::tensorflow(release).unwrap());
    let source = Source::new(&bytes, Message::GraphDef, Form::Binary);
    let place = Extent { start: 0, end: bytes.len() as u64 };
    let mut names = FunctionNames::default();
    names.function(b"f", place);
    let (names, memo) = (&names, &FunctionMemo::default());
    let (releases, release, follows_shapes) = (Releases::new(&registries), i32::MAX, false);
    let library = Library { source, names, memo, releases, release, follows_shapes };
    let summary = memo.summary(library, place).unwrap();
    let index = memo.index(library, place).unwrap();
    assert!(summary.diagnostic.is_none() || body::first_diagnostic(&index).is_some());
    let hash = names.find(b"f").unwrap();
    let mut signatures = Signatures::default();
    let signature = signatures.read(library, hash).unwrap().unwrap();
    let is_trivially_valid = releases.map(|release, registry| {
        let judged = summary.judged.as_ref().unwrap();
        let Some(trivially_valid) = judged.trivially_valid(release) else { return false };
        assert_eq!(body::first_diagnostic(&index), None);
        let definitions = ReleaseDefinitions { names, signatures: &signatures, registry };
        let (binding, signature) = (&Binding::default(), signature.operation("f").unwrap());
        let built = instantiate(&index, Scope { binding, signature }, &definitions).unwrap();
        assert_eq!((built.inputs, built.outputs), (1, 1));
        assert!(built.no_shape_function.is_none());
        let functions = ConcreteFunctions::of(library);
        let loaded = functions.of_release(release);
        let given = std::collections::HashMap::new();
        let definitions = LoadDefinitions { names, registry, loaded, given: &given };
        let node_signatures = signatures_in_graph(&index, &definitions);
        let deprecated = crate::graph::DeprecatedOperations::tensorflow();
        let concrete =
            reexport((&index, place), &node_signatures, None, &definitions, deprecated, &mut 0)
                .unwrap();
        let expected = ConcreteFunction::trivially_valid(
            place,
            judged.types.as_ref().unwrap(),
            trivially_valid,
            |call| definitions.wrong_binding(call),
        );
        assert_eq!((&concrete.types, concrete.needs), (&expected.types, expected.needs));
        assert!(concrete.unset.is_none() && !concrete.is_open());
        assert_eq!(concrete.operation().unwrap().inputs().count(), 1);
        true
    });
    is_trivially_valid.into_vec().try_into().unwrap()
}

#[test]
fn function_with_valid_nodes_and_edges_is_trivially_valid() {
    let sum = |inputs: &[&str], n| {
        node("s", "AddN", inputs, &[attribute("N", &[0x18, n]), data_type("T", 1)])
    };
    let constant = node(
        "k",
        "Const",
        &["^a"],
        &[data_type("dtype", 1), attribute("value", &field(8, &[0x08, 1]))],
    );
    let list = |name: &str, types: &[u8]| attribute(name, &field(1, &field(6, types)));
    let many = node("m", "IdentityN", &["x", "a:output:0"], &[list("T", &[1, 1])]);
    for (nodes, returned) in [
        (vec![], "x"),
        (vec![identity("a", "x")], "a:output:0"),
        (vec![identity("a", "x"), identity("b", "a:output:0")], "b:output:0"),
        // Nodes in another order than they are visited.
        (vec![identity("b", "a:output:0"), identity("a", "x")], "b:output:0"),
        (vec![identity("a", "x"), sum(&["x", "a:output:0"], 2)], "s:sum:0"),
        (vec![identity("a", "x"), constant], "k:output:0"),
        (vec![identity("a", "x"), many], "m:output:1"),
    ] {
        assert_eq!(is_trivially_valid(&function(&nodes, returned)), [true; 3], "{returned}");
    }
}

#[test]
fn function_takes_the_slow_path_where_a_release_may_refuse_it() {
    let a = || identity("a", "x");
    let of = |nodes: &[Vec<u8>], returned: &str| is_trivially_valid(&function(nodes, returned));
    let other = |inputs: &[&str], attributes: &[Vec<u8>]| {
        let nodes = [a(), node("b", "AddV2", inputs, attributes)];
        of(&nodes, "b:z:0")
    };
    let float = data_type("T", 1);
    assert_eq!(other(&["x", "a:output:0"], std::slice::from_ref(&float)), [true; 3]);
    // Too few inputs, too many, inputs of another type, and of a type that the operation does not
    // allow.
    for (inputs, attribute) in [
        (&["x"][..], float.clone()),
        (&["x", "x", "x"], float.clone()),
        (&["x", "a:output:0"], data_type("T", 3)),
        (&["x", "x"], data_type("T", 10)),
        (&["x", "x"], data_type("T", 99)),
        // Outputs that do not exist, and inputs that are not written in full or in the wrong order.
        (&["x", "a:output:1"], float.clone()),
        (&["x", "a:other:0"], float.clone()),
        (&["x", "a:output"], float.clone()),
        (&["x", "a"], float.clone()),
        (&["x:0", "x"], float.clone()),
        (&["x", "nobody:output:0"], float.clone()),
        (&["x", "b:z:0"], float.clone()),
        (&["^a", "x", "x"], float.clone()),
        (&["x", "x", "^nobody"], float.clone()),
        // Attributes that the call must give, that have no value, and that are missing.
        (&["x", "x"], attribute("T", &text(9, "T"))),
        (&["x", "x"], attribute("T", b"")),
        (&["x", "x"], Vec::new()),
    ] {
        assert_eq!(other(inputs, std::slice::from_ref(&attribute)), [false; 3], "{inputs:?}");
    }
    assert_eq!(of(&[a(), a()], "a:output:0"), [false; 3]);
    assert_eq!(of(&[identity("x", "x")], "x:output:0"), [false; 3]);
    assert_eq!(of(&[a()], "a:output:1"), [false; 3]);
    assert_eq!(of(&[identity("not a name", "x")], "x"), [false; 3]);
    for operation in ["f", "NoSuchOperation", "", "_Arg", "PartitionedCall"] {
        assert_eq!(of(&[node("n", operation, &[], &[])], "x"), [false; 3], "{operation}");
    }
    let device = [text(1, "a"), text(2, "NoOp"), text(4, "/no device")].concat();
    assert_eq!(of(&[field(3, &device)], "x"), [false; 3]);
    let boolean = node("b", "Less", &["x", "x"], &[data_type("T", 1)]);
    assert_eq!(of(&[boolean], "b:z:0"), [false; 3], "the result is no float");
}

#[test]
fn function_may_be_trivially_valid_in_newer_releases_alone() {
    let [old, _, new] = RELEASES.map(|release| Registry::tensorflow(release).unwrap());
    let mut types = 1..64;
    let new_type = types.find(|number| new.has_type(*number) && !old.has_type(*number)).unwrap();
    let [in_old, _, in_new] = is_trivially_valid(&unary(new_type as u8, &[], "x"));
    assert!(in_new && !in_old, "{new_type}");
}
