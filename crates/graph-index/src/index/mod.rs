//! The index of a graph: the parts that TensorFlow's importer checks, collected in one walk over
//! the file.
//!
//! [`GraphIndex`] has the nodes with their inputs, the nodes that call functions, and where the
//! functions of the library are; names are hashes, and facts that most nodes do not need are
//! replaced by places in the file. The body of a function is indexed separately, from its place,
//! when a node calls it: [`FunctionIndex`]. Memory is proportional to the nodes and inputs of the
//! graph and to the largest body.
//!
//! Depends on the encoding of graphs, but not on the importer's diagnostics.

mod argument;
mod argument_attributes;
mod body_signatures;
mod call_attributes;
mod calls;
mod colocation;
mod function;
mod function_equality;
mod function_reader;
mod graph_index;
mod index_request;
mod name_clashes;
mod names;
mod node;
mod output_names;
mod output_shapes;
mod places;
mod signature;
mod top_level_nodes;
mod visitor;

pub use self::{
    argument::Argument,
    argument_attributes::{ArgumentShape, OutputShape, RESOURCE, SHAPE},
    body_signatures::BodySignature,
    call_attributes::call_attributes,
    calls::Call,
    function::{BodyCall, BodyInput, BodyNode, Element, FunctionIndex, Suffix, Target},
    function_reader::{FunctionDepth, FunctionReader},
    graph_index::{
        CallingNode, DeprecatedNode, DuplicateFunction, GraphIndex, Input, NodeMismatch,
    },
    index_request::{GraphSize, IndexRequest, RequestedSignatures},
    name_clashes::NameClashes,
    names::{Name, NameMap},
    output_names::OutputNames,
    output_shapes::{OUTPUT_SHAPES, OutputShapes},
    places::NodeGroup,
    signature::read as read_signature,
    top_level_nodes::{FirstNode, ReferringNode, TopLevelNodes, UnresolvedCall, UnresolvedTarget},
    visitor::{FoundSignatures, IndexVisitor, Indexed},
};
