//! Builds a body in TensorFlow's order: attributes of the call, arguments, operations, outputs.
//!
//! Depends on the function, the release and the call, but not on the caller or the encoding.

use std::collections::hash_map::Entry;

use super::{
    diagnostic::{BoxedDiagnostic, InstantiationDiagnostic, InstantiationDiagnosticKind},
    types::{
        ArgumentTypes, SignatureTypes, argument_types, late_diagnostic, source_of, type_diagnostic,
        types_of,
    },
};
use crate::{
    graph::{
        ImportDiagnosticKind,
        attributes::AttributeValue,
        diagnostic::{BodyDiagnosticKind, Part},
        importer::{
            binding::{BoundValue, Scope},
            body,
        },
        index::{BodyNode, BodySignature, FunctionIndex, NameMap},
        node_rules::TypeList,
        rules::shown,
    },
    ops::{AttributeKind, Operation, Registry},
};

/// A function that can be built.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in super::super) struct Built {
    /// Number of inputs that the call must have.
    pub(in super::super) inputs: u64,
    /// Number of outputs that the call must have.
    pub(in super::super) outputs: u64,
    /// A node without a shape function, which not every loader requires.
    pub(in super::super) no_shape_function: Option<BoxedDiagnostic>,
}

/// The source of definitions of operations: the functions of the library come first.
pub(in super::super) trait Definitions {
    /// Returns the operation or function of this name.
    fn find(&self, name: &str) -> Option<Operation<'_>>;

    /// Returns the release.
    fn registry(&self) -> &Registry;
}

/// A function that is being built.
pub(super) struct Instantiation<'a, D> {
    pub(super) function: &'a FunctionIndex,
    pub(super) scope: Scope<'a>,
    pub(super) definitions: &'a D,
    /// True if the attributes can be bound, by node signature.
    pub(super) unbound: Vec<Option<String>>,
    /// The operation, by node signature; `None` if it does not exist.
    pub(super) node_signatures: Vec<Option<SignatureTypes>>,
    pub(super) arguments: Vec<ArgumentTypes>,
    pub(super) argument_names: NameMap<u32>,
    pub(super) node_names: NameMap<u32>,
    /// Further nodes of one name, which is detected late if their outputs differ.
    pub(super) namesakes: NameMap<Vec<u32>>,
    /// A list of arguments has the name of a node.
    pub(super) is_ambiguous: bool,
    /// The nodes that require references but do not get them, ascending, with the first such input.
    pub(super) missing_references: Vec<(u32, u32)>,
    /// The results that should be references but are not.
    pub(super) missing_result_references: Vec<u32>,
    /// The types of a node without outputs.
    pub(super) nothing: TypeList,
    pub(super) built: Built,
}

/// Instantiates a function with a list of operations: finds the diagnostics that depend on the
/// release.
pub(in super::super) fn instantiate<D: Definitions>(
    function: &FunctionIndex,
    scope: Scope<'_>,
    definitions: &D,
) -> Result<Built, BoxedDiagnostic> {
    let mut body = Instantiation {
        function,
        scope,
        definitions,
        unbound: Vec::new(),
        node_signatures: Vec::new(),
        arguments: Vec::new(),
        argument_names: NameMap::default(),
        node_names: NameMap::default(),
        namesakes: NameMap::default(),
        is_ambiguous: false,
        missing_references: Vec::new(),
        missing_result_references: Vec::new(),
        nothing: TypeList::default(),
        built: Built::default(),
    };
    if function.oversized {
        return Err(InstantiationDiagnostic::oversized());
    }
    match body.build() {
        Ok(()) => Ok(body.built),
        Err(diagnostic) => Err(of_release(function, diagnostic)),
    }
}

/// A diagnostic of names applies to every release if names alone determine it.
fn of_release(function: &FunctionIndex, mut diagnostic: BoxedDiagnostic) -> BoxedDiagnostic {
    if let InstantiationDiagnosticKind::Names(kind) = diagnostic.kind
        && !kind.is_of_graphs()
        && body::first_diagnostic(function).is_none()
    {
        diagnostic.kind = InstantiationDiagnosticKind::Release(kind);
    }
    diagnostic
}

/// Returns the members of a list with their numbers.
pub(in super::super) fn numbered<T>(list: &[T]) -> impl Iterator<Item = (u32, &T)> {
    (0_u32..).zip(list)
}

impl<D: Definitions> Instantiation<'_, D> {
    /// Returns the steps in their order.
    fn build(&mut self) -> Result<(), BoxedDiagnostic> {
        self.call()?;
        self.arguments()?;
        self.operations()?;
        self.outputs()?;
        self.inputs()?;
        self.results()?;
        self.names()?;
        self.graph()
    }

    /// Checks that the call gives the attributes that the signature requires.
    fn call(&self) -> Result<(), BoxedDiagnostic> {
        let at_call = |kind| InstantiationDiagnostic::of(Part::Function, kind);
        for attribute in self.scope.signature.attributes() {
            let name = attribute.name().to_owned();
            match self.scope.given(attribute.name()) {
                None if attribute.default().is_some() => {}
                None => {
                    let kind =
                        ImportDiagnosticKind::AttributesMissing { attributes: vec![name.clone()] };
                    return Err(at_call(kind).with("", format!("attribute {name}")));
                }
                Some(value) => {
                    let registry = self.definitions.registry();
                    wrong_binding(&name, attribute.kind(), value, registry).map_or(Ok(()), Err)?;
                }
            }
        }
        Ok(())
    }

    fn arguments(&mut self) -> Result<(), BoxedDiagnostic> {
        let scope = self.scope;
        // Defaults are for placeholders: an attribute that the call does not give is missing.
        let given = |name: &str| scope.given(name).cloned();
        for (number, argument) in (0_u32..).zip(self.scope.signature.inputs()) {
            let part = Part::Argument(number);
            let source = source_of(&argument, self.function.arguments.get(number as usize));
            let types = types_of(&argument, source, given);
            let types = types.map_err(|diagnostic| type_diagnostic(part, diagnostic))?;
            if types.types.is_empty() {
                let diagnostic =
                    InstantiationDiagnostic::of(part, ImportDiagnosticKind::FunctionBody);
                return Err(diagnostic.with("an argument of no tensor", "at least one tensor"));
            }
            self.built.inputs = self.built.inputs.saturating_add(types.types.len());
            self.arguments.push(types);
            let Some(argument) = self.function.arguments.get(number as usize) else {
                return Err(InstantiationDiagnostic::names(part, BodyDiagnosticKind::Name));
            };
            if self.argument_names.insert(argument.name, number).is_some() {
                return Err(InstantiationDiagnostic::names(part, BodyDiagnosticKind::Duplicate));
            }
        }
        Ok(())
    }

    /// Checks that each node has its attributes and its operation.
    fn operations(&mut self) -> Result<(), BoxedDiagnostic> {
        for signature in &self.function.node_signatures {
            let unbound =
                signature.attributes.iter().find(|(_, value)| self.scope.bind(*value).is_none());
            let unbound = unbound.map(|(name, value)| show_attribute(name, value));
            self.unbound.push(unbound.or_else(|| self.unbound_inside(signature)));
            let definition = self.definitions.find(&signature.operation);
            self.node_signatures
                .push(definition.map(|definition| self.signature_types(signature, definition)));
        }
        for (number, node) in numbered(&self.function.nodes) {
            if let Some(found) = self.unbound.get(node.signature as usize).and_then(Option::as_ref)
            {
                let diagnostic = self.at_node(number, ImportDiagnosticKind::FunctionBody);
                return Err(diagnostic.with(found.as_str(), "a value, or an attribute of the call"));
            }
            if self.types_of(node).is_none() {
                return Err(self.at_node(number, ImportDiagnosticKind::UnknownOperation));
            }
        }
        Ok(())
    }

    /// Returns the first placeholder inside a function-valued attribute that has no value.
    fn unbound_inside(&self, signature: &BodySignature) -> Option<String> {
        let mut nested = signature.attributes.nested();
        let (name, value) = nested.find(|(_, value)| match value {
            None => true,
            Some(name) => self.scope.get(name.bytes.unwrap_or_default()).is_none(),
        })?;
        let value = value.map_or(AttributeValue::None, AttributeValue::Placeholder);
        Some(format!("in the function of {}", show_attribute(name, value)))
    }

    fn signature_types(
        &self,
        signature: &BodySignature,
        definition: Operation<'_>,
    ) -> SignatureTypes {
        let value = |name: &str| match signature.attributes.get(name) {
            Some(value) => self.scope.bind(value),
            None => definition.attribute(name)?.default().map(BoundValue::of_default),
        };
        let mut types = SignatureTypes {
            has_shape_function: definition.has_shape_function(),
            is_open: definition.is_name_alone(),
            ..SignatureTypes::default()
        };
        for argument in definition.outputs() {
            match argument_types(&argument, value) {
                Ok(output) => {
                    if let Some(name) = self.function.outputs.find(argument.name()) {
                        types.by_name.entry(name).or_insert(types.outputs.len());
                    }
                    types.outputs.push(output);
                }
                Err(diagnostic) => {
                    types.output_diagnostic = Some(diagnostic);
                    break;
                }
            }
        }
        types.inputs =
            definition.inputs().map(|argument| argument_types(&argument, value)).collect();
        let arguments = definition.inputs().chain(definition.outputs());
        types.late_diagnostic =
            arguments.into_iter().find_map(|argument| late_diagnostic(&argument, value));
        types
    }

    /// Returns the outputs of all nodes, and whether two nodes have one name.
    fn outputs(&mut self) -> Result<(), BoxedDiagnostic> {
        for (number, node) in numbered(&self.function.nodes) {
            let Some(types) = self.types_of(node) else { continue };
            if let Some(diagnostic) = &types.output_diagnostic {
                let diagnostic = type_diagnostic(Part::Node(number), diagnostic.clone());
                return Err(diagnostic.of_operation(self.function, number));
            }
            let is_named_alone = types.outputs.is_empty();
            let mut is_free = self.is_free(node);
            match self.node_names.entry(node.name) {
                Entry::Vacant(entry) => {
                    entry.insert(number);
                }
                Entry::Occupied(_) => self.namesakes.entry(node.name).or_default().push(number),
            }
            if let Some(argument) = self.argument_names.get(&node.name) {
                let types = self.arguments.get(*argument as usize);
                let is_list = types.is_some_and(|argument| argument.types.len() > 1);
                is_free &= is_list && !is_named_alone;
                self.is_ambiguous = true;
            }
            if !is_free {
                return Err(InstantiationDiagnostic::names(
                    Part::Node(number),
                    BodyDiagnosticKind::Duplicate,
                ));
            }
        }
        Ok(())
    }

    /// Returns true if no other node of the same name gives an output of the same name.
    fn is_free(&self, node: &BodyNode) -> bool {
        let first = self.node_names.get(&node.name).into_iter();
        let others = self.namesakes.get(&node.name).into_iter().flatten();
        let outputs = |node: &BodyNode| {
            let signature = self.function.node_signatures.get(node.signature as usize);
            let definition =
                signature.and_then(|signature| self.definitions.find(&signature.operation));
            definition.map_or(Vec::new(), |found| found.outputs().map(|one| one.name()).collect())
        };
        let Some(own) = self.node_names.get(&node.name).map(|_| outputs(node)) else { return true };
        !first.chain(others).any(|other| {
            let other = self.function.nodes.get(*other as usize).map_or(Vec::new(), outputs);
            own.is_empty() && other.is_empty() || own.iter().any(|name| other.contains(name))
        })
    }

    pub(super) fn types_of(&self, node: &BodyNode) -> Option<&SignatureTypes> {
        self.node_signatures.get(node.signature as usize)?.as_ref()
    }

    pub(super) fn at_node(&self, number: u32, kind: ImportDiagnosticKind) -> BoxedDiagnostic {
        InstantiationDiagnostic::of(Part::Node(number), kind).of_operation(self.function, number)
    }
}

/// Returns the mismatch between an attribute of the function and the value that a call gives for
/// it.
pub(in super::super) fn wrong_binding(
    name: &str,
    kind: AttributeKind,
    value: &BoundValue,
    registry: &Registry,
) -> Option<BoxedDiagnostic> {
    let attribute = name.to_owned();
    if !value.is_of(kind) {
        let diagnostic = InstantiationDiagnostic::of(
            Part::Function,
            ImportDiagnosticKind::AttributeKind { attribute },
        );
        return Some(diagnostic.with(format!("another kind of value as {name}"), kind.to_string()));
    }
    if !value.is_known(registry) {
        let diagnostic = InstantiationDiagnostic::of(
            Part::Function,
            ImportDiagnosticKind::AttributeType { attribute },
        );
        return Some(
            diagnostic.with(format!("an unknown type as {name}"), "a type of the release"),
        );
    }
    None
}

/// Returns an attribute that cannot be bound, for messages.
fn show_attribute(name: &[u8], value: AttributeValue<'_>) -> String {
    format!("{} = {value}", shown(name))
}
