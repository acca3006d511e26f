//! Reads the attributes of a node that calls a function.
//!
//! Only a function that leaves types to its callers needs more of a call than the walk keeps.
//!
//! Depends on the encoding of nodes, but not on the called function.

use super::signature::as_in_node;
use crate::{
    GraphError,
    attributes::{AttributeReader, Attributes},
    scan::{Piece, Step, Visitor},
    schema::{
        ATTR_VALUE, Field, MessageId, NAME_ATTR_LIST, NAME_ATTR_LIST_ATTR_ENTRY, NODE_DEF,
        NODE_DEF_ATTR_ENTRY,
        fields::{
            attr_value, name_attr_list, name_attr_list_attr_entry, node_def, node_def_attr_entry,
        },
    },
    source::{Extent, Source},
    whole_text::WholeText,
};

/// Returns the attributes that the node at `place` passes to the function that it calls: its own if
/// its operation is the function (`direct`), those of the function that it names as its attribute
/// `f` otherwise.
pub fn call_attributes(
    source: Source<'_>,
    place: Extent,
    direct: bool,
    release: i32,
) -> Result<Attributes, GraphError> {
    let mut visitor = CallVisitor {
        direct,
        release,
        own: AttributeReader::default(),
        given: AttributeReader::default(),
        function: Attributes::default(),
        is_function: false,
        depth: 0,
        key: WholeText::default(),
    };
    source.walk_part(place, NODE_DEF, &mut visitor)?;
    Ok(if direct { visitor.own.attributes().clone() } else { visitor.function })
}

/// The depth of an attribute's function inside a node: attribute, value, function.
const FUNCTION_DEPTH: usize = 3;

/// A walk over one node.
struct CallVisitor {
    direct: bool,
    release: i32,
    own: AttributeReader,
    /// The attributes of the function in the attribute that is being read.
    given: AttributeReader,
    /// The attributes of the function that the node calls.
    function: Attributes,
    /// True if the current attribute names the called function.
    is_function: bool,
    depth: usize,
    key: WholeText,
}

/// Maps a field of `NameAttrList` to the field of `NodeDef` with the same meaning.
fn translated(message: MessageId, field: &'static Field) -> (MessageId, &'static Field) {
    let found = match (message, field.number) {
        (NAME_ATTR_LIST, name_attr_list::ATTR) => as_in_node(NODE_DEF, node_def::ATTR),
        (NAME_ATTR_LIST_ATTR_ENTRY, name_attr_list_attr_entry::KEY) => {
            as_in_node(NODE_DEF_ATTR_ENTRY, node_def_attr_entry::KEY)
        }
        (NAME_ATTR_LIST_ATTR_ENTRY, name_attr_list_attr_entry::VALUE) => {
            as_in_node(NODE_DEF_ATTR_ENTRY, node_def_attr_entry::VALUE)
        }
        _ => None,
    };
    found.unwrap_or((message, field))
}

impl CallVisitor {
    /// Returns true inside of the function of an attribute.
    fn is_given(&self) -> bool {
        self.depth >= FUNCTION_DEPTH
    }

    /// Maps messages directly inside of that function, and of its attributes, to those of a node.
    fn named(&self, message: MessageId, field: &'static Field) -> (MessageId, &'static Field) {
        if self.depth <= FUNCTION_DEPTH + 1 { translated(message, field) } else { (message, field) }
    }
}

impl Visitor for CallVisitor {
    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        if self.direct {
            return self.own.enter(message, field);
        }
        if self.is_given() {
            let (message, field) = self.named(message, field);
            if self.given.enter(message, field) == Step::Over {
                return Step::Over;
            }
        } else {
            match (self.depth, message, field.number) {
                (0, NODE_DEF, node_def::ATTR) => {
                    self.is_function = false;
                    self.given.clear();
                }
                (1, NODE_DEF_ATTR_ENTRY, node_def_attr_entry::VALUE)
                | (2, ATTR_VALUE, attr_value::FUNC) => {}
                _ => return Step::Over,
            }
        }
        self.depth += 1;
        Step::Into
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, _at: u64) {
        if self.direct {
            self.own.leave(message, field);
            return;
        }
        self.depth = self.depth.saturating_sub(1);
        if self.is_given() {
            let (message, field) = self.named(message, field);
            self.given.leave(message, field);
        } else if self.depth == 0 && self.is_function {
            self.function = self.given.attributes().clone();
        }
    }

    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        if self.direct {
            self.own.integer(message, field, value);
        } else if self.is_given() {
            self.given.integer(message, field, value);
        }
    }

    fn floats(&mut self, message: MessageId, field: &'static Field, count: u64, bytes: &[u8]) {
        if self.direct {
            self.own.floats(message, field, count, bytes);
        } else if self.is_given() {
            self.given.floats(message, field, count, bytes);
        }
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        if self.direct {
            self.own.string(message, field, piece, is);
        } else if self.is_given() {
            let (message, field) = self.named(message, field);
            self.given.string(message, field, piece, is);
        } else if (message, field.number) == (NODE_DEF_ATTR_ENTRY, node_def_attr_entry::KEY)
            && let Some(key) = self.key.take(piece, is)
        {
            self.is_function = key == b"f";
        }
    }

    fn wants_packed(&self, message: MessageId) -> bool {
        let reader = if self.direct { &self.own } else { &self.given };
        reader.wants_packed(message)
    }

    fn wants_bytes(&self, message: MessageId, field: &'static Field) -> bool {
        let reader = if self.direct { &self.own } else { &self.given };
        reader.wants_bytes(message, field)
    }

    fn release(&self) -> i32 {
        self.release
    }
}
