//! TensorFlow graphs: GraphDef, MetaGraphDef and SavedModel, in their binary and text forms.
//!
//! There are two levels of detail. [`versions`] reads only the versions and skips everything else,
//! so that a graph of any size takes only the time of its top-level fields. [`read()`] checks every
//! nested message as a real parser does, in a window of bounded size, and makes the checks of
//! TensorFlow's importer: versions, deprecated operations, consistency of the nodes.
//!
//! The basis are `diagnostic` (the diagnostics, in TensorFlow's order), `rules` (of names, inputs
//! and loops), `source` (the file) and `deprecation`. `fast` walks over the file once and accepts
//! most graphs. Only for the others `index` walks over it again and collects the facts that the
//! importer checks; `importer` judges these in TensorFlow's order, and the first diagnostic wins;
//! `name_of` and `node_at` read the node of a diagnostic from the file. `read` runs these in turn,
//! `objects` judges the object graph of a SavedModel, `references` reads other fields that name
//! nodes (collections, the saver, signatures, assets). If releases are given with their operations,
//! `node_signatures` checks each node signature for each of them, `shapes` infers the shapes of
//! tensors, and `importer` judges the graph for all releases at once. `raw_nodes` detects equal
//! nodes for all walks, so that the attributes of a node signature are read once.
//!
//! Depends on the messages and on the importer's treatment of them, but not on the caller:
//! `serdes_check` decides if a consumer may load a graph.

mod call_modules;
mod callables;
mod fast;
mod graphs;
mod importer;
mod interfaces;
mod name_of;
mod objects;
mod read;
mod references;
mod restored;
mod shapes;

use serdes_graph_index::{
    attributes, characters, deprecated_uses, devices, diagnostic, function_attributes,
    function_names, growing, index, node_at, node_attributes, node_rules, node_search,
    node_signatures, raw_nodes, release, rules, source, whole_text,
};

pub use self::call_modules::call_modules;
pub use self::restored::{
    Fit, Name, ObjectValue, PathVariable, Restored, RestoredAsset, RestoredObjects, RestoredTable,
    RestoredTensor, RestoredTensors, TableLines, TableShape, restored,
};
pub use self::{
    callables::{Callable, CallableOption, callables},
    graphs::{Graph, Graphs, MetaGraph},
    interfaces::{Interface, Interfaces, SignatureInterface, TensorInterface, interfaces},
    read::{ReadOptions, read, versions},
};
pub use serdes_graph_index::{
    BodyDiagnostic, BodyDiagnosticKind, DeprecatedOperation, DeprecatedOperations, DeprecatedUse,
    DeprecationListError, Form, GraphError, IgnoredAttribute, ImportDiagnostic,
    ImportDiagnosticKind, Judgement, Loader, LoaderVerdict, Message, StructureDiagnostic,
    StructureDiagnosticKind,
};

#[cfg(test)]
mod tests;
