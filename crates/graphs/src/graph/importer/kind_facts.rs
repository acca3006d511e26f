//! Finds the nodes of functions that are valid in every release, kind by kind.
//!
//! Functions of one library have the same kinds of nodes, so that each kind is asked about once for
//! all of them. Only what is valid whichever way a function is looked at counts as valid here; all
//! others are looked at function by function.
//!
//! Knows kinds of nodes and releases. It must never know how the nodes hang together.

use std::rc::Rc;

use super::{binding::BoundValue, function_graph::tensors, instantiate::fixed_types};
use crate::{
    graph::{
        attributes::AttributeValue,
        function_names::FunctionNames,
        index::{BodyKind, FunctionIndex, OutputNames},
        node_rules::{NodeRules, NodeType, Strictness},
        release::{PerRelease, Releases},
        rules::is_partitioned_call,
    },
    ops::{Operation, Registry},
};

/// The facts of a node that is valid for every loader.
#[derive(Debug, PartialEq)]
pub(super) struct KindFacts {
    pub(super) types: NodeType,
    outputs: Vec<NamedOutput>,
}

/// An output, which may be a list.
#[derive(Clone, Copy, Debug, PartialEq)]
struct NamedOutput {
    /// The number of its name.
    name: u32,
    /// The index of the output's first tensor among all tensors that the node gives.
    first: u64,
    count: u64,
}

impl KindFacts {
    /// The facts of a release about a kind; `None` if the kind needs the slow path.
    fn of(
        kind: &BodyKind,
        definition: Operation<'_>,
        registry: &Registry,
        names: &OutputNames,
    ) -> Option<Self> {
        let version = registry.graph_def_version();
        let is_deprecated = definition.deprecated_since().is_some_and(|since| version >= since);
        if definition.is_name_alone() || !definition.has_shape_function() || is_deprecated {
            return None;
        }
        let rules = NodeRules { registry, strictness: Strictness::Load };
        let in_graph = rules.node_type(definition, &kind.attributes).ok()?;
        let value = |name: &str| match kind.attributes.get(name) {
            Some(value) => Some(BoundValue::of(value)),
            None => definition.attribute(name)?.default().map(BoundValue::of_default),
        };
        let (types, counts) = fixed_types(definition, value)?;
        let mut given = types.outputs.runs().iter();
        if types != in_graph || given.any(|run| run.element.data_type == 0) {
            return None;
        }
        let (mut outputs, mut first) = (Vec::with_capacity(counts.len()), 0_u64);
        for (output, count) in definition.outputs().zip(counts) {
            // Python counts the tensors of an output otherwise where defaults are left out.
            if tensors(&output, |name| kind.attributes.get(name)) != count {
                return None;
            }
            let name = names.number(output.name().as_bytes());
            outputs.push(NamedOutput { name, first, count });
            first = first.saturating_add(count);
        }
        Some(Self { types, outputs })
    }

    /// The position among all tensors that a node gives of one of those of an output.
    pub(super) fn output(&self, name: u32, element: u32) -> Option<u64> {
        let output = self.outputs.iter().find(|output| output.name == name)?;
        let element = u64::from(element);
        (element < output.count).then(|| output.first.saturating_add(element))
    }
}

/// True if nothing about a kind depends on the caller of the function, and it names no function
/// that needs more than a check of types.
fn is_self_contained(kind: &BodyKind, functions: &FunctionNames) -> bool {
    let attributes = &kind.attributes;
    let is_open =
        |(_, value)| matches!(value, AttributeValue::None | AttributeValue::Placeholder(_));
    let operation = kind.operation.as_bytes();
    let is_call = is_partitioned_call(operation);
    let calls_one = || matches!(attributes.get("f"), Some(AttributeValue::Function(_)));
    !matches!(operation, b"_Arg" | b"_Retval")
        && !attributes.is_oversized()
        && !attributes.iter().any(is_open)
        && attributes.nested().next().is_none()
        && functions.find(operation).is_none()
        && (!is_call || calls_one())
}

/// The facts of all releases about the kinds of one
/// [reader](crate::graph::index::FunctionReader).
#[derive(Debug, Default)]
pub(super) struct KnownKinds {
    /// By the number of the kind, once it was asked for, and by release.
    kinds: Vec<Option<FactsPerRelease>>,
    /// The types of the last function, which many have.
    types: Option<Rc<NodeType>>,
    /// The facts of a kind that needs the slow path in every release: none.
    nothing: Option<FactsPerRelease>,
}

/// The facts of each release about one kind, shared by functions.
pub(super) type FactsPerRelease = Rc<PerRelease<Option<Rc<KindFacts>>>>;

impl KnownKinds {
    /// The types of a function, shared with the function before if it has the same.
    pub(super) fn shared(&mut self, types: NodeType) -> Rc<NodeType> {
        match &self.types {
            Some(known) if **known == types => Rc::clone(known),
            _ => Rc::clone(self.types.insert(Rc::new(types))),
        }
    }

    /// The facts of the releases about each kind of a function, in the order of its kinds.
    pub(super) fn of_function(
        &mut self,
        function: &FunctionIndex,
        functions: &FunctionNames,
        releases: Releases<'_>,
    ) -> Vec<FactsPerRelease> {
        let kinds = function.kind_numbers.iter().zip(&function.kinds);
        let found = kinds.map(|(number, kind)| {
            let number = *number as usize;
            if self.kinds.len() <= number {
                self.kinds.resize(number + 1, None);
            }
            let nothing = || Rc::new(releases.all(None));
            let nothing = Rc::clone(self.nothing.get_or_insert_with(nothing));
            let judge = || match is_self_contained(kind, functions) {
                true => Rc::new(in_each_release(kind, releases, &function.outputs)),
                false => nothing,
            };
            match self.kinds.get_mut(number) {
                Some(known) => Rc::clone(known.get_or_insert_with(judge)),
                None => judge(),
            }
        });
        found.collect()
    }
}

/// Asks every release, but those that have the same definition and types as the one before.
fn in_each_release(
    kind: &BodyKind,
    releases: Releases<'_>,
    names: &OutputNames,
) -> PerRelease<Option<Rc<KindFacts>>> {
    let mut before: Option<(_, Option<Rc<KindFacts>>)> = None;
    releases.operations(&kind.operation).map(|release, definition| {
        let (definition, registry) = (definition?, releases.registry(release));
        let key = (definition.definition_id(), registry.types());
        let is_deprecated = |registry: &Registry| {
            definition.deprecated_since().map(|since| registry.graph_def_version() >= since)
        };
        let key = (key, is_deprecated(registry));
        if let Some((_, known)) = before.as_ref().filter(|(other, _)| *other == key) {
            return known.clone();
        }
        let mut found = KindFacts::of(kind, definition, registry, names).map(Rc::new);
        // A definition that has changed mostly makes the same of a node.
        if let Some((_, known)) = before.as_ref().filter(|(_, known)| *known == found) {
            found = known.clone();
        }
        before = Some((key, found.clone()));
        found
    })
}
