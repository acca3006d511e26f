//! A fast reader of nodes in TensorFlow's own encoding.
//!
//! Almost every node of a large graph has a name, an operation, some inputs, and attributes that
//! are byte for byte those of thousands of others. Such a node is checked here without the
//! scanner's state, and an attribute that was found valid once is valid again. Nodes in any other
//! form are left to the [`Scanner`], which reads the same bytes and finds their errors, if any.

use crate::{
    characters::{self, Seen},
    data_type::DataType,
    scan::{Piece, Progress, Scanner, Visitor, is_ascii},
    schema::{
        Field, MessageId, NODE_DEF, NODE_DEF_ATTR_ENTRY, TENSOR_PROTO, TENSOR_SHAPE_PROTO_DIM,
        TENSORFLOW,
        fields::{node_def_attr_entry, tensor_proto, tensor_shape_proto_dim},
    },
};

/// A name in a node.
pub enum Reference<'b> {
    /// An input, which may have more than the name of a node.
    Input(&'b [u8], Seen),
    /// A node with which it is colocated.
    Colocated(&'b [u8]),
    /// The device of the node.
    Device(&'b [u8]),
}

/// The fields of a node in the canonical encoding.
pub struct CanonicalNode<'b> {
    pub name: &'b [u8],
    pub operation: &'b [u8],
}

/// Reads a node that has one name, one operation and, in any order, inputs, a device and
/// attributes, all with short lengths.
///
/// `reference` is called with every input, colocated node and device, and returns true to continue.
/// `None` if the node has another form, valid or not. The name and the operation are not checked.
#[inline]
pub(super) fn read<'b>(
    bytes: &'b [u8],
    depth: usize,
    attributes: &mut Attributes,
    mut reference: impl FnMut(Reference<'b>) -> bool,
) -> Option<CanonicalNode<'b>> {
    let (mut name, mut operation) = (None, None);
    attributes.identity = Identity::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (tag, content, after) = short_field(rest)?;
        rest = after;
        match tag {
            0x0a if name.is_none() => name = Some(content),
            0x12 if operation.is_none() => operation = Some(content),
            0x1a => {
                let seen = characters::seen(content);
                if !seen.ascii || !reference(Reference::Input(content, seen)) {
                    return None;
                }
            }
            0x22 if is_ascii(content) && reference(Reference::Device(content)) => {}
            0x2a if !is_colocation(content) && attributes.take(content, depth) => {}
            0x2a if is_colocation(content) && colocations(content, &mut reference).is_some() => {}
            _ => return None,
        }
    }
    Some(CanonicalNode { name: name?, operation: operation? })
}

/// Returns the first field of a message, if its tag has one byte and its length at most two: the
/// tag, the content, and the bytes after it.
#[inline(always)]
pub fn short_field(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let [tag, low, after @ ..] = bytes else { return None };
    let (length, after) = match *low {
        0..=0x7f => (usize::from(*low), after),
        _ => {
            let (high, after) = after.split_first().filter(|(high, _)| **high < 0x80)?;
            (usize::from(*low & 0x7f) | usize::from(*high) << 7, after)
        }
    };
    let (content, after) = after.split_at_checked(length)?;
    Some((*tag, content, after))
}

/// The first bytes of an attribute that colocates a node with others: its key, `_class`.
const COLOCATION: [u8; 8] = *b"\x0a\x06_class";

#[inline]
fn is_colocation(attribute: &[u8]) -> bool {
    attribute.first_chunk() == Some(&COLOCATION)
}

/// Reads the nodes with which a node is colocated: a list of `loc:@NAME`. `None` if the attribute
/// has another form.
fn colocations<'b>(
    attribute: &'b [u8],
    reference: &mut impl FnMut(Reference<'b>) -> bool,
) -> Option<()> {
    let value = message_alone(attribute.get(COLOCATION.len()..)?, 0x12)?;
    let mut list = message_alone(value, 0x0a)?;
    while let [0x12, length @ 0..=0x7f, rest @ ..] = list {
        let (text, rest) = rest.split_at_checked(usize::from(*length))?;
        if let Some(name) = text.strip_prefix(b"loc:@")
            && !reference(Reference::Colocated(name))
        {
            return None;
        }
        list = rest;
    }
    list.is_empty().then_some(())
}

/// Returns the content of a short message with a single field.
fn message_alone(bytes: &[u8], tag: u8) -> Option<&[u8]> {
    match bytes {
        [found, length @ 0..=0x7f, content @ ..]
            if *found == tag && content.len() == usize::from(*length) =>
        {
            Some(content)
        }
        _ => None,
    }
}

/// Limit on the length of attributes that are remembered as valid, in bytes.
const KEPT: usize = 111;

/// Number of attributes that are remembered: 16 KiB, which fit into the first-level cache beside
/// the other data.
const SLOTS: usize = 128;

/// Limit on the attributes of a node in its identity; a node with more is not a common one.
pub(super) const IDENTIFIED: usize = 8;

/// The identity of a node's attributes: a number for each; equal bytes have equal numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Identity {
    attributes: [u32; IDENTIFIED],
    count: usize,
    /// True if there is an attribute without a number, or too many attributes.
    is_uncommon: bool,
}

impl Identity {
    /// Returns the numbers, followed by zeros; `None` for a node that is not a common one.
    #[inline]
    pub(super) fn attributes(&self) -> Option<[u32; IDENTIFIED]> {
        (!self.is_uncommon).then_some(self.attributes)
    }

    /// Adds the next attribute; 0 for one without a number.
    #[inline]
    fn note(&mut self, number: u32) {
        match self.attributes.get_mut(self.count) {
            Some(place) if number != 0 => *place = number,
            _ => self.is_uncommon = true,
        }
        self.count += 1;
    }
}

/// The bytes of a valid attribute. Its first and last bytes represent all of up to 16.
#[derive(Clone, Copy, Debug)]
struct Known {
    ends: (u64, u64),
    /// The number that identifies it, unique among replaced attributes as well.
    number: u32,
    length: u8,
    bytes: [u8; KEPT],
}

/// Checks attributes (the entries of `NodeDef.attr`), and remembers valid ones.
#[derive(Debug)]
pub(super) struct Attributes {
    known: Box<[Known]>,
    scanner: Scanner,
    depth: usize,
    /// The last number that was given to an attribute.
    last: u32,
    /// The keys of tensors, whose contents do not affect the node signature.
    tensors: Vec<(Box<[u8]>, u32)>,
    /// The identity of the node that is being read.
    pub(super) identity: Identity,
}

/// Number of keys of tensors that are distinguished: one, in almost every graph.
const TENSOR_KEYS: usize = 8;

impl Attributes {
    pub(super) fn new() -> Self {
        // A node without attributes is valid too.
        let nothing = Known { ends: (0, 0), number: 0, length: 0, bytes: [0; KEPT] };
        Self {
            known: vec![nothing; SLOTS].into(),
            scanner: Scanner::new(TENSORFLOW, NODE_DEF, 0),
            depth: 0,
            last: 0,
            tensors: Vec::new(),
            identity: Identity::default(),
        }
    }

    /// Returns true if an attribute is valid; the message that contains the node is at `depth`.
    #[inline]
    fn take(&mut self, bytes: &[u8], depth: usize) -> bool {
        if bytes.len() > KEPT || depth != self.depth {
            return self.check(bytes, depth);
        }
        let ends = ends(bytes);
        let Some(known) = self.known.get(slot(ends)) else { return false };
        if known.ends == ends && usize::from(known.length) == bytes.len() {
            let same = bytes.len() <= 16 || known.bytes.get(..bytes.len()) == Some(bytes);
            if same {
                self.identity.note(known.number);
                return true;
            }
        }
        self.check(bytes, depth)
    }

    #[cold]
    fn check(&mut self, bytes: &[u8], depth: usize) -> bool {
        if depth != self.depth {
            // An attribute that is valid here may nest too deep elsewhere.
            let (last, identity) = (self.last, self.identity);
            *self = Self { depth, last, identity, ..Self::new() };
        }
        // The node is one message deeper than its container, and the attribute another.
        self.scanner.restart(NODE_DEF_ATTR_ENTRY, bytes.len() as u64, depth + 1);
        let mut seen = Unlike::default();
        let right = matches!(self.scanner.run(bytes, 0, &mut seen), Ok(Progress::Done))
            && !seen.is_colocation;
        let number = if right { self.number(bytes, &seen) } else { 0 };
        self.identity.note(number);
        if right
            && bytes.len() <= KEPT
            && let Some(known) = self.known.get_mut(slot(ends(bytes)))
            && let Some(kept) = known.bytes.get_mut(..bytes.len())
        {
            kept.copy_from_slice(bytes);
            (known.ends, known.length) = (ends(bytes), bytes.len() as u8);
            known.number = number;
        }
        right
    }

    /// Returns a number for a new attribute: its own, or that of all tensors with its key. 0 for
    /// one that is not remembered.
    fn number(&mut self, bytes: &[u8], seen: &Unlike) -> u32 {
        let tensor = tensor_key(bytes);
        if tensor.is_some() && (seen.may_have_no_shape() || seen.may_be_malformed()) {
            return 0;
        }
        let known = tensor.and_then(|key| self.tensors.iter().find(|(other, _)| **other == *key));
        if let Some((_, number)) = known {
            return *number;
        }
        let is_kept = bytes.len() <= KEPT || tensor.is_some();
        // When the numbers are used up, new attributes get none.
        let Some(next) = self.last.checked_add(1).filter(|_| is_kept) else { return 0 };
        if let Some(key) = tensor {
            if self.tensors.len() == TENSOR_KEYS {
                return 0;
            }
            self.tensors.push((key.into(), next));
        }
        self.last = next;
        next
    }
}

/// Returns the key of an attribute that is only a tensor.
fn tensor_key(attribute: &[u8]) -> Option<&[u8]> {
    let (0x0a, key, rest) = short_field(attribute)? else { return None };
    let (0x12, value, []) = short_field(rest)? else { return None };
    let (0x42, _, []) = short_field(value)? else { return None };
    Some(key)
}

/// Returns the first and the last bytes, up to eight of each: with the length, they distinguish up
/// to 16 bytes.
#[inline]
pub(super) fn ends(bytes: &[u8]) -> (u64, u64) {
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return (u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into());
    }
    (bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0)
}

#[inline]
fn slot((first, last): (u64, u64)) -> usize {
    let mixed = (first ^ last.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 57) as usize
}

const _: () = assert!(SLOTS == 1 << (64 - 57));

/// Checks everything, and finds attributes that cannot share a number: a colocation constraint in
/// another form, or a tensor whose shape may be invalid or whose number of bytes may be wrong.
#[derive(Default)]
struct Unlike {
    is_colocation: bool,
    has_bad_size: bool,
    dimensions: u64,
    /// The bitwise or of all sizes.
    bits: u64,
    data_type: i32,
    /// The product of the sizes; meaningless on overflow.
    elements: Elements,
    /// Number of bytes of its content.
    content: u64,
}

/// The number of elements of a tensor.
struct Elements(u64);

impl Default for Elements {
    fn default() -> Self {
        Self(1)
    }
}

/// Limit on the dimensions of real tensors; fewer than a shape can have.
const DIMENSIONS: u64 = 32;

impl Unlike {
    /// Returns true if dimensions are negative, or too many, or their product may overflow.
    fn may_have_no_shape(&self) -> bool {
        self.has_bad_size || self.dimensions > DIMENSIONS || self.bits >= 63
    }

    /// Returns true if a type is unusual, or the number of content bytes does not match the
    /// elements.
    fn may_be_malformed(&self) -> bool {
        let Some(data_type) = DataType::from_number(self.data_type) else { return true };
        let is_other = |size: u64| self.content != self.elements.0.wrapping_mul(size);
        self.data_type > LAST_USUAL_TYPE
            || (self.content > 0 && data_type.element_size().is_some_and(is_other))
    }
}

/// Type numbers above this one are unusual.
const LAST_USUAL_TYPE: i32 = 23;

impl Visitor for Unlike {
    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        let size = tensor_shape_proto_dim::SIZE;
        if (message, field.number) == (TENSOR_SHAPE_PROTO_DIM, size) {
            self.has_bad_size |= (value as i64) < 0;
            self.dimensions += 1;
            self.bits += u64::from(u64::BITS - value.leading_zeros());
            self.elements.0 = self.elements.0.wrapping_mul(value);
        } else if (message, field.number) == (TENSOR_PROTO, tensor_proto::DTYPE) {
            self.data_type = value as i32;
        }
    }

    fn wants_bytes(&self, message: MessageId, field: &'static Field) -> bool {
        (message, field.number) == (TENSOR_PROTO, tensor_proto::TENSOR_CONTENT)
    }

    fn long_bytes(&mut self, _message: MessageId, _field: &'static Field, length: u64) {
        self.content = length;
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], _is: Piece) {
        if message == TENSOR_PROTO {
            self.content = piece.len() as u64;
            return;
        }
        self.is_colocation |= (message, field.number)
            == (NODE_DEF_ATTR_ENTRY, node_def_attr_entry::KEY)
            && piece == b"_class";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serdes_testkit::fields::field;

    fn attribute(value: &[u8]) -> Vec<u8> {
        [&[0x0a, 1, b'T', 0x12, value.len() as u8], value].concat()
    }

    #[test]
    fn an_attribute_is_right_as_often_as_it_comes_and_a_wrong_one_never() {
        let mut attributes = Attributes::new();
        let right = [
            vec![],
            attribute(&[0x30, 1]),
            attribute(&[0x12, 3, 1, 2, 3]),
            attribute(&[&[0x12, 80][..], &[7; 80]].concat()),
            attribute(&[&[0x12, 100][..], &[7; 100]].concat()),
        ];
        let wrong = [vec![0], attribute(&[0x30]), attribute(&[0x0a, 9]), vec![0x0a, 1, 0xff]];
        for _ in 0..3 {
            for bytes in &right {
                assert!(attributes.take(bytes, 1), "{bytes:?}");
            }
            for bytes in &wrong {
                assert!(!attributes.take(bytes, 1), "{bytes:?}");
            }
        }
    }

    #[test]
    fn a_byte_that_differs_in_the_middle_is_another_attribute() {
        let mut attributes = Attributes::new();
        // A valid string, and the same with a byte in its middle that is invalid in UTF-8.
        let name = [b'x'; 40];
        let right = [&[0x0a, 40][..], &name].concat();
        assert!(attributes.take(&right, 1) && attributes.take(&right, 1));
        let mut wrong = right.clone();
        wrong[20] = 0xff;
        assert!(!attributes.take(&wrong, 1));
        assert!(attributes.take(&right, 1));
    }

    #[test]
    fn how_deep_an_attribute_may_nest_depends_on_where_it_is() {
        // Lists of functions whose attributes are lists of functions.
        let mut bytes = Vec::new();
        for _ in 0..20 {
            let function = field(1, &field(2, &field(2, &bytes)));
            bytes = if bytes.is_empty() { attribute(&[]) } else { field(2, &function) };
        }
        let mut deepest = 0;
        let mut attributes = Attributes::new();
        for depth in 0..100 {
            if attributes.take(&bytes, depth) {
                deepest = depth;
            }
        }
        assert!(deepest > 0 && deepest < 99, "{deepest}");
        assert!(!attributes.take(&bytes, deepest + 1) && attributes.take(&bytes, deepest));
    }

    #[test]
    fn a_node_of_the_common_form_is_read_and_any_other_is_left_alone() {
        let mut attributes = Attributes::new();
        let mut inputs = Vec::new();
        let node = [
            field(1, b"a"),
            field(2, b"Add"),
            field(3, b"x"),
            field(5, &attribute(&[0x30, 1])),
            field(3, b"^y"),
        ]
        .concat();
        let mut read = |bytes: &[u8]| {
            inputs.clear();
            let canonical = super::read(bytes, 1, &mut attributes, |reference| {
                match reference {
                    Reference::Input(name, _) => inputs.push(name.to_vec()),
                    Reference::Colocated(name) => inputs.push([b"beside ", name].concat()),
                    Reference::Device(_) => {}
                }
                true
            });
            canonical.map(|canonical| {
                (canonical.name.to_vec(), canonical.operation.to_vec(), inputs.clone())
            })
        };
        let expected = (b"a".to_vec(), b"Add".to_vec(), vec![b"x".to_vec(), b"^y".to_vec()]);
        assert_eq!(read(&node), Some(expected));
        let beside = |list: &[u8]| {
            let class = [&field(1, b"_class")[..], &field(2, &field(1, list))].concat();
            [field(1, b"a"), field(2, b"Add"), field(5, &class)].concat()
        };
        let list = [field(2, b"loc:@x"), field(2, b"other"), field(2, b"loc:@y")].concat();
        let expected = vec![b"beside x".to_vec(), b"beside y".to_vec()];
        assert_eq!(read(&beside(&list)), Some((b"a".to_vec(), b"Add".to_vec(), expected)));
        assert_eq!(read(&beside(&[list, field(3, b"")].concat())), None);
        for length in 0..node.len() {
            // Without its last field a node may still be in the canonical encoding; with a part of
            // a field it is not.
            if let Some((name, operation, _)) = read(&node[..length]) {
                assert_eq!((name, operation), (b"a".to_vec(), b"Add".to_vec()));
                assert!([8, 11, 20].contains(&length), "{length}");
            }
        }
        for other in [
            [node.clone(), field(1, b"b")].concat(),
            [node.clone(), field(7, b"")].concat(),
            [node.clone(), vec![0x08, 1]].concat(),
            [node.clone(), field(3, &[0xff])].concat(),
        ] {
            assert_eq!(read(&other), None);
        }
    }
}
