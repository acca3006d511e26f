//! The graphs of a file during the fast walk: the start and end of each.
//!
//! Does not depend on the nodes in the graphs.

use std::collections::BTreeMap;

use super::{
    super::{
        bodies::FastBodies,
        node_signatures::FastSignatures,
        nodes::{NodeInProgress, NodeTable},
        scanned_graph::ScannedGraph,
    },
    Depth, GraphVisitor, NodeOwner,
};
use crate::{
    graph::{
        DeprecatedOperations, deprecated_uses::DeprecatedUses, devices::DeviceReader,
        function_names::FunctionNames, raw_nodes::SignatureCache, release::Releases,
    },
    schema::{MessageId, SAVED_MODEL},
};

/// Limit on the meta graphs that are kept of one SavedModel; real ones have one to three.
const MAXIMUM_META_GRAPHS: usize = 1024;

impl<'a> GraphVisitor<'a> {
    pub(in crate::graph) fn new(
        root: MessageId,
        size: u64,
        depth: Depth,
        operations: &'a DeprecatedOperations,
        release: i32,
    ) -> Self {
        let mut visitor = Self {
            depth,
            operations,
            release,
            root,
            size,
            meta_graphs: Vec::new(),
            overflow: false,
            text_kept: 0,
            owner: NodeOwner::Outside,
            node: NodeInProgress::default(),
            table: NodeTable::new(size, false),
            known: SignatureCache::default(),
            devices: DeviceReader::default(),
            releases: Releases::NONE,
            judges_nodes: false,
            node_signatures: None,
            bodies: None,
            counts: BTreeMap::new(),
            in_versions: false,
            in_signature: false,
            functions: FunctionNames::default(),
            function: Vec::new(),
            begins: 0,
            function_begins: 0,
            part_begins: 0,
            function_deprecated: None,
            uses: DeprecatedUses::default(),
            text: Vec::new(),
        };
        if root != SAVED_MODEL {
            visitor.meta_graphs.push(ScannedGraph::default());
        }
        visitor
    }

    /// Also judges the nodes for these releases; only those of functions unless `judges_nodes`.
    pub(in crate::graph) fn with_releases(
        self,
        releases: Releases<'a>,
        judges_nodes: bool,
    ) -> Self {
        let mut visitor = Self { releases, judges_nodes, ..self };
        visitor.begin_signatures();
        visitor
    }

    /// Prepares for the nodes of a graph.
    pub(super) fn begin_signatures(&mut self) {
        let is_asked = !self.releases.is_empty();
        self.bodies = is_asked.then(|| FastBodies::new(self.releases));
        if is_asked && self.judges_nodes {
            self.node_signatures = Some(FastSignatures::new(self.releases));
            self.table = NodeTable::new(self.size, true);
            self.known = SignatureCache::default();
        }
    }

    /// Returns the meta graphs, complete.
    pub(in crate::graph) fn finish(mut self) -> (Vec<ScannedGraph>, bool) {
        if self.root != SAVED_MODEL {
            self.end_of_graph();
        }
        (self.meta_graphs, self.overflow)
    }

    pub(super) fn begin_meta_graph(&mut self) {
        if self.meta_graphs.len() == MAXIMUM_META_GRAPHS {
            self.overflow = true;
        } else {
            self.meta_graphs.push(ScannedGraph::default());
            self.begin_signatures();
        }
    }

    /// Moves what was collected outside the record into it.
    pub(super) fn end_of_graph(&mut self) {
        let counts = std::mem::take(&mut self.counts);
        let table = std::mem::replace(&mut self.table, NodeTable::new(self.size, false));
        let inputs = table.inputs();
        let (needs_order, edges) = table.needs_order();
        let functions = std::mem::take(&mut self.functions);
        let node_signatures = self.node_signatures.take().filter(|_| !needs_order);
        let accepted =
            node_signatures.and_then(|node_signatures| node_signatures.finish(&edges, &functions));
        let uses = std::mem::take(&mut self.uses);
        let may_ignore_in_functions = self.bodies.take().is_none() && !self.releases.is_empty();
        if let Some(scanned) = self.scanned() {
            scanned.needs_order = needs_order;
            scanned.inputs = inputs;
            scanned.accepted = accepted;
            scanned.may_ignore_in_functions = may_ignore_in_functions;
            scanned.functions = functions;
            let graph = &mut scanned.meta_graph.graph;
            (graph.deprecated_nodes, graph.deprecated_in_functions) = uses.finish();
            graph.operations = counts
                .into_iter()
                .map(|(name, count)| (String::from_utf8_lossy(&name).into_owned(), count))
                .collect();
        }
    }
}
