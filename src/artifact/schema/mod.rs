//! The shape of TensorFlow's messages as data: what the wire checker, the text parser and the
//! readers of graphs share.
//!
//! Knows field numbers, names and types. It must never know what a graph means or where its bytes
//! come from.

mod dialect;
mod enumeration;
mod generated;
mod messages;

#[cfg(feature = "device")]
pub(crate) use self::dialect::ReleaseDialect;
pub(crate) use self::{
    dialect::{TENSORFLOW_2_13, TENSORFLOW_2_14, has_old_text_parser, knows_field, knows_value},
    enumeration::EnumType,
    generated::{
        fields,
        tables::{
            ATTR_VALUE, ATTR_VALUE_LIST_VALUE, BOUNDED_TENSOR_SPEC_PROTO, CAPTURED_TENSOR,
            DICT_VALUE, DICT_VALUE_FIELDS_ENTRY, FUNCTION_DEF, FUNCTION_DEF_ARG_ATTR_ENTRY,
            FUNCTION_DEF_ARG_ATTRS, FUNCTION_DEF_ARG_ATTRS_ATTR_ENTRY, FUNCTION_DEF_ATTR_ENTRY,
            FUNCTION_DEF_CONTROL_RET_ENTRY, FUNCTION_DEF_LIBRARY, FUNCTION_DEF_RET_ENTRY,
            FUNCTION_SPEC, GRADIENT_DEF, GRAPH_DEF, LIST_VALUE, META_GRAPH_DEF,
            META_GRAPH_DEF_META_INFO_DEF, NAME_ATTR_LIST, NAME_ATTR_LIST_ATTR_ENTRY,
            NAMED_TUPLE_VALUE, NODE_DEF, NODE_DEF_ATTR_ENTRY, OP_DEF, OP_DEF_ARG_DEF,
            OP_DEF_ATTR_DEF, OP_DEPRECATION, OP_LIST, PAIR_VALUE, REGISTERED_GRADIENT,
            SAVEABLE_OBJECT, SAVED_BARE_CONCRETE_FUNCTION, SAVED_CONCRETE_FUNCTION, SAVED_CONSTANT,
            SAVED_FUNCTION, SAVED_MODEL, SAVED_OBJECT, SAVED_OBJECT_GRAPH,
            SAVED_OBJECT_GRAPH_CONCRETE_FUNCTIONS_ENTRY, SAVED_OBJECT_SAVEABLE_OBJECTS_ENTRY,
            SAVED_USER_OBJECT, SAVED_VARIABLE, SAVER_DEF, STRUCTURED_VALUE, TENSOR_PROTO,
            TENSOR_SHAPE_PROTO, TENSOR_SHAPE_PROTO_DIM, TENSOR_SPEC_PROTO,
            TRACKABLE_OBJECT_GRAPH_TRACKABLE_OBJECT_OBJECT_REFERENCE,
            TRACKABLE_OBJECT_GRAPH_TRACKABLE_OBJECT_SLOT_VARIABLE_REFERENCE, TUPLE_VALUE,
            TYPE_SPEC_PROTO, VERSION_DEF,
        },
    },
    messages::TENSORFLOW,
};
pub(crate) use crate::wire::scan::{Field, Kind, Label, MessageId, MessageType};
use Label::{Optional as OPTIONAL, Plain as PLAIN, Repeated as REPEATED};
