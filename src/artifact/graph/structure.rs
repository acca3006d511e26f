//! Whether the nodes of a graph fit together: names, duplicates, inputs, cycles.
//!
//! Two steps, because almost every graph names its nodes before it uses them. While the bytes pass by, the [`NodeTable`] keeps a hash
//! of every name; where every input is the name of an earlier node, there is no cycle and TensorFlow visits the nodes in the order in
//! which they are written. Anything else (a node used before it is written, two names with one hash) needs the second step, [`Order`]:
//! another walk that keeps the edges and visits the nodes as TensorFlow's importer does.

use std::hash::{BuildHasher, Hasher};

use super::bodies::BodyFault;
use super::characters::{self, Seen};
use super::deprecation::DeprecatedOperations;
use super::names::{Findings, Names};
use crate::wire::scan::Piece;

/// Why the nodes or functions of a graph do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} \"{node}\": {kind}{}", kind.whose(), show_body(body.as_ref()))]
#[non_exhaustive]
pub struct StructureFault {
    /// The name of the node, or of the function where the fault is one of functions, cut to 256 bytes.
    pub node: String,
    /// What is wrong with it.
    pub kind: StructureFaultKind,
    /// What is wrong with the function that the node calls, where that is what is wrong with the node.
    pub body: Option<BodyFault>,
}

impl StructureFault {
    pub(super) fn new(kind: StructureFaultKind, node: &str) -> Self {
        Self { node: node.to_owned(), kind, body: None }
    }
}

/// Bytes of a name that are kept for messages.
pub(super) const SHOWN_NAME: usize = 256;

/// A name for messages, cut to a bearable length.
pub(super) fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name.get(..name.len().min(SHOWN_NAME)).unwrap_or_default()).into_owned()
}

fn show_body(body: Option<&BodyFault>) -> String {
    body.map_or_else(String::new, |body| format!(" ({body})"))
}

/// What can be wrong with a node or a function; in the order in which TensorFlow's importer looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum StructureFaultKind {
    /// Not a letter, digit or dot followed by letters, digits and `_.-/`, or several of these joined by `>`.
    #[error("its name is empty or has characters that no node name can have")]
    Name,
    /// Another node has the same name.
    #[error("another node has the same name")]
    Duplicate,
    /// It names no operation.
    #[error("it names no operation")]
    NoOperation,
    /// An input of data after a control input.
    #[error("a data input comes after a control input")]
    InputOrder,
    /// An input that names no node of the graph.
    #[error("an input names a node that is not in the graph")]
    UnknownInput,
    /// Another function of the library has the same name and is not the same.
    #[error("another function has the same name and does something else")]
    DuplicateFunction,
    /// The library says of two functions that they are its gradient.
    #[error("the library names two functions as its gradient")]
    SecondGradient,
    /// It is to be on the device of a node that is not there. Found when the node is visited, after what is wrong with those before it.
    #[error("it is to be placed beside a node that is not in the graph (attribute _class)")]
    UnknownColocation,
    /// It calls a function that cannot be built. Found when the node is visited as well.
    #[error("it calls a function that cannot be built")]
    CalledFunction,
    /// It can never run, because its inputs depend on it.
    #[error("it is part of a cycle, or depends on one")]
    Cycle,
}

impl StructureFaultKind {
    /// Whether the importer finds it only when it visits the nodes, or has visited them all.
    pub(crate) fn is_found_on_the_way(self) -> bool {
        matches!(self, Self::UnknownColocation | Self::CalledFunction | Self::Cycle)
    }

    /// What has the fault.
    fn whose(self) -> &'static str {
        match self {
            Self::DuplicateFunction | Self::SecondGradient => "function",
            _ => "node",
        }
    }
}

/// What an operation has to do with loops.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoopRole {
    #[default]
    None,
    /// `Merge`: where a loop begins, or two branches meet.
    Merge,
    /// `NextIteration`: where a loop goes back.
    NextIteration,
}

impl LoopRole {
    #[inline(always)]
    pub(super) fn of(operation: &[u8]) -> Self {
        match operation {
            b"Merge" | b"RefMerge" => Self::Merge,
            b"NextIteration" | b"RefNextIteration" => Self::NextIteration,
            _ => Self::None,
        }
    }
}

/// What is known of the node whose bytes pass by.
#[derive(Debug, Default)]
pub(super) struct NodeInProgress {
    /// The name, cut for messages.
    pub(super) name: Vec<u8>,
    pub(super) deprecated: Option<u32>,
    name_hash: Option<u64>,
    bad_name: bool,
    has_operation: bool,
    inputs: Vec<u64>,
    /// The nodes that it may have to be beside.
    colocated: Vec<u64>,
    loop_role: LoopRole,
    control_inputs: bool,
    bad_input_order: bool,
    /// A name or input that is too long to be looked at whole.
    oversized: bool,
}

impl NodeInProgress {
    pub(super) fn clear(&mut self) {
        self.name.clear();
        self.inputs.clear();
        self.colocated.clear();
        let (name, inputs) = (std::mem::take(&mut self.name), std::mem::take(&mut self.inputs));
        let colocated = std::mem::take(&mut self.colocated);
        *self = Self { name, inputs, colocated, ..Self::default() };
    }

    /// Makes ready for a node that is read in one go.
    pub(super) fn begin_plain(&mut self) {
        self.colocated.clear();
        self.control_inputs = false;
    }

    pub(super) fn operation(&mut self, piece: &[u8], is: Piece, operations: &DeprecatedOperations) {
        self.has_operation = !is.first || !is.last || !piece.is_empty();
        self.deprecated = None;
        self.loop_role = LoopRole::None;
        if is.first && is.last {
            self.loop_role = LoopRole::of(piece);
            self.deprecated =
                operations.position(piece).and_then(|position| u32::try_from(position).ok());
        }
    }
}

/// Whether TensorFlow takes this as the name of a node.
#[inline(always)]
pub(super) fn is_node_name(name: &[u8]) -> bool {
    if characters::are_of_a_name(name) {
        return name.first().is_some_and(|head| begins_a_name(*head));
    }
    are_joined_names(name)
}

/// Whether a name, or a part of it, may begin like this.
#[inline]
fn begins_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'.'
}

#[inline(never)]
fn are_joined_names(name: &[u8]) -> bool {
    name.split(|byte| *byte == b'>').all(|part| {
        part.first().is_some_and(|head| begins_a_name(*head)) && characters::are_of_a_name(part)
    })
}

/// The node that an input names, and whether it is a control input: `name`, `name:3` or `^name`.
#[inline]
pub(super) fn input_node(input: &[u8]) -> (&[u8], bool) {
    input_node_seen(input, characters::seen(input))
}

/// The same of an input that was looked at.
#[inline]
fn input_node_seen(input: &[u8], seen: Seen) -> (&[u8], bool) {
    // The first character is never the colon, as a name cannot be empty.
    if (seen.colon || !seen.ascii)
        && let Some(colon) = input.iter().rposition(|byte| *byte == b':')
        && let Some((name, [_, output @ ..])) = input.split_at_checked(colon)
        && !name.is_empty()
        && !output.is_empty()
        && output.iter().all(u8::is_ascii_digit)
        && (output.len() < 20
            || std::str::from_utf8(output).is_ok_and(|text| text.parse::<u64>().is_ok()))
    {
        return (name, false);
    }
    match input.split_first() {
        Some((b'^', name)) => (name, true),
        _ => (input, false),
    }
}

/// What is known of the names of the nodes so far.
#[derive(Debug)]
pub(super) struct NodeTable {
    hasher: foldhash::fast::RandomState,
    names: Names,
    /// The last names, each where its hash belongs: most inputs name a node that came shortly before.
    recent: Box<[u64]>,
    /// Whether there was a node that a loop goes back by.
    next_iteration: bool,
    /// Whether something was too long to be looked at, or a loop begins with what comes back from it.
    unknown: bool,
}

/// Names that are kept at hand; 16 KiB of hashes, which the innermost cache holds.
const RECENT: usize = 2048;

/// Where a hash belongs among the last names.
fn recent(hash: u64) -> usize {
    (hash >> 1) as usize % RECENT
}

impl NodeTable {
    /// A table for a graph in a file of `size` bytes.
    pub(super) fn new(size: u64) -> Self {
        Self {
            hasher: foldhash::fast::RandomState::default(),
            names: Names::new(size),
            recent: vec![0; RECENT].into(),
            next_iteration: false,
            unknown: false,
        }
    }

    /// Whether the nodes have to be looked at more closely: an input names no earlier node, or two names may be the same.
    pub(super) fn needs_order(self) -> bool {
        let Findings { forward_references, suspected_duplicates } = self.names.finish();
        self.unknown || forward_references || suspected_duplicates
    }

    fn hash(&self, bytes: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(bytes);
        // The lowest bit tells what is queued, and as it is set in the table, zero marks a free slot.
        hasher.finish() | 1
    }

    /// Looks up an input of a node that is read in one go; false if the node must be looked at more closely, which then begins anew.
    #[inline]
    pub(super) fn plain_input(
        &mut self,
        node: &mut NodeInProgress,
        input: &[u8],
        seen: Seen,
    ) -> bool {
        let (name, _) = input_node_seen(input, seen);
        if input.first() == Some(&b'^') {
            node.control_inputs = true;
        } else if node.control_inputs {
            return false;
        }
        let hash = self.hash(name);
        self.look_up(hash);
        true
    }

    /// Takes in a node that was read in one go, whose name is good.
    #[inline]
    pub(super) fn add_plain(
        &mut self,
        node: &NodeInProgress,
        name: &[u8],
        role: LoopRole,
        at: u64,
    ) {
        self.names.pass(at);
        let hash = self.hash(name);
        self.insert(hash);
        self.look_up_all(&node.colocated);
        self.note_loop(role);
    }

    /// Notes a node that this one has to be beside.
    pub(super) fn colocated(&self, node: &mut NodeInProgress, name: &[u8]) {
        node.colocated.push(self.hash(name));
    }

    /// A Merge waits for nothing that comes back, and then for ever if nothing else comes: that is for the second step to see.
    #[inline]
    fn note_loop(&mut self, role: LoopRole) {
        match role {
            LoopRole::None => {}
            LoopRole::NextIteration => self.next_iteration = true,
            LoopRole::Merge => self.unknown |= self.next_iteration,
        }
    }

    pub(super) fn name(&self, node: &mut NodeInProgress, piece: &[u8], is: Piece) {
        if is.first && is.last {
            node.bad_name = !is_node_name(piece);
            node.name_hash = Some(self.hash(piece));
        } else {
            node.oversized = true;
        }
    }

    pub(super) fn input(&self, node: &mut NodeInProgress, piece: &[u8], is: Piece) {
        if !(is.first && is.last) {
            node.oversized = true;
            return;
        }
        let (name, _) = input_node(piece);
        // What counts for the order is the first character alone.
        if piece.first() == Some(&b'^') {
            node.control_inputs = true;
        } else if node.control_inputs {
            node.bad_input_order = true;
        }
        node.inputs.push(self.hash(name));
    }

    /// Takes the node in.
    ///
    /// `at` is where its bytes end.
    pub(super) fn add(
        &mut self,
        node: &mut NodeInProgress,
        at: u64,
    ) -> Result<(), StructureFaultKind> {
        self.names.pass(at);
        if node.oversized {
            // Longer than any name that TensorFlow makes; the second step looks at it whole or gives up.
            self.unknown = true;
            return Ok(());
        }
        self.look_up_all(&node.inputs);
        let Some(hash) = node.name_hash else { return Err(StructureFaultKind::Name) };
        if node.bad_name {
            return Err(StructureFaultKind::Name);
        }
        self.insert(hash);
        self.look_up_all(&node.colocated);
        self.note_loop(node.loop_role);
        if !node.has_operation {
            return Err(StructureFaultKind::NoOperation);
        }
        if node.bad_input_order {
            return Err(StructureFaultKind::InputOrder);
        }
        Ok(())
    }

    #[inline]
    fn look_up(&mut self, hash: u64) {
        if self.recent.get(recent(hash)) != Some(&hash) {
            self.names.look_up(hash);
        }
    }

    fn look_up_all(&mut self, hashes: &[u64]) {
        for hash in hashes {
            self.look_up(*hash);
        }
    }

    #[inline]
    fn insert(&mut self, hash: u64) {
        self.names.insert(hash);
        if let Some(slot) = self.recent.get_mut(recent(hash)) {
            *slot = hash;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_nodes_are_the_ones_that_the_importer_takes() {
        for name in ["a", ".", "0", "a/b-c_d.e", "A>b", "a>.b/c", "MatMul_1"] {
            assert!(is_node_name(name.as_bytes()), "{name}");
        }
        for name in
            ["", "_a", "-a", "/a", "a b", "a>", ">a", "a>>b", "a>_b", "a:0", "^a", "a\\b", "é"]
        {
            assert!(!is_node_name(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn an_input_names_a_node_an_output_or_a_control_dependency() {
        let node = |input: &'static str| input_node(input.as_bytes());
        assert_eq!(node("a"), (&b"a"[..], false));
        assert_eq!(node("a:12"), (&b"a"[..], false));
        assert_eq!(node("^a"), (&b"a"[..], true));
        assert_eq!(node("^a:0"), (&b"^a"[..], false));
        assert_eq!(node("a:"), (&b"a:"[..], false));
        assert_eq!(node("a:18446744073709551615"), (&b"a"[..], false));
        assert_eq!(node("a:18446744073709551616"), (&b"a:18446744073709551616"[..], false));
        assert_eq!(node(":0"), (&b":0"[..], false));
        assert_eq!(node("12"), (&b"12"[..], false));
        assert_eq!(node(""), (&b""[..], false));
    }
}
