use super::{
    ElementType, NodeRuleDiagnostic, NodeRules, NodeType, Strictness, shape_diagnostic,
    shape_rules::READERS, unknown_attributes,
};
use crate::{
    ImportDiagnosticKind,
    attributes::tests::of_values,
    data_type::DataType,
    ops::{
        ArgumentDefinition, ArgumentType, AttributeDefinition, AttributeKind, Element,
        OperationDefinition, OperationList, Registry,
    },
};

fn registry(release: &str) -> Registry {
    Registry::tensorflow(release).unwrap()
}

/// Judges a node for a release.
fn judge(
    release: &str,
    strictness: Strictness,
    operation: &str,
    values: &[(&str, &str)],
) -> Result<NodeType, Box<NodeRuleDiagnostic>> {
    let registry = registry(release);
    let rules = NodeRules { registry: &registry, strictness };
    rules.node_type(registry.operation(operation).unwrap(), &of_values(values))
}

fn import(
    release: &str,
    operation: &str,
    values: &[(&str, &str)],
) -> Result<NodeType, Box<NodeRuleDiagnostic>> {
    judge(release, Strictness::Import, operation, values)
}

/// Returns `(kind: found; expected)` of a diagnostic.
fn diagnostic(
    release: &str,
    operation: &str,
    values: &[(&str, &str)],
) -> (ImportDiagnosticKind, String) {
    let NodeRuleDiagnostic { kind, found, expected } =
        *import(release, operation, values).unwrap_err();
    (kind, format!("{found}; {expected}"))
}

fn value_type(data_type: DataType) -> ElementType {
    ElementType::new(data_type.number(), false)
}

/// Returns the types, one by one.
fn inputs(node: &NodeType) -> Vec<i32> {
    (0..node.inputs.len()).map(|position| node.inputs.get(position).unwrap().data_type).collect()
}

#[test]
fn the_types_of_a_node_come_from_its_attributes() {
    let node = import("2.12", "MatMul", &[("T", "type: DT_HALF")]).unwrap();
    assert_eq!(inputs(&node), [19, 19]);
    assert_eq!(node.outputs.get(0), Some(value_type(DataType::Float16)));
    assert_eq!(node.outputs.get(1), None);
    let node = import("2.12", "IdentityN", &[("T", "list { type: [1, 3, 3] }")]).unwrap();
    assert_eq!((inputs(&node), node.outputs.len()), (vec![1, 3, 3], 3));
    assert_eq!(node.inputs.runs().len(), 2);
    let node = import("2.12", "ConcatV2", &[("T", "type: DT_FLOAT"), ("N", "i: 3")]).unwrap();
    assert_eq!(inputs(&node), [1, 1, 1, 3]);
    let node = import("2.12", "AssignAdd", &[("T", "type: DT_FLOAT")]).unwrap();
    let reference = ElementType::new(1, true);
    assert_eq!(node.inputs.get(0), Some(reference));
    assert_eq!(node.inputs.get(1), Some(value_type(DataType::Float32)));
}

#[test]
fn the_types_come_from_the_definition_of_the_release() {
    let topk = [("T", "type: DT_FLOAT"), ("index_type", "type: DT_INT64")];
    let indices = |release| import(release, "TopKV2", &topk).unwrap().outputs.get(1).unwrap();
    assert_eq!(indices("2.12"), value_type(DataType::Int32));
    assert_eq!(indices("2.13"), value_type(DataType::Int64));
}

#[test]
fn so_many_inputs_cost_nothing() {
    let most = [("T", "type: DT_FLOAT"), ("N", "i: 2147483647")];
    let node = import("2.12", "AddN", &most).unwrap();
    assert_eq!((node.inputs.len(), node.inputs.runs().len()), (2_147_483_647, 1));
    assert_eq!(node.inputs.get(2_147_483_646), Some(value_type(DataType::Float32)));
    assert_eq!(node.inputs.get(2_147_483_647), None);
}

#[test]
fn an_edge_has_one_type_or_leaves_a_reference() {
    let [float, int] = [1, 3].map(|data_type| ElementType::new(data_type, false));
    let reference = ElementType { is_reference: true, ..float };
    assert!(float.takes(float) && float.takes(reference) && reference.takes(reference));
    assert!(!float.takes(int) && !reference.takes(float) && !int.takes(reference));
    // A reference to the invalid type is not the invalid type.
    let [none, reference] = [false, true].map(|is_reference| ElementType::new(0, is_reference));
    assert!(none.takes(none) && reference.takes(reference) && !none.takes(reference));
}

fn of_attribute(kind: fn(String) -> ImportDiagnosticKind, name: &str) -> ImportDiagnosticKind {
    kind(name.to_owned())
}

const KIND: fn(String) -> ImportDiagnosticKind =
    |attribute| ImportDiagnosticKind::AttributeKind { attribute };
const TYPE: fn(String) -> ImportDiagnosticKind =
    |attribute| ImportDiagnosticKind::AttributeType { attribute };
const NOT_ALLOWED: fn(String) -> ImportDiagnosticKind =
    |attribute| ImportDiagnosticKind::AttributeNotAllowed { attribute };
const MINIMUM: fn(String) -> ImportDiagnosticKind =
    |attribute| ImportDiagnosticKind::AttributeMinimum { attribute };

#[test]
fn a_value_of_another_kind_is_refused() {
    for value in ["i: 1", "", "list { type: DT_FLOAT }", "list { }", "placeholder: \"\"", "b: true"]
    {
        let (found, _) = diagnostic("2.12", "Identity", &[("T", value)]);
        assert_eq!(found, of_attribute(KIND, "T"), "{value}");
    }
    let text = diagnostic("2.12", "Identity", &[("T", "i: 1")]).1;
    assert_eq!(text, "T = 1; type");
    for value in ["type: DT_FLOAT", "list { i: 1 }", "list { type: 1 i: 1 }", "b: true"] {
        let (found, _) = diagnostic("2.12", "IdentityN", &[("T", value)]);
        assert_eq!(found, of_attribute(KIND, "T"), "{value}");
    }
    // An empty list is of every kind, and is then too short.
    let (found, _) = diagnostic("2.12", "IdentityN", &[("T", "list { }")]);
    assert_eq!(found, of_attribute(MINIMUM, "T"));
}

#[test]
fn where_a_list_has_no_value_it_is_empty() {
    let (found, text) = diagnostic("2.12", "IdentityN", &[("T", "")]);
    assert_eq!((found, &*text), (of_attribute(MINIMUM, "T"), "T = no value; at least 1 value"));
    let function = ("f", "func { name: \"f\" }");
    let node = import("2.12", "PartitionedCall", &[("Tin", ""), ("Tout", ""), function]).unwrap();
    assert_eq!((node.inputs.len(), node.outputs.len()), (0, 0));
    // The allowed values forbid no element of an empty list.
    let constants = [("Tconstants", "list { }"), ("Targs", ""), ("Tresults", "")];
    let more = [("Nresources", "i: 0"), function];
    let launch = [constants[0], constants[1], constants[2], more[0], ("function", more[1].1)];
    import("2.12", "XlaLaunch", &launch).unwrap();
    let (found, _) = diagnostic("2.12", "IdentityN", &[("T", "placeholder: \"\"")]);
    assert_eq!(found, of_attribute(KIND, "T"));
}

#[test]
fn a_type_must_be_an_element_type_of_the_release() {
    for value in ["type: 0", "type: DT_INT4", "type: 101", "type: 777", "type: -1"] {
        let (found, _) = diagnostic("2.14", "Identity", &[("T", value)]);
        assert_eq!(found, of_attribute(TYPE, "T"), "{value}");
        let listed = format!("list {{ type: DT_FLOAT {value} }}");
        let (found, _) = diagnostic("2.14", "IdentityN", &[("T", &listed)]);
        assert_eq!(found, of_attribute(TYPE, "T"), "{value}");
    }
    import("2.15", "Identity", &[("T", "type: DT_INT4")]).unwrap();
    let text = diagnostic("2.14", "Identity", &[("T", "type: DT_INT4")]).1;
    assert_eq!(text, "T = DT_INT4; an element type of TensorFlow 2.14");
}

#[test]
fn a_value_must_be_one_of_those_that_are_allowed() {
    let (found, text) = diagnostic("2.12", "MatMul", &[("T", "type: DT_STRING")]);
    assert_eq!(found, of_attribute(NOT_ALLOWED, "T"));
    assert!(text.starts_with("T = DT_STRING; one of DT_BFLOAT16, DT_HALF, DT_FLOAT"), "{text}");
    let conv = |padding| {
        let required = [("T", "type: DT_FLOAT"), ("strides", "list { i: [1, 1, 1, 1] }")];
        import("2.12", "Conv2D", &[required[0], required[1], ("padding", padding)])
    };
    conv("s: \"SAME\"").unwrap();
    for value in ["s: \"FULL\"", "s: \"\"", "s: \"same\""] {
        assert_eq!(conv(value).unwrap_err().kind, of_attribute(NOT_ALLOWED, "padding"), "{value}");
    }
    // Each element of a list: of types, and of texts.
    let listed = ("component_types", "list { type: [DT_FLOAT, DT_STRING] }");
    import("2.12", "QueueDequeueV2", &[listed]).unwrap();
    let feature = diagnostic(
        "2.12",
        "ParseSingleExample",
        &[
            ("num_sparse", "i: 0"),
            ("sparse_keys", "list { }"),
            ("dense_keys", "list { s: \"a\" }"),
            ("sparse_types", "list { type: [DT_FLOAT, DT_DOUBLE] }"),
            ("Tdense", "list { type: DT_FLOAT }"),
            ("dense_shapes", "list { shape { } }"),
        ],
    );
    assert_eq!(feature.0, of_attribute(NOT_ALLOWED, "sparse_types"));
}

#[test]
fn a_long_text_is_not_among_the_allowed_ones() {
    let long = format!("s: \"{}\"", "SAME".repeat(1 << 17));
    let required = [("T", "type: DT_FLOAT"), ("strides", "list { i: [1, 1, 1, 1] }")];
    let values = [required[0], required[1], ("padding", &long)];
    let found = import("2.12", "Conv2D", &values).unwrap_err();
    assert_eq!(found.kind, of_attribute(NOT_ALLOWED, "padding"));
    assert_eq!(found.found, "padding = <524288 bytes>");
}

#[test]
fn a_number_or_the_length_of_a_list_has_its_minimum() {
    let (found, text) = diagnostic("2.12", "AddN", &[("T", "type: DT_FLOAT"), ("N", "i: 0")]);
    assert_eq!((found, &*text), (of_attribute(MINIMUM, "N"), "N = 0; at least 1"));
    let (found, text) = diagnostic("2.12", "IdentityN", &[("T", "list { }")]);
    assert_eq!((found, &*text), (of_attribute(MINIMUM, "T"), "T = []; at least 1 value"));
    let strides = [("T", "type: DT_FLOAT"), ("padding", "s: \"SAME\"")];
    let pool = |ksize| {
        let lists = [("ksize", ksize), ("strides", "list { i: [1, 1, 1, 1] }")];
        import("2.12", "AvgPool", &[strides[0], strides[1], lists[0], lists[1]])
    };
    pool("list { i: [1, 1, 1, 1] }").unwrap();
    let found = pool("list { i: [1, 1, 1] }").unwrap_err();
    assert_eq!(found.kind, of_attribute(MINIMUM, "ksize"));
    assert_eq!(found.expected, "at least 4 values");
}

#[test]
fn every_attribute_that_is_missing_is_named() {
    let (found, text) = diagnostic("2.12", "Cast", &[("Truncate", "b: true")]);
    let attributes = vec!["SrcT".to_owned(), "DstT".to_owned()];
    assert_eq!(found, ImportDiagnosticKind::AttributesMissing { attributes });
    assert_eq!(text, "; attributes SrcT, DstT");
    // A wrong value is reported before a missing one.
    let (found, _) = diagnostic("2.12", "Cast", &[("DstT", "i: 1")]);
    assert_eq!(found, of_attribute(KIND, "DstT"));
    // A newer release may require more.
    let copy = [("layout", "s: \"x\""), ("T", "type: DT_FLOAT")];
    import("2.13", "CopyToMesh", &copy).unwrap();
    let (found, _) = diagnostic("2.14", "CopyToMesh", &copy);
    assert_eq!(
        found,
        ImportDiagnosticKind::AttributesMissing { attributes: vec!["mesh".to_owned()] }
    );
}

#[test]
fn a_number_of_inputs_fits_in_32_bits() {
    for value in ["i: 2147483648", "i: 9223372036854775807"] {
        let (found, _) = diagnostic("2.12", "AddN", &[("T", "type: DT_FLOAT"), ("N", value)]);
        let attribute = "N".to_owned();
        assert_eq!(found, ImportDiagnosticKind::AttributeNumber { attribute }, "{value}");
    }
    // Only a minimum forbids negative numbers: `StringJoin.N` must not be below 0.
    let (found, _) = diagnostic("2.13", "StringJoin", &[("N", "i: -1")]);
    assert_eq!(found, of_attribute(MINIMUM, "N"));
}

#[test]
fn attributes_that_the_release_does_not_know_do_not_matter() {
    for value in ["", "b: true", "i: 7", "type: 777", "placeholder: \"x\"", "list { i: 1 b: true }"]
    {
        for name in ["grad_a", "anything", "_anything", "_class", "_output_shapes"] {
            import("2.12", "MatMul", &[("T", "type: DT_FLOAT"), (name, value)]).unwrap();
        }
    }
    // Nor does the content of a tensor, a shape or a function matter.
    for value in [
        "tensor { }",
        "tensor { dtype: 777 tensor_shape { dim { size: -7 } } }",
        "tensor { dtype: DT_INT32 float_val: 1 }",
    ] {
        import("2.12", "Const", &[("dtype", "type: DT_FLOAT"), ("value", value)]).unwrap();
    }
    for value in ["shape { dim { size: -7 } }", "shape { unknown_rank: true dim { size: 1 } }"] {
        import("2.12", "Placeholder", &[("dtype", "type: DT_FLOAT"), ("shape", value)]).unwrap();
    }
    let lists = [("Tin", "list { }"), ("Tout", "list { }")];
    import("2.12", "PartitionedCall", &[lists[0], lists[1], ("f", "func { }")]).unwrap();
}

#[test]
fn a_placeholder_is_no_type() {
    let values = [("T", "placeholder: \"T\"")];
    let node = import("2.12", "Identity", &values).unwrap();
    assert_eq!(inputs(&node), [0]);
    assert_eq!(import("2.12", "IdentityN", &values).unwrap().inputs.len(), 0);
    // A list of equal elements needs their number and type.
    let number = [("T", "type: DT_FLOAT"), ("N", "placeholder: \"N\"")];
    assert_eq!(diagnostic("2.12", "AddN", &number).0, of_attribute(KIND, "N"));
    let of_what = [values[0], ("N", "i: 1")];
    assert_eq!(diagnostic("2.12", "AddN", &of_what).0, of_attribute(KIND, "T"));
}

fn type_attribute(name: &str) -> AttributeDefinition {
    AttributeDefinition {
        name: name.to_owned(),
        kind: AttributeKind::from_name("type").unwrap(),
        default: None,
        minimum: None,
        allowed: None,
    }
}

#[test]
fn a_signature_is_a_definition_like_any_other() {
    let argument = |name: &str, element| ArgumentDefinition {
        name: name.to_owned(),
        element,
        number_attribute: None,
        is_reference: false,
    };
    let mut signature = OperationDefinition::new("__inference_f_7");
    signature.inputs = vec![
        argument("x", ArgumentType::Fixed(1)),
        argument("y", ArgumentType::Attribute("T".to_owned())),
    ];
    signature.outputs = vec![argument("z", ArgumentType::Attribute("T".to_owned()))];
    signature.attributes = vec![type_attribute("T")];
    let list = OperationList::new([signature]);
    let registry = registry("2.12");
    let rules = NodeRules { registry: &registry, strictness: Strictness::Import };
    let function = list.operation("__inference_f_7").unwrap();
    let values = [("T", "type: DT_INT8"), ("unknown", "i: 1")];
    let node = rules.node_type(function, &of_values(&values)).unwrap();
    assert_eq!(inputs(&node), [1, 6]);
    let found = rules.node_type(function, &of_values(&[])).unwrap_err();
    let attributes = vec!["T".to_owned()];
    assert_eq!(found.kind, ImportDiagnosticKind::AttributesMissing { attributes });
    assert_eq!(unknown_attributes(function, &of_values(&values)), []);
}

#[test]
fn an_operation_that_is_known_by_its_name_alone_may_be_anything() {
    let registry = registry("2.12").with([OperationDefinition::of_name("Ours")]);
    let ours = registry.operation("Ours").unwrap();
    let values = of_values(&[("T", "type: 777"), ("N", "")]);
    let node = NodeRules { registry: &registry, strictness: Strictness::Import }
        .node_type(ours, &values)
        .unwrap();
    assert!(node.inputs.may_be(0) && node.inputs.may_be(7) && node.outputs.len() > 1 << 40);
    assert_eq!(unknown_attributes(ours, &values), []);
    let any = node.outputs.get(1 << 33).unwrap();
    let float = value_type(DataType::Float32);
    assert!(any.takes(float) && float.takes(any));
}

#[test]
fn in_a_session_nothing_counts_but_what_types_are_made_of() {
    let session =
        |operation, values: &[(&str, &str)]| judge("2.12", Strictness::Session, operation, values);
    // Types that are not allowed, unknown, and of the wrong kind.
    assert_eq!(inputs(&session("MatMul", &[("T", "type: DT_STRING")]).unwrap()), [7, 7]);
    assert_eq!(inputs(&session("MatMul", &[("T", "type: 777")]).unwrap()), [777, 777]);
    assert_eq!(inputs(&session("MatMul", &[("T", "i: 1")]).unwrap()), [0, 0]);
    assert_eq!(inputs(&session("MatMul", &[("T", "")]).unwrap()), [0, 0]);
    // Below its minimum.
    let none = session("AddN", &[("T", "type: DT_FLOAT"), ("N", "i: 0")]).unwrap();
    assert_eq!(none.inputs.len(), 0);
    // Impossible numbers, and values of the wrong kind for the length of a list.
    for number in ["i: 4294967297", "i: -1"] {
        let diagnostic = session("AddN", &[("T", "type: DT_FLOAT"), ("N", number)]).unwrap_err();
        assert_eq!(
            diagnostic.kind,
            ImportDiagnosticKind::AttributeNumber { attribute: "N".to_owned() }
        );
    }
    for values in [[("T", "type: DT_FLOAT"), ("N", "type: 3")], [("T", "i: 1"), ("N", "i: 1")]] {
        let diagnostic = session("AddN", &values).unwrap_err();
        assert!(
            matches!(diagnostic.kind, ImportDiagnosticKind::AttributeKind { .. }),
            "{diagnostic:?}"
        );
    }
    // A reference to a reference.
    let twice = session("VariableV2", &[("dtype", "type: 101")]).unwrap_err();
    assert_eq!(twice.kind, ImportDiagnosticKind::AttributeType { attribute: "dtype".to_owned() });
    // Attributes that no argument needs may be missing; of the others, one is named.
    let required = [("T", "type: DT_FLOAT")];
    session("Conv2D", &required).unwrap();
    let missing = session("Cast", &[]).unwrap_err();
    let attributes = vec!["SrcT".to_owned()];
    assert_eq!(missing.kind, ImportDiagnosticKind::AttributesMissing { attributes });
}

#[test]
fn python_puts_the_default_where_there_is_no_value() {
    let python = |operation, values: &[(&str, &str)]| {
        judge("2.12", Strictness::PythonImport, operation, values)
    };
    let values = [("T", "type: DT_FLOAT"), ("transpose_a", "")];
    python("MatMul", &values).unwrap();
    let (found, _) = diagnostic("2.12", "MatMul", &values);
    assert_eq!(found, of_attribute(KIND, "transpose_a"));
    let found = python("MatMul", &[("T", "")]).unwrap_err();
    assert_eq!(found.kind, of_attribute(KIND, "T"));
    // The default also gives the type.
    let shape = [("T", "type: DT_FLOAT"), ("out_type", "")];
    assert_eq!(python("Shape", &shape).unwrap().outputs.get(0), Some(value_type(DataType::Int32)));
}

#[test]
fn attributes_that_are_too_many_to_be_looked_at_are_a_diagnostic() {
    let names: Vec<String> = (0..200_000).map(|number| format!("_{number}")).collect();
    let values: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    let found = import("2.12", "NoOp", &values).unwrap_err();
    assert_eq!(found.kind, ImportDiagnosticKind::Oversized);
}

#[test]
fn no_release_knows_a_private_attribute() {
    for release in Registry::releases() {
        let registry = Registry::tensorflow(release).unwrap();
        for operation in registry.operations() {
            assert!(
                operation.attributes().all(|attribute| !attribute.name().starts_with('_')),
                "{release} {}",
                operation.name()
            );
        }
    }
}

#[test]
fn an_attribute_that_a_release_does_not_know_is_reported_unless_it_is_the_default() {
    let unknown = |release: &str, operation: &str, values: &[(&str, &str)]| {
        let registry = registry(release);
        let unknown =
            unknown_attributes(registry.operation(operation).unwrap(), &of_values(values));
        unknown
            .into_iter()
            .map(|one| format!("{} = {} since {:?}", one.attribute, one.value, one.since))
            .collect::<Vec<_>>()
    };
    let topk = [("index_type", "type: DT_INT64")];
    assert_eq!(unknown("2.12", "TopKV2", &topk), ["index_type = DT_INT64 since Some(\"2.13\")"]);
    assert!(unknown("2.13", "TopKV2", &topk).is_empty());
    assert!(unknown("2.12", "TopKV2", &[("index_type", "type: DT_INT32")]).is_empty());
    // Attributes that no release knows, and those without a value, are not reported.
    let nothing = [("anything", "i: 1"), ("_grad", "i: 1"), ("grad_a", "")];
    assert!(unknown("2.12", "MatMul", &nothing).is_empty());
    // Attributes that are only used in messages.
    let named = [("debug_name", "s: \"kernel\"")];
    assert!(unknown("2.12", "VarHandleOp", &named).is_empty());
    let both = [("grad_b", "b: true"), ("grad_a", "b: true")];
    assert_eq!(unknown("2.15", "MatMul", &both).len(), 2);
    // A removed attribute is unknown to newer releases; an attribute without a default is always
    // reported.
    let gone = [("initial_num_bins", "i: 3"), ("layout", "s: \"\"")];
    let found = unknown("2.18", "CustomAggregator", &gone);
    assert_eq!(found, ["initial_num_bins = 3 since Some(\"2.15\")"]);
    assert_eq!(unknown("2.14", "CopyToMesh", &gone), ["layout = \"\" since Some(\"2.12\")"]);
    assert_eq!(unknown("2.13", "CopyToMesh", &[("mesh", "s: \"\"")]).len(), 1);
}

/// Returns the diagnostic that a shape function finds in attributes, besides those of the importer.
fn shape(operation: &str, values: &[(&str, &str)]) -> Option<String> {
    let diagnostic = shape_diagnostic(operation, &of_values(values))?;
    assert_eq!(diagnostic.kind, ImportDiagnosticKind::Shape);
    Some(diagnostic.found)
}

/// Returns invalid shapes.
fn invalid_shapes() -> [String; 5] {
    let huge = "dim { size: 1099511627776 }".repeat(2);
    [
        "dim { size: -2 }".to_owned(),
        "unknown_rank: true dim { size: 1 }".to_owned(),
        huge.clone(),
        format!("{huge} dim {{ }}"),
        "dim { size: 1 }".repeat(255),
    ]
}

/// Returns valid shapes, partly known or unknown.
fn valid_shapes() -> [String; 6] {
    let huge = "dim { size: 1099511627776 }".repeat(2);
    [
        String::new(),
        "unknown_rank: true".to_owned(),
        "dim { size: -1 } dim { size: 3 }".to_owned(),
        format!("dim {{ size: -1 }} {huge}"),
        format!("dim {{ }} {huge}"),
        "dim { size: 1 }".repeat(254),
    ]
}

#[test]
fn operations_that_read_a_shape_refuse_what_is_none() {
    let lists = |shape: &str| {
        let one = format!("shape {{ {shape} }}");
        let listed = format!("list {{ shape {{ }} {one} }}");
        (one, listed)
    };
    for text in invalid_shapes() {
        let (one, listed) = lists(&text);
        for (operation, attribute, value) in [
            ("Placeholder", "shape", &one),
            ("TensorArrayV3", "element_shape", &one),
            ("While", "output_shapes", &listed),
        ] {
            assert!(shape(operation, &[(attribute, value)]).is_some(), "{operation}: {text}");
        }
        // These operations ignore the shapes, and a list of two kinds is not a list of shapes.
        assert_eq!(shape("FIFOQueueV2", &[("shapes", &listed)]), None);
        let mixed = listed.replacen('{', "{ i: 1", 1);
        assert_eq!(shape("While", &[("output_shapes", &mixed)]), None, "{text}");
    }
    for text in valid_shapes() {
        let (one, listed) = lists(&text);
        assert_eq!(shape("Placeholder", &[("shape", &one)]), None, "{text}");
        assert_eq!(shape("While", &[("output_shapes", &listed)]), None, "{text}");
    }
    let found = shape("VarHandleOp", &[("shape", "placeholder: \"s\"")]);
    assert_eq!(found.as_deref(), Some("shape = placeholder \"s\""));
}

#[test]
fn a_constant_has_a_shape_that_is_known() {
    let constant = |text: &str| {
        let value = format!("tensor {{ dtype: DT_FLOAT tensor_shape {{ {text} }} }}");
        shape("Const", &[("value", &value)])
    };
    let huge = "dim { size: 1099511627776 }".repeat(2);
    for text in ["dim { size: -1 }", "dim { size: -7 }", &huge, &"dim { size: 1 }".repeat(255)] {
        assert!(constant(text).is_some(), "{text}");
    }
    for text in ["", "unknown_rank: true", "unknown_rank: true dim { size: 1 }", "dim { }"] {
        assert_eq!(constant(text), None, "{text}");
    }
}

#[test]
fn the_operations_that_read_a_shape_are_found_by_name() {
    let registry = registry("2.21");
    assert!(READERS.is_sorted());
    for (operation, attribute) in READERS {
        let kind = registry.operation(operation).unwrap().attribute(attribute).unwrap().kind();
        assert_eq!(kind.element, Element::Shape, "{operation}.{attribute}");
    }
}
