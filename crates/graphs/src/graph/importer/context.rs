//! The inputs of the importer's steps, shared by all releases.

use std::cmp::Ordering;

use super::{
    count,
    function_memo::{FunctionMemo, Library},
};
use crate::graph::{
    DeprecatedOperations, GraphError,
    function_names::FunctionNames,
    index::GraphIndex,
    node_signatures::{NodeSignature, NodeSignatures},
    release::Releases,
    source::{Extent, Source},
};

/// A graph after a walk, and the releases for which it is judged.
#[derive(Clone, Copy)]
pub(in super::super) struct Context<'c> {
    pub(in super::super) source: Source<'c>,
    pub(in super::super) index: &'c GraphIndex,
    /// The functions of the library.
    pub(in super::super) functions: &'c FunctionNames,
    /// The functions that were read before.
    pub(in super::super) memo: &'c FunctionMemo,
    pub(in super::super) node_signatures: &'c NodeSignatures<'c>,
    pub(in super::super) releases: Releases<'c>,
    /// The GraphDef version of the release that parses the graph.
    pub(in super::super) release: i32,
    pub(in super::super) deprecated: &'c DeprecatedOperations,
    /// The GraphDef version of the graph's producer.
    pub(in super::super) producer: i32,
    /// True if the shapes of tensors are inferred.
    pub(in super::super) follows_shapes: bool,
}

impl<'c> Context<'c> {
    /// Returns the number of the node at a place.
    pub(super) fn node_at(&self, place: Extent) -> Result<Option<u32>, GraphError> {
        let (mut low, mut high) = (0, count(self.index.nodes().len()));
        while low < high {
            let middle = low + (high - low) / 2;
            let found = self.index.place_of(self.source, middle)?;
            match found.start.cmp(&place.start) {
                Ordering::Equal => return Ok(Some(middle)),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        Ok(None)
    }

    /// Returns the node signature of a node, where node signatures are known.
    pub(super) fn signature_of(&self, node: u32) -> Option<&NodeSignature> {
        self.node_signatures.get(self.index.nodes().get(node as usize)?.signature())
    }

    /// Returns the functions of the graph, and the releases to judge them for.
    pub(super) fn library(&self) -> Library<'c> {
        let Self { source, functions: names, memo, releases, release, follows_shapes, .. } = *self;
        Library { source, names, memo, releases, release, follows_shapes }
    }
}
