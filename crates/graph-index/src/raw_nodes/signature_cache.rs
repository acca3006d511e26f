//! A cache of facts about nodes, looked up by the bytes of another node.

use super::canonical::{self, Attributes, CanonicalNode, IDENTIFIED, Reference};

/// Limit on the nodes that are remembered. Beyond it, earlier ones are forgotten.
const SLOTS: usize = 512;
const SLOT_BITS: u32 = SLOTS.trailing_zeros();

/// Limit on the length of operation names that are remembered.
const LONGEST_OPERATION: usize = 48;

/// The key of a node: its operation and the numbers of its attributes.
#[derive(Clone, Copy, Debug)]
struct Key {
    /// The first and the last bytes of the operation, which represent all of up to 16.
    ends: (u64, u64),
    attributes: [u32; IDENTIFIED],
    length: u8,
    operation: [u8; LONGEST_OPERATION],
}

impl Key {
    /// `None` for an operation that is too long.
    fn of(operation: &[u8], attributes: [u32; IDENTIFIED]) -> Option<Self> {
        let mut kept = [0; LONGEST_OPERATION];
        kept.get_mut(..operation.len())?.copy_from_slice(operation);
        let (ends, length) = (canonical::ends(operation), operation.len() as u8);
        Some(Self { ends, attributes, length, operation: kept })
    }

    #[inline]
    fn is_of(&self, ends: (u64, u64), operation: &[u8], attributes: &[u32; IDENTIFIED]) -> bool {
        self.ends == ends
            && usize::from(self.length) == operation.len()
            && self.attributes == *attributes
            && (operation.len() <= 16 || self.operation.get(..operation.len()) == Some(operation))
    }

    fn place(&self) -> usize {
        place(self.ends, &self.attributes)
    }
}

/// Returns the index of the facts in the table.
#[inline]
fn place((first, last): (u64, u64), attributes: &[u32; IDENTIFIED]) -> usize {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let pairs = attributes.as_chunks::<2>().0.iter();
    let pairs = pairs.map(|[low, high]| u64::from(*high) << 32 | u64::from(*low));
    let start = first ^ last.rotate_left(29);
    let sum = pairs.fold(start, |sum, pair| (sum ^ pair).wrapping_mul(FACTOR).rotate_left(23));
    (sum.wrapping_mul(FACTOR) >> (64 - SLOT_BITS)) as usize
}

/// Cached facts about the nodes of one signature, whose bytes differ only in names, inputs, devices
/// and the contents of tensors.
///
/// A walk [`read`](Self::read)s each node and looks up its facts ([`find`](Self::find)). If there
/// are none, the walk reads the node as it would without the cache, and [`learn`](Self::learn)s the
/// result.
#[derive(Debug)]
pub struct SignatureCache<T> {
    attributes: Attributes,
    /// `None` until facts were learned.
    slots: Box<[Option<(Key, T)>]>,
    /// The key of the last node that was looked up, if it was not found.
    unknown: Option<Key>,
}

impl<T> Default for SignatureCache<T> {
    fn default() -> Self {
        let attributes = Attributes::new();
        Self { attributes, slots: Box::default(), unknown: None }
    }
}

impl<T: Copy> SignatureCache<T> {
    /// Reads a node in the canonical encoding, at nesting depth `depth`; see [`canonical::read`].
    #[inline]
    pub fn read<'b>(
        &mut self,
        bytes: &'b [u8],
        depth: usize,
        reference: impl FnMut(Reference<'b>) -> bool,
    ) -> Option<CanonicalNode<'b>> {
        self.unknown = None;
        canonical::read(bytes, depth, &mut self.attributes, reference)
    }

    /// Returns the facts about a node like the last one read, with this operation.
    #[inline]
    pub fn find(&mut self, operation: &[u8]) -> Option<T> {
        let attributes = self.attributes.identity.attributes()?;
        let ends = canonical::ends(operation);
        let place = place(ends, &attributes);
        // Two slots for each key, so that two common node signatures do not evict each other.
        for place in [place, place ^ 1] {
            if let Some(Some((key, known))) = self.slots.get(place)
                && key.is_of(ends, operation, &attributes)
            {
                return Some(*known);
            }
        }
        self.unknown = Key::of(operation, attributes);
        None
    }

    /// Forgets the last look-up: the next node is another one.
    pub fn forget(&mut self) {
        self.unknown = None;
    }

    /// Stores the facts about nodes like the one that was not found.
    pub fn learn(&mut self, value: T) {
        let Some(key) = self.unknown.take() else { return };
        if self.slots.is_empty() {
            self.slots = vec![None; SLOTS].into();
        }
        let place = key.place();
        let older = self.slots.get_mut(place).and_then(|slot| slot.replace((key, value)));
        if let (Some(older), Some(other)) = (older, self.slots.get_mut(place ^ 1)) {
            *other = Some(older);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serdes_testkit::fields::field;

    fn node(operation: &str, attributes: &[Vec<u8>]) -> Vec<u8> {
        let attributes = attributes.iter().flat_map(|attribute| field(5, attribute));
        let attributes: Vec<u8> = attributes.collect();
        [field(1, b"name"), field(2, operation.as_bytes()), attributes].concat()
    }

    fn type_of(key: &str, data_type: u8) -> Vec<u8> {
        [field(1, key.as_bytes()), field(2, &[0x30, data_type])].concat()
    }

    fn tensor(dimensions: &[i64], content: &[u8]) -> Vec<u8> {
        let dimension = |size: &i64| {
            let mut number = *size as u64;
            let mut bytes = vec![0x08];
            while number >= 0x80 {
                bytes.push(number as u8 | 0x80);
                number >>= 7;
            }
            field(2, &[bytes, vec![number as u8]].concat())
        };
        let shape: Vec<u8> = dimensions.iter().flat_map(dimension).collect();
        let tensor = [&[0x08, 1][..], &field(2, &shape), &field(4, content)].concat();
        [field(1, b"value"), field(2, &field(8, &tensor))].concat()
    }

    fn found(known: &mut SignatureCache<usize>, bytes: &[u8]) -> Option<usize> {
        let operation = known.read(bytes, 1, |_| true)?.operation;
        known.find(operation)
    }

    #[test]
    fn a_node_is_known_by_its_operation_and_attributes_alone() {
        let mut known = SignatureCache::default();
        let long = "AnOperationWithANameOfOver16Bytes";
        let nodes = [
            node("Identity", &[type_of("T", 1)]),
            node("Identity", &[type_of("T", 3)]),
            node("Relu", &[type_of("T", 1)]),
            node("Identity", &[]),
            node("Identity", &[type_of("T", 1), type_of("U", 1)]),
            node(long, &[]),
            node(&long.replace("With", "with"), &[]),
            node("Const", &[tensor(&[2], b"abcdefgh")]),
        ];
        for (number, bytes) in nodes.iter().enumerate() {
            assert_eq!(found(&mut known, bytes), None);
            known.learn(number);
        }
        for (number, bytes) in nodes.iter().enumerate() {
            assert_eq!(found(&mut known, bytes), Some(number));
        }
        // Known facts are not stored again.
        known.learn(77);
        assert_eq!(found(&mut known, &nodes[7]), Some(7));
    }

    #[test]
    fn tensors_are_alike_unless_one_has_a_shape_or_content_that_may_be_none() {
        let mut known = SignatureCache::default();
        let constant = |dimensions: &[i64]| node("Const", &[tensor(dimensions, b"")]);
        assert_eq!(found(&mut known, &constant(&[1])), None);
        known.learn(1);
        for dimensions in [&[][..], &[0], &[5, 3], &[1 << 30, 1 << 29]] {
            assert_eq!(found(&mut known, &constant(dimensions)), Some(1), "{dimensions:?}");
        }
        let filled = |size: i64, content: &[u8]| node("Const", &[tensor(&[size], content)]);
        assert_eq!(found(&mut known, &filled(50, &[7; 200])), Some(1));
        for content in [&[7; 199], &[7; 201][..]] {
            assert_eq!(found(&mut known, &filled(50, content)), None);
        }
        let many = [1; 300];
        for dimensions in [&[-1][..], &[1 << 62, 4], &[1 << 62, 4, 0], &many] {
            for _ in 0..2 {
                assert_eq!(found(&mut known, &constant(dimensions)), None, "{dimensions:?}");
                known.learn(2);
            }
        }
    }

    #[test]
    fn nodes_beyond_the_limit_are_never_mistaken_for_others() {
        let mut known = SignatureCache::default();
        for round in 0..2 {
            for number in 0..5000_usize {
                let bytes = node(&format!("Operation{number}"), &[]);
                let known_as = found(&mut known, &bytes);
                assert!(known_as.is_none_or(|found| found == number && round > 0));
                known.learn(number);
            }
        }
    }
}
