//! The functions that a model in the TF2 format offers by name, with the arguments of each.
//!
//! Depends on the object graph only, not on the bodies of functions.

use std::{
    collections::HashMap,
    fmt::{self, Write as _},
};

use prost::Message as _;

use super::{
    GraphError, Message,
    source::{Extent, Form, Source},
};
use crate::{
    data_type,
    files::{ReadAt, read_at::read_arriving},
    scan::{Step, Visitor},
    schema::{
        Field, META_GRAPH_DEF, MessageId, SAVED_MODEL,
        fields::{meta_graph_def, saved_model},
    },
};

/// Limit on the length of an object graph that is read, in bytes.
const LONGEST: u64 = 16 << 20;
/// Limit on the functions of a meta graph, and on the bytes of an argument, that are kept.
const MOST_FUNCTIONS: usize = 1 << 10;
const MOST_TEXT: usize = 4 << 10;

/// A function of the root object of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Callable {
    /// Its name.
    pub name: String,
    /// The signatures for which it was traced, each with its own arguments.
    pub options: Vec<CallableOption>,
}

/// A way to call a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallableOption {
    /// Its positional arguments, in Python notation.
    pub arguments: Vec<String>,
    /// Its keyword arguments, in Python notation.
    pub named_arguments: Vec<(String, String)>,
}

/// Reads the functions of every meta graph of a SavedModel in the binary form, in the order of the
/// file. The result is empty for an object graph over 16 MiB or one that cannot be decoded, and for
/// the text form.
///
/// # Errors
/// [`GraphError`], if no parser accepts the file or the system cannot read it.
pub fn callables(
    source: &(impl ReadAt + ?Sized),
    form: Form,
) -> Result<Vec<Vec<Callable>>, GraphError> {
    let mut finder = Finder::default();
    Source::new(&source, Message::SavedModel, form).walk(&mut finder)?;
    let mut found = Vec::with_capacity(finder.parts.len());
    for part in finder.parts {
        let length = part.end.saturating_sub(part.start);
        let is_readable = form == Form::Binary && length <= LONGEST;
        found.push(if is_readable && length > 0 {
            let bytes = read_arriving(&source, part.start, length)?;
            ObjectGraph::decode(&bytes[..]).map(|graph| graph.callables()).unwrap_or_default()
        } else {
            Vec::new()
        });
    }
    Ok(found)
}

/// The walk that finds the object graphs.
#[derive(Default)]
struct Finder {
    begins: u64,
    parts: Vec<Extent>,
}

impl Visitor for Finder {
    fn begins(&mut self, at: u64) {
        self.begins = at;
    }

    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        match (message, field.number) {
            (SAVED_MODEL, saved_model::META_GRAPHS) => {
                self.parts.push(Extent::default());
                Step::Into
            }
            (META_GRAPH_DEF, meta_graph_def::OBJECT_GRAPH_DEF) => {
                if let Some(part) = self.parts.last_mut() {
                    part.start = self.begins;
                }
                Step::Into
            }
            _ => Step::Over,
        }
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, at: u64) {
        if (message, field.number) == (META_GRAPH_DEF, meta_graph_def::OBJECT_GRAPH_DEF)
            && let Some(part) = self.parts.last_mut()
        {
            part.end = at;
        }
    }
}

/// The parts of `tensorflow.SavedObjectGraph` and its messages that describe functions.
#[derive(Clone, PartialEq, prost::Message)]
struct ObjectGraph {
    #[prost(message, repeated, tag = "1")]
    nodes: Vec<Object>,
    #[prost(map = "string, message", tag = "2")]
    functions: HashMap<String, ConcreteFunction>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Object {
    #[prost(message, repeated, tag = "1")]
    children: Vec<Child>,
    #[prost(message, optional, tag = "6")]
    function: Option<Function>,
    #[prost(message, optional, tag = "8")]
    bare: Option<BareFunction>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Child {
    #[prost(int32, tag = "1")]
    node: i32,
    #[prost(string, tag = "2")]
    name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Function {
    #[prost(string, repeated, tag = "1")]
    concrete: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct BareFunction {
    #[prost(string, tag = "1")]
    concrete: String,
    #[prost(string, repeated, tag = "2")]
    keywords: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ConcreteFunction {
    #[prost(message, optional, tag = "3")]
    inputs: Option<Value>,
}

/// `tensorflow.StructuredValue`: a value of Python.
#[derive(Clone, PartialEq, prost::Message)]
struct Value {
    #[prost(oneof = "Kind", tags = "1, 11, 12, 13, 14, 31, 32, 33, 34, 35, 51, 52, 53, 54")]
    kind: Option<Kind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Kind {
    #[prost(message, tag = "1")]
    None(Empty),
    #[prost(double, tag = "11")]
    Float(f64),
    #[prost(sint64, tag = "12")]
    Integer(i64),
    #[prost(string, tag = "13")]
    Text(String),
    #[prost(bool, tag = "14")]
    Bool(bool),
    #[prost(message, tag = "31")]
    Shape(Shape),
    #[prost(int32, tag = "32")]
    Type(i32),
    #[prost(message, tag = "33")]
    Tensor(Tensor),
    #[prost(message, tag = "34")]
    Spec(TypeSpec),
    #[prost(message, tag = "35")]
    Bounded(Tensor),
    #[prost(message, tag = "51")]
    List(Values),
    #[prost(message, tag = "52")]
    Tuple(Values),
    #[prost(message, tag = "53")]
    Dictionary(Dictionary),
    #[prost(message, tag = "54")]
    NamedTuple(NamedTuple),
}

#[derive(Clone, PartialEq, prost::Message)]
struct Empty {}

#[derive(Clone, PartialEq, prost::Message)]
struct Values {
    #[prost(message, repeated, tag = "1")]
    values: Vec<Value>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Dictionary {
    #[prost(btree_map = "string, message", tag = "1")]
    fields: std::collections::BTreeMap<String, Value>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct NamedTuple {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    values: Vec<Pair>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Pair {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Tensor {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    shape: Option<Shape>,
    #[prost(int32, tag = "3")]
    data_type: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Shape {
    #[prost(message, repeated, tag = "2")]
    dimensions: Vec<Dimension>,
    #[prost(bool, tag = "3")]
    is_of_unknown_rank: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Dimension {
    #[prost(int64, tag = "1")]
    size: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TypeSpec {
    #[prost(string, tag = "3")]
    class: String,
}

impl ObjectGraph {
    /// Returns the functions among the children of the root object, by name.
    fn callables(&self) -> Vec<Callable> {
        let mut found = Vec::new();
        let children = self.nodes.first().map(|root| &root.children[..]).unwrap_or_default();
        for child in children.iter().take(MOST_FUNCTIONS) {
            let object = usize::try_from(child.node).ok().and_then(|node| self.nodes.get(node));
            let options = match object {
                Some(Object { function: Some(function), .. }) => {
                    let mut names: Vec<&String> = function.concrete.iter().collect();
                    names.sort();
                    names.into_iter().take(MOST_FUNCTIONS).map(|name| self.option(name)).collect()
                }
                Some(Object { bare: Some(bare), .. }) => {
                    let mut option = self.option(&bare.concrete);
                    if option == CallableOption::default() {
                        option.arguments.clone_from(&bare.keywords);
                    }
                    vec![option]
                }
                _ => continue,
            };
            found.push(Callable { name: child.name.clone(), options });
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    fn option(&self, name: &str) -> CallableOption {
        let inputs = self.functions.get(name).and_then(|one| one.inputs.as_ref());
        // A pair of the arguments by position and those by name.
        let Some(Kind::Tuple(Values { values })) = inputs.and_then(|value| value.kind.as_ref())
        else {
            return CallableOption::default();
        };
        let mut option = CallableOption::default();
        if let Some(Kind::Tuple(Values { values })) =
            values.first().and_then(|one| one.kind.as_ref())
        {
            option.arguments = values.iter().map(Value::shown).collect();
        }
        if let Some(Kind::Dictionary(named)) = values.get(1).and_then(|one| one.kind.as_ref()) {
            let named = named.fields.iter();
            option.named_arguments =
                named.map(|(name, value)| (name.clone(), value.shown())).collect();
        }
        option
    }
}

impl Value {
    /// Returns the value in Python notation, truncated if it is very long.
    fn shown(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        if text.len() > MOST_TEXT {
            text = text.chars().take(MOST_TEXT).chain("…".chars()).collect();
        }
        text
    }

    fn write(&self, text: &mut String) {
        if text.len() > MOST_TEXT {
            return;
        }
        match &self.kind {
            None | Some(Kind::None(_)) => text.push_str("None"),
            Some(Kind::Float(number)) => put(text, format_args!("{number:?}")),
            Some(Kind::Integer(number)) => put(text, format_args!("{number}")),
            Some(Kind::Text(value)) => put(text, format_args!("'{value}'")),
            Some(Kind::Bool(value)) => text.push_str(if *value { "True" } else { "False" }),
            Some(Kind::Shape(shape)) => put(text, format_args!("TensorShape({})", shape.shown())),
            Some(Kind::Type(number)) => {
                put(text, format_args!("tf.{}", data_type::describe(*number)));
            }
            Some(Kind::Tensor(tensor)) => tensor.write("TensorSpec", text),
            Some(Kind::Bounded(tensor)) => tensor.write("BoundedTensorSpec", text),
            Some(Kind::Spec(spec)) => text.push_str(&spec.class),
            Some(Kind::List(list)) => write_all(&list.values, ["[", "]"], text),
            Some(Kind::Tuple(list)) => write_all(&list.values, ["(", ")"], text),
            Some(Kind::Dictionary(dictionary)) => {
                text.push('{');
                for (number, (key, value)) in dictionary.fields.iter().enumerate() {
                    let comma = if number == 0 { "" } else { ", " };
                    put(text, format_args!("{comma}'{key}': "));
                    value.write(text);
                }
                text.push('}');
            }
            Some(Kind::NamedTuple(tuple)) => {
                put(text, format_args!("{}(", tuple.name));
                for (number, pair) in tuple.values.iter().enumerate() {
                    let comma = if number == 0 { "" } else { ", " };
                    put(text, format_args!("{comma}{}=", pair.key));
                    pair.value.clone().unwrap_or_default().write(text);
                }
                text.push(')');
            }
        }
    }
}

fn put(text: &mut String, words: fmt::Arguments<'_>) {
    // A text takes whatever is written.
    let _ = text.write_fmt(words);
}

fn write_all(values: &[Value], [open, close]: [&str; 2], text: &mut String) {
    text.push_str(open);
    for (number, value) in values.iter().enumerate() {
        if number > 0 {
            text.push_str(", ");
        }
        if text.len() > MOST_TEXT {
            break;
        }
        value.write(text);
    }
    text.push_str(close);
}

impl Shape {
    fn shown(&self) -> String {
        if self.is_of_unknown_rank {
            return "<unknown>".to_owned();
        }
        let size = |one: &Dimension| match one.size {
            -1 => "None".to_owned(),
            size => size.to_string(),
        };
        let sizes: Vec<String> = self.dimensions.iter().map(size).collect();
        let comma = if sizes.len() == 1 { "," } else { "" };
        format!("({}{comma})", sizes.join(", "))
    }
}

impl Tensor {
    fn write(&self, class: &str, text: &mut String) {
        let shape = self.shape.as_ref().map_or_else(|| "()".to_owned(), Shape::shown);
        let data_type = data_type::describe(self.data_type);
        let name = match self.name.as_str() {
            "" => "None".to_owned(),
            name => format!("'{name}'"),
        };
        put(text, format_args!("{class}(shape={shape}, dtype=tf.{data_type}, name={name})"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(name: &str) -> Value {
        let shape = Shape {
            dimensions: vec![Dimension { size: -1 }, Dimension { size: 2 }],
            is_of_unknown_rank: false,
        };
        let tensor = Tensor { name: name.to_owned(), shape: Some(shape), data_type: 1 };
        Value { kind: Some(Kind::Tensor(tensor)) }
    }

    fn tuple(values: Vec<Value>) -> Value {
        Value { kind: Some(Kind::Tuple(Values { values })) }
    }

    #[test]
    fn functions_of_the_outermost_object_have_their_arguments() {
        let training = Value { kind: Some(Kind::Bool(true)) };
        let fields = [("training".to_owned(), training)].into();
        let named = Value { kind: Some(Kind::Dictionary(Dictionary { fields })) };
        let inputs = Some(tuple(vec![tuple(vec![tensor("x")]), named]));
        let graph = ObjectGraph {
            nodes: vec![
                Object {
                    children: vec![
                        Child { node: 1, name: "f".to_owned() },
                        Child { node: 9, name: "lost".to_owned() },
                        Child { node: -1, name: "negative".to_owned() },
                    ],
                    ..Object::default()
                },
                Object {
                    function: Some(Function { concrete: vec!["__inference_f_1".to_owned()] }),
                    ..Object::default()
                },
            ],
            functions: [("__inference_f_1".to_owned(), ConcreteFunction { inputs })].into(),
        };
        let [found] = &graph.callables()[..] else { panic!("one function") };
        assert_eq!(found.name, "f");
        let x = "TensorSpec(shape=(None, 2), dtype=tf.float32, name='x')";
        assert_eq!(found.options[0].arguments, [x]);
        let named = ("training".to_owned(), "True".to_owned());
        assert_eq!(found.options[0].named_arguments, [named]);
    }

    #[test]
    fn long_values_are_cut_off() {
        let many = tuple(vec![tuple(vec![tensor("x"); 1000]); 1000]);
        assert!(many.shown().len() < 2 * MOST_TEXT);
    }
}
