//! Finds the node signatures of canonically encoded nodes for the given registries, during the fast
//! walk.
//!
//! A node that has the operation and the attributes of an earlier one, byte for byte, has the same
//! signature. If all node signatures and all kinds of edges are valid in every registry, each
//! registry accepts the graph without the slow path. Anything else ends the fast walk.

use super::edges::{EdgeKind, EdgeKinds, FastSignature, SIGNATURE_BITS};
use crate::{
    graph::{
        attributes::AttributeReader,
        function_names::FunctionNames,
        index::{FirstNode, OutputShapes, TopLevelNodes},
        node_rules::{NodeType, PythonColocation},
        node_signatures::NodeSignatures,
        raw_nodes::SignatureCache,
        release::Releases,
        source::Extent,
    },
    scan::{Progress, Scanner},
    schema::{NODE_DEF, TENSORFLOW},
};

/// The bytes of a node, their end in the file, and the number of enclosing messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeBytes<'b> {
    pub(super) bytes: &'b [u8],
    pub(super) end: u64,
    pub(super) depth: usize,
}

/// The node signatures of one graph, as long as all of them are valid.
#[derive(Debug)]
pub(super) struct FastSignatures<'a> {
    node_signatures: NodeSignatures<'a>,
    /// The types of each node signature, by its number here.
    types: Vec<NodeType>,
    reader: AttributeReader,
    scanner: Scanner,
    edges: EdgeKinds,
    /// The node facts that loaders check.
    top_level: TopLevelNodes,
    /// True if something was found that needs the slow path.
    has_given_up: bool,
}

impl<'a> FastSignatures<'a> {
    pub(super) fn new(releases: Releases<'a>) -> Self {
        Self {
            node_signatures: NodeSignatures::new(releases),
            types: Vec::new(),
            reader: AttributeReader::default(),
            scanner: Scanner::new(TENSORFLOW, NODE_DEF, 0),
            edges: EdgeKinds::default(),
            top_level: TopLevelNodes::default(),
            has_given_up: false,
        }
    }

    /// Returns the node signature of a canonically encoded node that was read by `known`, with this
    /// number of data inputs; `None` if it may be invalid for some registry.
    #[inline]
    pub(super) fn signature(
        &mut self,
        known: &mut SignatureCache<FastSignature>,
        operation: &[u8],
        inputs: u64,
        node: NodeBytes<'_>,
    ) -> Option<FastSignature> {
        let signature = match known.find(operation) {
            Some(signature) => signature,
            None => {
                let signature = self.judge(operation, node)?;
                known.learn(signature);
                signature
            }
        };
        self.types.get(usize::from(signature))?.inputs.may_be(inputs).then_some(signature)
    }

    /// Reads the attributes of a node, and looks them up in the registries.
    #[cold]
    fn judge(&mut self, operation: &[u8], node: NodeBytes<'_>) -> Option<FastSignature> {
        let NodeBytes { bytes, end, depth } = node;
        self.reader.clear();
        self.scanner.restart(NODE_DEF, bytes.len() as u64, depth);
        let run = self.scanner.run(bytes, 0, &mut self.reader);
        if !matches!(run, Ok(Progress::Done)) {
            return None;
        }
        let attributes = self.reader.attributes();
        let place = Extent { start: end.saturating_sub(bytes.len() as u64), end };
        self.top_level.add(operation, attributes, place);
        // A placeholder may have no value from a caller, or be a function without a name.
        let is_unreadable =
            PythonColocation::of(attributes, |_| false) == PythonColocation::Unreadable;
        if self.top_level.has_placeholder || self.top_level.saved_tensor.is_some() || is_unreadable
        {
            return None;
        }
        let no_function = || Ok::<_, ()>(None);
        let (number, ignored) =
            self.node_signatures.of_node(operation, attributes, no_function).ok()?;
        let signature = self.node_signatures.get(number)?;
        let has_kernels = self.node_signatures.operation(signature)?.has_cpu_kernels();
        if ignored != 0 || !signature.needs_only_types || !has_kernels {
            return None;
        }
        let types = self.node_signatures.types(signature.common_types()?)?;
        let said = OutputShapes::of(0, attributes);
        if said.is_some_and(|said| said.valid < types.outputs.len()) {
            return None;
        }
        let known = self.types.iter().position(|other| other == types);
        let signature = known.unwrap_or(self.types.len());
        if known.is_none() {
            self.types.push(types.clone());
        }
        FastSignature::try_from(signature).ok().filter(|signature| *signature < 1 << SIGNATURE_BITS)
    }

    /// Returns the value for an edge that is not checked here.
    #[cold]
    pub(super) fn give_up(&mut self) -> EdgeKind {
        self.has_given_up = true;
        EdgeKind::CONTROL
    }

    /// An edge between nodes of two signatures.
    #[inline]
    pub(super) fn edge(&mut self, edge: EdgeKind) {
        self.edges.add(edge);
    }

    /// Returns the node facts that loaders check, if each registry accepts all nodes and edges,
    /// including the edges `others` that the name table collected; the library has `functions`.
    pub(super) fn finish(
        self,
        others: &EdgeKinds,
        functions: &FunctionNames,
    ) -> Option<TopLevelNodes> {
        let all = |edges: &EdgeKinds| Some(edges.all()?.all(|edge| self.is_valid(edge)));
        let are_edges_valid = all(&self.edges) == Some(true) && all(others) == Some(true);
        // A function hides the operation of its name.
        let is_hidden = |first: &FirstNode| functions.find(first.operation.as_bytes()).is_some();
        let is_accepted = !self.has_given_up && are_edges_valid;
        Some(self.top_level)
            .filter(|top_level| is_accepted && !top_level.operations.iter().any(is_hidden))
    }

    fn is_valid(&self, edge: EdgeKind) -> bool {
        let types = |signature: FastSignature| self.types.get(usize::from(signature));
        let given = types(edge.from()).and_then(|from| from.outputs.get(edge.output()));
        let expected = types(edge.to()).and_then(|to| to.inputs.get(edge.input()));
        matches!((given, expected), (Some(given), Some(expected)) if expected.takes(given))
    }
}
