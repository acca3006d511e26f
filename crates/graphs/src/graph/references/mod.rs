//! References to nodes from fields of a meta graph other than its graph: collections, the saver,
//! signatures and assets.
//!
//! Depends on their encoding, Python's parsing of names, and the places of nodes, but not on the
//! operations of nodes or the loaders.

mod init;
mod messages;
mod name;
mod nodes;
mod reader;

pub(super) use self::{init::init_name, reader::ASSETS};
pub(super) use self::{
    init::{INIT_COLLECTIONS, INIT_SIGNATURE},
    messages::{NoObject, names_in},
    name::{Asked, Named, node_in_cpp},
    nodes::{Names, nodes_named},
    reader::{CollectionKind, Referring, Signature, TensorReference},
};
use super::{
    GraphError,
    source::{Extent, Source},
};
use crate::schema::{
    ASSET_FILE_DEF, META_GRAPH_DEF_COLLECTION_DEF_ENTRY, META_GRAPH_DEF_SIGNATURE_DEF_ENTRY,
    MessageId, SAVER_DEF, fields::meta_graph_def,
};

/// Limit on the parts that are kept of one meta graph. A meta graph with more is not checked.
const MOST_PARTS: usize = 1 << 12;

/// The extents of a meta graph's fields that refer to nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct References {
    /// Each extent, with its message type.
    parts: Vec<(MessageId, Extent)>,
    is_oversized: bool,
}

impl References {
    /// Returns true if a field of a meta graph refers to nodes.
    pub(super) fn has_field(field: u32) -> bool {
        message_of(field).is_some()
    }

    /// Adds another part, of the field with this number.
    pub(super) fn add(&mut self, field: u32, part: Extent) {
        self.is_oversized |= self.parts.len() == MOST_PARTS;
        if let Some(message) = message_of(field).filter(|_| !self.is_oversized) {
            self.parts.push((message, part));
        }
    }

    /// Reads the fields; empty if they exceed the limit.
    pub(super) fn read(&self, source: Source<'_>, release: i32) -> Result<Referring, GraphError> {
        if self.is_oversized {
            return Ok(Referring::default());
        }
        reader::read(source, &self.parts, release)
    }
}

/// Returns the message type of a field of a meta graph whose content refers to nodes.
fn message_of(field: u32) -> Option<MessageId> {
    match field {
        meta_graph_def::SAVER_DEF => Some(SAVER_DEF),
        meta_graph_def::COLLECTION_DEF => Some(META_GRAPH_DEF_COLLECTION_DEF_ENTRY),
        meta_graph_def::SIGNATURE_DEF => Some(META_GRAPH_DEF_SIGNATURE_DEF_ENTRY),
        meta_graph_def::ASSET_FILE_DEF => Some(ASSET_FILE_DEF),
        _ => None,
    }
}
