//! Reads the function that a node calls.
//!
//! A node calls a function by having its name as the operation, or as a PartitionedCall by its
//! attribute `f`. Conditionals and loops name functions as well; the importer does not look into
//! those.

use crate::{
    attributes::{AttributeValue, Attributes},
    function_names::FunctionNames,
    rules::is_partitioned_call,
    scan::{Piece, Step},
    schema::{
        ATTR_VALUE, ATTR_VALUE_LIST_VALUE, Field, MessageId, NAME_ATTR_LIST, NODE_DEF,
        NODE_DEF_ATTR_ENTRY,
        fields::{
            attr_value, attr_value_list_value, name_attr_list, node_def, node_def_attr_entry,
        },
    },
};

/// The attribute with the function that a PartitionedCall calls.
const FUNCTION: &[u8] = b"f";

/// The attribute with the result types of a PartitionedCall.
const OUTPUTS: &[u8] = b"Tout";

/// The attribute that keeps the importer from building the function.
pub(super) const DISABLED: &[u8] = b"_disable_call_shape_inference";

/// A function that a node calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The hash of its name.
    pub function: u64,
    /// True if the node's operation is the function itself.
    pub direct: bool,
    /// The number of results that the node declares, if it declares one.
    pub outputs: Option<u32>,
    /// True if the importer builds the function; false if it checks only the signature.
    pub inside: bool,
}

/// The operation of a node, as far as calls are concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Operation {
    #[default]
    Other,
    /// A function of the library, by the hash of its name.
    Function(u64),
    /// `PartitionedCall` or its stateful form.
    PartitionedCall,
}

impl Operation {
    pub(super) fn of(name: &[u8], functions: &FunctionNames) -> Self {
        if is_partitioned_call(name) {
            return Self::PartitionedCall;
        }
        functions.find(name).map_or(Self::Other, Self::Function)
    }
}

/// Returns true if a node outside functions calls a placeholder, which no caller replaces.
pub(super) fn is_unbound(operation: &[u8], attributes: &Attributes) -> bool {
    let is_left_alone =
        || matches!(attributes.get_bytes(DISABLED), Some(AttributeValue::Bool(true)));
    is_partitioned_call(operation)
        && matches!(attributes.get_bytes(FUNCTION), Some(AttributeValue::Placeholder(_)))
        && !is_left_alone()
}

/// The attributes that determine a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Key {
    #[default]
    Other,
    Function,
    Outputs,
    Disabled,
}

/// The value of an attribute: the last member that was set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Value {
    #[default]
    Other,
    Flag(bool),
    /// A function of this name, by its hash; `None` if the library has none.
    Function(Option<u64>),
    /// A list of this number of types.
    Types(u32),
    /// An attribute of the enclosing function, given by its caller.
    Placeholder,
}

/// Receives the visitor events inside a node, and finds the function that the node calls.
#[derive(Debug, Default)]
pub(super) struct CallReader {
    operation: Operation,
    key: Key,
    value: Value,
    function: Value,
    outputs: Value,
    disabled: Value,
}

impl CallReader {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn operation(&mut self, operation: Operation) {
        self.operation = operation;
    }

    /// Returns the function that the node calls, if it is one of the library and the importer looks
    /// at it. In a function (`in_function`) a placeholder leaves that to the function's caller, and
    /// the importer counts as not looking inside.
    pub(super) fn call(&self, in_function: bool) -> Option<Call> {
        let inside = match self.disabled {
            Value::Flag(disabled) => !disabled,
            Value::Placeholder => !in_function,
            _ => true,
        };
        match (self.operation, self.function) {
            (Operation::Function(function), _) => {
                Some(Call { function, direct: true, outputs: None, inside })
            }
            (Operation::PartitionedCall, Value::Function(Some(function))) if inside => {
                let outputs = match self.outputs {
                    Value::Types(count) => Some(count),
                    _ => None,
                };
                Some(Call { function, direct: false, outputs, inside })
            }
            _ => None,
        }
    }

    pub(super) fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        match (message, field.number) {
            (NODE_DEF, node_def::ATTR) => {
                (self.key, self.value) = (Key::Other, Value::Other);
                Step::Into
            }
            (NODE_DEF_ATTR_ENTRY, node_def_attr_entry::VALUE) => Step::Into,
            (ATTR_VALUE, attr_value::FUNC) => {
                // A function in several parts is merged.
                if !matches!(self.value, Value::Function(_)) {
                    self.value = Value::Function(None);
                }
                Step::Into
            }
            (ATTR_VALUE, attr_value::LIST) => {
                if !matches!(self.value, Value::Types(_)) {
                    self.value = Value::Types(0);
                }
                Step::Into
            }
            (ATTR_VALUE, _) => {
                self.value = Value::Other;
                Step::Over
            }
            _ => Step::Over,
        }
    }

    pub(super) fn leave(&mut self, message: MessageId, field: &'static Field) {
        if (message, field.number) == (NODE_DEF, node_def::ATTR) {
            // Of several attributes with one key the last one counts.
            match self.key {
                Key::Other => {}
                Key::Function => self.function = self.value,
                Key::Outputs => self.outputs = self.value,
                Key::Disabled => self.disabled = self.value,
            }
        }
    }

    pub(super) fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        match (message, field.number) {
            (ATTR_VALUE, attr_value::B) => self.value = Value::Flag(value != 0),
            (ATTR_VALUE, _) => self.value = Value::Other,
            (ATTR_VALUE_LIST_VALUE, attr_value_list_value::TYPE) => {
                if let Value::Types(count) = &mut self.value {
                    *count = count.saturating_add(1);
                }
            }
            _ => {}
        }
    }

    pub(super) fn string(
        &mut self,
        message: MessageId,
        field: &'static Field,
        piece: &[u8],
        is: Piece,
        functions: &FunctionNames,
    ) {
        match (message, field.number) {
            (NODE_DEF_ATTR_ENTRY, node_def_attr_entry::KEY) => {
                self.key = match piece {
                    FUNCTION => Key::Function,
                    OUTPUTS => Key::Outputs,
                    DISABLED => Key::Disabled,
                    _ => Key::Other,
                };
            }
            (ATTR_VALUE, attr_value::PLACEHOLDER) => self.value = Value::Placeholder,
            (ATTR_VALUE, _) => self.value = Value::Other,
            (NAME_ATTR_LIST, name_attr_list::NAME) => {
                let whole = is.first && is.last;
                let function = if whole { functions.find(piece) } else { None };
                self.value = Value::Function(function);
            }
            _ => {}
        }
    }
}
