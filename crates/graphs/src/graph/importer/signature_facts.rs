//! Finds the nodes of functions that are valid in every release, by signature.
//!
//! Functions of one library share node signatures, so each is checked once for all of them. A node
//! counts as valid here only if it is valid in every context; all others are checked function by
//! function.
//!
//! Depends on node signatures and releases, but not on edges.

use std::rc::Rc;

use super::{binding::BoundValue, instantiate::fixed_types};
use crate::{
    graph::{
        attributes::AttributeValue,
        function_names::FunctionNames,
        index::{BodySignature, FunctionIndex, OutputNames},
        node_rules::{NodeRules, NodeType, Strictness},
        release::{PerRelease, Releases},
        rules::is_partitioned_call,
    },
    ops::{Argument, ArgumentSource, Operation, Registry},
};

/// The facts of a node that is valid for every loader.
#[derive(Debug, PartialEq)]
pub(super) struct SignatureFacts {
    pub(super) types: NodeType,
    outputs: Vec<NamedOutput>,
}

/// An output, which may be a list.
#[derive(Clone, Copy, Debug, PartialEq)]
struct NamedOutput {
    /// The number of its name.
    name: u32,
    /// The index of the output's first tensor among all output tensors of the node.
    first: u64,
    count: u64,
}

impl SignatureFacts {
    /// Returns the facts of a release about a node signature; `None` if the node signature needs
    /// the slow path.
    fn of(
        signature: &BodySignature,
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
        let in_graph = rules.node_type(definition, &signature.attributes).ok()?;
        let value = |name: &str| match signature.attributes.get(name) {
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
            // Python counts the tensors of an output differently where defaults are omitted.
            if tensors(&output, |name| signature.attributes.get(name)) != count {
                return None;
            }
            let name = names.number(output.name().as_bytes());
            outputs.push(NamedOutput { name, first, count });
            first = first.saturating_add(count);
        }
        Some(Self { types, outputs })
    }

    /// Returns the position of a tensor of an output among all output tensors of the node.
    pub(super) fn output(&self, name: u32, element: u32) -> Option<u64> {
        let output = self.outputs.iter().find(|output| output.name == name)?;
        let element = u64::from(element);
        (element < output.count).then(|| output.first.saturating_add(element))
    }
}

/// Returns the number of tensors that Python counts for an output; it does not apply defaults.
pub(super) fn tensors<'v>(
    output: &Argument<'_>,
    value: impl Fn(&str) -> Option<AttributeValue<'v>>,
) -> u64 {
    use AttributeValue as Value;
    if let Some(name) = output.number_attribute() {
        return match value(name) {
            Some(Value::Int(number)) => u64::try_from(number).unwrap_or_default(),
            _ => 0,
        };
    }
    match output.source() {
        ArgumentSource::List(name) => match value(name) {
            Some(Value::List(list)) => list.types().iter().map(|run| run.count).sum(),
            _ => 0,
        },
        _ => 1,
    }
}

/// Returns true if nothing about a node signature depends on the caller of the function, and it
/// names no function that needs more than a check of types.
fn is_self_contained(signature: &BodySignature, functions: &FunctionNames) -> bool {
    let attributes = &signature.attributes;
    let is_open =
        |(_, value)| matches!(value, AttributeValue::None | AttributeValue::Placeholder(_));
    let operation = signature.operation.as_bytes();
    let is_call = is_partitioned_call(operation);
    let calls_one = || matches!(attributes.get("f"), Some(AttributeValue::Function(_)));
    !matches!(operation, b"_Arg" | b"_Retval")
        && !attributes.is_oversized()
        && !attributes.iter().any(is_open)
        && attributes.nested().next().is_none()
        && functions.find(operation).is_none()
        && (!is_call || calls_one())
}

/// The facts of all releases about the node signatures of one
/// [reader](crate::graph::index::FunctionReader).
#[derive(Debug, Default)]
pub(super) struct KnownSignatures {
    /// The facts by node signature, once requested, and by release.
    node_signatures: Vec<Option<FactsPerRelease>>,
    /// The types of the last function, which many have.
    types: Option<Rc<NodeType>>,
    /// The facts of a node signature that needs the slow path in every release: none.
    nothing: Option<FactsPerRelease>,
}

/// The facts of each release about one node signature, shared by functions.
pub(super) type FactsPerRelease = Rc<PerRelease<Option<Rc<SignatureFacts>>>>;

impl KnownSignatures {
    /// Returns the types of a function, shared with the previous function if they are the same.
    pub(super) fn shared(&mut self, types: NodeType) -> Rc<NodeType> {
        match &self.types {
            Some(known) if **known == types => Rc::clone(known),
            _ => Rc::clone(self.types.insert(Rc::new(types))),
        }
    }

    /// Returns the facts of the releases about each node signature of a function, in the order of
    /// its node signatures.
    pub(super) fn of_function(
        &mut self,
        function: &FunctionIndex,
        functions: &FunctionNames,
        releases: Releases<'_>,
    ) -> Vec<FactsPerRelease> {
        let node_signatures = function.signature_numbers.iter().zip(&function.node_signatures);
        let found = node_signatures.map(|(number, signature)| {
            let number = *number as usize;
            if self.node_signatures.len() <= number {
                self.node_signatures.resize(number + 1, None);
            }
            let nothing = || Rc::new(releases.all(None));
            let nothing = Rc::clone(self.nothing.get_or_insert_with(nothing));
            let judge = || match is_self_contained(signature, functions) {
                true => Rc::new(in_each_release(signature, releases, &function.outputs)),
                false => nothing,
            };
            match self.node_signatures.get_mut(number) {
                Some(known) => Rc::clone(known.get_or_insert_with(judge)),
                None => judge(),
            }
        });
        found.collect()
    }
}

/// Asks every release, except those with the same definition and types as the previous one.
fn in_each_release(
    signature: &BodySignature,
    releases: Releases<'_>,
    names: &OutputNames,
) -> PerRelease<Option<Rc<SignatureFacts>>> {
    let mut before: Option<(_, Option<Rc<SignatureFacts>>)> = None;
    releases.operations(&signature.operation).map(|release, definition| {
        let (definition, registry) = (definition?, releases.registry(release));
        let key = (definition.definition_id(), registry.types());
        let is_deprecated = |registry: &Registry| {
            definition.deprecated_since().map(|since| registry.graph_def_version() >= since)
        };
        let key = (key, is_deprecated(registry));
        if let Some((_, known)) = before.as_ref().filter(|(other, _)| *other == key) {
            return known.clone();
        }
        let mut found = SignatureFacts::of(signature, definition, registry, names).map(Rc::new);
        // A changed definition usually gives the same result for a node.
        if let Some((_, known)) = before.as_ref().filter(|(_, known)| *known == found) {
            found = known.clone();
        }
        before = Some((key, found.clone()));
        found
    })
}
