//! TensorFlow graphs: GraphDef, MetaGraphDef and SavedModel, in their binary and text forms.
//!
//! Two depths. [`versions`] steps over everything but the versions, so that a graph of any size is
//! read in the time that its top-level fields take. [`read()`] checks every nested message as a
//! real parser does, in a window of bounded size, and finds what TensorFlow's importer looks at:
//! versions, deprecated operations, whether the nodes fit together.
//!
//! The ground floor are `fault` (what can be wrong, in TensorFlow's order), `rules` (of names,
//! inputs and loops), `source` (the file) and `deprecation`. `fast` walks over the file once and
//! finds most graphs to be clean. Only for the others `index` walks over it once more and writes
//! down what the importer looks at; `importer` judges that, in TensorFlow's order, the first fault
//! wins; `name_of` and `node_at` read what has it back from the file. `read` goes through them in
//! turn, `objects` judges the object graph of a SavedModel, `references` reads what else names nodes
//! (collections, the saver, signatures, assets). Where releases are given with their
//! operations, `kinds` says what each kind of node is in each of them, `shapes` follows the shapes
//! of tensors, and `importer` judges the graph for all of them at once. `node_bytes` tells all
//! walks which nodes are alike, so that the attributes of a kind are read once.
//!
//! Knows the messages and what their importer does with them. It must never know the caller:
//! whether a consumer may take a graph is decided in `serdes_check`.

mod attributes;
mod call_modules;
mod callables;
mod characters;
mod deprecated_uses;
mod deprecation;
mod devices;
mod fast;
mod fault;
mod function_attributes;
mod function_names;
mod graphs;
mod growing;
mod importer;
mod index;
mod interfaces;
mod judgement;
mod kinds;
mod name_of;
mod node_at;
mod node_attributes;
mod node_bytes;
mod node_rules;
mod node_search;
mod objects;
mod read;
mod references;
mod restored;
mod rules;
mod shapes;
mod source;
mod whole_text;

pub use self::call_modules::call_modules;
pub use self::restored::{
    Fit, Name, ObjectValue, PathVariable, Restored, RestoredAsset, RestoredObjects, RestoredTable,
    RestoredTensor, RestoredTensors, TableLines, TableShape, restored,
};
pub use self::{
    callables::{Callable, CallableOption, callables},
    deprecation::{DeprecatedOperation, DeprecatedOperations, DeprecationListError},
    fault::{BodyFault, BodyFaultKind, StructureFault, StructureFaultKind},
    graphs::{DeprecatedUse, Graph, Graphs, MetaGraph},
    interfaces::{Interface, Interfaces, SignatureInterface, TensorInterface, interfaces},
    judgement::{DroppedAttribute, ImportFault, ImportFaultKind, Judgement, Loader},
    read::{ReadOptions, read, versions},
    source::{Form, GraphError, Message},
};

#[cfg(test)]
mod tests;
