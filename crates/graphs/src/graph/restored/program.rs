//! The nodes that a loader runs: the dependencies of an operation, and the bodies of called
//! functions.
//!
//! Depends on the references between nodes, but not on the restored values.

use std::collections::{HashMap, HashSet};

use super::{
    body::{self, Body},
    find::{Names, SearchRequest, find},
    input::{node_name, output_number},
    node::{Node, NodeReader},
};
use crate::{
    graph::{
        GraphError,
        source::{Extent, Source},
    },
    schema::NODE_DEF,
};

/// Operations whose nodes are read anywhere in the graph, so that one walk finds most dependencies.
const DIRECT: [&[u8]; 5] = [
    b"RestoreV2",
    b"Assign",
    b"AssignVariableOp",
    b"InitializeTableFromTextFileV2",
    b"InitializeTableFromTextFile",
];

/// Limit on the walks over a file: an operation with a longer chain of dependencies is not judged.
const MOST_WALKS: usize = 16;

/// Smallest limit on the bytes that are kept; it grows in proportion to the file.
const LEAST_KEPT: u64 = 8 << 20;

/// Operations whose nodes are relevant in bodies of functions.
const COUNTED: [&[u8]; 10] = [
    b"RestoreV2",
    b"Restore",
    b"RestoreSlice",
    b"Const",
    b"Identity",
    b"Reshape",
    b"LookupTableImportV2",
    b"InitializeTableFromTextFileV2",
    b"PartitionedCall",
    b"StatefulPartitionedCall",
];

fn counts(node: &Node) -> bool {
    COUNTED.contains(&node.operation.as_slice())
}

/// The nodes of one graph or body, by their names.
pub(super) type ByName<'n> = HashMap<&'n [u8], &'n Node, foldhash::fast::RandomState>;

/// Returns the source node of an input, and its output, skipping nodes that pass their input on.
pub(super) fn origin<'n>(nodes: &ByName<'n>, input: &'n [u8]) -> Option<(&'n Node, usize)> {
    let mut input = input;
    for _ in 0..MOST_WALKS {
        let node = nodes.get(node_name(input)).copied()?;
        match (node.operation.as_slice(), node.inputs.first()) {
            (b"Identity", Some(next)) => input = next,
            _ => return Some((node, output_number(input))),
        }
    }
    None
}

/// The nodes of a meta graph that were read so far.
pub(super) struct Program<'s> {
    source: Source<'s>,
    meta_graph: usize,
    release: i32,
    nodes: HashMap<Vec<u8>, Node, foldhash::fast::RandomState>,
    absent: Names,
    bodies: HashMap<Vec<u8>, Body>,
    kept: usize,
    most_kept: usize,
    has_direct: bool,
    /// True if the program exceeds the limits, so that the nodes that are run are unknown.
    pub(super) is_unclear: bool,
}

impl<'s> Program<'s> {
    pub(super) fn new(
        source: Source<'s>,
        meta_graph: usize,
        release: i32,
    ) -> Result<Self, GraphError> {
        let most = source.size()?.saturating_mul(2).saturating_add(LEAST_KEPT);
        Ok(Self {
            source,
            meta_graph,
            release,
            nodes: HashMap::default(),
            absent: Names::default(),
            bodies: HashMap::new(),
            kept: 0,
            most_kept: usize::try_from(most).unwrap_or(usize::MAX),
            has_direct: false,
            is_unclear: false,
        })
    }

    /// Returns all nodes outside functions that were read.
    pub(super) fn nodes(&self) -> ByName<'_> {
        self.nodes.iter().map(|(name, node)| (name.as_slice(), node)).collect()
    }

    pub(super) fn body(&self, function: &[u8]) -> Option<&Body> {
        self.bodies.get(function)
    }

    /// Reads the dependencies of the node `root`, up to the node `fed`, whose value is fed, and the
    /// functions called there. Returns the names of the nodes that are run.
    pub(super) fn gather(&mut self, root: &[u8], fed: &[u8]) -> Result<Names, GraphError> {
        for _ in 0..MOST_WALKS {
            let (reached, mut missing) = self.reached(root, fed);
            if missing.is_empty() {
                self.gather_bodies(&reached)?;
                return Ok(reached);
            }
            if self.has_direct {
                missing.extend(self.needed_by_direct());
            }
            self.read_nodes(&missing)?;
            if self.is_unclear {
                break;
            }
        }
        self.is_unclear = true;
        Ok(Names::default())
    }

    /// Returns the dependencies of a root, and those of them that were not read yet.
    fn reached(&self, root: &[u8], fed: &[u8]) -> (Names, Names) {
        let (mut reached, mut missing) = (Names::default(), Names::default());
        let mut open: Vec<&[u8]> = vec![root];
        while let Some(name) = open.pop() {
            if name == fed || self.absent.contains(name) || reached.contains(name) {
                continue;
            }
            let Some(node) = self.nodes.get(name) else {
                missing.insert(name.to_vec());
                continue;
            };
            reached.insert(name.to_vec());
            open.extend(node.inputs.iter().map(|input| node_name(input)));
        }
        (reached, missing)
    }

    /// Reads the nodes outside functions with these operations, which are among those read anywhere
    /// in the graph, and the sources of their input of that number.
    pub(super) fn gather_inputs(
        &mut self,
        operations: &[&[u8]],
        input: usize,
    ) -> Result<(), GraphError> {
        if !self.has_direct {
            self.read_nodes(&Names::default())?;
        }
        let of_operations =
            self.nodes.values().filter(|node| operations.contains(&node.operation.as_slice()));
        let inputs = of_operations.filter_map(|node| node.inputs.get(input));
        let is_new = |name: &&[u8]| !self.nodes.contains_key(*name) && !self.absent.contains(*name);
        let missing: Names =
            inputs.map(|input| node_name(input)).filter(is_new).map(<[u8]>::to_vec).collect();
        if missing.is_empty() || self.is_unclear { Ok(()) } else { self.read_nodes(&missing) }
    }

    fn needed_by_direct(&self) -> Vec<Vec<u8>> {
        let direct = self.nodes.values().filter(|node| DIRECT.contains(&node.operation.as_slice()));
        let inputs = direct.flat_map(|node| node.inputs.iter().map(|input| node_name(input)));
        let is_new = |name: &&[u8]| !self.nodes.contains_key(*name) && !self.absent.contains(*name);
        inputs.filter(is_new).map(<[u8]>::to_vec).collect()
    }

    /// Returns true if a node outside of functions that was read has one of these operations.
    pub(super) fn has_any(&self, operations: &[&[u8]]) -> bool {
        self.nodes.values().any(|node| operations.contains(&node.operation.as_slice()))
    }

    /// Returns true if no node outside of functions has this name.
    pub(super) fn is_absent(&self, name: &[u8]) -> bool {
        self.absent.contains(name)
    }

    pub(super) fn read_nodes(&mut self, names: &Names) -> Result<(), GraphError> {
        let request = SearchRequest {
            meta_graph: self.meta_graph,
            release: self.release,
            nodes: Some(names),
            operations: if self.has_direct { &[] } else { &DIRECT },
            functions: None,
        };
        self.has_direct = true;
        for place in find(self.source, &request)?.nodes {
            let mut reader = NodeReader::new(self.release);
            self.source.walk_part(place, NODE_DEF, &mut reader)?;
            self.kept = self.kept.saturating_add(reader.node.kept());
            self.is_unclear |= reader.is_oversized() || self.kept > self.most_kept;
            if self.is_unclear {
                return Ok(());
            }
            self.nodes.entry(reader.node.name.clone()).or_insert(reader.node);
        }
        let absent = names.iter().filter(|name| !self.nodes.contains_key(*name));
        self.absent.extend(absent.cloned());
        Ok(())
    }

    fn gather_bodies(&mut self, reached: &Names) -> Result<(), GraphError> {
        let called = |nodes: &mut dyn Iterator<Item = &Node>| -> Names {
            let functions = nodes.map(|node| &node.function).filter(|name| !name.is_empty());
            functions.cloned().collect()
        };
        let mut open = called(&mut reached.iter().filter_map(|name| self.nodes.get(name)));
        for _ in 0..MOST_WALKS {
            open.retain(|name| !self.bodies.contains_key(name));
            if open.is_empty() {
                return Ok(());
            }
            let places = self.places_of(&open)?;
            let mut next = Names::default();
            for name in open {
                let body = match places.get(&name) {
                    Some(place) => self.read_body(*place)?,
                    None => Body::default(),
                };
                if self.is_unclear {
                    return Ok(());
                }
                next.extend(called(&mut body.nodes.iter()));
                self.bodies.insert(name, body);
            }
            open = next;
        }
        self.is_unclear = true;
        Ok(())
    }

    fn places_of(&self, functions: &Names) -> Result<HashMap<Vec<u8>, Extent>, GraphError> {
        let request = SearchRequest {
            meta_graph: self.meta_graph,
            release: self.release,
            nodes: None,
            operations: &[],
            functions: Some(functions),
        };
        Ok(find(self.source, &request)?.functions)
    }

    fn read_body(&mut self, place: Extent) -> Result<Body, GraphError> {
        let left = self.most_kept.saturating_sub(self.kept);
        let body = body::read(self.source, place, self.release, counts, left)?;
        let kept = body.nodes.iter().map(Node::kept).fold(0, usize::saturating_add);
        self.kept = self.kept.saturating_add(kept);
        self.is_unclear |= body.is_oversized;
        Ok(body)
    }
}

/// The functions that are called from some nodes, with the calling node of each.
pub(super) struct Calls<'p> {
    bodies: Vec<(&'p [u8], &'p Body)>,
    calls: HashMap<&'p [u8], &'p Node>,
}

impl<'p> Calls<'p> {
    /// Returns the functions that these nodes call, directly or through others.
    pub(super) fn of(program: &'p Program<'_>, nodes: &[&'p Node]) -> Self {
        let calls: HashMap<&[u8], &Node> =
            nodes.iter().map(|node| (node.function.as_slice(), *node)).collect();
        let mut open: Vec<&[u8]> = calls.keys().copied().collect();
        let (mut seen, mut bodies) = (HashSet::new(), Vec::new());
        while let Some(name) = open.pop() {
            if let Some(body) = program.body(name).filter(|_| seen.insert(name)) {
                open.extend(body.nodes.iter().map(|node| node.function.as_slice()));
                bodies.push((name, body));
            }
        }
        bodies.sort_unstable_by_key(|(name, _)| *name);
        Self { bodies, calls }
    }

    /// Returns the bodies with the names of their functions, each once.
    pub(super) fn bodies(&self) -> impl Iterator<Item = (&'p [u8], &'p Body)> {
        self.bodies.iter().copied()
    }

    /// Returns the node outside functions that calls this function.
    pub(super) fn call_of(&self, function: &[u8]) -> Option<&'p Node> {
        self.calls.get(function).copied()
    }
}
