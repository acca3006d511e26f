//! One node as seen by its shape function: attributes and the known facts about its inputs.
//!
//! Depends on the sources of attribute values, but not on the operations.

use super::{
    shape::{Inferred, Mismatch, Shape},
    tensor::Tensor,
};
use crate::{
    graph::{
        attributes::{AttributeValue, Attributes},
        node_rules::fits,
    },
    ops::{Argument, ArgumentSource, Operation, Value},
};

/// A node whose inputs were inferred before.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct ShapedNode<'n> {
    /// The operation, from one of the releases that know it.
    pub(in super::super) operation: Operation<'n>,
    pub(in super::super) attributes: &'n Attributes,
    /// The data inputs, in their order, as far as they are known.
    pub(in super::super) inputs: &'n [Tensor],
    /// The GraphDef version of the graph's producer.
    pub(in super::super) producer: i32,
    /// True if it is in the body of a function, whose caller gives the values of placeholders.
    pub(in super::super) is_in_body: bool,
}

/// An attribute's own value, or the default.
enum Resolved<'n> {
    Own(AttributeValue<'n>),
    Default(Value<'n>),
}

impl<'n> ShapedNode<'n> {
    /// Returns the input at this index; an unknown tensor if it does not exist.
    pub(super) fn input(&self, place: usize) -> &'n Tensor {
        static NOTHING: Tensor = Tensor::nothing();
        self.inputs.get(place).unwrap_or(&NOTHING)
    }

    pub(super) fn shape(&self, place: usize) -> &'n Shape {
        &self.input(place).shape
    }

    /// Returns the shape of an input that must have this rank.
    pub(super) fn ranked(&self, place: usize, rank: usize) -> Inferred<Shape> {
        self.shape(place).with_rank(rank).map_err(|mismatch| at_input(place, &mismatch))
    }

    /// Returns the shape of an input that must have at least this rank.
    pub(super) fn ranked_at_least(&self, place: usize, rank: usize) -> Inferred<&'n Shape> {
        let shape = self.shape(place).with_rank_at_least(rank);
        shape.map_err(|mismatch| at_input(place, &mismatch))
    }

    /// Returns the value of an attribute; `None` if only a caller can determine it.
    ///
    /// # Errors
    /// [`Mismatch`], if it is of another kind or missing: a shape function that reads it fails.
    /// Inside a function there is no other check.
    fn resolve(&self, name: &str) -> Inferred<Option<Resolved<'n>>> {
        let Some(definition) = self.operation.attribute(name) else { return Ok(None) };
        match self.attributes.get(name) {
            Some(AttributeValue::Placeholder(_)) if self.is_in_body => Ok(None),
            // Python then uses the default, and all other loaders have checked the value before.
            Some(AttributeValue::None) if !definition.kind().is_list => {
                Ok(definition.default().map(Resolved::Default))
            }
            Some(value) if fits(definition.kind(), value) => Ok(Some(Resolved::Own(value))),
            Some(value) => {
                Err(Mismatch::new(format!("{name} = {value}"), definition.kind().to_string()))
            }
            None => match definition.default() {
                Some(default) => Ok(Some(Resolved::Default(default))),
                None => Err(Mismatch::new("", format!("attribute {name}"))),
            },
        }
    }

    pub(super) fn int(&self, name: &str) -> Inferred<Option<i64>> {
        Ok(match self.resolve(name)? {
            Some(Resolved::Own(AttributeValue::Int(number)))
            | Some(Resolved::Default(Value::Int(number))) => Some(number),
            _ => None,
        })
    }

    pub(super) fn flag(&self, name: &str) -> Inferred<Option<bool>> {
        Ok(match self.resolve(name)? {
            Some(Resolved::Own(AttributeValue::Bool(flag)))
            | Some(Resolved::Default(Value::Bool(flag))) => Some(flag),
            _ => None,
        })
    }

    pub(super) fn data_type(&self, name: &str) -> Inferred<Option<i32>> {
        Ok(match self.resolve(name)? {
            Some(Resolved::Own(AttributeValue::Type(number)))
            | Some(Resolved::Default(Value::Type(number))) => Some(number),
            _ => None,
        })
    }

    pub(super) fn text(&self, name: &str) -> Inferred<Option<&'n [u8]>> {
        Ok(match self.resolve(name)? {
            Some(Resolved::Own(AttributeValue::String(text))) => text.bytes,
            Some(Resolved::Default(Value::String(text))) => Some(text),
            _ => None,
        })
    }

    /// Returns a list of integers that was kept whole.
    pub(super) fn ints(&self, name: &str) -> Inferred<Option<Vec<i64>>> {
        Ok(match self.resolve(name)? {
            Some(Resolved::Own(AttributeValue::None)) => Some(Vec::new()),
            Some(Resolved::Own(AttributeValue::List(list))) => {
                let number = |value| match value {
                    AttributeValue::Int(number) => Some(number),
                    _ => None,
                };
                let numbers: Option<Vec<i64>> = list.values().map(number).collect();
                numbers.filter(|numbers| numbers.len() as u64 == list.len())
            }
            Some(Resolved::Default(Value::List(values))) => {
                let number = |value| match value {
                    Value::Int(number) => Some(number),
                    _ => None,
                };
                values.map(number).collect()
            }
            _ => None,
        })
    }

    /// Returns the declared shape of an attribute; an invalid one is reported elsewhere.
    pub(super) fn said_shape(&self, name: &str) -> Inferred<Shape> {
        Ok(match self.resolve(name)? {
            Some(Resolved::Own(AttributeValue::Shape(shape))) if shape.is_partial_shape() => {
                if shape.is_unknown_rank {
                    Shape::unknown()
                } else {
                    Shape::of(shape.dimensions)
                }
            }
            _ => Shape::unknown(),
        })
    }

    /// Returns the shapes in a list; invalid ones are reported elsewhere.
    pub(super) fn said_shapes(&self, name: &str) -> Inferred<Vec<Shape>> {
        let Some(Resolved::Own(AttributeValue::List(list))) = self.resolve(name)? else {
            return Ok(Vec::new());
        };
        let shape = |value| match value {
            AttributeValue::Shape(shape) if !shape.is_unknown_rank && shape.is_partial_shape() => {
                Shape::of(shape.dimensions)
            }
            _ => Shape::unknown(),
        };
        Ok(list.values().map(shape).collect())
    }

    /// Returns the number of values of a list.
    pub(super) fn list_length(&self, name: &str) -> Inferred<Option<u64>> {
        Ok(match self.resolve(name)? {
            Some(Resolved::Own(AttributeValue::None)) => Some(0),
            Some(Resolved::Own(AttributeValue::List(list))) => Some(list.len()),
            Some(Resolved::Default(Value::List(values))) => Some(values.count() as u64),
            _ => None,
        })
    }

    /// Returns the number of tensors of each input of the operation; `None` if unknown.
    pub(super) fn input_counts(&self) -> impl Iterator<Item = Option<usize>> + '_ {
        self.operation.inputs().map(|argument| self.tensors(&argument))
    }

    /// Returns the number of tensors of an argument.
    pub(super) fn tensors(&self, argument: &Argument<'_>) -> Option<usize> {
        let count = match (argument.source(), argument.number_attribute()) {
            (ArgumentSource::List(name), _) => self.list_length(name).ok()?,
            (_, None) => Some(1),
            (_, Some(name)) => self.int(name).ok()?.and_then(|count| u64::try_from(count).ok()),
        };
        usize::try_from(count?).ok()
    }
}

/// Returns a mismatch with its input.
pub(super) fn at_input(place: usize, mismatch: &Mismatch) -> Box<Mismatch> {
    let Mismatch { found, expected, .. } = mismatch;
    Mismatch::new(format!("input {place} of {found}"), expected.as_str())
}
