//! The kinds of a graph's nodes, numbered while the graph is walked over.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hash, Hasher},
};

use super::{
    dropped_set::{self, DroppedSet},
    interner::Interner,
    kind::{Judged, Kind, KindNumber, TypeNumber},
    operations::{self, KnownOperation, Operations},
};
use crate::{
    attributes::{AttributeValue, Attributes},
    node_rules::{NodeRules, NodeType, Strictness, shape_fault},
    ops::{OperationDefinition, Registry},
};

/// Limit on the nodes whose results are remembered, by a hash of the node.
const REMEMBERED: usize = 1 << 16;

/// So long a hash that no two that differ have the same.
type Key = [u64; 2];

/// The kinds of the nodes of one graph.
///
/// There are four views of each registry: that of the C import, numbered as the registries are,
/// behind all of these that of Python, behind these that of a session, into which graphs are
/// loaded without a look at the values of attributes, and at the end that of
/// `tf.saved_model.load`, which names resources anew.
#[derive(Debug)]
pub struct Kinds<'a> {
    registries: &'a [Registry],
    /// By registry, whether it has the same element types as the one before it.
    has_types_of_one_before: Vec<bool>,
    hashers: [foldhash::quality::RandomState; 2],
    operations: Operations<'a>,
    types: Interner<NodeType>,
    kinds: Interner<Kind>,
    dropped: Interner<DroppedSet>,
    /// By hash: the kind, and the attributes that are dropped.
    nodes: HashMap<Key, (KindNumber, u32), foldhash::quality::RandomState>,
    /// The same for nodes of functions, of which only the latter is asked.
    body_nodes: HashMap<Key, u32, foldhash::quality::RandomState>,
    /// True if some kind differs between loaders in Python and in C.
    differs_in_python: bool,
    /// True if some kind has an output whose type depends on the caller.
    has_untyped: bool,
}

impl<'a> Kinds<'a> {
    pub fn new(registries: &'a [Registry]) -> Self {
        let mut kinds = Interner::default();
        let judged = Box::new([Judged::Unknown]);
        kinds.number(Kind {
            operation: operations::UNKNOWN,
            judged,
            is_plain: false,
            has_shape_fault: false,
        });
        let mut dropped = Interner::default();
        dropped.number(DroppedSet::default());
        let pairs = registries.iter().skip(1).zip(registries);
        let are_same = pairs.map(|(registry, before)| registry.types() == before.types());
        let has_types_of_one_before = [false].into_iter().chain(are_same).collect();
        Self {
            registries,
            has_types_of_one_before,
            hashers: Default::default(),
            operations: Operations::new(),
            types: Interner::default(),
            kinds,
            dropped,
            nodes: HashMap::default(),
            body_nodes: HashMap::default(),
            differs_in_python: false,
            has_untyped: false,
        }
    }

    /// The number of the view that Python has of a registry.
    pub fn python_view(&self, registry: usize) -> usize {
        self.registries.len() + registry
    }

    /// The number of the view that a session of a registry has, which looks at no values.
    pub fn session_view(&self, registry: usize) -> usize {
        self.registries.len() * 2 + registry
    }

    /// The number of the view of a registry that has the nodes as `tf.saved_model.load` has them.
    pub fn loaded_view(&self, registry: usize) -> usize {
        self.registries.len() * 3 + registry
    }

    /// The extent to which a view checks a node.
    pub fn strictness(&self, view: usize) -> Strictness {
        match view.checked_div(self.registries.len()) {
            None | Some(0) => Strictness::Import,
            Some(1) => Strictness::PythonImport,
            Some(2) => Strictness::Session,
            Some(_) => Strictness::Load,
        }
    }

    /// The number of the registry of a view.
    pub fn registry_of(&self, view: usize) -> usize {
        view.checked_rem(self.registries.len()).unwrap_or_default()
    }

    /// True if some node differs for loaders in Python.
    pub fn differs_in_python(&self) -> bool {
        self.differs_in_python
    }

    /// True if nodes of a kind have an output whose type depends on the caller, in a view.
    pub fn is_untyped(&self, kind: KindNumber, view: usize) -> bool {
        self.has_untyped && self.types_of(kind, view).is_some_and(is_untyped)
    }

    pub fn get(&self, number: KindNumber) -> Option<&Kind> {
        self.kinds.get(number)
    }

    pub fn types(&self, number: TypeNumber) -> Option<&NodeType> {
        self.types.get(number)
    }

    /// The types that the nodes of a kind have in a view, if they are good by themselves.
    pub fn types_of(&self, kind: KindNumber, view: usize) -> Option<&NodeType> {
        match self.get(kind)?.judged(view) {
            Judged::Types(types) => self.types(types),
            Judged::Unknown | Judged::Fault => None,
        }
    }

    /// The operation of a kind.
    pub fn operation(&self, kind: &Kind) -> Option<&KnownOperation<'a>> {
        self.operations.get(kind.operation)
    }

    /// An operation that a node of the graph has.
    pub fn operation_named(&self, name: &[u8]) -> Option<&KnownOperation<'a>> {
        self.operations.get(self.operations.number(name)?)
    }

    /// The ignored attributes of the nodes of a kind; see [`DroppedUses`](super::DroppedUses).
    pub(super) fn dropped(&self, number: u32) -> Option<&DroppedSet> {
        self.dropped.get(number)
    }

    /// The kind of a node outside of functions, and the number of what it drops, 0 for nothing.
    ///
    /// `signature` gives the signature of its operation where that is a function of the library; it
    /// is asked once.
    pub fn of_node<E>(
        &mut self,
        operation: &[u8],
        attributes: &Attributes,
        signature: impl FnOnce() -> Result<Option<OperationDefinition>, E>,
    ) -> Result<(KindNumber, u32), E> {
        let key = self.key(operation, attributes);
        if let Some(known) = self.nodes.get(&key) {
            return Ok(*known);
        }
        let number = match self.operations.number(operation) {
            Some(number) => number,
            None => self.operations.add(operation, self.registries, signature()?),
        };
        let kind = self.judge(number, attributes);
        let kind = self.kinds.number(kind);
        let dropped = self.dropped_of(number, attributes);
        remember(&mut self.nodes, key, (kind, dropped));
        Ok((kind, dropped))
    }

    /// The number of what a node of a function drops, 0 for nothing.
    pub fn of_body_node(&mut self, operation: &[u8], attributes: &Attributes) -> u32 {
        let key = self.key(operation, attributes);
        if let Some(known) = self.body_nodes.get(&key) {
            return *known;
        }
        let known = self.operations.number(operation);
        let number = known.unwrap_or_else(|| self.operations.add(operation, self.registries, None));
        let dropped = self.dropped_of(number, attributes);
        remember(&mut self.body_nodes, key, dropped);
        dropped
    }

    fn key(&self, operation: &[u8], attributes: &Attributes) -> Key {
        self.hashers.each_ref().map(|hasher| {
            let mut hasher = hasher.build_hasher();
            operation.hash(&mut hasher);
            attributes.hash_judged(&mut hasher);
            hasher.finish()
        })
    }

    /// Asks every view.
    fn judge(&mut self, operation: u32, attributes: &Attributes) -> Kind {
        let mut judged = self.judge_as(operation, attributes, Strictness::Import);
        let is_valueless = |(_, value)| matches!(value, AttributeValue::None);
        let in_python = if attributes.iter().any(is_valueless) {
            self.judge_as(operation, attributes, Strictness::PythonImport)
        } else {
            judged.clone()
        };
        self.differs_in_python |= judged != in_python;
        let in_session = if judged.contains(&Judged::Fault) {
            self.judge_as(operation, attributes, Strictness::Session)
        } else {
            judged.clone()
        };
        let in_load = if in_python.contains(&Judged::Fault) {
            self.judge_as(operation, attributes, Strictness::Load)
        } else {
            in_python.clone()
        };
        judged.extend(in_python);
        judged.extend(in_session);
        judged.extend(in_load);
        if judged.iter().all(|one| Some(one) == judged.first()) {
            judged.truncate(1);
        }
        let known = self.operations.get(operation);
        let has_shape_fault =
            known.is_some_and(|known| shape_fault(known.name(), attributes).is_some());
        let is_plain = !has_shape_fault && known.is_some_and(KnownOperation::is_plain);
        Kind { operation, judged: judged.into(), is_plain, has_shape_fault }
    }

    /// Asks every registry, but those that have the same definition and types as the one before.
    fn judge_as(
        &mut self,
        operation: u32,
        attributes: &Attributes,
        strictness: Strictness,
    ) -> Vec<Judged> {
        let mut judged: Vec<Judged> = Vec::with_capacity(self.registries.len());
        for (number, registry) in self.registries.iter().enumerate() {
            let Some(known) = self.operations.get(operation) else { return judged };
            let before = number.checked_sub(1).filter(|before| {
                let has_same_types = self.has_types_of_one_before.get(number) == Some(&true);
                has_same_types && known.is_same(*before, number)
            });
            let same = before.and_then(|before| judged.get(before).copied());
            let rules = NodeRules { registry, strictness };
            judged.push(match (same, known.operation(number)) {
                (Some(same), _) => same,
                (None, None) => Judged::Unknown,
                (None, Some(definition)) => match rules.node_type(definition, attributes) {
                    Ok(types) => {
                        self.has_untyped |= is_untyped(&types);
                        Judged::Types(self.types.number(types))
                    }
                    Err(_) => Judged::Fault,
                },
            });
        }
        judged
    }

    fn dropped_of(&mut self, operation: u32, attributes: &Attributes) -> u32 {
        let Some(known) = self.operations.get(operation) else { return 0 };
        let found = dropped_set::of(operation, known, self.registries, attributes);
        self.dropped.number(found)
    }
}

/// True if one of the outputs has no type.
fn is_untyped(types: &NodeType) -> bool {
    types.outputs.runs().iter().any(|run| run.element.data_type == 0)
}

/// Remembers a result, to save time only: at the limit, the table is cleared.
fn remember<T>(nodes: &mut HashMap<Key, T, foldhash::quality::RandomState>, key: Key, value: T) {
    if nodes.len() >= REMEMBERED {
        nodes.clear();
    }
    nodes.insert(key, value);
}
