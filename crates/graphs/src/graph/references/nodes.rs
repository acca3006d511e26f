//! Finds nodes by their names.

use std::collections::{HashMap, HashSet};

use crate::graph::{
    GraphError,
    node_search::{self, Search},
    source::{Extent, Source},
};

/// The names to find.
pub(in super::super) type Names<'n> = HashSet<&'n [u8], foldhash::fast::RandomState>;

/// Returns the extents of the nodes outside of functions with these names, in the meta graph with
/// this number; the first of each name.
pub(in super::super) fn nodes_named<'n>(
    source: Source<'_>,
    meta_graph: usize,
    release: i32,
    names: &Names<'n>,
) -> Result<HashMap<&'n [u8], Extent>, GraphError> {
    let mut finder = NodeFinder { names, found: HashMap::new() };
    if !names.is_empty() {
        node_search::walk(source, meta_graph, release, &mut finder)?;
    }
    Ok(finder.found)
}

/// Keeps the first node of each name.
struct NodeFinder<'n, 'w> {
    names: &'w Names<'n>,
    found: HashMap<&'n [u8], Extent>,
}

impl Search for NodeFinder<'_, '_> {
    fn wants_nodes(&self) -> bool {
        true
    }

    fn node(&mut self, name: &[u8], _operation: &[u8], place: Extent) {
        if let Some(name) = self.names.get(name) {
            self.found.entry(*name).or_insert(place);
        }
    }
}
