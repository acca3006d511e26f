use crate::{
    graph::{
        Form, ImportDiagnostic, ImportDiagnosticKind as Kind, Loader, Message, ReadOptions,
        StructureDiagnosticKind, read,
    },
    ops::Registry,
};

mod beside_nodes;
mod node_references;
mod reexported;

const FLOAT: &str = "attr { key: 'T' value { type: DT_FLOAT } }";
const INPUT: &str =
    "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }";

/// Returns the diagnostic that a loader of a release finds in a SavedModel with this graph, and
/// with `beside` in its meta graph.
fn found(release: &str, loader: Loader, graph: &str, beside: &str) -> Option<ImportDiagnostic> {
    let registries = [Registry::tensorflow(release).unwrap()];
    let options = ReadOptions::default().with_registries(&registries);
    let text = format!("meta_graphs {{ graph_def {{ {graph} }} {beside} }}");
    let graphs = read(text.as_bytes(), Message::SavedModel, Form::Text, &options).unwrap();
    graphs.meta_graphs[0].graph.judgements[0].diagnostic(loader).cloned()
}

fn kind(loader: Loader, graph: &str) -> Option<Kind> {
    found("2.21", loader, graph, "").map(|diagnostic| diagnostic.kind)
}

fn function(name: &str, nodes: &str, returned: &str) -> String {
    format!(
        "library {{ function {{ signature {{ name: '{name}'
            input_arg {{ name: 'a' type: DT_FLOAT }} output_arg {{ name: 'r' type: DT_FLOAT }} }}
            {nodes} ret {{ key: 'r' value: '{returned}' }} }} }} "
    )
}

/// Returns the functions and gradients of these libraries in one library.
fn together(libraries: &[String]) -> String {
    let inside = |library: &String| {
        let inside =
            library.trim().strip_prefix("library {").and_then(|rest| rest.strip_suffix('}'));
        inside.unwrap().to_owned()
    };
    format!("library {{ {} }} ", libraries.iter().map(inside).collect::<String>())
}

fn node(name: &str, operation: &str, inputs: &[&str], rest: &str) -> String {
    let inputs: Vec<String> = inputs.iter().map(|input| format!("input: '{input}'")).collect();
    format!("node_def {{ name: '{name}' op: '{operation}' {} {rest} }} ", inputs.join(" "))
}

#[test]
fn every_function_is_loaded_whether_it_is_called_or_not() {
    let load = |nodes: &str, returned: &str| kind(Loader::Load, &function("f", nodes, returned));
    let identity = |input: &str, rest: &str| node("i", "Identity", &[input], rest);
    assert_eq!(load(&identity("a", FLOAT), "i:output:0"), None);
    let unknown = node("i", "NoSuchOp", &["a"], "");
    assert_eq!(load(&unknown, "a"), Some(Kind::UnknownOperation));
    for loader in [Loader::Import, Loader::LoadV1, Loader::Cpp] {
        assert_eq!(kind(loader, &function("f", &unknown, "a")), None, "{loader:?}");
    }
    // All values are checked, as in a graph.
    let text = "attr { key: 'T' value { type: DT_STRING } }";
    let allowed = load(&node("s", "Sqrt", &["a"], text), "a");
    assert_eq!(allowed, Some(Kind::AttributeNotAllowed { attribute: "T".to_owned() }));
    let int = "attr { key: 'T' value { type: DT_INT32 } }";
    assert_eq!(load(&identity("a", int), "a"), Some(Kind::InputType { input: 0 }));
    assert_eq!(
        load(&identity("a", ""), "a").unwrap(),
        Kind::AttributesMissing { attributes: vec!["T".to_owned()] }
    );
    let two = node("i", "Identity", &["a", "a"], FLOAT);
    assert_eq!(load(&two, "a"), Some(Kind::InputCount));
    // The producer is the release itself.
    let old = load(&node("o", "BatchMatrixDiag", &["a"], FLOAT), "a");
    assert!(matches!(old, Some(Kind::Deprecated(_))), "{old:?}");
    // Python only finds outputs by their full names.
    for input in ["a:0", "i:output", "z", "^z"] {
        let nodes = identity("a", FLOAT)
            + &node("n", "NoOp", &[&format!("^{}", "i")], "")
            + &node("k", "Identity", &[input], FLOAT);
        assert_eq!(load(&nodes, "a"), Some(Kind::Python), "{input}");
    }
    assert_eq!(load("", "i:output:0"), Some(Kind::Python));
}

#[test]
fn functions_that_need_each_other_or_what_is_not_there_are_never_loaded() {
    let names = |attribute: &str| {
        node("w", "NoOp", &[], &format!("attr {{ key: 'f' value {{ {attribute} }} }}"))
    };
    let load = |nodes: &str| kind(Loader::Load, &function("f", nodes, "a"));
    assert_eq!(load(&names("func { name: 'g' }")), Some(Kind::Python));
    assert_eq!(load(&names("list { func { name: '' } }")), Some(Kind::Python));
    assert_eq!(load(&names("func { name: 'f' }")), Some(Kind::Python));
    assert_eq!(load(&node("w", "f", &["a"], "")), Some(Kind::Python));
    let other = function("g", "", "a");
    let both = together(&[function("f", &names("func { name: 'g' }"), "a"), other]);
    assert_eq!(kind(Loader::Load, &both), None);
}

#[test]
fn the_main_graph_of_a_model_with_an_object_graph_is_left_alone() {
    let unknown = "node { name: 'n' op: 'NoSuchOp' } node { name: 'n' op: 'NoOp' }";
    let objects = "object_graph_def { nodes { user_object { } } }";
    for graph in ["node { name: 'n' op: 'NoSuchOp' }", unknown] {
        assert_eq!(found("2.21", Loader::Load, graph, objects), None);
        assert!(found("2.21", Loader::Load, graph, "").is_some());
        assert!(found("2.21", Loader::LoadV1, graph, objects).is_some());
    }
    let bad = function("f", &node("n", "NoSuchOp", &[], ""), "a");
    let found = found("2.21", Loader::Load, &bad, objects).unwrap();
    assert_eq!((found.kind, found.function.as_deref()), (Kind::UnknownOperation, Some("f")));
}

#[test]
fn function_name_clash_does_not_matter_where_functions_are_renamed() {
    let conv = function("Conv", "", "a");
    assert_eq!(kind(Loader::Load, &conv), None);
    for loader in [Loader::Import, Loader::LoadV1, Loader::Cpp] {
        assert_eq!(kind(loader, &conv), Some(Kind::FunctionName), "{loader:?}");
        assert_eq!(found("2.13", loader, &conv, ""), None, "{loader:?}");
    }
}

#[test]
fn python_wants_to_know_the_type_of_each_argument() {
    let of_type = |argument: &str| {
        format!("library {{ function {{ signature {{ name: 'f' input_arg {{ {argument} }} }} }} }}")
    };
    let int4 = of_type("name: 'a' type: DT_INT4");
    let generic = of_type("name: 'a' type_attr: 'T'");
    for loader in [Loader::LoadV1, Loader::Load] {
        let python = |release: &str, graph: &str| {
            found(release, loader, graph, "").map(|diagnostic| diagnostic.kind)
        };
        assert_eq!(python("2.14", &of_type("name: 'a' type: 29")), Some(Kind::Python));
        assert_eq!(python("2.15", &int4), None);
        assert_eq!(python("2.21", &generic), Some(Kind::Python));
    }
    assert_eq!(kind(Loader::Import, &generic), None);
    assert_eq!(kind(Loader::Cpp, &generic), None);
}

#[test]
fn gradients_are_looked_at_by_python_where_there_are_functions() {
    let gradient = |of: &str, is: &str| {
        format!("library {{ gradient {{ function_name: '{of}' gradient_func: '{is}' }} }}")
    };
    let with = |gradient: &str| {
        kind(Loader::LoadV1, &together(&[function("f", "", "a"), gradient.to_owned()]))
    };
    assert_eq!(with("library {}"), None);
    assert_eq!(with(&gradient("f", "nope")), Some(Kind::FunctionBody));
    assert_eq!(with(&gradient("nope", "f")), Some(Kind::FunctionBody));
    assert_eq!(with(&gradient("f", "f")), Some(Kind::FunctionBody));
    assert_eq!(kind(Loader::LoadV1, &gradient("nope", "nope2")), None);
    let both = [function("f", "", "a"), function("g", "", "a"), gradient("f", "g")];
    assert_eq!(kind(Loader::LoadV1, &together(&both)), None);
}

#[test]
fn a_device_that_is_none_is_refused_by_all_but_the_c_import() {
    let on = |device: &str| format!("node {{ name: 'n' op: 'NoOp' device: '{device}' }}");
    for loader in [Loader::LoadV1, Loader::Load, Loader::Cpp] {
        assert_eq!(kind(loader, &on("not a device")), Some(Kind::Device), "{loader:?}");
        assert_eq!(kind(loader, &on("/device:CPU:0")), None, "{loader:?}");
    }
    assert_eq!(kind(Loader::Import, &on("not a device")), None);
    let inside = "node_def { name: 'n' op: 'NoOp' device: 'nowhere' }";
    assert_eq!(kind(Loader::Load, &function("f", inside, "a")), Some(Kind::Device));
}

#[test]
fn a_session_looks_up_all_operations_first_and_wants_kernels() {
    let cpp = |graph: &str| found("2.21", Loader::Cpp, graph, "");
    let behind = "node { name: 'a' op: 'Identity' input: 'x' } node { name: 'b' op: 'NoSuchOp' }";
    let unknown = cpp(&format!("{INPUT} {behind}")).unwrap();
    assert_eq!((unknown.kind, unknown.node.as_str()), (Kind::UnknownOperation, "b"));
    let twice = "node { name: 'n' op: 'NoOp' } node { name: 'n' op: 'NoSuchOp' }";
    assert_eq!(cpp(twice).unwrap().kind, Kind::UnknownOperation);
    // The value of the type is of the wrong kind, which a session reads as another type.
    let wrong = "node { name: 'a' op: 'Identity' input: 'x' attr { key: 'T' value { i: 1 } } }";
    let edge = cpp(&format!("{INPUT} {wrong}")).unwrap();
    assert_eq!(edge.kind, Kind::InputType { input: 0 });
    let tpu =
        "node { name: 't' op: 'TPUReplicateMetadata' attr { key: 'num_replicas' value { i: 1 } } }";
    assert_eq!(cpp(tpu).unwrap().kind, Kind::NoKernel);
    assert_eq!(kind(Loader::Import, tpu), None);
    let call =
        "node { name: 'c' op: 'PartitionedCall' attr { key: 'f' value { func { name: 'g' } } }
        attr { key: 'Tin' value { list { } } } attr { key: 'Tout' value { list { } } } }";
    assert_eq!(cpp(call).unwrap().kind, Kind::FunctionBody);
    assert_eq!(kind(Loader::Import, call), None);
    assert_eq!(kind(Loader::Load, call), Some(Kind::Python));
    let constant = "node { name: 'k' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }
        attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: -3 } } } } } }";
    assert_eq!(cpp(constant).unwrap().kind, Kind::Shape);
}

#[test]
fn a_session_asks_first_whether_functions_call_themselves() {
    let body = node("c", "f", &["a"], "") + &node("n", "NoSuchOp", &[], "");
    let graph = function("f", &body, "a") + INPUT + " node { name: 'c' op: 'f' input: 'x' }";
    let Some(Kind::Structure(diagnostic)) = kind(Loader::Cpp, &graph) else {
        panic!("no structure")
    };
    assert_eq!(diagnostic.kind, StructureDiagnosticKind::CalledFunction);
    assert_eq!(kind(Loader::Import, &graph), Some(Kind::UnknownOperation));
}

#[test]
fn a_session_makes_all_nodes_and_edges_before_anybody_looks_at_values_and_shapes() {
    let shaped = "node { name: 's' op: 'NoOp' attr { key: '_output_shapes' value { list { } } } }
        node { name: 'p' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }
            attr { key: 'shape' value { shape { dim { size: -7 } } } } }";
    let int =
        "node { name: 'i' op: 'Identity' input: 'x' attr { key: 'T' value { type: DT_INT32 } } }";
    let graph = format!("{shaped} {INPUT} {int}");
    assert_eq!(kind(Loader::Import, &graph), Some(Kind::Shape));
    assert_eq!(kind(Loader::Cpp, &graph), Some(Kind::InputType { input: 0 }));
    // Too many inputs are found as edges without a place; too few are not found yet.
    let few = "node { name: 'a' op: 'Identity' attr { key: 'T' value { type: DT_FLOAT } } }";
    assert_eq!(
        kind(Loader::Cpp, &format!("{few} {INPUT} {int}")),
        Some(Kind::InputType { input: 0 })
    );
    assert_eq!(kind(Loader::Cpp, few), Some(Kind::InputCount));
    let many = "node { name: 'm' op: 'NoOp' input: 'x' }";
    assert_eq!(kind(Loader::Cpp, &format!("{INPUT} {many}")), Some(Kind::InputCount));
}

#[test]
fn constants_are_looked_at_before_operations_and_in_functions_that_nobody_calls() {
    let empty = "node { name: 'k' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } } }
        node { name: 'n' op: 'NoSuchOp' }";
    let value = Kind::AttributesMissing { attributes: vec!["value".to_owned()] };
    assert_eq!(kind(Loader::Cpp, empty), Some(value));
    let inside = "node_def { name: 'k' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }
        attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { unknown_rank: true } } } } }";
    assert_eq!(kind(Loader::Cpp, &function("f", inside, "a")), Some(Kind::Shape));
    assert_eq!(kind(Loader::Import, &function("f", inside, "a")), None);
    let itself = function("f", &node("c", "f", &["a"], ""), "a");
    assert!(matches!(kind(Loader::Cpp, &itself), Some(Kind::Structure(_))));
    assert_eq!(kind(Loader::Import, &itself), None);
}

#[test]
fn a_device_that_only_one_of_the_loaders_can_read_is_refused_by_the_other() {
    let on = |device: &str| format!("node {{ name: 'n' op: 'NoOp' device: '{device}' }}");
    assert_eq!(kind(Loader::Cpp, &on("CPU")), Some(Kind::Device));
    assert_eq!(kind(Loader::LoadV1, &on("CPU")), None);
    assert_eq!(kind(Loader::LoadV1, &on("/device:CPU")), Some(Kind::Device));
    assert_eq!(kind(Loader::Cpp, &on("/device:CPU")), None);
    // The existing devices depend on the machine.
    assert_eq!(kind(Loader::Cpp, &on("/job:x/task:3/device:GPU:7")), None);
}

#[test]
fn python_reads_the_attribute_of_colocation_as_texts_and_no_device_beside_it() {
    let with = |value: &str, device: &str| {
        format!(
            "{INPUT} node {{ name: 'n' op: 'NoOp' device: '{device}'
                attr {{ key: '_class' value {{ {value} }} }} }}"
        )
    };
    for loader in [Loader::LoadV1, Loader::Load] {
        for value in ["", "list { }", "s: ''", "list { s: 'x' }", "list { s: 'loc:@x' }"] {
            assert_eq!(kind(loader, &with(value, "")), None, "{loader:?} {value}");
        }
        for value in ["i: 1", "s: 'x'", "list { i: 1 }", "list { s: '\\377' }", "type: DT_FLOAT"] {
            assert_eq!(kind(loader, &with(value, "")), Some(Kind::Python), "{loader:?} {value}");
        }
        assert_eq!(kind(loader, &with("list { s: 'loc:@x' }", "nowhere")), None);
        let own = kind(loader, &with("list { s: 'loc:@n' }", "nowhere"));
        assert_eq!(own, Some(Kind::Device));
    }
    assert_eq!(kind(Loader::Import, &with("i: 1", "")), None);
}

#[test]
fn a_loaded_function_takes_one_tensor_an_argument() {
    let library = "library { function { signature { name: 'f'
        input_arg { name: 'a' type: DT_FLOAT number_attr: 'N' } attr { name: 'N' type: 'int' } } } }";
    let two = "node { name: 'c' op: 'f' input: 'x' input: 'x' attr { key: 'N' value { i: 2 } } }";
    let one = "node { name: 'c' op: 'f' input: 'x' }";
    let graph = |call: &str| format!("{library} {INPUT} {call}");
    assert_eq!(kind(Loader::LoadV1, &graph(two)), None);
    assert_eq!(kind(Loader::Load, &graph(two)), Some(Kind::InputCount));
    let number = Kind::AttributesMissing { attributes: vec!["N".to_owned()] };
    assert_eq!(kind(Loader::LoadV1, &graph(one)), Some(number));
    assert_eq!(kind(Loader::Load, &graph(one)), None);
}

#[test]
fn a_function_that_is_imported_brings_along_only_those_that_it_calls_by_name() {
    let (inner, middle) = (function("h", "", "a"), function("g", &node("c", "h", &["a"], ""), "a"));
    let outer = function("f", &node("c", "g", &["a"], ""), "a");
    let two = together(&[inner.clone(), middle.clone()]);
    assert_eq!(kind(Loader::Load, &two), None);
    let three = together(&[inner.clone(), middle.clone(), outer]);
    assert_eq!(kind(Loader::Load, &three), Some(Kind::UnknownOperation));
    assert_eq!(kind(Loader::LoadV1, &three), None);
    let calls_both = node("c", "g", &["a"], "") + &node("d", "h", &["a"], "");
    let both = together(&[inner, middle, function("f", &calls_both, "a")]);
    assert_eq!(kind(Loader::Load, &both), None);
}

#[test]
fn names_of_resources_are_written_anew_and_other_placeholders_that_nobody_knows_refused() {
    let with = |attribute: &str| {
        format!("node {{ name: 'h' op: 'IdentityReaderV2' attr {{ {attribute} }} }}")
    };
    let number = "key: 'shared_name' value { i: 1 }";
    let wrong = Kind::AttributeKind { attribute: "shared_name".to_owned() };
    assert_eq!(kind(Loader::LoadV1, &with(number)), Some(wrong));
    assert_eq!(kind(Loader::Load, &with(number)), None);
    assert_eq!(kind(Loader::Load, &with("key: 'container' value { placeholder: 'T' }")), None);
    let unknown = Kind::AttributeUnknown { attribute: "_x".to_owned() };
    let open = "key: '_x' value { placeholder: 'T' }";
    assert_eq!(kind(Loader::Load, &with(open)), Some(unknown.clone()));
    let inside = function("f", &node("h", "NoOp", &[], &format!("attr {{ {open} }}")), "a");
    assert_eq!(kind(Loader::Load, &inside), Some(unknown));
}

#[test]
fn the_last_of_two_functions_of_one_name_is_loaded_and_may_name_no_other() {
    let unknown = function("f", &node("n", "NoSuchOp", &[], ""), "a");
    let fine = function("f", "", "a");
    assert_eq!(kind(Loader::Load, &together(&[unknown.clone(), fine.clone()])), None);
    let last = kind(Loader::Load, &together(&[fine, unknown]));
    assert_eq!(last, Some(Kind::UnknownOperation));
    let calling = function("f", &node("c", "g", &["a"], ""), "a");
    let twice = together(&[calling.clone(), calling, function("g", "", "a")]);
    assert_eq!(kind(Loader::Load, &twice), Some(Kind::Python));
}

#[test]
fn python_does_not_take_a_function_in_which_a_name_comes_twice() {
    let twice = function("f", &(node("n", "NoOp", &[], "") + &node("n", "NoOp", &[], "")), "a");
    let Some(Kind::Structure(diagnostic)) = kind(Loader::LoadV1, &twice) else {
        panic!("accepted")
    };
    assert_eq!(
        (&*diagnostic.node, diagnostic.kind),
        ("f", StructureDiagnosticKind::UnequalFunction)
    );
    assert_eq!(
        diagnostic.to_string(),
        "function \"f\": it comes a second time in Python, and is not found to be the same \
         (function \"f\", \"n\": another node, argument or result of the function has the same name)"
    );
    assert_eq!(kind(Loader::Import, &twice), None);
    // Python accepts duplicate functions also in a bare graph.
    let registries = [Registry::tensorflow("2.16").unwrap()];
    let options = ReadOptions::default().with_registries(&registries);
    let graphs = read(twice.as_bytes(), Message::GraphDef, Form::Text, &options).unwrap();
    let judgement = &graphs.meta_graphs[0].graph.judgements[0];
    assert!(judgement.diagnostic(Loader::LoadV1).is_some());
    assert!(judgement.diagnostic(Loader::Import).is_none());
}

#[test]
fn a_type_that_only_a_call_tells_has_no_name_in_python() {
    let open = "attr { key: 'dtype' value { placeholder: 'S' } }";
    let sizes = "attr { key: 'dtype' value { type: DT_INT32 } }";
    let empty = node("n", "Placeholder", &[], sizes) + &node("o", "Empty", &["n:output:0"], open);
    let graph = function("f", &(node("i", "Identity", &["a"], FLOAT) + &empty), "i:output:0");
    for release in ["2.12", "2.13", "2.21"] {
        let kind = |loader| found(release, loader, &graph, "").map(|diagnostic| diagnostic.kind);
        assert_eq!(kind(Loader::Load), Some(Kind::Python), "{release}");
        assert_eq!(kind(Loader::LoadV1), None, "{release}");
    }
    // Outside functions it is the same, except for loaders that only check the definitions of
    // operations.
    let main = format!(
        "node {{ name: 's' op: 'Placeholder' {sizes} }}
        node {{ name: 'o' op: 'Empty' input: 's' {open} }}"
    );
    for (loader, expected) in [
        (Loader::Import, None),
        (Loader::LoadV1, Some(Kind::Python)),
        (Loader::Load, Some(Kind::Python)),
        (Loader::Cpp, None),
    ] {
        assert_eq!(kind(loader, &main), expected, "{loader:?}");
    }
    let none = "node { name: 'o' op: 'IdentityN' attr { key: 'T' value { placeholder: 'S' } } }";
    assert_eq!(kind(Loader::LoadV1, none), None);
}

#[test]
fn a_node_without_an_operation_calls_the_function_without_a_name_once_that_has_another_one() {
    let nameless = function("", "", "a");
    let call = format!("{INPUT} node {{ name: 'c' op: '' input: 'x' }} {nameless}");
    let structure = |loader, graph: &str| match kind(loader, graph) {
        Some(Kind::Structure(diagnostic)) => Some((diagnostic.kind, diagnostic.node)),
        Some(other) => panic!("{other:?}"),
        None => None,
    };
    let no_operation = Some((StructureDiagnosticKind::NoOperation, "c".to_owned()));
    for loader in [Loader::Import, Loader::LoadV1, Loader::Cpp] {
        assert_eq!(structure(loader, &call), no_operation, "{loader:?}");
    }
    assert_eq!(structure(Loader::Load, &call), None);
    let named =
        format!("{INPUT} node {{ name: 'c' op: '' input: 'x' }} {}", function("f", "", "a"));
    assert_eq!(structure(Loader::Load, &named), no_operation);
    // The first diagnostic of the other loaders does not hide a further one.
    let unresolved = format!("{call} node {{ name: 'd' op: 'NoOp' input: '^z' }}");
    assert_eq!(
        structure(Loader::Load, &unresolved),
        Some((StructureDiagnosticKind::UnknownInput, "d".to_owned()))
    );
    assert_eq!(structure(Loader::Import, &unresolved), no_operation);
    let ill_named = format!("{INPUT} node {{ name: 'c d' op: '' input: 'x' }} {nameless}");
    for &loader in Loader::ALL {
        let found = structure(loader, &ill_named).map(|(kind, _)| kind);
        assert_eq!(found, Some(StructureDiagnosticKind::Name), "{loader:?}");
    }
    let two = call.replace("input: 'x'", "input: 'x' input: 'x'");
    assert_eq!(kind(Loader::Load, &two), Some(Kind::InputCount));
}

const TYPES_OF_A_CALL: &str = "attr { key: 'Tin' value { list { type: DT_FLOAT } } }
    attr { key: 'Tout' value { list { type: DT_FLOAT } } }";

/// Returns a function `f` that takes a string of one of its nodes from its caller.
fn left_open() -> String {
    let left = "attr { key: 'container' value { placeholder: 'N' } }
        attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { shape {} } }";
    let body = function("f", &node("v", "VarHandleOp", &[], left), "a");
    body.replace("output_arg", "attr { name: 'N' type: 'string' } output_arg")
}

#[test]
fn what_a_call_gives_to_a_function_is_of_the_kind_that_is_left_to_it() {
    let (body, types) = (left_open(), TYPES_OF_A_CALL);
    let given = |value: &str| {
        let attributes = format!("attr {{ key: 'N' value {{ {value} }} }}");
        format!(
            "{INPUT} {body} node {{ name: 'c' op: 'PartitionedCall' input: 'x' {types}
                attr {{ key: 'f' value {{ func {{ name: 'f' {attributes} }} }} }} }}"
        )
    };
    let of_kind = Some(Kind::AttributeKind { attribute: "N".to_owned() });
    for &loader in Loader::ALL {
        assert_eq!(kind(loader, &given("s: 'c'")), None, "{loader:?}");
        for other in ["type: DT_FLOAT", "i: 1", "list { }", "placeholder: 'N'"] {
            assert_eq!(kind(loader, &given(other)), of_kind, "{loader:?} {other}");
        }
    }
}

#[test]
fn what_calls_in_a_function_give_is_looked_at_once_it_is_written_out_again() {
    let (open, types) = (left_open(), TYPES_OF_A_CALL);
    let given = |value: &str| format!("attr {{ key: 'N' value {{ {value} }} }}");
    let target = |name: &str, given: &str| {
        format!("{types} attr {{ key: 'f' value {{ func {{ name: '{name}' {given} }} }} }}")
    };
    let call = |inner: String, returned: &str| {
        let calling = function("g", &inner, returned);
        let main = target("g", "");
        let library = together(&[open.clone(), calling]);
        format!("{INPUT} {library} node {{ name: 'd' op: 'PartitionedCall' input: 'x' {main} }}")
    };
    let named = |value: &str| {
        let target = target("f", &given(value));
        call(node("c", "PartitionedCall", &["a"], &target), "c:output:0")
    };
    let direct = |value: &str| call(node("c", "f", &["a"], &given(value)), "c:r:0");
    let of_kind = Some(Kind::AttributeKind { attribute: "N".to_owned() });
    for &loader in Loader::ALL {
        assert_eq!(kind(loader, &named("s: 'c'")), None, "{loader:?}");
        assert_eq!(kind(loader, &direct("s: 'c'")), None, "{loader:?}");
        assert_eq!(kind(loader, &named("i: 1")), of_kind, "{loader:?}");
        assert_eq!(kind(loader, &direct("i: 1")), of_kind, "{loader:?}");
        assert_eq!(kind(loader, &named("placeholder: 'N'")), Some(Kind::FunctionBody));
    }
    assert_eq!(kind(Loader::Load, &direct("placeholder: 'N'")), of_kind);
    let missing = call(node("c", "PartitionedCall", &["a"], &target("f", "")), "c:output:0");
    for &loader in Loader::ALL {
        let found = kind(loader, &missing);
        assert!(matches!(found, Some(Kind::AttributesMissing { .. })), "{loader:?} {found:?}");
    }
}

#[test]
fn control_outputs_are_nodes_of_the_function_each_its_own() {
    let with = |outputs: &[&str], returned: &[(&str, &str)]| {
        let outputs: String = outputs.iter().map(|o| format!("control_output: '{o}' ")).collect();
        let returned: String = returned
            .iter()
            .map(|(key, value)| format!("control_ret {{ key: '{key}' value: '{value}' }} "))
            .collect();
        let function = function("f", &node("n", "NoOp", &[], ""), "a");
        let function = function.replace("output_arg", &format!("{outputs} output_arg"));
        function.replace("ret { key", &format!("{returned} ret {{ key"))
    };
    let load = |outputs: &[&str], returned: &[(&str, &str)]| {
        let graph = with(outputs, returned);
        for loader in [Loader::Import, Loader::LoadV1, Loader::Cpp] {
            assert_eq!(kind(loader, &graph), None, "{loader:?}");
        }
        kind(Loader::Load, &graph)
    };
    assert_eq!(load(&["d"], &[("d", "n")]), None);
    assert_eq!(load(&["d", ""], &[("d", "a"), ("", "n")]), None);
    assert_eq!(load(&[], &[("d", "nowhere")]), None);
    for returned in [&[][..], &[("d", "z")], &[("d", "n:output:0")], &[("d", "^n")]] {
        assert_eq!(load(&["d"], returned), Some(Kind::Python), "{returned:?}");
    }
    assert_eq!(load(&["d", "d"], &[("d", "n")]), Some(Kind::Python));
    assert_eq!(load(&["d", "e"], &[("d", "n"), ("e", "n")]), Some(Kind::Python));
}

#[test]
fn a_function_has_the_attributes_that_the_python_of_the_release_knows() {
    let with = |name: &str| {
        let attribute = format!("attr {{ key: '{name}' value {{ b: true }} }} ret {{ key");
        function("f", "", "a").replace("ret { key", &attribute)
    };
    for (name, release, expected) in [
        ("_noinline", "2.12", None),
        ("_disable_acd", "2.12", Some(Kind::Python)),
        ("_disable_acd", "2.16", None),
        ("function_runs_at_most_once", "2.16", Some(Kind::Python)),
        ("function_runs_at_most_once", "2.21", None),
        ("_v", "2.21", Some(Kind::Python)),
        ("", "2.21", Some(Kind::Python)),
    ] {
        for objects in ["", "object_graph_def { nodes { user_object { } } }"] {
            let found = found(release, Loader::Load, &with(name), objects);
            assert_eq!(found.map(|diagnostic| diagnostic.kind), expected, "{name} {release}");
        }
        assert_eq!(kind(Loader::LoadV1, &with(name)), None);
    }
}

#[test]
fn of_a_list_with_values_of_two_kinds_python_reads_the_texts_and_the_functions() {
    let class = |list: &str| {
        format!(
            "{INPUT} node {{ name: 'n' op: 'NoOp' attr {{ key: '_class' value {{ list {{ {list} }} }} }} }}"
        )
    };
    for text in ["s: 'loc:@x'", "i: 1 s: 'loc:@x'", "s: 'loc:@x' shape { }"] {
        assert_eq!(kind(Loader::LoadV1, &class(text)), None, "{text}");
    }
    assert_eq!(kind(Loader::LoadV1, &class("i: 1 shape { }")), Some(Kind::Python));
    let naming = "attr { key: '_k' value { list { i: 1 func { name: 'lost' } } } }";
    let body = function("f", &node("n", "NoOp", &[], naming), "a");
    assert_eq!(kind(Loader::Load, &body), Some(Kind::Python));
    let main = format!("{} node {{ name: 'n' op: 'NoOp' {naming} }}", function("f", "", "a"));
    assert_eq!(kind(Loader::Load, &main), Some(Kind::Python));
    assert_eq!(kind(Loader::LoadV1, &main), None);
}

#[test]
fn python_does_not_take_a_function_with_a_tensor_that_nobody_can_read() {
    let constant = |tensor: &str, key: &str| {
        let value = format!("attr {{ key: '{key}' value {{ tensor {{ {tensor} }} }} }}");
        let class = "attr { key: 'dtype' value { type: DT_FLOAT } }";
        let value = if key == "value" { format!("{class} {value}") } else { value };
        let operation = if key == "value" { "Const" } else { "NoOp" };
        // A valid node before it, which is like it in everything else.
        let valid = "attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape {} } } }";
        let valid = node("g", "Const", &[], &format!("{class} {valid}"));
        function("f", &(valid + &node("k", operation, &[], &value)), "a")
    };
    let unequal = |release, loader, graph: &str| match found(release, loader, graph, "")
        .map(|diagnostic| diagnostic.kind)
    {
        Some(Kind::Structure(diagnostic)) => {
            diagnostic.kind == StructureDiagnosticKind::UnequalFunction
        }
        None => false,
        other => panic!("{other:?}"),
    };
    let size = |size: &str| format!("tensor_shape {{ dim {{ size: {size} }} }}");
    let float = "dtype: DT_FLOAT";
    for (tensor, is_read) in [
        (format!("{float} tensor_shape {{}} tensor_content: 'abcd'"), true),
        (format!("{float} {} tensor_content: 'abcdefgh'", size("2")), true),
        (format!("{float} {} tensor_content: 'abc'", size("2")), false),
        (format!("{float} {} tensor_content: 'abcdefghi'", size("2")), false),
        (format!("{float} {} tensor_content: 'abc'", size("0")), true),
        (format!("{float} {} float_val: 1 float_val: 2 float_val: 3", size("2")), true),
        (format!("{float} {} tensor_content: 'abc'", size("1099511627776")), true),
        (format!("dtype: DT_STRING {} tensor_content: 'abc'", size("2")), true),
        ("tensor_shape {}".to_owned(), false),
        ("dtype: 99 tensor_shape {}".to_owned(), false),
        ("dtype: DT_FLOAT_REF tensor_shape {}".to_owned(), false),
    ] {
        for key in ["value", "other", "_internal"] {
            let graph = constant(&tensor, key);
            let expected = !is_read && key != "_internal";
            assert_eq!(unequal("2.21", Loader::LoadV1, &graph), expected, "{tensor} {key}");
            assert_eq!(unequal("2.21", Loader::Load, &graph), expected, "{tensor} {key}");
            let objects = found(
                "2.21",
                Loader::Load,
                &graph,
                "object_graph_def { nodes { user_object { } } }",
            );
            assert!(objects.is_none(), "{tensor} {key}");
        }
    }
    let newer = constant("dtype: DT_INT2 tensor_shape {}", "other");
    assert!(unequal("2.19", Loader::LoadV1, &newer));
    assert!(!unequal("2.20", Loader::LoadV1, &newer));
}
