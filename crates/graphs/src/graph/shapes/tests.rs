use crate::{
    graph::{Form, ImportDiagnosticKind as Kind, Loader, Message, ReadOptions, read},
    ops::Registry,
};

fn attribute(key: &str, value: &str) -> String {
    format!("attr {{ key: '{key}' value {{ {value} }} }} ")
}

fn shape(sizes: &[i64]) -> String {
    let sizes: String = sizes.iter().map(|size| format!("dim {{ size: {size} }} ")).collect();
    format!("shape {{ {sizes} }}")
}

fn node(name: &str, operation: &str, inputs: &[&str], rest: &str) -> String {
    let inputs: String = inputs.iter().map(|input| format!("input: '{input}' ")).collect();
    format!("node {{ name: '{name}' op: '{operation}' {inputs} {rest} }} ")
}

/// Returns a source of this shape: a placeholder, a variable, or the handle of a variable.
fn source(name: &str, operation: &str, data_type: &str, sizes: &[i64]) -> String {
    let data_type = format!("type: {data_type}");
    let rest = attribute("dtype", &data_type) + &attribute("shape", &shape(sizes));
    node(name, operation, &[], &rest)
}

/// Returns a constant of 32-bit numbers.
fn constant(name: &str, sizes: &[i64], numbers: &[i32]) -> String {
    let sizes: String = sizes.iter().map(|size| format!("dim {{ size: {size} }} ")).collect();
    let values: String = numbers.iter().map(|number| format!("int_val: {number} ")).collect();
    let tensor = format!("dtype: DT_INT32 tensor_shape {{ {sizes} }} {values}");
    let rest = attribute("dtype", "type: DT_INT32");
    node(name, "Const", &[], &(rest + &attribute("value", &format!("tensor {{ {tensor} }}"))))
}

/// Returns true if the importer accepts the nodes; if it refuses them, the diagnostic must be the
/// shape at the node `op`, or at `m` in a function.
fn is_accepted(nodes: &str) -> bool {
    let registries = [Registry::tensorflow("2.21").unwrap()];
    let options = ReadOptions::default().with_registries(&registries);
    let text = format!("{nodes} versions {{ producer: 2000 }}");
    let graphs = read(text.as_bytes(), Message::GraphDef, Form::Text, &options).unwrap();
    match graphs.meta_graphs[0].graph.judgements[0].diagnostic(Loader::Import) {
        None => true,
        Some(diagnostic) => {
            assert_eq!(diagnostic.kind, Kind::Shape, "{nodes}");
            assert!(matches!(&*diagnostic.node, "op" | "m"), "{nodes}");
            false
        }
    }
}

const FLOAT: &str = "attr { key: 'T' value { type: DT_FLOAT } } ";
const INDICES: &str = "attr { key: 'Tindices' value { type: DT_INT32 } } ";

#[test]
fn variables_have_the_shapes_that_they_say_but_the_oldest_that_say_a_scalar() {
    let assigned = |operation: &str, sizes: &[i64], rest: &str| {
        let nodes = source("v", operation, "DT_FLOAT", sizes)
            + &source("x", "Placeholder", "DT_FLOAT", &[2, 3]);
        is_accepted(&(nodes + &node("op", "Assign", &["v", "x"], &(FLOAT.to_owned() + rest))))
    };
    assert!(assigned("VariableV2", &[2, -1], ""));
    assert!(!assigned("VariableV2", &[3, 3], ""));
    assert!(!assigned("VariableV2", &[], ""));
    assert!(assigned("Variable", &[], ""), "which says that nothing is known");
    assert!(!assigned("Variable", &[3, 3], ""));
    let unasked = attribute("validate_shape", "b: false");
    assert!(assigned("VariableV2", &[3, 3], &unasked));
}

#[test]
fn updates_have_the_shape_of_the_parts_that_they_change_or_none() {
    let updated = |sizes: &[i64]| {
        let nodes = source("v", "VariableV2", "DT_FLOAT", &[4, 3])
            + &source("i", "Placeholder", "DT_INT32", &[2])
            + &source("x", "Placeholder", "DT_FLOAT", sizes);
        let rest = FLOAT.to_owned() + INDICES;
        is_accepted(&(nodes + &node("op", "ScatterAdd", &["v", "i", "x"], &rest)))
    };
    assert!(updated(&[2, 3]) && updated(&[]));
    assert!(!updated(&[2, 4]) && !updated(&[3]));
    let by_handle = |data_type: &str, sizes: &[i64]| {
        let nodes = source("v", "VarHandleOp", "DT_FLOAT", &[4, 3])
            + &source("i", "Placeholder", "DT_INT32", &[2])
            + &source("x", "Placeholder", data_type, sizes);
        let rest = attribute("dtype", &format!("type: {data_type}")) + INDICES;
        is_accepted(&(nodes + &node("op", "ResourceScatterAdd", &["v", "i", "x"], &rest)))
    };
    assert!(by_handle("DT_FLOAT", &[2, 3]));
    assert!(!by_handle("DT_FLOAT", &[2, 4]));
    assert!(!by_handle("DT_INT32", &[2, 3]), "of a variable of floats");
}

#[test]
fn an_order_has_an_axis_for_each_dimension_and_a_split_one_axis() {
    let turned = |sizes: &[i64], order: String| {
        let nodes = source("x", "Placeholder", "DT_FLOAT", sizes) + &order;
        let rest = FLOAT.to_owned() + &attribute("Tperm", "type: DT_INT32");
        is_accepted(&(nodes + &node("op", "Transpose", &["x", "k"], &rest)))
    };
    assert!(turned(&[2, 3], constant("k", &[2], &[1, 0])));
    assert!(!turned(&[2, 3], constant("k", &[2], &[2, 0])));
    assert!(!turned(&[2, 3], source("k", "Placeholder", "DT_INT32", &[3])));
    assert!(!turned(&[2], source("k", "Placeholder", "DT_INT32", &[])));
    let turned_unknown = |order: &[i64]| {
        let nodes = node("x", "Placeholder", &[], &attribute("dtype", "type: DT_FLOAT"))
            + &source("k", "Placeholder", "DT_INT32", order);
        let rest = FLOAT.to_owned() + &attribute("Tperm", "type: DT_INT32");
        is_accepted(&(nodes + &node("op", "Transpose", &["x", "k"], &rest)))
    };
    assert!(!turned_unknown(&[2, 2]));
    assert!(turned_unknown(&[1, 1]) && turned_unknown(&[-1, 3, 2]) && turned_unknown(&[]));
    let split = |axis: String| {
        let nodes = source("x", "Placeholder", "DT_FLOAT", &[4]) + &axis;
        let rest = FLOAT.to_owned() + &attribute("num_split", "i: 2");
        is_accepted(&(nodes + &node("op", "Split", &["k", "x"], &rest)))
    };
    assert!(split(constant("k", &[], &[0])));
    assert!(!split(constant("k", &[1], &[0])));
    assert!(split(source("k", "Placeholder", "DT_INT32", &[1])), "which nobody looks at");
}

#[test]
fn a_quantized_convolution_is_one_with_channels_last() {
    let convolved = |operation: &str, sizes: &[i64], strides: &[i64]| {
        let numbers: String = strides.iter().map(|stride| format!("i: {stride} ")).collect();
        let ranges = ["a", "b", "c", "d"].map(|n| source(n, "Placeholder", "DT_FLOAT", &[]));
        let nodes = source("x", "Placeholder", "DT_QUINT8", &[1, 8, 8, 3])
            + &source("w", "Placeholder", "DT_QUINT8", sizes)
            + &ranges.concat();
        let rest = attribute("strides", &format!("list {{ {numbers} }}"))
            + &attribute("padding", "s: 'VALID'")
            + &attribute("Tinput", "type: DT_QUINT8")
            + &attribute("Tfilter", "type: DT_QUINT8");
        is_accepted(&(nodes + &node("op", operation, &["x", "w", "a", "b", "c", "d"], &rest)))
    };
    for operation in ["QuantizedConv2D", "QuantizedDepthwiseConv2D"] {
        assert!(convolved(operation, &[3, 3, 3, 4], &[1, 1, 1, 1]));
        assert!(!convolved(operation, &[3, 3, 2, 4], &[1, 1, 1, 1]), "other channels");
        assert!(!convolved(operation, &[3, 3, 3, 4], &[1, 1, 1]));
        assert!(!convolved(operation, &[10, 3, 3, 4], &[1, 1, 1, 1]), "larger than the image");
    }
}

#[test]
fn what_a_call_gives_a_function_decides_nothing_before() {
    let function = "library { function { signature { name: 'f' attr { name: 'turned' type: 'bool' }
            input_arg { name: 'a' type: DT_FLOAT } input_arg { name: 'b' type: DT_FLOAT }
            output_arg { name: 'r' type: DT_FLOAT } }
        node_def { name: 'm' op: 'MatMul' input: 'a' input: 'b'
            attr { key: 'T' value { type: DT_FLOAT } }
            attr { key: 'transpose_a' value { placeholder: 'turned' } } }
        ret { key: 'r' value: 'm:product:0' } } } ";
    let nodes = source("x", "Placeholder", "DT_FLOAT", &[3, 2])
        + &source("y", "Placeholder", "DT_FLOAT", &[3, 4]);
    let call = node("op", "f", &["x", "y"], &attribute("turned", "b: true"));
    assert!(is_accepted(&(function.to_owned() + &nodes + &call)));
}

/// Returns true if the importer accepts a call of a function with this one node, for inputs of
/// these shapes.
fn is_accepted_when_called(operation: &str, rest: &str, shapes: &[Option<&[i64]>]) -> bool {
    let count = shapes.len();
    let arguments: String =
        (0..count).map(|n| format!("input_arg {{ name: 'a{n}' type: DT_FLOAT }} ")).collect();
    let inputs: String = (0..count).map(|n| format!("input: 'a{n}' ")).collect();
    let function = format!(
        "library {{ function {{ signature {{ name: 'f' {arguments}
            output_arg {{ name: 'r' type: DT_FLOAT }} }}
        node_def {{ name: 'm' op: '{operation}' {inputs} {FLOAT} {rest} }}
        ret {{ key: 'r' value: 'm:output:0' }} }} }} "
    );
    let source_of = |(n, sizes): (usize, &Option<&[i64]>)| match sizes {
        Some(sizes) => source(&format!("x{n}"), "Placeholder", "DT_FLOAT", sizes),
        None => node(&format!("x{n}"), "Placeholder", &[], &attribute("dtype", "type: DT_FLOAT")),
    };
    let sources: String = shapes.iter().enumerate().map(source_of).collect();
    let inputs: Vec<String> = (0..count).map(|n| format!("x{n}")).collect();
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    is_accepted(&(function + &sources + &node("op", "f", &inputs, "")))
}

fn numbers(name: &str, numbers: &[i64]) -> String {
    let numbers: String = numbers.iter().map(|number| format!("i: {number} ")).collect();
    attribute(name, &format!("list {{ {numbers} }}"))
}

#[test]
fn an_attribute_of_another_kind_stands_for_channels_last_and_for_no_dilation() {
    let valid = attribute("padding", "s: 'VALID'");
    let windows = numbers("strides", &[1; 4]) + &valid;
    let is_accepted = |operation: &str, rest: &str, one: &[i64], two: Option<&[i64]>| {
        let shapes: Vec<Option<&[i64]>> =
            [Some(one), two].into_iter().filter(Option::is_some).collect();
        is_accepted_when_called(operation, rest, &shapes)
    };
    let another = attribute("data_format", "i: 3");
    assert!(is_accepted("BiasAdd", &another, &[2, 3], Some(&[3])));
    assert!(!is_accepted("BiasAdd", &another, &[3, 2], Some(&[3])));
    let (image, filter) = (&[1, 8, 8, 3][..], Some(&[3, 3, 3, 4][..]));
    for operation in ["Conv2D", "DepthwiseConv2dNative"] {
        let rest = windows.clone() + &another;
        assert!(is_accepted(operation, &rest, image, filter), "{operation}");
        assert!(!is_accepted(operation, &rest, &[1, 3, 8, 8], filter), "{operation}");
    }
    let dilated = windows.clone() + &attribute("dilations", "s: 'x'");
    assert!(is_accepted("DepthwiseConv2dNative", &dilated, image, filter));
    assert!(!is_accepted("Conv2D", &dilated, image, filter), "which reads them");
    let pool = windows + &numbers("ksize", &[1, 2, 2, 1]) + &another;
    assert!(is_accepted("AvgPool", &pool, &[1, 8, 8, 1], None));
    assert!(!is_accepted("AvgPool", &pool, &[1, 1, 8, 8], None));
    let last = attribute("data_format", "s: 'NCHW'") + &numbers("strides", &[1; 5]) + &valid;
    assert!(is_accepted("Conv3D", &last, &[1, 8, 8, 8, 2], Some(&[3, 3, 3, 2, 4])), "not NCDHW");
}

#[test]
fn features_and_labels_of_another_rank_are_broadcast() {
    let pairs: [(&[i64], &[i64]); 5] =
        [(&[2, 3], &[3]), (&[3], &[2, 3]), (&[2, 3], &[]), (&[], &[2, 3]), (&[2, 3], &[2, 3])];
    for (features, labels) in pairs {
        let nodes = source("x", "Placeholder", "DT_FLOAT", features)
            + &source("y", "Placeholder", "DT_FLOAT", labels)
            + &node("op", "SoftmaxCrossEntropyWithLogits", &["x", "y"], FLOAT);
        assert!(is_accepted(&nodes), "{features:?} {labels:?}");
    }
}

#[test]
fn an_attribute_is_asked_for_only_where_there_is_something_to_hold_it_against() {
    let cases = [
        ("Pack", attribute("N", "i: 1") + &attribute("axis", "s: 'x'")),
        ("Unpack", attribute("num", "i: 2") + &attribute("axis", "s: 'x'")),
        ("Squeeze", attribute("squeeze_dims", "s: 'x'")),
    ];
    for (operation, rest) in cases {
        assert!(is_accepted_when_called(operation, &rest, &[None]), "{operation}");
        assert!(!is_accepted_when_called(operation, &rest, &[Some(&[2, 3])]), "{operation}");
    }
}

#[test]
fn old_graphs_may_list_axes_in_any_shape_and_a_scalar_placeholder_of_theirs_is_of_any() {
    let is_accepted = |nodes: &str, producer: i32| {
        let registries = [Registry::tensorflow("2.21").unwrap()];
        let options = ReadOptions::default().with_registries(&registries);
        let text = format!("{nodes} versions {{ producer: {producer} }}");
        let graphs = read(text.as_bytes(), Message::GraphDef, Form::Text, &options).unwrap();
        graphs.meta_graphs[0].graph.judgements[0].diagnostic(Loader::Import).is_none()
    };
    let axes = source("x", "Placeholder", "DT_FLOAT", &[2, 3])
        + &source("k", "Placeholder", "DT_INT32", &[2, 2])
        + &node("op", "Sum", &["x", "k"], FLOAT);
    assert!(is_accepted(&axes, 20) && !is_accepted(&axes, 21));
    let scalar = source("x", "Placeholder", "DT_FLOAT", &[])
        + &source("y", "Placeholder", "DT_FLOAT", &[2, 3])
        + &node("op", "MatMul", &["x", "y"], FLOAT);
    assert!(is_accepted(&scalar, 21) && !is_accepted(&scalar, 22));
}

#[test]
fn a_window_is_not_larger_than_the_image_and_dilations_of_rows_and_columns_change_places() {
    let convolved = |image: &[i64], filter: &[i64], rest: String| {
        let operation = if image.len() == 4 { "Conv2D" } else { "Conv3D" };
        let nodes = source("x", "Placeholder", "DT_FLOAT", image)
            + &source("w", "Placeholder", "DT_FLOAT", filter);
        let rest = FLOAT.to_owned() + &attribute("padding", "s: 'VALID'") + &rest;
        is_accepted(&(nodes + &node("op", operation, &["x", "w"], &rest)))
    };
    let strides = numbers("strides", &[1, 3, 3, 1]);
    assert!(convolved(&[1, 8, 8, 1], &[8, 8, 1, 1], strides.clone()));
    assert!(!convolved(&[1, 8, 8, 1], &[9, 8, 1, 1], strides));
    let dilated = |image: &[i64], dilations: &[i64]| {
        let rest = numbers("strides", &[1; 5]) + &numbers("dilations", dilations);
        convolved(image, &[3, 3, 3, 1, 1], rest)
    };
    assert!(dilated(&[1, 7, 3, 3, 1], &[1, 3, 1, 1, 1]));
    assert!(!dilated(&[1, 3, 7, 3, 1], &[1, 1, 3, 1, 1]));
    assert!(dilated(&[1, 3, 3, 7, 1], &[1, 1, 3, 1, 1]));
    assert!(!dilated(&[1, 3, 3, 7, 1], &[1, 1, 1, 3, 1]));
    assert!(dilated(&[1, 3, 7, 3, 1], &[1, 1, 1, 3, 1]));
}
