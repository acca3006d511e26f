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
    dialect::{has_old_text_parser, knows_field, knows_value},
    enumeration::EnumType,
    generated::{
        fields,
        tables::{
            ATTR_VALUE, ATTR_VALUE_LIST_VALUE, FUNCTION_DEF, FUNCTION_DEF_ARG_ATTR_ENTRY,
            FUNCTION_DEF_ARG_ATTRS, FUNCTION_DEF_ARG_ATTRS_ATTR_ENTRY, FUNCTION_DEF_ATTR_ENTRY,
            FUNCTION_DEF_CONTROL_RET_ENTRY, FUNCTION_DEF_LIBRARY, FUNCTION_DEF_RET_ENTRY,
            GRADIENT_DEF, GRAPH_DEF, META_GRAPH_DEF, META_GRAPH_DEF_META_INFO_DEF, NAME_ATTR_LIST,
            NAME_ATTR_LIST_ATTR_ENTRY, NODE_DEF, NODE_DEF_ATTR_ENTRY, OP_DEF, OP_DEF_ARG_DEF,
            OP_DEF_ATTR_DEF, OP_DEPRECATION, OP_LIST, REGISTERED_GRADIENT, SAVED_MODEL,
            TENSOR_PROTO, TENSOR_SHAPE_PROTO, TENSOR_SHAPE_PROTO_DIM, VERSION_DEF,
        },
    },
    messages::TENSORFLOW,
};
pub(crate) use crate::wire::scan::{Field, Kind, Label, MessageId, MessageType};
use Label::{Optional as OPTIONAL, Plain as PLAIN, Repeated as REPEATED};
