//! Tests of fields of functions besides their nodes: shapes and attributes of arguments, attributes
//! of functions, gradients. The expected values were measured on TensorFlow 2.12, 2.16 and 2.21.

use super::{FLOAT, INPUT, Kind, Loader, found, kind, node, together};

const ALL: [Loader; 4] = [Loader::Import, Loader::LoadV1, Loader::Load, Loader::Cpp];

/// Returns a function `f` with these arguments and with `beside`; called by a node or not.
fn with(arguments: &[&str], beside: &str, is_called: bool) -> String {
    let of = |number: usize| if number == 0 { "p" } else { "q" };
    let inputs = arguments.iter().enumerate().map(|(n, _)| format!("input: '{}'", of(n)));
    let inputs: String = inputs.collect();
    let placeholders = arguments.iter().enumerate().map(|(number, data_type)| {
        let data_type = data_type.split_whitespace().next().unwrap();
        let dtype = format!("attr {{ key: 'dtype' value {{ type: {data_type} }} }}");
        format!("node {{ name: '{}' op: 'Placeholder' {dtype} }} ", of(number))
    });
    let placeholders: String = placeholders.collect();
    let arguments = arguments.iter().enumerate();
    let arguments = arguments
        .map(|(number, said)| format!("input_arg {{ name: '{}' type: {said} }} ", of(number)));
    let arguments: String = arguments.collect();
    let call = if is_called { format!("node {{ name: 'c' op: 'f' {inputs} }}") } else { "".into() };
    format!(
        "{placeholders} {call} library {{ function {{ signature {{ name: 'f' {arguments} }}
            {beside} }} }}"
    )
}

fn attribute(key: &str, value: &str) -> String {
    format!("attr {{ key: '{key}' value {{ {value} }} }} ")
}

/// Returns attributes of the first argument.
fn of_first(attributes: &str) -> String {
    format!("arg_attr {{ key: 0 value {{ {attributes} }} }} ")
}

fn shapes(shapes: &[&str]) -> String {
    let shapes = shapes.iter().map(|shape| format!("shape {{ {shape} }} "));
    format!("list {{ {} }}", shapes.collect::<String>())
}

/// Returns the kind of a graph's diagnostic for each loader.
fn kinds(graph: &str) -> [Option<Kind>; 4] {
    ALL.map(|loader| kind(loader, graph))
}

/// Returns the kinds if only `tf.saved_model.load` finds a diagnostic.
fn in_load_alone(kind: Kind) -> [Option<Kind>; 4] {
    [None, None, Some(kind), None]
}

const NEGATIVE: &str = "dim { size: -2 }";
const TWO: &[&str] = &["DT_FLOAT", "DT_FLOAT"];

#[test]
fn the_shapes_of_arguments_are_as_many_as_these_or_none() {
    let input_shapes = |many: usize| attribute("_input_shapes", &shapes(&vec![""; many]));
    for is_called in [false, true] {
        for many in [0, 2, 3] {
            assert_eq!(kinds(&with(TWO, &input_shapes(many), is_called)), [const { None }; 4]);
        }
        let one = with(TWO, &input_shapes(1), is_called);
        assert_eq!(kinds(&one), in_load_alone(Kind::Python));
        let mixed = attribute("_input_shapes", "list { i: 1 shape { } }");
        assert_eq!(kinds(&with(TWO, &mixed, is_called)), in_load_alone(Kind::Python));
        for other in ["i: 1", "", "shape { dim { size: -2 } }", "list { type: DT_FLOAT }"] {
            let other = attribute("_input_shapes", other);
            assert_eq!(kinds(&with(TWO, &other, is_called)), [const { None }; 4], "{other}");
        }
    }
    // Of several attributes with one name the last counts.
    let fine = input_shapes(1) + &input_shapes(2);
    assert_eq!(kinds(&with(TWO, &fine, false)), [const { None }; 4]);
    let found = found("2.16", Loader::Load, &with(TWO, &input_shapes(1), false), "").unwrap();
    assert_eq!(found.found, "1 shapes in _input_shapes");
    assert_eq!(found.function.as_deref(), Some("f"));
}

#[test]
fn arguments_have_shapes_that_tensors_can_have() {
    let input_shapes = |shape: &str| attribute("_input_shapes", &shapes(&["", shape]));
    for bad in [NEGATIVE, "unknown_rank: true dim { size: 1 }", "dim { size: 3 } dim { size: -7 }"]
    {
        let bad = with(TWO, &input_shapes(bad), false);
        assert_eq!(kinds(&bad), in_load_alone(Kind::Shape));
    }
    for valid in ["dim { size: -1 }", "unknown_rank: true", "dim { size: 0 }"] {
        assert_eq!(kinds(&with(TWO, &input_shapes(valid), false)), [const { None }; 4]);
    }
    // The argument's own shape takes precedence, and the first of several shapes counts.
    let both = |all: &str, own: &[&str]| {
        let own = of_first(&attribute("_output_shapes", &shapes(own)));
        with(&["DT_FLOAT"], &(attribute("_input_shapes", &shapes(&[all])) + &own), false)
    };
    assert_eq!(kinds(&both(NEGATIVE, &["", NEGATIVE])), [const { None }; 4]);
    assert_eq!(kinds(&both("", &[NEGATIVE, ""])), in_load_alone(Kind::Shape));
    assert_eq!(kinds(&both("", &[])), in_load_alone(Kind::Python));
}

#[test]
fn what_builds_a_function_reads_lists_of_shapes_and_what_handles_hold() {
    let output_shapes = |value: &str| of_first(&attribute("_output_shapes", value));
    let called = |beside: &str| kinds(&with(&["DT_FLOAT"], beside, true));
    let shape = || Some(Kind::Shape);
    assert_eq!(called(&output_shapes(&shapes(&[NEGATIVE]))), [shape(), shape(), shape(), shape()]);
    let missing = [shape(), shape(), Some(Kind::Python), shape()];
    assert_eq!(called(&output_shapes("list { }")), missing);
    assert_eq!(called(&output_shapes("list { s: 'x' }")), missing);
    // Only Python accepts a shape that is not in a list; any other value counts as no shape.
    let alone = output_shapes(&format!("shape {{ {NEGATIVE} }}"));
    assert_eq!(called(&alone), in_load_alone(Kind::Shape));
    assert_eq!(called(&output_shapes("i: 1")), [const { None }; 4]);

    let handle = |types: &str, shapes: &str| {
        of_first(&(attribute("_handle_dtypes", types) + &attribute("_handle_shapes", shapes)))
    };
    let (float, vector) = ("list { type: DT_FLOAT }", shapes(&["dim { size: 2 }"]));
    let bad = [
        handle("list { }", &vector),
        handle("i: 1", &vector),
        handle(float, "list { }"),
        handle(float, &shapes(&[NEGATIVE])),
    ];
    for bad in bad {
        let called = kinds(&with(&["DT_RESOURCE"], &bad, true));
        assert_eq!(called, [shape(), shape(), shape(), shape()], "{bad}");
        assert_eq!(kinds(&with(&["DT_RESOURCE"], &bad, false)), [const { None }; 4], "{bad}");
        assert_eq!(kinds(&with(&["DT_FLOAT"], &bad, true)), [const { None }; 4], "{bad}");
    }
    let valid = [handle(float, &vector), of_first(&attribute("_handle_dtypes", "list { }"))];
    for valid in valid {
        assert_eq!(kinds(&with(&["DT_RESOURCE"], &valid, true)), [const { None }; 4], "{valid}");
    }
}

#[test]
fn a_handle_whose_contents_are_known_is_a_scalar() {
    let said = "DT_RESOURCE handle_data { dtype: DT_FLOAT shape { } }";
    let shaped = |shape: &str| of_first(&attribute("_output_shapes", &shapes(&[shape])));
    let vector = with(&[said], &shaped("dim { size: 2 }"), false);
    assert_eq!(kinds(&vector), in_load_alone(Kind::Shape));
    assert_eq!(kinds(&with(&[said], &shaped(""), false)), [const { None }; 4]);
    // The list of all shapes has no effect on handles.
    for shape in [NEGATIVE, "dim { size: 2 }"] {
        let all = attribute("_input_shapes", &shapes(&[shape]));
        assert_eq!(kinds(&with(&[said], &all, false)), [const { None }; 4]);
    }
}

#[test]
fn python_reads_some_attributes_of_arguments_and_nodes() {
    let argument = |key: &str, value: &str| {
        kinds(&with(&["DT_FLOAT"], &of_first(&attribute(key, value)), true))
    };
    for bad in ["i: 1", "s: 'abc'", "list { s: 'loc:@\\xff' }", "func { name: 'f' }"] {
        assert_eq!(argument("_class", bad), in_load_alone(Kind::Python), "{bad}");
    }
    for valid in ["", "list { }", "list { s: 'loc:@nobody' }"] {
        assert_eq!(argument("_class", valid), [const { None }; 4], "{valid}");
    }
    let inside = |value: &str| {
        let gradient = attribute("_gradient_op_type", value);
        let body = node("i", "Identity", &["p"], &(FLOAT.to_owned() + &gradient));
        kind(Loader::Load, &with(&["DT_FLOAT"], &body, true))
    };
    for bad in ["list { }", "shape { }", "tensor { }", "type: 99", "type: DT_INVALID"] {
        let refused = argument("_gradient_op_type", bad);
        assert_eq!(refused, in_load_alone(Kind::Python), "{bad}");
        assert_eq!(inside(bad), Some(Kind::Python), "{bad}");
    }
    for valid in ["i: 1", "s: '\\xff'", "b: true", "f: 1", "type: DT_FLOAT_REF"] {
        assert_eq!(argument("_gradient_op_type", valid), [const { None }; 4], "{valid}");
        assert_eq!(inside(valid), None, "{valid}");
    }
    // DT_INT4 exists since 2.15.
    let int4 = of_first(&attribute("_gradient_op_type", "type: 29"));
    let int4 = with(&["DT_FLOAT"], &int4, false);
    assert!(found("2.14", Loader::Load, &int4, "").is_some());
    assert_eq!(found("2.15", Loader::Load, &int4, ""), None);
    // Attributes with another prefix, and those of an argument that does not exist, are not read.
    let unread = "arg_attr { key: 7 value { attr { key: '_class' value { i: 1 } } } } ";
    for unread in [unread.to_owned(), of_first(&attribute("class", "i: 1"))] {
        assert_eq!(kinds(&with(&["DT_FLOAT"], &unread, true)), [const { None }; 4]);
    }
}

#[test]
fn a_function_is_loaded_behind_its_registered_gradients() {
    let one = |name: &str, attributes: &str| {
        let node = node("i", "NoOp", &[], attributes);
        format!("library {{ function {{ signature {{ name: '{name}' }} {node} }} }}")
    };
    let of = |operation: &str| attribute("_gradient_op_type", &format!("s: '{operation}'"));
    let registered = |function: &str, operation: &str| {
        let said = format!("gradient_func: '{function}' registered_op_type: '{operation}'");
        format!("library {{ registered_gradients {{ {said} }} }}")
    };
    let load = |libraries: &[String]| kind(Loader::Load, &together(libraries));
    let (f, g) = (one("f", &of("G")), one("g", ""));
    let gradient = registered("g", "G");
    assert_eq!(load(&[f.clone(), g.clone(), gradient.clone()]), None);
    for unresolved in [registered("lost", "G"), registered("", "G"), registered("f", "G")] {
        assert_eq!(
            load(&[f.clone(), g.clone(), unresolved.clone()]),
            Some(Kind::Python),
            "{unresolved}"
        );
        // The last one counts.
        assert_eq!(
            load(&[f.clone(), g.clone(), unresolved.clone(), gradient.clone()]),
            None,
            "{unresolved}"
        );
        let last = [f.clone(), g.clone(), gradient.clone(), unresolved.clone()];
        assert_eq!(load(&last), Some(Kind::Python), "{unresolved}");
    }
    assert_eq!(load(&[one("f", &of("H")), registered("lost", "G")]), None);
    assert_eq!(load(&[one("f", &of("")), registered("lost", "")]), None);
    let circle = [f.clone(), one("g", &of("F")), gradient.clone(), registered("f", "F")];
    assert_eq!(load(&circle), Some(Kind::Python));
    assert_eq!(kind(Loader::LoadV1, &together(&circle)), None);
    // After a gradient, the loader does not wait for functions in attributes. The last function is
    // loaded first.
    let names = one("f", &(of("G") + &attribute("f", "func { name: 'h' }")));
    let h = one("h", "");
    let late = [h.clone(), names.clone(), g.clone(), gradient.clone()];
    assert_eq!(load(&late), Some(Kind::Python));
    assert_eq!(load(&[names, g, h, gradient]), None);
}

#[test]
fn attributes_of_functions_that_no_tensor_can_be_read_from_are_equal_to_nothing() {
    let (bad, valid) = ("tensor { dtype: 99 }", "tensor { dtype: DT_FLOAT tensor_shape { } }");
    let structure = |found: Option<Kind>| matches!(found, Some(Kind::Structure(_)));
    let own = |value: &str| with(&["DT_FLOAT"], &attribute("_noinline", value), false);
    let default = |value: &str| {
        let attribute = format!("attr {{ name: 'q' type: 'tensor' default_value {{ {value} }} }}");
        format!("library {{ function {{ signature {{ name: 'f' {attribute} }} }} }}")
    };
    for graph in [own(valid), default(valid), own(&format!("list {{ {bad} }}"))] {
        assert_eq!(kinds(&graph), [const { None }; 4], "{graph}");
    }
    assert!(structure(kind(Loader::LoadV1, &own(bad))));
    assert!(structure(kind(Loader::Load, &own(bad))));
    assert_eq!(
        found("2.21", Loader::Load, &own(bad), "object_graph_def { nodes { user_object { } } }"),
        None
    );
    // A loaded function no longer takes attributes, and has no shapes.
    let input_shapes = with(&["DT_FLOAT"], &attribute("_input_shapes", bad), false);
    for graph in [default(bad), input_shapes] {
        assert!(structure(kind(Loader::LoadV1, &graph)), "{graph}");
        assert_eq!(kind(Loader::Load, &graph), None, "{graph}");
    }
    for loader in [Loader::Import, Loader::Cpp] {
        assert_eq!(kind(loader, &own(bad)), None);
        assert_eq!(kind(loader, &default(bad)), None);
    }
}

#[test]
fn a_session_looks_for_places_in_functions_that_give_resources() {
    let placeholder = |name: &str, rest: &str| {
        node(name, "Placeholder", &[], &(attribute("dtype", "type: DT_RESOURCE") + rest))
    };
    let garbage = "device: 'garbage::'";
    let one = |name: &str, gives: &str, nodes: &str, returned: &str| {
        format!(
            "library {{ function {{ signature {{ name: '{name}' output_arg {{ name: 'r'
                type: {gives} }} }} {nodes} ret {{ key: 'r' value: '{returned}' }} }} }}"
        )
    };
    let types = |gives: &str| {
        attribute("Tin", "list { }") + &attribute("Tout", &format!("list {{ type: {gives} }}"))
    };
    let calling = |name: &str, gives: &str| {
        let rest = types(gives) + &attribute("f", &format!("func {{ name: '{name}' }}"));
        node("c", "StatefulPartitionedCall", &[], &rest)
    };
    let called = |functions: &[String], gives: &str| {
        let call = calling("f", gives).replace("node_def", "node");
        kind(Loader::Cpp, &(call + &together(functions)))
    };
    let given = |rest: &str| one("f", "DT_RESOURCE", &placeholder("p", rest), "p:output:0");
    let device = Some(Kind::Device);
    assert_eq!(called(&[given(garbage)], "DT_RESOURCE"), device);
    assert_eq!(called(&[given("device: 'CPU'")], "DT_RESOURCE"), device);
    assert_eq!(called(&[given("device: '/cpu:0'")], "DT_RESOURCE"), None);
    let other = placeholder("p", "") + &node("n", "NoOp", &[], garbage);
    assert_eq!(called(&[one("f", "DT_RESOURCE", &other, "p:output:0")], "DT_RESOURCE"), device);
    let float = node("p", "Placeholder", &[], &(attribute("dtype", "type: DT_FLOAT") + garbage));
    assert_eq!(called(&[one("f", "DT_FLOAT", &float, "p:output:0")], "DT_FLOAT"), None);
    let by_name = "node { name: 'c' op: 'f' }".to_owned() + &given(garbage);
    assert_eq!(kind(Loader::Cpp, &by_name), None);
    for loader in [Loader::Import, Loader::LoadV1] {
        let call = calling("f", "DT_RESOURCE").replace("node_def", "node");
        assert_eq!(kind(loader, &(call + &given(garbage))), None, "{loader:?}");
    }
    // The same through another function, as long as that one passes resources as well.
    let inner = given(garbage).replace("'f'", "'g'");
    let outer = |gives: &str, returned: &str| {
        let nodes = calling("g", "DT_RESOURCE") + &float.replace(garbage, "");
        one("f", gives, &nodes, returned)
    };
    let through = [inner.clone(), outer("DT_RESOURCE", "c:output:0")];
    assert_eq!(called(&through, "DT_RESOURCE"), device);
    assert_eq!(called(&[inner, outer("DT_FLOAT", "p:output:0")], "DT_FLOAT"), None);
    let receive = attribute("Toutput", "type: DT_FLOAT")
        + &attribute("shape", "shape { }")
        + &attribute("key", "s: 'k'");
    let receive = placeholder("p", "") + &node("k", "XlaRecvFromHost", &[], &receive);
    let without_kernel = [one("f", "DT_RESOURCE", &receive, "p:output:0")];
    assert_eq!(called(&without_kernel, "DT_RESOURCE"), Some(Kind::NoKernel));
}

#[test]
fn the_name_of_a_resource_may_be_missing_where_it_is_written_anew() {
    let receive = |data: &str| {
        let rest = FLOAT.to_owned() + &attribute("num_devices", "i: 2");
        node("n", "_NcclBroadcastRecv", &[data], &rest)
    };
    let integers = attribute("dtype", "type: DT_INT32");
    let shape = node("s", "Placeholder", &[], &integers);
    let missing = Kind::AttributesMissing { attributes: vec!["shared_name".to_owned()] };
    let main = (shape.clone() + &receive("s")).replace("node_def", "node");
    assert_eq!(kind(Loader::LoadV1, &main), Some(missing));
    assert_eq!(kind(Loader::Load, &main), None);
    let body = shape + &receive("s:output:0");
    assert_eq!(kind(Loader::Load, &with(&[], &body, false)), None);
}

#[test]
fn python_makes_no_saver_that_lacks_a_name() {
    let saver = |save: &str, restore: &str| {
        format!(
            "saver_def {{ filename_tensor_name: 'x:0' save_tensor_name: '{save}'
               restore_op_name: '{restore}' }}"
        )
    };
    for &loader in Loader::ALL {
        assert_eq!(found("2.21", loader, INPUT, &saver("x:0", "x")), None, "{loader:?}");
        let is_python = matches!(loader, Loader::LoadV1 | Loader::Load);
        for lacking in [saver("", "x"), saver("x:0", ""), "saver_def { }".to_owned()] {
            let refused = found("2.21", loader, INPUT, &lacking).map(|diagnostic| diagnostic.kind);
            assert_eq!(refused, is_python.then_some(Kind::Python), "{loader:?} {lacking}");
            let objects = format!("{lacking} object_graph_def {{ nodes {{ user_object {{ }} }} }}");
            let kind = found("2.21", loader, INPUT, &objects).map(|diagnostic| diagnostic.kind);
            let is_made = loader == Loader::LoadV1;
            assert_eq!(kind, is_made.then_some(Kind::Python), "{loader:?} {objects}");
        }
    }
}
