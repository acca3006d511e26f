//! Whether the nodes of a graph fit together: names, duplicates, inputs, cycles.
//!
//! Two steps, because almost every graph names its nodes before it uses them. While the bytes pass by, the [`NodeTable`] keeps a hash
//! of every name; where every input is the name of an earlier node, there is no cycle and TensorFlow visits the nodes in the order in
//! which they are written. Anything else (a node used before it is written, two names with one hash) needs the second step, [`Order`]:
//! another walk that keeps the edges and visits the nodes as TensorFlow's importer does.

use std::hash::{BuildHasher, Hasher};

use super::deprecation::DeprecatedOperations;
use crate::artifact::wire::Piece;

/// Why the nodes of a graph do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("node \"{node}\": {kind}")]
pub struct StructureFault {
    /// The node's name, cut to 256 bytes.
    pub node: String,
    /// What is wrong with it.
    pub kind: StructureFaultKind,
}

impl StructureFault {
    pub(super) fn new(kind: StructureFaultKind, node: &str) -> Self {
        Self { node: node.to_owned(), kind }
    }
}

/// What can be wrong with a node; in the order in which TensorFlow's importer looks.
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
    /// It can never run, because its inputs depend on it.
    #[error("it is part of a cycle, or depends on one")]
    Cycle,
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
    control_inputs: bool,
    bad_input_order: bool,
    /// A name or input that is too long to be looked at whole.
    oversized: bool,
}

impl NodeInProgress {
    pub(super) fn clear(&mut self) {
        self.name.clear();
        self.inputs.clear();
        let (name, inputs) = (std::mem::take(&mut self.name), std::mem::take(&mut self.inputs));
        *self = Self { name, inputs, ..Self::default() };
    }

    pub(super) fn operation(&mut self, piece: &[u8], is: Piece, operations: &DeprecatedOperations) {
        self.has_operation = !is.first || !is.last || !piece.is_empty();
        self.deprecated = None;
        if is.first && is.last {
            self.deprecated =
                operations.position(piece).and_then(|position| u32::try_from(position).ok());
        }
    }
}

/// Whether TensorFlow takes this as the name of a node.
pub(super) fn is_node_name(name: &[u8]) -> bool {
    let first = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.';
    // `-`, `.`, `/` and the digits follow each other. Without branches, so that many bytes are looked at together.
    let any = |byte: u8| {
        ((byte | 0x20).wrapping_sub(b'a') < 26) | (byte.wrapping_sub(b'-') < 13) | (byte == b'_')
    };
    let plain = name.iter().fold(true, |plain, byte| plain & any(*byte));
    if plain {
        return name.first().is_some_and(|head| first(*head));
    }
    name.split(|byte| *byte == b'>').all(|part| {
        part.split_first()
            .is_some_and(|(head, tail)| first(*head) && tail.iter().all(|byte| any(*byte)))
    })
}

/// The node that an input names, and whether it is a control input: `name`, `name:3` or `^name`.
pub(super) fn input_node(input: &[u8]) -> (&[u8], bool) {
    let digits = input.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    // The first character is never a digit of the output's number, as a name cannot be empty.
    if let Some(before) = input.len().checked_sub(digits + 1)
        && digits > 0
        && before > 0
        && input.get(before) == Some(&b':')
    {
        return (input.get(..before).unwrap_or_default(), false);
    }
    match input.split_first() {
        Some((b'^', name)) => (name, true),
        _ => (input, false),
    }
}

/// Hashes of the names of the nodes so far: open addressing, 8 bytes a slot, at most three quarters in use.
///
/// A table of a million names is larger than the caches, so that a look-up is a wait for memory. Nobody needs the answer at once:
/// what is to be done is queued, and a batch first touches all its slots, which the processor does side by side, and then works.
#[derive(Debug)]
pub(super) struct NodeTable {
    hasher: foldhash::quality::RandomState,
    slots: Vec<u64>,
    used: usize,
    /// Hashes to put in (lowest bit set) or to look up (not set), in order.
    queue: Vec<u64>,
    /// The last names, each where its hash belongs: most inputs name a node that came shortly before.
    recent: Box<[u64]>,
    /// Where the last node ended, to guess from how many are still to come.
    passed: u64,
    size: u64,
    forward_references: bool,
    suspected_duplicates: bool,
}

const SMALLEST_TABLE: usize = 1024;

/// Hashes that are worked off together.
const BATCH: usize = 128;

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
            hasher: foldhash::quality::RandomState::default(),
            slots: Vec::new(),
            used: 0,
            queue: Vec::with_capacity(BATCH),
            recent: vec![0; RECENT].into(),
            passed: 0,
            size,
            forward_references: false,
            suspected_duplicates: false,
        }
    }

    /// Whether an input names no earlier node: there may be a cycle, or no such node at all.
    pub(super) fn has_forward_references(&self) -> bool {
        self.forward_references
    }

    /// Whether two names have one hash, so that they may be the same name.
    pub(super) fn has_suspected_duplicates(&self) -> bool {
        self.suspected_duplicates
    }

    fn hash(&self, bytes: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(bytes);
        // The lowest bit tells what is queued, and as it is set in the table, zero marks a free slot.
        hasher.finish() | 1
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
        self.passed = at;
        if node.oversized {
            // Longer than any name that TensorFlow makes; the second step looks at it whole or gives up.
            self.forward_references = true;
            return Ok(());
        }
        for input in &node.inputs {
            if self.recent.get(recent(*input)) != Some(input) {
                self.enqueue(*input & !1);
            }
        }
        let Some(hash) = node.name_hash else { return Err(StructureFaultKind::Name) };
        if node.bad_name {
            return Err(StructureFaultKind::Name);
        }
        self.enqueue(hash);
        if let Some(slot) = self.recent.get_mut(recent(hash)) {
            *slot = hash;
        }
        if !node.has_operation {
            return Err(StructureFaultKind::NoOperation);
        }
        if node.bad_input_order {
            return Err(StructureFaultKind::InputOrder);
        }
        Ok(())
    }

    /// Where a hash is looked for first.
    #[inline]
    fn home(&self, hash: u64) -> usize {
        // The high half of the product spreads the hashes evenly over any number of slots.
        ((u128::from(hash) * self.slots.len() as u128) >> 64) as usize
    }

    /// The position of a hash, or of the free slot where it belongs.
    #[inline]
    fn find(&self, hash: u64) -> Option<usize> {
        let home = self.home(hash);
        let (before, after) = self.slots.split_at_checked(home)?;
        let is_end = |slot: &u64| *slot == hash || *slot == 0;
        match after.iter().position(is_end) {
            Some(distance) => Some(home + distance),
            None => before.iter().position(is_end),
        }
    }

    fn enqueue(&mut self, entry: u64) {
        self.queue.push(entry);
        if self.queue.len() >= BATCH {
            self.work();
        }
    }

    /// Works off what is queued; to be called before the answers are asked for.
    pub(super) fn work(&mut self) {
        while (self.used + self.queue.len()) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        let queue = std::mem::take(&mut self.queue);
        let touched = queue.iter().fold(0, |touched, entry| {
            touched | self.slots.get(self.home(*entry | 1)).copied().unwrap_or_default()
        });
        std::hint::black_box(touched);
        for entry in &queue {
            let hash = entry | 1;
            let Some(slot) = self.find(hash).and_then(|position| self.slots.get_mut(position))
            else {
                continue;
            };
            if *entry == hash {
                self.suspected_duplicates |= *slot == hash;
                self.used += usize::from(*slot == 0);
                *slot = hash;
            } else {
                self.forward_references |= *slot != hash;
            }
        }
        self.queue = queue;
        self.queue.clear();
    }

    /// Makes room: as much as the whole graph needs if it goes on like this, but at most 16 times what there was.
    fn grow(&mut self) {
        let expected = u128::from(self.size) * self.used as u128 / u128::from(self.passed.max(1));
        let expected = usize::try_from(expected + expected / 2).unwrap_or(usize::MAX);
        let capacity = self.slots.len();
        let capacity = expected.clamp(
            (capacity + capacity / 2).max(SMALLEST_TABLE),
            (capacity * 16).max(SMALLEST_TABLE),
        );
        let old = std::mem::replace(&mut self.slots, vec![0; capacity]);
        for hash in old {
            if hash != 0
                && let Some(slot) =
                    self.find(hash).and_then(|position| self.slots.get_mut(position))
            {
                *slot = hash;
            }
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
        assert_eq!(node(":0"), (&b":0"[..], false));
        assert_eq!(node("12"), (&b"12"[..], false));
        assert_eq!(node(""), (&b""[..], false));
    }

    #[test]
    fn the_table_finds_what_was_put_in_however_often_it_grew() {
        let mut table = NodeTable::new(1000);
        let hashes: Vec<u64> =
            (1..5000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1).collect();
        for hash in &hashes {
            table.enqueue(*hash);
            table.enqueue(*hash & !1);
        }
        table.work();
        assert!(!table.has_suspected_duplicates() && !table.has_forward_references());
        assert!(table.slots.len() < 4 * hashes.len());
        table.enqueue(2);
        table.work();
        assert!(table.has_forward_references() && !table.has_suspected_duplicates());
        table.enqueue(hashes[1234]);
        table.work();
        assert!(table.has_suspected_duplicates());
    }
}
