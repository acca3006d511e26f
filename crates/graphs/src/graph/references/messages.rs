//! The messages in collections from which Python creates objects, and the nodes that they name:
//! variables, queues, savers, and the contexts of conditions and loops.

use std::collections::HashMap;

use prost::Message;

use super::name::Asked;

/// The collections whose bytes are VariableDefs.
const VARIABLES: [&str; 7] = [
    "global_step",
    "local_variables",
    "metric_variables",
    "model_variables",
    "moving_average_variables",
    "trainable_variables",
    "variables",
];

/// `tensorflow.VariableDef`, as far as it names nodes.
#[derive(Clone, PartialEq, prost::Message)]
struct VariableDef {
    #[prost(string, tag = "1")]
    variable_name: String,
    #[prost(string, tag = "2")]
    initializer_name: String,
    #[prost(string, tag = "3")]
    snapshot_name: String,
    #[prost(bool, tag = "5")]
    is_resource: bool,
    #[prost(string, tag = "6")]
    initial_value_name: String,
}

/// `tensorflow.QueueRunnerDef`, the same.
#[derive(Clone, PartialEq, prost::Message)]
struct QueueRunnerDef {
    #[prost(string, tag = "1")]
    queue_name: String,
    #[prost(string, repeated, tag = "2")]
    enqueue_op_name: Vec<String>,
    #[prost(string, tag = "3")]
    close_op_name: String,
    #[prost(string, tag = "4")]
    cancel_op_name: String,
}

/// `tensorflow.SaverDef`, as far as Python reads it.
#[derive(Clone, PartialEq, prost::Message)]
struct SaverDef {
    #[prost(string, tag = "2")]
    save_tensor_name: String,
    #[prost(string, tag = "3")]
    restore_op_name: String,
}

/// `tensorflow.ValuesDef`.
#[derive(Clone, PartialEq, prost::Message)]
struct ValuesDef {
    #[prost(string, repeated, tag = "1")]
    values: Vec<String>,
    #[prost(map = "string, string", tag = "2")]
    external_values: HashMap<String, String>,
}

/// `tensorflow.ControlFlowContextDef`.
#[derive(Clone, PartialEq, prost::Message)]
struct ControlFlowContextDef {
    #[prost(oneof = "Context", tags = "1, 2")]
    context: Option<Context>,
}

/// The kind of a control-flow context.
#[derive(Clone, PartialEq, prost::Oneof)]
enum Context {
    #[prost(message, tag = "1")]
    Condition(CondContextDef),
    #[prost(message, tag = "2")]
    Loop(WhileContextDef),
}

/// `tensorflow.CondContextDef`, as far as it names nodes.
#[derive(Clone, PartialEq, prost::Message)]
struct CondContextDef {
    #[prost(string, tag = "2")]
    pred_name: String,
    #[prost(string, tag = "3")]
    pivot_name: String,
    #[prost(message, optional, tag = "5")]
    values_def: Option<ValuesDef>,
    #[prost(message, repeated, tag = "6")]
    nested_contexts: Vec<ControlFlowContextDef>,
}

/// `tensorflow.WhileContextDef`, the same.
#[derive(Clone, PartialEq, prost::Message)]
struct WhileContextDef {
    #[prost(string, tag = "5")]
    pivot_name: String,
    #[prost(string, tag = "6")]
    pivot_for_pred_name: String,
    #[prost(string, tag = "7")]
    pivot_for_body_name: String,
    #[prost(string, repeated, tag = "8")]
    loop_exit_names: Vec<String>,
    #[prost(message, optional, tag = "9")]
    values_def: Option<ValuesDef>,
    #[prost(string, repeated, tag = "10")]
    loop_enter_names: Vec<String>,
    #[prost(string, tag = "11")]
    maximum_iterations_name: String,
    #[prost(message, repeated, tag = "12")]
    nested_contexts: Vec<ControlFlowContextDef>,
}

/// A name in a message, and the required kind of its item.
pub(in super::super) type MessageName = (String, Asked);

/// The reason why no object can be created from a message: the missing part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct NoObject(pub(in super::super) &'static str);

/// Returns the names in a message of a collection; empty if the collection has no messages.
pub(in super::super) fn names_in(
    collection: &str,
    bytes: &[u8],
) -> Result<Vec<MessageName>, NoObject> {
    match collection {
        "cond_context" => read(bytes, "messages CondContextDef").and_then(of_condition),
        "while_context" => read(bytes, "messages WhileContextDef").and_then(of_loop),
        "queue_runners" => read(bytes, "messages QueueRunnerDef").map(of_queue),
        "savers" => read(bytes, "messages SaverDef").and_then(of_saver),
        _ if VARIABLES.contains(&collection) => {
            read(bytes, "messages VariableDef").map(of_variable)
        }
        _ => Ok(Vec::new()),
    }
}

fn read<M: Message + Default>(bytes: &[u8], expected: &'static str) -> Result<M, NoObject> {
    M::decode(bytes).map_err(|_| NoObject(expected))
}

fn any(name: String) -> MessageName {
    (name, Asked::Any)
}

fn of_variable(variable: VariableDef) -> Vec<MessageName> {
    let VariableDef {
        variable_name,
        initializer_name,
        snapshot_name,
        is_resource,
        initial_value_name,
    } = variable;
    let asked = if is_resource { Asked::Tensor } else { Asked::Any };
    let mut names = vec![(variable_name, asked), any(initializer_name)];
    names.extend((!is_resource || !snapshot_name.is_empty()).then(|| any(snapshot_name)));
    names.extend((!initial_value_name.is_empty()).then(|| any(initial_value_name)));
    names
}

fn of_queue(queue: QueueRunnerDef) -> Vec<MessageName> {
    let QueueRunnerDef { queue_name, enqueue_op_name, close_op_name, cancel_op_name } = queue;
    let first = [queue_name].into_iter().chain(enqueue_op_name);
    first.chain([close_op_name, cancel_op_name]).map(any).collect()
}

/// A saver in a collection is created, but never used for restoring.
fn of_saver(saver: SaverDef) -> Result<Vec<MessageName>, NoObject> {
    match saver.save_tensor_name.is_empty() || saver.restore_op_name.is_empty() {
        true => Err(NoObject("a saver with save_tensor_name and restore_op_name")),
        false => Ok(Vec::new()),
    }
}

fn of_condition(condition: CondContextDef) -> Result<Vec<MessageName>, NoObject> {
    let CondContextDef { pred_name, pivot_name, values_def, nested_contexts } = condition;
    let mut names = vec![any(pred_name), any(pivot_name)];
    names.extend(of_values(values_def));
    of_nested(nested_contexts, names)
}

fn of_loop(context: WhileContextDef) -> Result<Vec<MessageName>, NoObject> {
    let WhileContextDef {
        pivot_name,
        pivot_for_pred_name,
        pivot_for_body_name,
        loop_exit_names,
        values_def,
        loop_enter_names,
        maximum_iterations_name,
        nested_contexts,
    } = context;
    let most = Some(maximum_iterations_name).filter(|name| !name.is_empty());
    let pivots = [pivot_for_pred_name, pivot_for_body_name, pivot_name];
    let own = most.into_iter().chain(pivots).chain(loop_exit_names).chain(loop_enter_names);
    let mut names: Vec<MessageName> = own.map(any).collect();
    names.extend(of_values(values_def));
    of_nested(nested_contexts, names)
}

/// Tensors inside a context by their nodes, and the outside tensors that it represents.
fn of_values(values: Option<ValuesDef>) -> Vec<MessageName> {
    let ValuesDef { mut values, external_values } = values.unwrap_or_default();
    values.retain(|value| !external_values.contains_key(value));
    let node = |value: String| match value.split_once(':') {
        Some((node, _)) => node.to_owned(),
        None => value,
    };
    external_values.into_values().map(any).chain(values.into_iter().map(node).map(any)).collect()
}

/// Returns the names in nested contexts, after the context's own. The parser has limited their
/// depth.
fn of_nested(
    nested: Vec<ControlFlowContextDef>,
    mut names: Vec<MessageName>,
) -> Result<Vec<MessageName>, NoObject> {
    for ControlFlowContextDef { context } in nested {
        names.extend(match context {
            Some(Context::Condition(condition)) => of_condition(condition)?,
            Some(Context::Loop(context)) => of_loop(context)?,
            None => return Err(NoObject("a context of a condition or of a loop")),
        });
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(collection: &str, message: &impl Message) -> Vec<String> {
        let names = names_in(collection, &message.encode_to_vec()).unwrap();
        names.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn a_variable_names_its_nodes_as_its_kind_needs_them() {
        let mut variable = VariableDef {
            variable_name: "w:0".to_owned(),
            initializer_name: "w/Assign".to_owned(),
            ..VariableDef::default()
        };
        assert_eq!(names("variables", &variable), ["w:0", "w/Assign", ""]);
        variable.is_resource = true;
        assert_eq!(names("variables", &variable), ["w:0", "w/Assign"]);
        variable.initial_value_name = "v:0".to_owned();
        assert_eq!(names("local_variables", &variable), ["w:0", "w/Assign", "v:0"]);
        let asked = names_in("variables", &variable.encode_to_vec()).unwrap()[0].1;
        assert_eq!(asked, Asked::Tensor);
        assert!(names("mine", &variable).is_empty());
        assert_eq!(names_in("variables", b"\xff"), Err(NoObject("messages VariableDef")));
    }

    #[test]
    fn contexts_name_the_nodes_of_those_inside_of_them() {
        let values_def = Some(ValuesDef {
            values: ["in:0", "in:1", "out:0"].map(str::to_owned).into(),
            external_values: [("out:0".to_owned(), "switch:1".to_owned())].into(),
        });
        let condition = CondContextDef {
            pred_name: "p".to_owned(),
            pivot_name: "t".to_owned(),
            values_def,
            ..CondContextDef::default()
        };
        assert_eq!(names("cond_context", &condition), ["p", "t", "switch:1", "in", "in"]);
        let nested = ControlFlowContextDef { context: Some(Context::Condition(condition)) };
        let mut context = WhileContextDef {
            pivot_name: "a".to_owned(),
            nested_contexts: vec![nested],
            ..WhileContextDef::default()
        };
        let expected = ["", "", "a", "p", "t", "switch:1", "in", "in"];
        assert_eq!(names("while_context", &context), expected);
        context.nested_contexts.push(ControlFlowContextDef { context: None });
        assert!(names_in("while_context", &context.encode_to_vec()).is_err());
    }

    #[test]
    fn queues_name_all_their_nodes_and_savers_none() {
        let queue = QueueRunnerDef {
            queue_name: "q".to_owned(),
            enqueue_op_name: vec!["e".to_owned()],
            ..QueueRunnerDef::default()
        };
        assert_eq!(names("queue_runners", &queue), ["q", "e", "", ""]);
        let mut saver = SaverDef { save_tensor_name: "s:0".to_owned(), ..SaverDef::default() };
        assert!(names_in("savers", &saver.encode_to_vec()).is_err());
        saver.restore_op_name = "r".to_owned();
        assert!(names("savers", &saver).is_empty());
    }
}
