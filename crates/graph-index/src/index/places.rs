//! The places of the nodes of a graph in the file.
//!
//! Places are read only for the few nodes with a diagnostic. For the binary form, therefore, only
//! every sixteenth place is kept, and the nodes between are recounted.
//!
//! Does not depend on the contents of nodes.

use crate::{
    GraphError,
    scan::{Step, Visitor},
    schema::{Field, GRAPH_DEF, MessageId, fields::graph_def},
    source::{Extent, Source},
};

/// Number of nodes whose place is kept together.
const GROUP: u32 = 16;

/// Adjacent nodes in the file.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// The number of its first node.
    first: u32,
    /// The range from the end of what precedes the first node to the end of the last one: complete
    /// fields of a GraphDef. In the text form the node itself.
    extent: Extent,
}

/// The places of all nodes of a graph.
#[derive(Debug, Default)]
pub(super) struct NodePlaces {
    /// True for the text form, of which only whole messages can be read.
    is_text: bool,
    groups: Vec<Group>,
    nodes: u32,
    /// The earliest position of the next node.
    from: u64,
    /// True if the next node is in another message than its predecessor.
    is_new: bool,
}

impl NodePlaces {
    /// Creates a list for a graph of about `nodes` nodes.
    pub(super) fn of(source: Source<'_>, nodes: usize) -> Self {
        let is_text = source.is_text();
        let groups = if is_text { nodes } else { nodes / GROUP as usize + 1 };
        let groups = Vec::with_capacity(groups);
        Self { is_text, groups, nodes: 0, from: 0, is_new: true }
    }

    /// Sets the start of the content of a GraphDef.
    pub(super) fn begin_graph(&mut self, at: u64) {
        (self.from, self.is_new) = (at, true);
    }

    /// Adds the next node, by the place of its NodeDef.
    pub(super) fn add(&mut self, node: Extent) {
        let first = self.nodes;
        self.nodes = self.nodes.saturating_add(1);
        let from = std::mem::replace(&mut self.from, node.end);
        let is_new = std::mem::take(&mut self.is_new);
        let last = self.groups.last_mut().filter(|last| first - last.first < GROUP);
        match last.filter(|_| !is_new && !self.is_text) {
            Some(last) => last.extent.end = node.end,
            None if self.is_text => self.groups.push(Group { first, extent: node }),
            None => {
                let extent = Extent { start: from, end: node.end };
                self.groups.push(Group { first, extent });
            }
        }
    }

    /// Returns the place of the NodeDef of a node.
    pub(super) fn find(&self, source: Source<'_>, node: u32) -> Result<Option<Extent>, GraphError> {
        let found = self.find_group(source, node)?;
        Ok(found.and_then(|group| group.place_of(node)))
    }

    /// Returns the places of the nodes that are read together with this one.
    pub(super) fn find_group(
        &self,
        source: Source<'_>,
        node: u32,
    ) -> Result<Option<NodeGroup>, GraphError> {
        let position = self.groups.partition_point(|group| group.first <= node);
        let group = position.checked_sub(1).and_then(|position| self.groups.get(position));
        let Some(Group { first, extent }) = group.filter(|_| node < self.nodes) else {
            return Ok(None);
        };
        if self.is_text {
            return Ok(Some(NodeGroup { first: *first, places: vec![*extent] }));
        }
        let mut visitor = PlaceVisitor { begins: 0, in_graph: extent.start, places: Vec::new() };
        source.walk_part(*extent, GRAPH_DEF, &mut visitor)?;
        Ok(Some(NodeGroup { first: *first, places: visitor.places }))
    }
}

/// The places of a few adjacent nodes.
#[derive(Clone, Debug)]
pub struct NodeGroup {
    first: u32,
    places: Vec<Extent>,
}

impl NodeGroup {
    /// Returns the place of a node, if it is one of these.
    pub fn place_of(&self, node: u32) -> Option<Extent> {
        self.places.get(node.checked_sub(self.first)? as usize).copied()
    }
}

/// Finds the nodes of a part of a GraphDef.
struct PlaceVisitor {
    begins: u64,
    /// The position of the part in the file.
    in_graph: u64,
    places: Vec<Extent>,
}

impl Visitor for PlaceVisitor {
    fn begins(&mut self, at: u64) {
        self.begins = at;
    }

    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        if (message, field.number) != (GRAPH_DEF, graph_def::NODE) {
            return Step::Over;
        }
        let start = self.in_graph.saturating_add(self.begins);
        self.places.push(Extent { start, end: start });
        Step::Into
    }

    fn take(
        &mut self,
        message: MessageId,
        field: &'static Field,
        bytes: &[u8],
        end: u64,
        _depth: usize,
    ) -> bool {
        let is_node = (message, field.number) == (GRAPH_DEF, graph_def::NODE);
        if is_node {
            let end = self.in_graph.saturating_add(end);
            self.places.push(Extent { start: end.saturating_sub(bytes.len() as u64), end });
        }
        is_node
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, at: u64) {
        if (message, field.number) == (GRAPH_DEF, graph_def::NODE)
            && let Some(last) = self.places.last_mut()
        {
            last.end = self.in_graph.saturating_add(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serdes_testkit::fields::field;

    use crate::{Form, GraphError, Message, index::GraphIndex};

    #[test]
    fn place_of_a_node_that_is_not_there_is_an_error() {
        let bytes: &[u8] = b"";
        let source = Source::new(&bytes, Message::GraphDef, Form::Binary);
        let found = GraphIndex::default().place_of(source, 0);
        assert!(matches!(found, Err(GraphError::Io(_))), "{found:?}");
    }

    #[test]
    fn each_node_is_found_where_it_is_whatever_stands_between_nodes() {
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        for number in 0..100_usize {
            if number % 7 == 3 {
                // A library with an empty function.
                bytes.extend(field(2, &field(1, b"")));
            }
            let node = field(1, format!("n{number}").as_bytes());
            bytes.extend(field(1, &node));
            let end = bytes.len() as u64;
            expected.push(Extent { start: end - node.len() as u64, end });
        }
        let source = Source::new(&bytes, Message::GraphDef, Form::Binary);
        let mut places = NodePlaces::of(source, 100);
        for (number, place) in expected.iter().enumerate() {
            if number == 50 {
                // As if another GraphDef began there.
                places.begin_graph(expected[49].end);
            }
            places.add(*place);
        }
        for (number, place) in (0..).zip(&expected) {
            assert_eq!(places.find(source, number).unwrap(), Some(*place), "{number}");
        }
        assert_eq!(places.find(source, 100).unwrap(), None);
        assert_eq!(places.groups.len(), 4 + 4);
    }
}
