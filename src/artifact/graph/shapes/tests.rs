use crate::artifact::{
    graph::{Form, ImportFaultKind as Kind, Loader, Message, ReadOptions, read},
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

/// A source of what has this shape: a placeholder, a variable, or the handle of one.
fn source(name: &str, operation: &str, data_type: &str, sizes: &[i64]) -> String {
    let data_type = format!("type: {data_type}");
    let rest = attribute("dtype", &data_type) + &attribute("shape", &shape(sizes));
    node(name, operation, &[], &rest)
}

/// A constant of 32 bits.
fn constant(name: &str, sizes: &[i64], numbers: &[i32]) -> String {
    let sizes: String = sizes.iter().map(|size| format!("dim {{ size: {size} }} ")).collect();
    let values: String = numbers.iter().map(|number| format!("int_val: {number} ")).collect();
    let tensor = format!("dtype: DT_INT32 tensor_shape {{ {sizes} }} {values}");
    let rest = attribute("dtype", "type: DT_INT32");
    node(name, "Const", &[], &(rest + &attribute("value", &format!("tensor {{ {tensor} }}"))))
}

/// Whether the importer takes the nodes; what it refuses has to be the shape at the node `op`.
fn is_taken(nodes: &str) -> bool {
    let registries = [Registry::tensorflow("2.21").unwrap()];
    let options = ReadOptions::default().with_registries(&registries);
    let text = format!("{nodes} versions {{ producer: 2000 }}");
    let graphs = read(text.as_bytes(), Message::GraphDef, Form::Text, &options).unwrap();
    match graphs.meta_graphs[0].graph.judgements[0].fault(Loader::Import) {
        None => true,
        Some(fault) => {
            assert_eq!((&fault.kind, &*fault.node), (&Kind::Shape, "op"), "{nodes}");
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
        is_taken(&(nodes + &node("op", "Assign", &["v", "x"], &(FLOAT.to_owned() + rest))))
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
        is_taken(&(nodes + &node("op", "ScatterAdd", &["v", "i", "x"], &rest)))
    };
    assert!(updated(&[2, 3]) && updated(&[]));
    assert!(!updated(&[2, 4]) && !updated(&[3]));
    let by_handle = |data_type: &str, sizes: &[i64]| {
        let nodes = source("v", "VarHandleOp", "DT_FLOAT", &[4, 3])
            + &source("i", "Placeholder", "DT_INT32", &[2])
            + &source("x", "Placeholder", data_type, sizes);
        let rest = attribute("dtype", &format!("type: {data_type}")) + INDICES;
        is_taken(&(nodes + &node("op", "ResourceScatterAdd", &["v", "i", "x"], &rest)))
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
        is_taken(&(nodes + &node("op", "Transpose", &["x", "k"], &rest)))
    };
    assert!(turned(&[2, 3], constant("k", &[2], &[1, 0])));
    assert!(!turned(&[2, 3], constant("k", &[2], &[2, 0])));
    assert!(!turned(&[2, 3], source("k", "Placeholder", "DT_INT32", &[3])));
    assert!(!turned(&[2], source("k", "Placeholder", "DT_INT32", &[])));
    let turned_unknown = |order: &[i64]| {
        let nodes = node("x", "Placeholder", &[], &attribute("dtype", "type: DT_FLOAT"))
            + &source("k", "Placeholder", "DT_INT32", order);
        let rest = FLOAT.to_owned() + &attribute("Tperm", "type: DT_INT32");
        is_taken(&(nodes + &node("op", "Transpose", &["x", "k"], &rest)))
    };
    assert!(!turned_unknown(&[2, 2]));
    assert!(turned_unknown(&[1, 1]) && turned_unknown(&[-1, 3, 2]) && turned_unknown(&[]));
    let split = |axis: String| {
        let nodes = source("x", "Placeholder", "DT_FLOAT", &[4]) + &axis;
        let rest = FLOAT.to_owned() + &attribute("num_split", "i: 2");
        is_taken(&(nodes + &node("op", "Split", &["k", "x"], &rest)))
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
        is_taken(&(nodes + &node("op", operation, &["x", "w", "a", "b", "c", "d"], &rest)))
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
    assert!(is_taken(&(function.to_owned() + &nodes + &call)));
}
