//! Checks the results of a body, and that the generated nodes have unique names.

use std::borrow::Cow;

use super::{
    build::{Definitions, Instantiation, numbered},
    diagnostic::{BoxedDiagnostic, InstantiationDiagnostic},
    types::{Runs, shown_types, source_of, type_diagnostic, types_of},
};
use crate::graph::{
    diagnostic::{BodyDiagnosticKind, Part},
    index::NameMap,
    rules::is_body_name,
};

/// Limit on the names generated for one list of arguments or results that are compared: a function
/// with more arguments cannot be called, because TensorFlow counts each of them as a node.
const LONGEST_LIST: u64 = 1 << 16;

impl<D: Definitions> Instantiation<'_, D> {
    pub(super) fn results(&mut self) -> Result<(), BoxedDiagnostic> {
        let scope = self.scope;
        let given = |name: &str| scope.given(name).cloned();
        let mut outputs = 0_u64;
        for (number, result) in (0_u32..).zip(scope.signature.outputs()) {
            let part = Part::Result(number);
            let names = |kind| InstantiationDiagnostic::names(part, kind);
            let name = self.function.results.get(number as usize).map(|result| result.name);
            let returned = name.and_then(|name| self.function.returns.get(&name));
            let Some(target) = returned else { return Err(names(BodyDiagnosticKind::NoResult)) };
            let source = source_of(&result, self.function.results.get(number as usize));
            let types = types_of(&result, source, given);
            let types = types.map_err(|diagnostic| type_diagnostic(part, diagnostic))?;
            if target.as_ref().is_some_and(|target| self.is_open(target)) {
                outputs = outputs.saturating_add(types.types.len());
                continue;
            }
            let Some(item) = target.as_ref().and_then(|target| self.item(target)) else {
                return Err(names(BodyDiagnosticKind::UnknownResult));
            };
            let (found, expected) = (item.shown(), shown_types(&types.types));
            let is_same = types.types.len() == item.count && !types.types.is_empty();
            let mut runs = Runs::of(&types.types, 0);
            if !is_same || self.compare(0, 0, item, &mut runs).is_err() {
                return Err(names(BodyDiagnosticKind::ResultType).with(found, expected));
            }
            if types.is_reference && !item.is_reference {
                self.missing_result_references.push(number);
            }
            outputs = outputs.saturating_add(types.types.len());
        }
        self.built.outputs = outputs;
        Ok(())
    }

    /// Checks that the nodes generated for arguments, nodes and results have unique names.
    pub(super) fn names(&self) -> Result<(), BoxedDiagnostic> {
        let diagnostic = |part, kind| Err(InstantiationDiagnostic::names(part, kind));
        let mut made: NameMap<Part> = NameMap::default();
        for (number, argument) in (0_u32..).zip(self.scope.signature.inputs()) {
            let many = self.arguments.get(number as usize).map_or(1, |types| types.types.len());
            for name in generated(argument.name(), many) {
                if !is_body_name(name.as_bytes()) {
                    return diagnostic(Part::Argument(number), BodyDiagnosticKind::Name);
                }
                if made
                    .insert(self.function.hash(name.as_bytes()), Part::Argument(number))
                    .is_some()
                {
                    return diagnostic(Part::Argument(number), BodyDiagnosticKind::Duplicate);
                }
            }
        }
        for (number, node) in numbered(&self.function.nodes) {
            let kind = match made.insert(node.name, Part::Node(number)) {
                _ if node.bad_name => BodyDiagnosticKind::Name,
                Some(_) => BodyDiagnosticKind::Duplicate,
                None if node.no_operation => BodyDiagnosticKind::NoOperation,
                None if node.input_order => BodyDiagnosticKind::InputOrder,
                None => continue,
            };
            return diagnostic(Part::Node(number), kind);
        }
        for (number, result) in (0_u32..).zip(self.scope.signature.outputs()) {
            let target = self
                .function
                .results
                .get(number as usize)
                .and_then(|result| self.function.returns.get(&result.name).copied().flatten());
            let many = target.and_then(|target| self.item(&target)).map_or(1, |item| item.count);
            for name in generated(&format!("{}_RetVal", result.name()), many) {
                if !is_body_name(name.as_bytes()) {
                    return diagnostic(Part::Result(number), BodyDiagnosticKind::Name);
                }
                if made.insert(self.function.hash(name.as_bytes()), Part::Result(number)).is_some()
                {
                    return diagnostic(Part::Result(number), BodyDiagnosticKind::Duplicate);
                }
            }
        }
        Ok(())
    }
}

/// Returns the names of the nodes that are generated for an argument or result of this number of
/// tensors.
fn generated(name: &str, many: u64) -> impl Iterator<Item = Cow<'_, str>> {
    (0..many.min(LONGEST_LIST)).map(move |number| match many {
        1 => Cow::Borrowed(name),
        _ => Cow::Owned(format!("{name}_{number}")),
    })
}
