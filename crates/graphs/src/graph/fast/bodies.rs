//! Detects nodes of functions with attributes that a release ignores, during the fast walk.
//!
//! Usually there are none, and the functions need no second walk. The second walk finds the
//! attributes and the number of nodes that have them.

use super::node_signatures::NodeBytes;
use crate::{
    graph::{
        attributes::AttributeReader,
        node_signatures::NodeSignatures,
        raw_nodes::{CanonicalNode, SignatureCache},
        release::Releases,
    },
    scan::{Progress, Scanner},
    schema::{NODE_DEF, TENSORFLOW},
};

/// The node signatures in the functions of one graph, until a release ignores an attribute of one.
#[derive(Debug)]
pub(super) struct FastBodies<'a> {
    node_signatures: NodeSignatures<'a>,
    /// The nodes without ignored attributes.
    known: SignatureCache<()>,
    reader: AttributeReader,
    scanner: Scanner,
}

impl<'a> FastBodies<'a> {
    pub(super) fn new(releases: Releases<'a>) -> Self {
        Self {
            node_signatures: NodeSignatures::new(releases),
            known: SignatureCache::default(),
            reader: AttributeReader::default(),
            scanner: Scanner::new(TENSORFLOW, NODE_DEF, 0),
        }
    }

    /// Reads a node in the canonical encoding.
    #[inline]
    pub(super) fn read<'b>(&mut self, bytes: &'b [u8], depth: usize) -> Option<CanonicalNode<'b>> {
        self.known.read(bytes, depth, |_| true)
    }

    /// Returns true if no release ignores an attribute of the last node, which has this operation.
    #[inline]
    pub(super) fn ignores_nothing(&mut self, operation: &[u8], node: NodeBytes<'_>) -> bool {
        self.known.find(operation).is_some() || self.judge(operation, node)
    }

    /// Reads the attributes of a node, and looks them up in the registries.
    #[cold]
    fn judge(&mut self, operation: &[u8], node: NodeBytes<'_>) -> bool {
        self.reader.clear();
        self.scanner.restart(NODE_DEF, node.bytes.len() as u64, node.depth);
        let run = self.scanner.run(node.bytes, 0, &mut self.reader);
        let is_read = matches!(run, Ok(Progress::Done));
        // A function of this name, which hides the operation, has none either.
        let ignores_nothing =
            is_read && self.node_signatures.of_body_node(operation, self.reader.attributes()) == 0;
        if ignores_nothing {
            self.known.learn(());
        }
        ignores_nothing
    }
}
