use crate::{
    graph::{Form, ImportDiagnostic, ImportDiagnosticKind, Loader, Message, ReadOptions, read},
    ops::Registry,
};

/// Returns a description of a function's parameters as TensorFlow writes it, with the replacement
/// `changed`.
fn spec(args: &str, changed: (&str, &str)) -> String {
    let field = |name: &str, value: &str| format!("values {{ key: '{name}' value {{ {value} }} }}");
    let none = "none_value {}";
    let fields = [
        field("args", &format!("list_value {{ {args} }}")),
        field("varargs", none),
        field("varkw", none),
        field("defaults", none),
        field("kwonlyargs", "list_value {}"),
        field("kwonlydefaults", none),
        field("annotations", "dict_value {}"),
    ]
    .concat();
    let all = format!(
        "function_spec {{ fullargspec {{ named_tuple_value {{ name: 'FullArgSpec' {fields} }} }} \
         input_signature {{ none_value {{}} }} }}"
    );
    assert!(all.contains(changed.0), "{changed:?}");
    all.replacen(changed.0, changed.1, 1)
}

const AS_IT_IS: (&str, &str) = ("", "");
const X: &str = "values { string_value: 'x' }";
const TENSOR: &str = "tensor_spec_value { shape {} dtype: DT_FLOAT }";

/// Returns the function `f` with these traced arguments; it captures the objects `bound`.
fn concrete(positions: &str, names: &str, bound: &str) -> String {
    format!(
        "concrete_functions {{ key: 'f' value {{ {bound} canonicalized_input_signature {{ tuple_value {{ \
         values {{ tuple_value {{ {positions} }} }} values {{ dict_value {{ {names} }} }} }} }} \
         output_signature {{ {TENSOR} }} }} }}"
    )
}

fn model(objects: &str) -> String {
    format!(
        "meta_graphs {{ graph_def {{ library {{ function {{ signature {{ name: 'f' }} }} }} }} \
         object_graph_def {{ {objects} }} }}"
    )
}

/// Returns the diagnostics that `tf.saved_model.load` of each release finds in these objects.
fn diagnostics(objects: &str, releases: &[&str]) -> Vec<Option<ImportDiagnostic>> {
    let registries: Vec<Registry> =
        releases.iter().map(|release| Registry::tensorflow(release).unwrap()).collect();
    let options = ReadOptions::default().with_registries(&registries);
    let text = model(objects);
    let graphs = read(text.as_bytes(), Message::SavedModel, Form::Text, &options).unwrap();
    let judgements = &graphs.meta_graphs[0].graph.judgements;
    assert_eq!(judgements.len(), releases.len());
    for judgement in judgements {
        assert_eq!(judgement.diagnostic(Loader::LoadV1), None, "{objects}");
    }
    judgements.iter().map(|judgement| judgement.diagnostic(Loader::Load).cloned()).collect()
}

const ROOT: &str = "nodes { children { node_id: 1 local_name: 'f' } user_object { identifier: '_generic_user_object' version { producer: 1 min_consumer: 1 } } }";
const ALL: [&str; 4] = ["2.12", "2.13", "2.14", "2.21"];

/// Asserts that every release accepts these objects.
fn is_accepted(objects: &str) {
    assert_eq!(diagnostics(objects, &ALL), [None, None, None, None], "{objects}");
}

/// Asserts that no release accepts these objects; returns the place of the diagnostic and the found
/// value.
fn is_refused(objects: &str) -> (String, String) {
    let all = diagnostics(objects, &ALL);
    assert!(all.iter().all(|diagnostic| diagnostic == &all[0]), "{objects}: {all:?}");
    let diagnostic = all[0].clone().unwrap_or_else(|| panic!("accepted: {objects}"));
    assert_eq!(diagnostic.kind, ImportDiagnosticKind::Objects, "{objects}");
    (diagnostic.node, diagnostic.found)
}

fn function(spec: &str) -> String {
    format!("{ROOT} nodes {{ function {{ concrete_functions: 'f' {spec} }} }}")
}

fn one_tensor() -> String {
    concrete(&format!("values {{ {TENSOR} }}"), "", "")
}

#[test]
fn objects_as_tensorflow_writes_them_are_accepted() {
    is_accepted(&(function(&spec(X, AS_IT_IS)) + &one_tensor()));
    is_accepted("nodes { user_object {} }");
    // A negative number of a child counts from the end.
    is_accepted("nodes { children { node_id: -1 local_name: 'self' } user_object {} }");
    let default = (
        "key: 'defaults' value { none_value {}",
        "key: 'defaults' value { tuple_value { values { float64_value: 0 } }",
    );
    is_accepted(&(function(&spec(X, default)) + &concrete("", "", "")));
}

#[test]
fn a_value_must_be_something_that_python_can_make() {
    for (changed, found) in [
        (("none_value {}", ""), "a value that is nothing"),
        (("'FullArgSpec'", "'1'"), "a named tuple with the name \"1\""),
        (("'varkw'", "''"), "a named tuple with the name \"\""),
        (("'varkw'", "'_varkw'"), "a named tuple with the name \"_varkw\""),
        (("'varkw'", "'args'"), "a named tuple with two fields \"args\""),
        (("none_value {}", "tensor_dtype_value: DT_INVALID"), "the data type 0"),
        (
            ("none_value {}", "type_spec_value { type_state { none_value {} } }"),
            "a type of class 0",
        ),
        (
            ("none_value {}", "type_spec_value { type_spec_class: VARIABLE_SPEC }"),
            "a value that is nothing",
        ),
    ] {
        let objects = function(&spec(X, changed)) + &one_tensor();
        let (place, text) = is_refused(&objects);
        assert_eq!(place, "object root.f", "{changed:?}");
        assert!(text.starts_with(found), "{changed:?}: {text}");
    }
    let signature = one_tensor().replace("DT_FLOAT", "DT_INVALID");
    is_refused(&(function(&spec(X, AS_IT_IS)) + &signature));
}

#[test]
fn a_type_that_a_release_lacks_is_refused_by_it_alone() {
    let objects = "nodes { variable { dtype: 29 shape {} } }";
    let found = diagnostics(objects, &["2.14", "2.15"]);
    assert_eq!(
        found[0].as_ref().map(|diagnostic| &diagnostic.kind),
        Some(&ImportDiagnosticKind::ObjectType)
    );
    assert_eq!(found[1], None);
    let (_, found) = is_refused("nodes { variable { dtype: 77 } }");
    assert_eq!(found, "a variable of the data type 77");
    is_refused("nodes { variable { dtype: 1 aggregation: 4 } }");
    is_accepted("nodes { variable { dtype: 101 aggregation: 3 } }");
}

#[test]
fn a_description_of_parameters_has_what_python_asks_for() {
    let list = "key: 'kwonlyargs' value { list_value {}";
    for (args, changed) in [
        (X, ("'varkw'", "'varkwx'")),
        ("values { string_value: '' }", AS_IT_IS),
        ("values { none_value {} }", AS_IT_IS),
        ("values { string_value: 'x' } values { string_value: 'x' }", AS_IT_IS),
        (X, (list, "key: 'kwonlyargs' value { none_value {}")),
        (X, ("key: 'varargs' value { none_value {}", "key: 'varargs' value { string_value: 'a b'")),
        (X, ("key: 'defaults' value { none_value {}", "key: 'defaults' value { int64_value: 1")),
        (X, ("input_signature { none_value {}", "input_signature { int64_value: 1")),
        (
            X,
            (
                "input_signature { none_value {}",
                "input_signature { tuple_value { values { none_value {} } }",
            ),
        ),
    ] {
        is_refused(&(function(&spec(args, changed)) + &one_tensor()));
    }
    let method = spec("", ("function_spec {", "function_spec { is_method: true"));
    is_refused(&(function(&method) + &concrete("", "", "")));
    let types = |types: &str| {
        let signature = format!("input_signature {{ tuple_value {{ {types} }}");
        let spec = spec(X, ("input_signature { none_value {}", signature.as_str()));
        function(&spec) + &one_tensor()
    };
    let tensor = format!("values {{ {TENSOR} }}");
    is_accepted(&types(&tensor));
    is_refused(&types(&tensor.repeat(2)));
}

#[test]
fn a_function_is_there_and_says_what_it_takes() {
    let called = |name: &str| {
        let calls = |name: &str| format!("concrete_functions: '{name}'");
        function(&spec(X, AS_IT_IS)).replace(&calls("f"), &calls(name))
    };
    let (place, found) = is_refused(&(called("g") + &one_tensor()));
    assert_eq!(
        (place.as_str(), found.as_str()),
        ("object root.f", "the function \"g\", which is not in the library")
    );
    is_refused(&called("f"));
    is_refused("nodes { bare_concrete_function {} }");
    is_refused(&("nodes { user_object {} }".to_owned() + &one_tensor().replace("'f'", "'g'")));
    is_accepted(
        &("nodes { bare_concrete_function { concrete_function_name: 'f' } }".to_owned()
            + &one_tensor()),
    );
    let unnamed = one_tensor().replace("values { dict_value {", "values { tuple_value {");
    let found = diagnostics(&(called("f") + &unnamed), &ALL);
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false, true, true]);
    let three =
        one_tensor().replace("values { dict_value", "values { dict_value {} } values { dict_value");
    for diagnostic in diagnostics(&(called("f") + &three), &ALL) {
        assert_eq!(
            diagnostic.map(|diagnostic| diagnostic.kind),
            Some(ImportDiagnosticKind::Objects)
        );
    }
}

#[test]
fn parameters_take_what_the_function_was_traced_with_from_2_14_on() {
    let two = format!("values {{ {TENSOR} }}").repeat(2);
    let named = format!("fields {{ key: 'y' value {{ {TENSOR} }} }}");
    for (positions, names) in [(two.as_str(), ""), ("", ""), ("", named.as_str())] {
        let objects = function(&spec(X, AS_IT_IS)) + &concrete(positions, names, "");
        let refused: Vec<bool> = diagnostics(&objects, &ALL).iter().map(Option::is_some).collect();
        assert_eq!(refused, [false, false, true, true], "{positions} {names}");
    }
    let named = named.replace("'y'", "'x'");
    is_accepted(&(function(&spec(X, AS_IT_IS)) + &concrete("", &named, "")));
}

#[test]
fn objects_stand_in_an_order_and_are_there() {
    let (_, found) = is_refused("nodes { children { node_id: 2 local_name: 'a' } user_object {} }");
    assert_eq!(found, "the object 2 as a child");
    is_refused("nodes { children { node_id: -2 local_name: 'a' } user_object {} }");
    for to in [-1, 2] {
        is_refused(&format!(
            "nodes {{ dependencies {{ node_id: {to} local_name: 'a' }} user_object {{}} }}"
        ));
    }
    is_refused("nodes { dependencies { node_id: 0 local_name: 'a' } user_object {} }");
    is_refused("");
    is_refused("nodes {}");
    let bound = |to: &str| {
        function(&spec(X, AS_IT_IS))
            + "nodes { variable { dtype: 1 } }"
            + &concrete(&format!("values {{ {TENSOR} }}"), "", to)
    };
    is_accepted(&bound("bound_inputs: 2"));
    for to in ["bound_inputs: 0", "bound_inputs: 3", "bound_inputs: [2, -1]", "bound_inputs: 1"] {
        is_refused(&bound(to));
    }
}

#[test]
fn an_element_of_a_list_is_called_by_its_position() {
    let list = |name: &str, producer: i32| {
        format!(
            "nodes {{ children {{ node_id: 0 {name} }} user_object {{ identifier: 'trackable_list_wrapper' version {{ producer: {producer} min_consumer: 1 }} }} }}"
        )
    };
    is_accepted(&list("local_name: '0'", 1));
    let (_, found) = is_refused(&list("local_name: 'zz'", 1));
    assert_eq!(found, "an element of a list that is called \"zz\"");
    is_refused(&list("", 1));
    // No release creates a list from this version.
    is_accepted(&list("local_name: 'zz'", 0));
}

#[test]
fn what_saves_an_object_takes_a_text_only_from_2_13_on() {
    let table = |key: &str, spec: &str| {
        format!(
            "nodes {{ children {{ node_id: 1 local_name: 'table' }} user_object {{}} }} \
             nodes {{ resource {{}} saveable_objects {{ key: '{key}' value {{ save_function: 2 restore_function: 2 }} }} }} \
             nodes {{ bare_concrete_function {{ concrete_function_name: 'f' {spec} }} }}"
        ) + &one_tensor()
    };
    let objects = table("table", &spec(X, AS_IT_IS));
    let found = diagnostics(&objects, &ALL);
    let diagnostic = found[0].as_ref().unwrap();
    assert_eq!(diagnostic.kind, ImportDiagnosticKind::SaveFunction);
    assert_eq!(diagnostic.node, "object root.table");
    assert_eq!(found[1..], [None, None, None]);
    is_accepted(&table("_serialize_to_tensors", &spec(X, AS_IT_IS)));
    // Older exporters record the types of the parameters.
    let typed = format!("input_signature {{ tuple_value {{ values {{ {TENSOR} }} }}");
    is_accepted(&table("table", &spec(X, ("input_signature { none_value {}", &typed))));
    is_refused(
        &table("table", &spec(X, AS_IT_IS)).replace("restore_function: 2", "restore_function: 3"),
    );
}

#[test]
fn what_an_optimizer_makes_is_not_made_as_it_says() {
    let slot = "nodes { slot_variables { slot_variable_node_id: 1 original_variable_node_id: 2 slot_name: 'm' } user_object {} } nodes { } nodes { variable { dtype: 1 } }";
    is_accepted(slot);
    is_refused(&slot.replace("original_variable_node_id: 2", "original_variable_node_id: 7"));
}

#[test]
fn what_is_unclear_is_not_refused() {
    // Two entries for one function, of which the last one counts.
    let broken = one_tensor().replace("DT_FLOAT", "DT_INVALID");
    is_accepted(&(function(&spec(X, AS_IT_IS)) + &broken + &one_tensor()));
    // A registered class may create anything.
    is_accepted("nodes { registered_name: 'Custom.Thing' }");
}

#[test]
fn what_is_captured_can_be_made() {
    let resource = |made: &str| {
        function(&spec(X, AS_IT_IS))
            + &format!("nodes {{ {made} resource {{}} }}")
            + &concrete(&format!("values {{ {TENSOR} }}"), "", "bound_inputs: 2")
    };
    is_refused(&resource(""));
    is_accepted(&resource("children { node_id: 0 local_name: '_create_resource' }"));
    is_accepted(&resource("dependencies { node_id: 0 local_name: '_create_resource' }"));
    is_refused(&resource("registered_name: 'tf.StaticHashTable'"));
    is_accepted(&resource("registered_name: 'Custom.Thing'"));
    is_refused("nodes { constant {} }");
    is_accepted("nodes { constant { operation: 'Const' } }");
    let of_class =
        |kind: &str| format!("nodes {{ {kind} registered_name: 'tf.TrackableConstant' }}");
    is_accepted(&of_class("constant { operation: 'Const' }"));
    for kind in ["", "user_object {}", "resource {}", "variable { dtype: DT_FLOAT shape {} }"] {
        is_refused(&of_class(kind));
    }
}
