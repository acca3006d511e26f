//! The objects of a model in the TF2 format that a loader matches with a checkpoint: the variables,
//! and the names that lead to them.
//!
//! Depends on the encoding of objects, but not on checkpoints.

use std::collections::HashMap;

use super::node::Shape;
use crate::{
    graph::{
        GraphError,
        source::{Extent, Source},
        whole_text::WholeText,
    },
    scan::{Piece, Step, Visitor},
    schema::{
        Field, MessageId, SAVED_OBJECT, SAVED_OBJECT_GRAPH, SAVED_VARIABLE, TENSOR_SHAPE_PROTO,
        TENSOR_SHAPE_PROTO_DIM, TRACKABLE_OBJECT_GRAPH_TRACKABLE_OBJECT_OBJECT_REFERENCE,
        TRACKABLE_OBJECT_GRAPH_TRACKABLE_OBJECT_SLOT_VARIABLE_REFERENCE,
        fields::{
            saved_object, saved_object_graph, saved_variable, tensor_shape_proto,
            trackable_object_graph_trackable_object_object_reference as object_reference,
            trackable_object_graph_trackable_object_slot_variable_reference as slot_reference,
        },
    },
};

/// The value that a loader restores into an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ObjectValue {
    /// The loader restores no value.
    #[default]
    None,
    /// One tensor.
    Variable {
        /// The number of the element type.
        data_type: i32,
        /// The sizes, `None` for any size; `None` in place of the list for any rank.
        shape: Option<Vec<Option<i64>>>,
        /// The name of the value beside its path.
        name: Name,
    },
    /// A table, restored by its own functions.
    Saveable,
}

/// An object of the graph.
#[derive(Clone, Debug, Default)]
pub struct RestoredObject {
    pub value: ObjectValue,
    /// The range of its children in [`RestoredObjects::children`].
    children: (usize, usize),
}

/// A slot: a variable that an optimizer keeps for another one.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// The optimizer, by its position.
    pub optimizer: usize,
    /// The number of the variable for which it is kept.
    pub original: i32,
    pub name: Name,
    /// Its own number.
    pub slot: i32,
}

/// A name of an object, by its number among the names of the objects.
pub type Name = u32;

/// The objects, by their numbers.
#[derive(Clone, Debug, Default)]
pub struct RestoredObjects {
    /// The objects.
    pub objects: Vec<RestoredObject>,
    children: Vec<(Name, i32)>,
    /// The slots of optimizers.
    pub slots: Vec<Slot>,
    names: HashMap<Vec<u8>, Name>,
}

impl RestoredObjects {
    /// Returns the children of an object, by their names.
    pub fn children(&self, object: usize) -> &[(Name, i32)] {
        let (start, end) = self.objects.get(object).map(|one| one.children).unwrap_or_default();
        self.children.get(start..end).unwrap_or_default()
    }

    /// Returns a name, if some object has it.
    pub fn name(&self, text: &[u8]) -> Option<Name> {
        self.names.get(text).copied()
    }

    /// Returns the texts of the names.
    pub fn texts(&self) -> HashMap<Name, &[u8]> {
        self.names.iter().map(|(text, name)| (*name, text.as_slice())).collect()
    }

    /// Returns the position of an object by its number, interpreted as an index into a Python list.
    pub fn position(&self, number: i32) -> Option<usize> {
        let count = i64::try_from(self.objects.len()).ok()?;
        let number = i64::from(number);
        let position = if number < 0 { number + count } else { number };
        usize::try_from(position).ok().filter(|position| *position < self.objects.len())
    }
}

/// Reads the objects; `None` if they exceed the limit.
pub(super) fn read(
    source: Source<'_>,
    parts: &[Extent],
    release: i32,
) -> Result<Option<RestoredObjects>, GraphError> {
    let mut reader = Reader { release, ..Reader::default() };
    for part in parts {
        source.walk_part(*part, SAVED_OBJECT_GRAPH, &mut reader)?;
    }
    Ok((!reader.text.oversized).then_some(reader.found))
}

/// The part of the current object that was read so far.
#[derive(Debug, Default)]
struct Open {
    /// True if it can have children that a checkpoint lists.
    has_children: bool,
    is_variable: bool,
    is_saveable: bool,
    is_registered: bool,
    data_type: i32,
    shape: Shape,
    name: Vec<u8>,
    children: Vec<(Name, i32)>,
}

/// A walk over an object graph.
#[derive(Debug, Default)]
struct Reader {
    release: i32,
    text: WholeText,
    open: Open,
    child: (Vec<u8>, i32),
    /// The number of the variable that the current slot belongs to.
    original: i32,
    found: RestoredObjects,
}

impl Reader {
    fn end_of_object(&mut self) {
        let open = std::mem::take(&mut self.open);
        let start = self.found.children.len();
        if open.has_children || open.is_registered {
            self.found.children.extend(open.children);
        }
        let shape = (!open.shape.is_unknown).then(|| {
            let sizes = open.shape.sizes.iter();
            sizes.map(|size| Some(*size).filter(|size| *size >= 0)).collect()
        });
        let name = self.name(open.name);
        let value = match (open.is_saveable, open.is_variable && !open.is_registered) {
            (true, _) => ObjectValue::Saveable,
            (false, true) => ObjectValue::Variable { data_type: open.data_type, shape, name },
            (false, false) => ObjectValue::None,
        };
        let children = (start, self.found.children.len());
        self.found.objects.push(RestoredObject { value, children });
    }

    /// Returns the name and the number of the child or slot that ended.
    fn end_of_reference(&mut self) -> (Name, i32) {
        let (name, to) = std::mem::take(&mut self.child);
        (self.name(name), to)
    }

    /// Returns the number of a name.
    fn name(&mut self, text: Vec<u8>) -> Name {
        let count = u32::try_from(self.found.names.len()).unwrap_or(u32::MAX);
        *self.found.names.entry(text).or_insert(count)
    }

    /// Sets the kind of the object, replacing the previous one.
    fn set_kind(&mut self, has_children: bool, is_variable: bool) {
        if is_variable != self.open.is_variable {
            (self.open.data_type, self.open.shape) = (0, Shape::default());
        }
        (self.open.has_children, self.open.is_variable) = (has_children, is_variable);
    }
}

impl Visitor for Reader {
    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        let is_entered = match (message, field.number) {
            (SAVED_OBJECT_GRAPH, saved_object_graph::NODES) => {
                self.open = Open::default();
                true
            }
            (SAVED_OBJECT, saved_object::CHILDREN | saved_object::SLOT_VARIABLES) => {
                self.child = Default::default();
                self.original = 0;
                true
            }
            (SAVED_OBJECT, saved_object::VARIABLE) => {
                self.set_kind(false, true);
                true
            }
            (SAVED_OBJECT, saved_object::USER_OBJECT) => {
                self.set_kind(true, false);
                false
            }
            (SAVED_OBJECT, saved_object::SAVEABLE_OBJECTS) => {
                self.open.is_saveable = true;
                false
            }
            (
                SAVED_OBJECT,
                saved_object::ASSET
                // Its functions are set on it, and not tracked.
                | saved_object::RESOURCE
                | saved_object::FUNCTION
                | saved_object::BARE_CONCRETE_FUNCTION
                | saved_object::CONSTANT
                | saved_object::CAPTURED_TENSOR,
            ) => {
                self.set_kind(false, false);
                false
            }
            (SAVED_VARIABLE, saved_variable::SHAPE) => true,
            (TENSOR_SHAPE_PROTO, tensor_shape_proto::DIM) => {
                self.open.shape.sizes.push(0);
                true
            }
            _ => false,
        };
        if is_entered { Step::Into } else { Step::Over }
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, _at: u64) {
        match (message, field.number) {
            (SAVED_OBJECT_GRAPH, saved_object_graph::NODES) => self.end_of_object(),
            (SAVED_OBJECT, saved_object::CHILDREN) => {
                let child = self.end_of_reference();
                self.open.children.push(child);
            }
            (SAVED_OBJECT, saved_object::SLOT_VARIABLES) => {
                let (name, slot) = self.end_of_reference();
                let (optimizer, original) = (self.found.objects.len(), self.original);
                self.found.slots.push(Slot { optimizer, original, name, slot });
            }
            _ => {}
        }
    }

    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        match (message, field.number) {
            (
                TRACKABLE_OBJECT_GRAPH_TRACKABLE_OBJECT_OBJECT_REFERENCE,
                object_reference::NODE_ID,
            )
            | (
                TRACKABLE_OBJECT_GRAPH_TRACKABLE_OBJECT_SLOT_VARIABLE_REFERENCE,
                slot_reference::SLOT_VARIABLE_NODE_ID,
            ) => self.child.1 = value as u32 as i32,
            (
                TRACKABLE_OBJECT_GRAPH_TRACKABLE_OBJECT_SLOT_VARIABLE_REFERENCE,
                slot_reference::ORIGINAL_VARIABLE_NODE_ID,
            ) => self.original = value as u32 as i32,
            (SAVED_VARIABLE, saved_variable::DTYPE) => {
                self.open.data_type = value as u32 as i32;
            }
            (TENSOR_SHAPE_PROTO, tensor_shape_proto::UNKNOWN_RANK) => {
                self.open.shape.is_unknown = value != 0;
            }
            (TENSOR_SHAPE_PROTO_DIM, _) => {
                if let Some(size) = self.open.shape.sizes.last_mut() {
                    *size = value as i64;
                }
            }
            _ => {}
        }
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        let Some(text) = self.text.take(piece, is) else { return };
        match (message, field.number) {
            (
                TRACKABLE_OBJECT_GRAPH_TRACKABLE_OBJECT_OBJECT_REFERENCE,
                object_reference::LOCAL_NAME,
            )
            | (
                TRACKABLE_OBJECT_GRAPH_TRACKABLE_OBJECT_SLOT_VARIABLE_REFERENCE,
                slot_reference::SLOT_NAME,
            ) => self.child.0 = text.to_vec(),
            (SAVED_VARIABLE, saved_variable::NAME) => self.open.name = text.to_vec(),
            (SAVED_OBJECT, saved_object::REGISTERED_NAME) => {
                self.open.is_registered = !text.is_empty();
            }
            _ => {}
        }
    }

    fn release(&self) -> i32 {
        self.release
    }
}
