//! Graphs without anything in them, which TensorFlow takes: a file of zero bytes, or another message, of which a parser knows no field.
//!
//! The verdict stays TensorFlow's. Bare messages of IFRT are among these: they have no type name, and nothing tells them from a graph
//! but that nothing of a graph is in them.

use super::artifact::{Artifact, Place};
use super::{Kind, Reason, Rule, Verdict, Warning};
use crate::artifact::ReadAt;
use crate::artifact::graph::{self, Form, Graph, Message, ReadOptions};
use crate::version::VersionDef;

/// The longest file in bytes whose nodes are looked at once more; the messages that are meant are shorter.
const LONGEST: u64 = 1 << 20;

/// Warns of a graph that may be none; a file of zero bytes beside a checkpoint is no meta graph at all.
pub(super) fn check(artifact: &Artifact, graph: &Graph, verdict: &mut Verdict) {
    let Place::Source(source) = &artifact.place else { return };
    if graph.versions != VersionDef::default() {
        return;
    }
    let size = source.size().unwrap_or_default();
    if size == 0 && artifact.kind == Kind::MetaGraph {
        let message = "the file has zero bytes, and there is no meta graph in it";
        return verdict.refuse(Reason::new(Rule::Corrupt, message, "write the checkpoint again"));
    }
    let message = if size == 0 {
        "the file has zero bytes; TensorFlow takes that as a graph without nodes".to_owned()
    } else if artifact.kind == Kind::MetaGraph {
        return;
    } else if graph.nodes == 0 && graph.functions == 0 {
        format!(
            "none of the {size} bytes is a node, a function or a version of a graph; TensorFlow takes such a file as a graph without \
             nodes, and it is probably another message"
        )
    } else if artifact.kind == Kind::GraphDef && size <= LONGEST && !has_operations(source) {
        "there are nodes without an operation that anybody could have named, and no version; the file is probably another message"
            .to_owned()
    } else {
        return;
    };
    verdict.warn(Warning::new(Rule::Empty, message));
}

/// Whether every node names its operation, and with characters that can be read.
fn has_operations(source: &dyn ReadAt) -> bool {
    let options = ReadOptions { count_operations: true, ..ReadOptions::default() };
    let Ok(graphs) = graph::read(source, Message::GraphDef, Form::Binary, &options) else {
        return true;
    };
    graphs.meta_graphs.iter().all(|meta_graph| {
        let graph = &meta_graph.graph;
        graph.operations.values().sum::<u64>() == graph.nodes + graph.function_nodes
            && graph
                .operations
                .keys()
                .all(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic()))
    })
}
