//! Values of attributes, read in place from the table.
//!
//! Does not depend on the attribute that has the value.

use super::{
    ValueDefinition,
    table::{Cursor, Table},
};

/// A value of an attribute.
#[derive(Clone, Copy, Debug)]
pub enum Value<'r> {
    /// Bytes, mostly text.
    String(&'r [u8]),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f32),
    /// A truth value.
    Bool(bool),
    /// An element type by TensorFlow's number.
    Type(i32),
    /// A shape; `None` if not even the rank is known.
    Shape(Option<Shape<'r>>),
    /// A serialized `TensorProto`.
    Tensor(&'r [u8]),
    /// The name of a function.
    Function(&'r str),
    /// Several values of one kind.
    List(Values<'r>),
}

impl<'r> Value<'r> {
    pub(crate) fn read(table: &'r Table, from: &mut Cursor<'r>) -> Self {
        let tag = from.byte();
        let bytes = |from: &mut Cursor<'r>| {
            let length = from.number();
            from.bytes(length)
        };
        match tag {
            0 => Self::String(bytes(from)),
            1 => Self::Int(from.signed()),
            2 => Self::Float(f32::from_bits(from.number() as u32)),
            3 => Self::Bool(from.byte() != 0),
            4 => Self::Type(from.signed() as i32),
            5 => Self::Shape(None),
            6 => Self::Shape(Some(Shape(from.list()))),
            7 => Self::Tensor(bytes(from)),
            8 => Self::Function(table.string(from.string_index())),
            _ => Self::List(Values { table, rest: from.list() }),
        }
    }

    /// Returns an owned copy of the value.
    #[must_use]
    pub fn to_definition(self) -> ValueDefinition {
        match self {
            Self::String(bytes) => ValueDefinition::String(bytes.to_vec()),
            Self::Int(number) => ValueDefinition::Int(number),
            Self::Float(number) => ValueDefinition::Float(number.to_bits()),
            Self::Bool(flag) => ValueDefinition::Bool(flag),
            Self::Type(number) => ValueDefinition::Type(number),
            Self::Shape(shape) => ValueDefinition::Shape(shape.map(Iterator::collect)),
            Self::Tensor(bytes) => ValueDefinition::Tensor(bytes.to_vec()),
            Self::Function(name) => ValueDefinition::Function(name.to_owned()),
            Self::List(values) => ValueDefinition::List(values.map(Self::to_definition).collect()),
        }
    }
}

/// The dimensions of a shape; -1 for one that is unknown.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'r>(Cursor<'r>);

impl Iterator for Shape<'_> {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        (!self.0.is_empty()).then(|| self.0.signed())
    }
}

/// The values of a list.
#[derive(Clone, Copy, Debug)]
pub struct Values<'r> {
    table: &'r Table,
    rest: Cursor<'r>,
}

impl<'r> Iterator for Values<'r> {
    type Item = Value<'r>;

    fn next(&mut self) -> Option<Value<'r>> {
        (!self.rest.is_empty()).then(|| Value::read(self.table, &mut self.rest))
    }
}
