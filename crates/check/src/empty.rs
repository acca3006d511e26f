//! Empty graphs, which TensorFlow accepts: a file of zero bytes, or another message whose fields
//! are all unknown to the parser.
//!
//! The verdict is still TensorFlow's. Bare messages of IFRT are detected earlier, by their fields.

use serdes::version::VersionDef;
use serdes_files::ReadAt;
use serdes_graphs::graph::{self, Form, Graph, Message, ReadOptions};

use super::{Findings, Reason, Remedy, opened::GraphKind, rule::messages};

/// Limit on the length of files whose nodes are read again, in bytes; the messages in question are
/// shorter.
const LONGEST: u64 = 1 << 20;

/// Warns about an empty graph that is probably not a graph; a file of zero bytes beside a
/// checkpoint is not a meta graph at all.
pub(super) fn check(source: &dyn ReadAt, kind: GraphKind, graph: &Graph) -> Findings {
    let mut findings = Findings::default();
    if graph.versions != VersionDef::default() {
        return findings;
    }
    let size = source.size().unwrap_or_default();
    if size == 0 && kind == GraphKind::MetaGraph {
        let reason = Reason::from(messages::no_meta_graph_in_zero_bytes());
        return findings.refused(reason.with_remedy(Remedy::WriteCheckpointAgain));
    }
    if size == 0 {
        findings.warn(messages::zero_bytes());
    } else if kind == GraphKind::MetaGraph {
        return findings;
    } else if graph.nodes == 0 && graph.functions == 0 {
        findings.warn(messages::nothing_of_a_graph(size));
    } else if kind == GraphKind::GraphDef && size <= LONGEST && !has_operations(source) {
        findings.warn(messages::nodes_without_operations());
    }
    findings
}

/// Returns true if every node has an operation name of printable characters.
fn has_operations(source: &dyn ReadAt) -> bool {
    let options = ReadOptions::default().with_operations_counted(true);
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
