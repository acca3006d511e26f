//! Finds nodes by name or operation, and functions by name.
//!
//! Does not depend on the purpose of a search.

use std::collections::{HashMap, HashSet};

use crate::graph::{
    GraphError,
    node_search::{self, Search},
    source::{Extent, Source},
};

/// A set of names.
pub(super) type Names = HashSet<Vec<u8>, foldhash::fast::RandomState>;

/// The names to find in a meta graph.
#[derive(Debug, Default)]
pub(super) struct SearchRequest<'w> {
    pub(super) meta_graph: usize,
    pub(super) release: i32,
    /// Nodes outside of functions by their names.
    pub(super) nodes: Option<&'w Names>,
    /// Nodes outside of functions by their operations.
    pub(super) operations: &'w [&'w [u8]],
    /// Functions of the library by their names.
    pub(super) functions: Option<&'w Names>,
}

/// The extents that were found: nodes in the order of the file, and the first function of a name.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) nodes: Vec<Extent>,
    pub(super) functions: HashMap<Vec<u8>, Extent>,
}

/// Walks over a file once.
pub(super) fn find(source: Source<'_>, request: &SearchRequest<'_>) -> Result<Places, GraphError> {
    let mut finder = Finder { request, places: Places::default() };
    node_search::walk(source, request.meta_graph, request.release, &mut finder)?;
    Ok(finder.places)
}

/// Collects the places of the items to find.
struct Finder<'w> {
    request: &'w SearchRequest<'w>,
    places: Places,
}

impl Search for Finder<'_> {
    fn wants_nodes(&self) -> bool {
        self.request.nodes.is_some() || !self.request.operations.is_empty()
    }

    fn node(&mut self, name: &[u8], operation: &[u8], place: Extent) {
        let is_requested = self.request.nodes.is_some_and(|names| names.contains(name))
            || self.request.operations.contains(&operation);
        if is_requested {
            self.places.nodes.push(place);
        }
    }

    fn wants_functions(&self) -> bool {
        self.request.functions.is_some()
    }

    fn function(&mut self, name: &[u8], place: Extent) {
        if self.request.functions.is_some_and(|names| names.contains(name)) {
            self.places.functions.entry(name.to_vec()).or_insert(place);
        }
    }
}
