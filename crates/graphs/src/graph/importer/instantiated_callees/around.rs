//! One function with its call: the bound attributes, and the result of each release.
//!
//! Depends on one function and its call, but not on other functions.

use std::rc::Rc;

use super::super::{
    binding::{Binding, BoundValue, Scope},
    function_memo::Library,
    function_summary::FunctionSummary,
    instantiate::{Built, Definitions, InstantiationDiagnostic, argument_types, instantiate},
    signatures::{ReleaseDefinitions, Signatures},
};
use crate::{
    graph::{
        GraphError,
        attributes::AttributeValue,
        index::{BodyCall, BodySignature, FunctionIndex, call_attributes},
        release::PerRelease,
        source::Extent,
    },
    ops::{DefinitionId, OperationList},
};

/// The first caller of a function.
pub(super) struct FirstCall {
    pub(super) function: u64,
    /// The extent of the calling node in the file.
    pub(super) place: Extent,
    pub(super) direct: bool,
    /// The function around it, if it is in one.
    pub(super) around: Option<Rc<Around>>,
}

/// A function as it is called.
pub(super) struct Around {
    pub(super) binding: Binding,
    pub(super) signature: Rc<OperationList>,
    pub(super) name: String,
}

/// A call in a body that the importer looks into.
#[derive(Clone, Copy, Debug)]
pub(super) struct InnerCall {
    /// The hash of the function's name.
    pub(super) function: u64,
    pub(super) inputs: u64,
    pub(super) outputs: u64,
}

/// The result of building a function in a release.
pub(super) type InstantiationResult = Result<Built, Rc<InstantiationDiagnostic>>;

impl Built {
    /// A function in which a release finds nothing.
    fn of(summary: &FunctionSummary) -> Self {
        let (inputs, outputs) = (summary.arguments.into(), summary.results.into());
        Self { inputs, outputs, ..Self::default() }
    }
}

/// Returns true if the function leaves an attribute to its callers.
pub(super) fn is_generic(function: &FunctionIndex) -> bool {
    let is_placeholder = |(_, value)| matches!(value, AttributeValue::Placeholder(_));
    !function.signature.attributes.is_empty()
        || function.node_signatures.iter().any(|node_signature| {
            let attributes = &node_signature.attributes;
            attributes.iter().any(is_placeholder) || attributes.nested().next().is_some()
        })
}

impl FirstCall {
    pub(super) fn binding(&self, library: Library<'_>) -> Result<Binding, GraphError> {
        let Library { source, release, .. } = library;
        let attributes = call_attributes(source, self.place, self.direct, release)?;
        Ok(match self.around.as_ref().and_then(|around| around.scope()) {
            Some(around) => Binding::of_body(&attributes, around),
            None => Binding::of_graph(&attributes),
        })
    }
}

impl Around {
    fn scope(&self) -> Option<Scope<'_>> {
        let signature = self.signature.operation(&self.name)?;
        Some(Scope { binding: &self.binding, signature })
    }

    /// Returns the result of judging the function, for each release.
    pub(super) fn judge(
        &self,
        library: Library<'_>,
        signatures: &Signatures,
        function: &FunctionIndex,
        summary: &FunctionSummary,
    ) -> PerRelease<Rc<InstantiationResult>> {
        let Some(scope) = self.scope() else {
            return library.releases.all(Rc::new(Ok(Built::default())));
        };
        let is_generic = is_generic(function);
        type Key = Vec<Option<(DefinitionId, bool)>>;
        let mut judged: Vec<(Key, Rc<_>)> = Vec::new();
        library.releases.map(|release, registry| {
            let names = library.names;
            let definitions = ReleaseDefinitions { names, signatures, registry };
            let key = function.node_signatures.iter().map(|node_signature| {
                let definition = definitions.find(&node_signature.operation)?;
                Some((definition.definition_id(), definition.has_shape_function()))
            });
            let key: Key = key.collect();
            // The set of types known to a release matters only for the attributes of the call.
            if !is_generic && let Some((_, known)) = judged.iter().find(|(known, _)| *known == key)
            {
                return Rc::clone(known);
            }
            let is_trivially_valid = summary.is_trivially_valid(release);
            let built = match is_trivially_valid {
                true => Ok(Built::of(summary)),
                false => instantiate(function, scope, &definitions),
            };
            let built = Rc::new(built.map_err(Rc::from));
            judged.push((key, Rc::clone(&built)));
            built
        })
    }

    /// Returns the number of tensors that a call in the function takes and gives.
    pub(super) fn inner(
        &self,
        function: &FunctionIndex,
        inner: &BodyCall,
        signatures: &Signatures,
    ) -> InnerCall {
        let call = inner.call;
        let node_signature = function.nodes.get(inner.node as usize);
        let node_signature =
            node_signature.and_then(|node| function.node_signatures.get(node.signature as usize));
        if call.direct {
            let tensors = node_signature.and_then(|node_signature| {
                self.direct(node_signature, signatures.get(call.function)?)
            });
            let (inputs, outputs) = tensors.unwrap_or((u64::MAX, u64::MAX));
            return InnerCall { function: call.function, inputs, outputs };
        }
        let length = |name: &str| {
            let value = node_signature?.attributes.get(name)?;
            Some(self.scope()?.bind(value)?.types().len())
        };
        InnerCall {
            function: call.function,
            inputs: length("Tin").unwrap_or(u64::MAX),
            outputs: length("Tout").unwrap_or(u64::MAX),
        }
    }

    /// Returns the number of tensors that a node takes and gives whose operation is the function of
    /// a signature.
    fn direct(
        &self,
        node_signature: &BodySignature,
        signature: &OperationList,
    ) -> Option<(u64, u64)> {
        let (scope, callee) = (self.scope()?, signature.operation(&node_signature.operation)?);
        let value = |name: &str| match node_signature.attributes.get(name) {
            Some(value) => scope.bind(value),
            None => callee.attribute(name)?.default().map(BoundValue::of_default),
        };
        let count = |argument| Some(argument_types(&argument, value).ok()?.types.len());
        let inputs = callee.inputs().map(count).sum::<Option<u64>>()?;
        Some((inputs, callee.outputs().map(count).sum::<Option<u64>>()?))
    }
}
