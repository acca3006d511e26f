//! Reads the fields of a meta graph that refer to nodes.

use std::collections::BTreeMap;

use crate::{
    graph::{
        GraphError,
        source::{Extent, Source},
        whole_text::WholeText,
    },
    scan::{Piece, Step, Visitor},
    schema::{
        ANY, ASSET_FILE_DEF, COLLECTION_DEF, COLLECTION_DEF_ANY_LIST, COLLECTION_DEF_BYTES_LIST,
        COLLECTION_DEF_NODE_LIST, Field, META_GRAPH_DEF_COLLECTION_DEF_ENTRY,
        META_GRAPH_DEF_SIGNATURE_DEF_ENTRY, MessageId, SAVER_DEF, SIGNATURE_DEF,
        SIGNATURE_DEF_INPUTS_ENTRY, SIGNATURE_DEF_OUTPUTS_ENTRY, TENSOR_INFO,
        TENSOR_INFO_COO_SPARSE,
        fields::{
            any, asset_file_def, collection_def, meta_graph_def_collection_def_entry, saver_def,
            signature_def, signature_def_inputs_entry, tensor_info, tensor_info_coo_sparse,
        },
    },
};

/// Limit on the memory for strings, in bytes, and the fixed cost of each string. A meta graph with
/// more is not checked.
const MOST_TEXT: usize = 4 << 20;
const EACH_TEXT: usize = 32;

/// The collection of assets in models of `tf.compat.v1`, each an `Any` message.
pub(in super::super) const ASSETS: &str = "saved_model_assets";

/// The references to nodes in a meta graph.
#[derive(Debug, Default)]
pub(in super::super) struct Referring {
    pub(in super::super) collections: BTreeMap<String, Collection>,
    pub(in super::super) signatures: BTreeMap<String, Signature>,
    pub(in super::super) saver: Option<SaverReferences>,
    /// The tensors to which the paths of assets are fed.
    pub(in super::super) assets: Vec<TensorReference>,
    /// The file of each asset, in the folder of assets.
    pub(in super::super) asset_files: Vec<String>,
}

/// A collection by its name.
#[derive(Debug, Default)]
pub(in super::super) struct Collection {
    pub(in super::super) kind: CollectionKind,
    /// The names of nodes and tensors, or the bytes.
    pub(in super::super) values: Vec<Vec<u8>>,
}

/// The kind of a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum CollectionKind {
    /// An empty collection.
    #[default]
    None,
    Nodes,
    Bytes,
    /// Numbers, or `Any` messages.
    Other,
}

/// A signature by its key.
#[derive(Debug, Default)]
pub(in super::super) struct Signature {
    pub(in super::super) inputs: BTreeMap<String, TensorReference>,
    pub(in super::super) outputs: BTreeMap<String, TensorReference>,
}

/// A reference to a tensor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum TensorReference {
    /// An empty reference.
    #[default]
    None,
    /// A tensor, or a node.
    Name(String),
    /// The values, indices and shape of a sparse tensor.
    Sparse([String; 3]),
    /// Several tensors that form a composite tensor of a Python class.
    Composite,
}

/// The nodes that a saver feeds and runs to restore variables.
#[derive(Debug, Default)]
pub(in super::super) struct SaverReferences {
    pub(in super::super) filename: String,
    pub(in super::super) restore: String,
}

/// Reads these parts, each of which is the content of a message.
pub(super) fn read(
    source: Source<'_>,
    parts: &[(MessageId, Extent)],
    release: i32,
) -> Result<Referring, GraphError> {
    let mut reader = ReferenceReader { release, ..ReferenceReader::default() };
    for (message, part) in parts {
        source.walk_part(*part, *message, &mut reader)?;
        reader.end_of_part(*message);
        if reader.kept > MOST_TEXT || reader.text.oversized {
            return Ok(Referring::default());
        }
    }
    Ok(reader.found)
}

/// A walk over one part after another.
#[derive(Default)]
struct ReferenceReader {
    release: i32,
    kept: usize,
    text: WholeText,
    /// The name of the collection or signature.
    key: String,
    collection: Collection,
    signature: Signature,
    /// The name of the input or output.
    tensor_key: String,
    tensor: TensorReference,
    /// The file of the asset.
    file: String,
    found: Referring,
}

impl ReferenceReader {
    fn end_of_part(&mut self, message: MessageId) {
        let key = std::mem::take(&mut self.key);
        match message {
            META_GRAPH_DEF_COLLECTION_DEF_ENTRY => {
                self.found.collections.insert(key, std::mem::take(&mut self.collection));
            }
            META_GRAPH_DEF_SIGNATURE_DEF_ENTRY => {
                self.found.signatures.insert(key, std::mem::take(&mut self.signature));
            }
            ASSET_FILE_DEF => {
                self.found.assets.push(std::mem::take(&mut self.tensor));
                self.found.asset_files.push(std::mem::take(&mut self.file));
            }
            _ => {
                self.found.saver.get_or_insert_default();
            }
        }
    }

    /// Sets the kind of the collection, which has one kind at a time.
    fn begin_list(&mut self, kind: CollectionKind) {
        if self.collection.kind != kind {
            self.collection = Collection { kind, values: Vec::new() };
        }
    }

    /// Handles a string of a sparse tensor, a saver or a tensor.
    fn set_name(&mut self, message: MessageId, field: u32, name: String) {
        let place = match (message, field) {
            (TENSOR_INFO, tensor_info::NAME) => {
                self.tensor = TensorReference::Name(name);
                return;
            }
            (TENSOR_INFO_COO_SPARSE, _) => {
                let TensorReference::Sparse([values, indices, shape]) = &mut self.tensor else {
                    return;
                };
                match field {
                    tensor_info_coo_sparse::VALUES_TENSOR_NAME => values,
                    tensor_info_coo_sparse::INDICES_TENSOR_NAME => indices,
                    _ => shape,
                }
            }
            (SAVER_DEF, saver_def::FILENAME_TENSOR_NAME) => {
                &mut self.found.saver.get_or_insert_default().filename
            }
            (SAVER_DEF, saver_def::RESTORE_OP_NAME) => {
                &mut self.found.saver.get_or_insert_default().restore
            }
            _ => return,
        };
        *place = name;
    }
}

impl Visitor for ReferenceReader {
    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        match (message, field.number) {
            (COLLECTION_DEF, number) => {
                let kind = match number {
                    collection_def::NODE_LIST => CollectionKind::Nodes,
                    collection_def::BYTES_LIST => CollectionKind::Bytes,
                    _ => CollectionKind::Other,
                };
                self.begin_list(kind);
                let are_assets = number == collection_def::ANY_LIST && self.key == ASSETS;
                if kind == CollectionKind::Other && !are_assets {
                    return Step::Over;
                }
            }
            (SIGNATURE_DEF, signature_def::INPUTS | signature_def::OUTPUTS) => {
                self.tensor_key.clear();
                self.tensor = TensorReference::None;
            }
            (TENSOR_INFO, tensor_info::COO_SPARSE) => {
                if !matches!(self.tensor, TensorReference::Sparse(_)) {
                    self.tensor = TensorReference::Sparse(Default::default());
                }
            }
            (TENSOR_INFO, tensor_info::COMPOSITE_TENSOR) => {
                self.tensor = TensorReference::Composite;
                return Step::Over;
            }
            (
                META_GRAPH_DEF_COLLECTION_DEF_ENTRY
                | META_GRAPH_DEF_SIGNATURE_DEF_ENTRY
                | SIGNATURE_DEF_INPUTS_ENTRY
                | SIGNATURE_DEF_OUTPUTS_ENTRY
                | COLLECTION_DEF_ANY_LIST
                | ASSET_FILE_DEF,
                _,
            ) => {}
            _ => return Step::Over,
        }
        Step::Into
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, _at: u64) {
        let tensors = match (message, field.number) {
            (SIGNATURE_DEF, signature_def::INPUTS) => &mut self.signature.inputs,
            (SIGNATURE_DEF, signature_def::OUTPUTS) => &mut self.signature.outputs,
            _ => return,
        };
        tensors.insert(std::mem::take(&mut self.tensor_key), std::mem::take(&mut self.tensor));
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        let Some(text) = self.text.take(piece, is) else { return };
        self.kept = self.kept.saturating_add(text.len() + EACH_TEXT);
        if self.kept > MOST_TEXT {
            return;
        }
        let name = || String::from_utf8_lossy(text).into_owned();
        match (message, field.number) {
            (
                META_GRAPH_DEF_COLLECTION_DEF_ENTRY | META_GRAPH_DEF_SIGNATURE_DEF_ENTRY,
                meta_graph_def_collection_def_entry::KEY,
            ) => self.key = name(),
            (
                SIGNATURE_DEF_INPUTS_ENTRY | SIGNATURE_DEF_OUTPUTS_ENTRY,
                signature_def_inputs_entry::KEY,
            ) => self.tensor_key = name(),
            (ASSET_FILE_DEF, asset_file_def::FILENAME) => self.file = name(),
            (COLLECTION_DEF_NODE_LIST | COLLECTION_DEF_BYTES_LIST, _) | (ANY, any::VALUE) => {
                let value = text.to_vec();
                self.collection.values.push(value);
            }
            (message, field) => {
                let name = name();
                self.set_name(message, field, name);
            }
        }
    }

    fn wants_bytes(&self, message: MessageId, _field: &'static Field) -> bool {
        message == COLLECTION_DEF_BYTES_LIST || message == ANY
    }

    fn release(&self) -> i32 {
        self.release
    }
}
