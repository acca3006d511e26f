//! The node signatures of a graph's nodes, numbered during the walk over the graph.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hash, Hasher},
};

use super::{
    ignored_set::{self, IgnoredSet},
    interner::Interner,
    node_signature::{
        ByStrictness, Judged, LoaderProfile, NodeSignature, Results, SignatureNumber, TypeNumber,
    },
    operations::{self, KnownOperation, Operations},
};
use crate::{
    attributes::{AttributeValue, Attributes},
    node_rules::{NodeRules, NodeType, Strictness, shape_diagnostic},
    ops::OperationDefinition,
    release::{PerRelease, Releases},
};

/// Limit on the nodes whose results are remembered, by a hash of the node.
const REMEMBERED: usize = 1 << 16;

/// A hash that is long enough to make collisions negligible.
type Key = [u64; 2];

/// The node signatures of one graph.
///
/// Each is judged for four loaders of every release ([`LoaderProfile`]): the C import, Python's
/// import, a session, which loads graphs without checking attribute values, and
/// `tf.saved_model.load`, which renames resources.
#[derive(Debug)]
pub struct NodeSignatures<'a> {
    releases: Releases<'a>,
    /// True for a release with the same element types as its predecessor.
    has_types_of_one_before: PerRelease<bool>,
    hashers: [foldhash::quality::RandomState; 2],
    operations: Operations<'a>,
    types: Interner<NodeType>,
    node_signatures: Interner<NodeSignature>,
    ignored: Interner<IgnoredSet>,
    /// The node signature and the ignored attributes, by hash.
    nodes: HashMap<Key, (SignatureNumber, u32), foldhash::quality::RandomState>,
    /// Likewise for nodes of functions, for which only the ignored attributes are needed.
    body_nodes: HashMap<Key, u32, foldhash::quality::RandomState>,
    /// True if some node signature differs between loaders in Python and in C.
    differs_in_python: bool,
    /// True if some node signature has an output whose type depends on the caller.
    has_untyped: bool,
}

impl<'a> NodeSignatures<'a> {
    pub fn new(releases: Releases<'a>) -> Self {
        let mut node_signatures = Interner::default();
        node_signatures.number(NodeSignature {
            operation: operations::UNKNOWN,
            results: Results::Same(Judged::Unknown),
            needs_only_types: false,
            has_shape_diagnostic: false,
        });
        let mut ignored = Interner::default();
        ignored.number(IgnoredSet::default());
        let has_types_of_one_before = releases.map(|release, registry| {
            let before = release.before().map(|before| releases.registry(before).types());
            before == Some(registry.types())
        });
        Self {
            releases,
            has_types_of_one_before,
            hashers: Default::default(),
            operations: Operations::new(releases),
            types: Interner::default(),
            node_signatures,
            ignored,
            nodes: HashMap::default(),
            body_nodes: HashMap::default(),
            differs_in_python: false,
            has_untyped: false,
        }
    }

    /// Returns true if some node differs for loaders in Python.
    pub fn differs_in_python(&self) -> bool {
        self.differs_in_python
    }

    /// Returns true if nodes of a signature have an output whose type depends on the caller, for a
    /// loader.
    pub fn is_untyped(&self, node_signature: SignatureNumber, profile: LoaderProfile) -> bool {
        self.has_untyped && self.types_of(node_signature, profile).is_some_and(is_untyped)
    }

    pub fn get(&self, number: SignatureNumber) -> Option<&NodeSignature> {
        self.node_signatures.get(number)
    }

    pub fn types(&self, number: TypeNumber) -> Option<&NodeType> {
        self.types.get(number)
    }

    /// Returns the types of the nodes of a signature for a loader, if they are valid in isolation.
    pub fn types_of(
        &self,
        node_signature: SignatureNumber,
        profile: LoaderProfile,
    ) -> Option<&NodeType> {
        match self.get(node_signature)?.judged(profile) {
            Judged::Types(types) => self.types(types),
            Judged::Unknown | Judged::InvalidAttributes => None,
        }
    }

    /// Returns the operation of a node signature.
    pub fn operation(&self, node_signature: &NodeSignature) -> Option<&KnownOperation<'a>> {
        self.operations.get(node_signature.operation)
    }

    /// Returns an operation that a node of the graph has.
    pub fn operation_named(&self, name: &[u8]) -> Option<&KnownOperation<'a>> {
        self.operations.get(self.operations.number(name)?)
    }

    /// Returns the ignored attributes of the nodes of a signature; see
    /// [`IgnoredUses`](super::IgnoredUses).
    pub(super) fn ignored(&self, number: u32) -> Option<&IgnoredSet> {
        self.ignored.get(number)
    }

    /// Returns the node signature of a node outside of functions, and the number of the set of its
    /// ignored attributes, 0 for none.
    ///
    /// `signature` returns the signature of its operation if that is a function of the library; it
    /// is called once.
    pub fn of_node<E>(
        &mut self,
        operation: &[u8],
        attributes: &Attributes,
        signature: impl FnOnce() -> Result<Option<OperationDefinition>, E>,
    ) -> Result<(SignatureNumber, u32), E> {
        let key = self.key(operation, attributes);
        if let Some(known) = self.nodes.get(&key) {
            return Ok(*known);
        }
        let number = match self.operations.number(operation) {
            Some(number) => number,
            None => self.operations.add(operation, self.releases, signature()?),
        };
        let node_signature = self.judge(number, attributes);
        let node_signature = self.node_signatures.number(node_signature);
        let ignored = self.ignored_of(number, attributes);
        remember(&mut self.nodes, key, (node_signature, ignored));
        Ok((node_signature, ignored))
    }

    /// Returns the number of the set of ignored attributes of a node of a function, 0 for none.
    pub fn of_body_node(&mut self, operation: &[u8], attributes: &Attributes) -> u32 {
        let key = self.key(operation, attributes);
        if let Some(known) = self.body_nodes.get(&key) {
            return *known;
        }
        let known = self.operations.number(operation);
        let number = known.unwrap_or_else(|| self.operations.add(operation, self.releases, None));
        let ignored = self.ignored_of(number, attributes);
        remember(&mut self.body_nodes, key, ignored);
        ignored
    }

    fn key(&self, operation: &[u8], attributes: &Attributes) -> Key {
        self.hashers.each_ref().map(|hasher| {
            let mut hasher = hasher.build_hasher();
            operation.hash(&mut hasher);
            attributes.hash_judged(&mut hasher);
            hasher.finish()
        })
    }

    /// Judges a node signature for every loader profile.
    fn judge(&mut self, operation: u32, attributes: &Attributes) -> NodeSignature {
        let has_diagnostic = |judged: &PerRelease<Judged>| {
            judged.values().any(|one| *one == Judged::InvalidAttributes)
        };
        let import = self.judge_as(operation, attributes, Strictness::Import);
        let is_valueless = |(_, value)| matches!(value, AttributeValue::None);
        let python_import = if attributes.iter().any(is_valueless) {
            self.judge_as(operation, attributes, Strictness::PythonImport)
        } else {
            import.clone()
        };
        self.differs_in_python |= import != python_import;
        let session = if has_diagnostic(&import) {
            self.judge_as(operation, attributes, Strictness::Session)
        } else {
            import.clone()
        };
        let load = if has_diagnostic(&python_import) {
            self.judge_as(operation, attributes, Strictness::Load)
        } else {
            python_import.clone()
        };
        let results = Results::from(ByStrictness { import, python_import, session, load });
        let known = self.operations.get(operation);
        let has_shape_diagnostic =
            known.is_some_and(|known| shape_diagnostic(known.name(), attributes).is_some());
        let needs_only_types =
            !has_shape_diagnostic && known.is_some_and(KnownOperation::needs_only_types);
        NodeSignature { operation, results, needs_only_types, has_shape_diagnostic }
    }

    /// Judges a node signature for every release, except those with the same definition and types
    /// as their predecessor.
    fn judge_as(
        &mut self,
        operation: u32,
        attributes: &Attributes,
        strictness: Strictness,
    ) -> PerRelease<Judged> {
        let known = self.operations.get(operation);
        let mut before = None;
        self.releases.map(|release, registry| {
            let is_as_before = self.has_types_of_one_before[release]
                && release
                    .before()
                    .zip(known)
                    .is_some_and(|(one, known)| known.is_same(one, release));
            let rules = NodeRules { registry, strictness };
            let definition = known.and_then(|known| known.operation(release));
            let judged = match (before.filter(|_| is_as_before), definition) {
                (Some(same), _) => same,
                (None, None) => Judged::Unknown,
                (None, Some(definition)) => match rules.node_type(definition, attributes) {
                    Ok(types) => {
                        self.has_untyped |= is_untyped(&types);
                        Judged::Types(self.types.number(types))
                    }
                    Err(_) => Judged::InvalidAttributes,
                },
            };
            before = Some(judged);
            judged
        })
    }

    fn ignored_of(&mut self, operation: u32, attributes: &Attributes) -> u32 {
        let Some(known) = self.operations.get(operation) else { return 0 };
        let found = ignored_set::of(operation, known, self.releases, attributes);
        self.ignored.number(found)
    }
}

/// Returns true if one of the outputs has no type.
fn is_untyped(types: &NodeType) -> bool {
    types.outputs.runs().iter().any(|run| run.element.data_type == 0)
}

/// Caches a result; at the limit, the table is cleared.
fn remember<T>(nodes: &mut HashMap<Key, T, foldhash::quality::RandomState>, key: Key, value: T) {
    if nodes.len() >= REMEMBERED {
        nodes.clear();
    }
    nodes.insert(key, value);
}
