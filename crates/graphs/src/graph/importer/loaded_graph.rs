//! A graph as passed to the loaders: the file, the importer's state, and the meta graph.

use super::{context::Context, function_memo::Library, visits::Visits};
use crate::{
    graph::{
        DeprecatedOperations, GraphError, MetaGraph,
        index::{GraphIndex, TopLevelNodes},
        objects::ObjectGraph,
        source::Extent,
    },
    schema::GRAPH_DEF,
};

/// A graph that the importer has checked, for the checks of loaders.
pub(in super::super) struct LoadedGraph<'g> {
    pub(in super::super) library: Library<'g>,
    pub(in super::super) deprecated: &'g DeprecatedOperations,
    pub(in super::super) meta_graph: &'g MetaGraph,
    /// The number of its meta graph.
    pub(in super::super) number: usize,
    /// True if the file has no other meta graph.
    pub(in super::super) is_only: bool,
    /// The nodes outside functions, if they needed the slow path.
    pub(in super::super) index: Option<&'g GraphIndex>,
    /// The importer's state, if it visited nodes.
    pub(in super::super) visited: Option<Visited<'g>>,
    /// The top-level node facts that loaders check.
    pub(in super::super) top_level: TopLevelNodes,
    /// The object graph, unless the file exceeds the limits.
    pub(in super::super) objects: Option<&'g ObjectGraph>,
}

impl LoadedGraph<'_> {
    /// Returns true if `tf.saved_model.load` loads the objects of the model: TensorFlow looks for
    /// them only in a file with one meta graph.
    pub(super) fn has_objects(&self) -> bool {
        self.meta_graph.has_object_graph && self.is_only
    }
}

/// Nodes that the importer visits.
#[derive(Clone, Copy)]
pub(in super::super) struct Visited<'g> {
    pub(in super::super) context: &'g Context<'g>,
    pub(in super::super) visits: &'g Visits,
    /// True if shape functions were evaluated, and refuse nothing.
    pub(in super::super) do_shapes_fit: bool,
}

impl Visited<'_> {
    /// Returns the visiting time of the node at a place.
    pub(super) fn visit_of(self, place: Extent) -> Result<Option<u32>, GraphError> {
        Ok(self.context.node_at(place)?.map(|node| self.visits.of(node)))
    }
}

/// Returns the top-level node facts of the meta graph with this number, read unless they are
/// `known`; empty if no loader needs them.
pub(in super::super) fn top_level_nodes(
    Library { source, releases, release, .. }: Library<'_>,
    number: usize,
    known: Option<TopLevelNodes>,
) -> Result<TopLevelNodes, GraphError> {
    match known {
        Some(known) => Ok(known),
        None if releases.is_empty() || source.message() == GRAPH_DEF => {
            Ok(TopLevelNodes::default())
        }
        None => TopLevelNodes::read(source, number, release),
    }
}
