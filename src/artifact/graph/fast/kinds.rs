//! What the nodes of the common form are, for the registries that ask, while their bytes pass by.
//!
//! A node that has the operation and the attributes of an earlier one, byte for byte, is of its
//! kind. Where every registry finds all kinds of nodes and all kinds of edges good, each of them
//! takes the graph, and nobody has to look closer. Anything else ends it.

use super::{
    edges::{EdgeKind, EdgeKinds, FastKind, KIND_BITS},
    plain::{IDENTIFIED, Identity},
};
use crate::{
    artifact::{
        graph::{
            attributes::AttributeReader, kinds::Kinds, node_rules::NodeType,
            rules::is_partitioned_call,
        },
        ops::Registry,
        schema::{Field, MessageId, NODE_DEF, TENSORFLOW},
    },
    wire::scan::{Piece, Progress, Scanner, Step, Visitor},
};

/// Kinds that are known by their bytes; 18 KiB.
const SLOTS: usize = 256;

/// Longer names of operations are not looked at here.
const LONGEST_OPERATION: usize = 30;

/// A node with its kind.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    operation: [u8; LONGEST_OPERATION],
    length: u8,
    attributes: [u32; IDENTIFIED],
    kind: FastKind,
}

impl Slot {
    /// What stands for a node of this operation and attributes; `None` where it is not one of the
    /// common ones.
    #[inline]
    fn of(operation: &[u8], identity: &Identity) -> Option<Self> {
        let mut slot = Self { attributes: identity.attributes()?, ..Self::default() };
        slot.operation.get_mut(..operation.len())?.copy_from_slice(operation);
        slot.length = operation.len() as u8;
        Some(slot)
    }

    /// Where it belongs.
    #[inline]
    fn place(&self) -> usize {
        let mut sum = self.operation.first_chunk().copied().map_or(0, u64::from_le_bytes);
        sum ^= u64::from(self.length);
        for attribute in self.attributes {
            sum = (sum ^ u64::from(attribute)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        (sum >> 56) as usize
    }

    #[inline]
    fn is_same(&self, other: &Self) -> bool {
        (self.length, self.attributes, self.operation)
            == (other.length, other.attributes, other.operation)
    }
}

const _: () = assert!(SLOTS == 1 << (64 - 56));

/// The kinds of the nodes of one graph, as long as all of them are good.
#[derive(Debug)]
pub(super) struct FastKinds<'a> {
    kinds: Kinds<'a>,
    slots: Box<[Option<Slot>]>,
    /// By the number that a kind has here, its types.
    types: Vec<NodeType>,
    reader: NodeReader,
    scanner: Scanner,
    edges: EdgeKinds,
    /// Whether there was something that is not looked at here.
    has_given_up: bool,
}

impl<'a> FastKinds<'a> {
    pub(super) fn new(registries: &'a [Registry]) -> Self {
        Self {
            kinds: Kinds::new(registries),
            slots: vec![None; SLOTS].into(),
            types: Vec::new(),
            reader: NodeReader::default(),
            scanner: Scanner::new(TENSORFLOW, NODE_DEF, 0),
            edges: EdgeKinds::default(),
            has_given_up: false,
        }
    }

    /// The kind of a node of the common form, with so many inputs of data, whose bytes are `bytes`;
    /// `None` if it may not be good for everybody.
    #[inline]
    pub(super) fn kind(
        &mut self,
        operation: &[u8],
        identity: &Identity,
        inputs: u64,
        bytes: &[u8],
        depth: usize,
    ) -> Option<FastKind> {
        let slot = Slot::of(operation, identity);
        let known = slot.as_ref().and_then(|slot| self.slots.get(slot.place())?.as_ref());
        let kind = match (known, &slot) {
            (Some(known), Some(slot)) if known.is_same(slot) => known.kind,
            _ => self.judge(operation, slot, bytes, depth)?,
        };
        self.types.get(usize::from(kind))?.inputs.may_be(inputs).then_some(kind)
    }

    /// Reads the attributes of a node, and asks the registries.
    #[cold]
    fn judge(
        &mut self,
        operation: &[u8],
        slot: Option<Slot>,
        bytes: &[u8],
        depth: usize,
    ) -> Option<FastKind> {
        // What it calls may be nothing that can be called.
        if is_partitioned_call(operation) {
            return None;
        }
        self.reader.0.clear();
        self.scanner.restart(NODE_DEF, bytes.len() as u64, depth);
        let run = self.scanner.run(bytes, 0, &mut self.reader);
        if !matches!(run, Ok(Progress::Done)) {
            return None;
        }
        let attributes = self.reader.0.attributes();
        if attributes.get_bytes(b"_output_shapes").is_some() {
            return None;
        }
        let no_function = || Ok::<_, ()>(None);
        let (number, dropped) = self.kinds.of_node(operation, attributes, no_function).ok()?;
        let kind = self.kinds.get(number)?;
        let has_kernels = self.kinds.operation(kind)?.has_cpu_kernels();
        if dropped != 0 || !kind.is_plain || !has_kernels {
            return None;
        }
        let types = self.kinds.types(kind.common_types()?)?;
        let known = self.types.iter().position(|other| other == types);
        let kind = known.unwrap_or(self.types.len());
        if known.is_none() {
            self.types.push(types.clone());
        }
        let kind = FastKind::try_from(kind).ok().filter(|kind| *kind < 1 << KIND_BITS)?;
        if let Some(slot) = slot
            && let Some(known) = self.slots.get_mut(slot.place())
        {
            *known = Some(Slot { kind, ..slot });
        }
        Some(kind)
    }

    /// There is an edge that is not looked at here; what stands for it.
    #[cold]
    pub(super) fn give_up(&mut self) -> EdgeKind {
        self.has_given_up = true;
        EdgeKind::CONTROL
    }

    /// An edge between nodes of two kinds.
    #[inline]
    pub(super) fn edge(&mut self, edge: EdgeKind) {
        self.edges.add(edge);
    }

    /// Whether all edges are good, with `others` that somebody else has noted.
    pub(super) fn are_edges_good(&self, others: &EdgeKinds) -> bool {
        let all = |edges: &EdgeKinds| Some(edges.all()?.all(|edge| self.is_good(edge)));
        !self.has_given_up && all(&self.edges) == Some(true) && all(others) == Some(true)
    }

    fn is_good(&self, edge: EdgeKind) -> bool {
        let types = |kind: FastKind| self.types.get(usize::from(kind));
        let given = types(edge.from()).and_then(|from| from.outputs.get(edge.output()));
        let expected = types(edge.to()).and_then(|to| to.inputs.get(edge.input()));
        matches!((given, expected), (Some(given), Some(expected)) if expected.takes(given))
    }
}

/// Reads the attributes of a node that was checked before.
#[derive(Debug, Default)]
struct NodeReader(AttributeReader);

impl Visitor for NodeReader {
    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        self.0.enter(message, field)
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, _at: u64) {
        self.0.leave(message, field);
    }

    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        self.0.integer(message, field, value);
    }

    fn floats(&mut self, message: MessageId, field: &'static Field, count: u64, bytes: &[u8]) {
        self.0.floats(message, field, count, bytes);
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        self.0.string(message, field, piece, is);
    }

    fn long_bytes(&mut self, message: MessageId, field: &'static Field, length: u64) {
        self.0.long_bytes(message, field, length);
    }

    fn wants_packed(&self, message: MessageId) -> bool {
        self.0.wants_packed(message)
    }

    fn wants_bytes(&self, message: MessageId, field: &'static Field) -> bool {
        self.0.wants_bytes(message, field)
    }
}
