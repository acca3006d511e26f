//! Finds nodes by their names.

use std::collections::{HashMap, HashSet};

use crate::{
    artifact::{
        graph::{
            GraphError,
            node_bytes::short_field,
            source::{Extent, Source},
            whole_text::WholeText,
        },
        schema::{
            Field, GRAPH_DEF, META_GRAPH_DEF, MessageId, NODE_DEF, SAVED_MODEL,
            fields::{graph_def, meta_graph_def, node_def, saved_model},
        },
    },
    wire::scan::{Piece, Step, Visitor},
};

/// The names that are looked for.
pub(in super::super) type Names<'n> = HashSet<&'n [u8], foldhash::fast::RandomState>;

/// Where the nodes outside of functions are that have these names, in the meta graph with this
/// number; the first of each name.
pub(in super::super) fn nodes_named<'n>(
    source: Source<'_>,
    meta_graph: usize,
    release: i32,
    names: &Names<'n>,
) -> Result<HashMap<&'n [u8], Extent>, GraphError> {
    let mut finder = NodeFinder {
        root: source.message(),
        wanted: meta_graph,
        meta_graphs: 0,
        release,
        begins: 0,
        start: 0,
        name: None,
        text: WholeText::default(),
        names,
        found: HashMap::new(),
    };
    if !names.is_empty() {
        source.walk(&mut finder)?;
    }
    Ok(finder.found)
}

/// The name of a node, if all of its fields are short ones: the last of that field counts. That the
/// bytes are those of a node, an earlier walk has seen.
fn name_of(bytes: &[u8]) -> Option<&[u8]> {
    const LENGTH_DELIMITED: u8 = 2;
    const NAME: u8 = (node_def::NAME as u8) << 3 | LENGTH_DELIMITED;

    let (mut rest, mut name) = (bytes, &b""[..]);
    while !rest.is_empty() {
        let (tag, content, after) = short_field(rest)?;
        if tag & 7 != LENGTH_DELIMITED || tag >= 0x80 {
            return None;
        }
        if tag == NAME {
            name = content;
        }
        rest = after;
    }
    Some(name)
}

/// A walk over one graph.
struct NodeFinder<'n, 'w> {
    root: MessageId,
    wanted: usize,
    meta_graphs: usize,
    release: i32,
    begins: u64,
    start: u64,
    /// The name of the node, once it says one that is looked for.
    name: Option<&'n [u8]>,
    text: WholeText,
    names: &'w Names<'n>,
    found: HashMap<&'n [u8], Extent>,
}

impl Visitor for NodeFinder<'_, '_> {
    fn begins(&mut self, at: u64) {
        self.begins = at;
    }

    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        let is_entered = match (message, field.number) {
            (SAVED_MODEL, saved_model::META_GRAPHS) => {
                self.meta_graphs += 1;
                self.root != SAVED_MODEL || self.meta_graphs == self.wanted + 1
            }
            (META_GRAPH_DEF, meta_graph_def::GRAPH_DEF) => true,
            (GRAPH_DEF, graph_def::NODE) => {
                self.start = self.begins;
                // A node that says no name has an empty one.
                self.name = self.names.get(&b""[..]).copied();
                true
            }
            _ => false,
        };
        if is_entered { Step::Into } else { Step::Over }
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, at: u64) {
        if (message, field.number) == (GRAPH_DEF, graph_def::NODE)
            && let Some(name) = self.name.take()
        {
            self.found.entry(name).or_insert(Extent { start: self.start, end: at });
        }
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        if (message, field.number) == (NODE_DEF, node_def::NAME)
            && let Some(text) = self.text.take(piece, is)
        {
            self.name = self.names.get(text).copied();
        }
    }

    fn release(&self) -> i32 {
        self.release
    }

    fn wants_whole(&self, message: MessageId, field: &'static Field) -> bool {
        (message, field.number) == (GRAPH_DEF, graph_def::NODE)
    }

    fn take(
        &mut self,
        message: MessageId,
        field: &'static Field,
        bytes: &[u8],
        end: u64,
        _depth: usize,
    ) -> bool {
        if (message, field.number) != (GRAPH_DEF, graph_def::NODE) {
            return false;
        }
        let Some(name) = name_of(bytes) else { return false };
        if let Some(name) = self.names.get(name) {
            let start = end.saturating_sub(bytes.len() as u64);
            self.found.entry(*name).or_insert(Extent { start, end });
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::graph::tests::field;

    #[test]
    fn the_name_of_a_node_is_its_last_one() {
        let node = [field(1, b"a"), field(2, b"NoOp"), field(1, b"b")].concat();
        assert_eq!(name_of(&node), Some(&b"b"[..]));
        assert_eq!(name_of(&field(2, b"NoOp")), Some(&b""[..]));
        // What cannot be told at a glance is read field by field.
        assert_eq!(name_of(&field(1, &[b'n'; 1 << 15])), None);
        assert_eq!(name_of(&[field(1, b"a"), vec![0x08, 1]].concat()), None);
    }
}
