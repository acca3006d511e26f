//! TensorFlow graphs: GraphDef, MetaGraphDef and SavedModel, in their binary and text forms.
//!
//! Two depths. [`versions`] steps over everything but the versions, so that a graph of any size is
//! read in the time that its top-level fields take. [`read()`] checks every nested message as a
//! real parser does, in a window of bounded size, and finds what TensorFlow's importer looks at:
//! versions, deprecated operations, whether the nodes fit together.
//!
//! The ground floor are `diagnostic` (what can be wrong, in TensorFlow's order), `rules` (of names,
//! inputs and loops), `source` (the file) and `deprecation`. `fast` walks over the file once and
//! accepts most graphs. Only for the others `index` walks over it once more and writes
//! down what the importer looks at; `importer` judges that, in TensorFlow's order, the first
//! diagnostic wins; `name_of` and `node_at` read what has it back from the file. `read` goes
//! through them in turn, `objects` judges the object graph of a SavedModel, `references` reads what
//! else names nodes (collections, the saver, signatures, assets). Where releases are given with
//! their operations, `node_signatures` says what each node signature is in each of them, `shapes`
//! follows the shapes of tensors, and `importer` judges the graph for all of them at once.
//! `raw_nodes` tells all walks which nodes are alike, so that the attributes of a node signature
//! are read once.
//!
//! Knows the messages and what their importer does with them. It must never know the caller:
//! whether a consumer may take a graph is decided in `serdes_check`.

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
