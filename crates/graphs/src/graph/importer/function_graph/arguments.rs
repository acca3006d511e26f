//! The nodes that represent the arguments of a function in the graph that Python creates from it:
//! each is a `Placeholder` of the argument's type and shape.
//!
//! Depends on the arguments of the function only.

use super::{
    super::{
        concrete_functions::LoadDefinitions,
        instantiate::{BoxedDiagnostic, Definitions, InstantiationDiagnostic, numbered},
    },
    FunctionGraph, Output,
};
use crate::{
    graph::{
        ImportDiagnosticKind,
        diagnostic::Part,
        index::{ArgumentShape, OutputShape, SHAPE},
    },
    ops::type_name,
};

impl FunctionGraph<'_> {
    /// Returns the diagnostic of shapes of arguments that Python cannot pass on: too few in
    /// `_input_shapes` (additional ones are ignored), or none in the list of an argument.
    pub(super) fn argument_shapes(&self) -> Option<BoxedDiagnostic> {
        let function = self.function;
        let (given, arguments) = (function.given.input_shapes.len(), function.arguments.len());
        if (1..arguments).contains(&given) {
            let diagnostic =
                InstantiationDiagnostic::of(Part::Function, ImportDiagnosticKind::Python);
            let found = format!("{given} shapes in _input_shapes");
            return Some(
                diagnostic.with(found, format!("a shape for each of {arguments} arguments")),
            );
        }
        let lacks_shape = |number| {
            let attributes = function.given.attributes(number);
            attributes.is_some_and(|one| one.output_shape == OutputShape::Missing)
        };
        let (number, _) = numbered(&function.arguments).find(|(number, _)| lacks_shape(*number))?;
        let diagnostic =
            InstantiationDiagnostic::of(Part::Argument(number), ImportDiagnosticKind::Python);
        Some(diagnostic.with("_output_shapes without a shape", "the shape of the argument"))
    }

    /// Returns an argument whose type the release does not know, without a type, or with an
    /// impossible shape.
    pub(super) fn arguments(&self, definitions: &LoadDefinitions<'_>) -> Option<BoxedDiagnostic> {
        let registry = definitions.registry();
        numbered(&self.function.arguments).find_map(|(number, argument)| {
            let diagnostic = |kind| InstantiationDiagnostic::of(Part::Argument(number), kind);
            if registry.has_type(argument.data_type) {
                let shape = self.function.given.shape(number, argument);
                let ArgumentShape::Invalid(found) = shape else { return None };
                let found = format!("an argument of shape {found}");
                return Some(diagnostic(ImportDiagnosticKind::Shape).with(found, SHAPE));
            }
            let found = match argument.data_type {
                0 => "an argument without a type of its own".to_owned(),
                number => format!("an argument of type {}", type_name(number)),
            };
            let expected = format!("an element type of TensorFlow {}", registry.release());
            Some(diagnostic(ImportDiagnosticKind::Python).with(found, expected))
        })
    }

    /// Returns an argument or a result whose resource has a declared content, but that is not a
    /// scalar, as a handle must be.
    pub(super) fn handles(&self) -> Option<BoxedDiagnostic> {
        let function = self.function;
        let diagnostic = |part| {
            let diagnostic = InstantiationDiagnostic::of(part, ImportDiagnosticKind::Shape);
            diagnostic.with("a handle of a resource that is no scalar", "a shape of []")
        };
        let mut arguments = numbered(&function.arguments);
        let argument = arguments.find(|(number, argument)| {
            argument.has_handle_data && !function.may_be_handle(*number)
        });
        if let Some((number, _)) = argument {
            return Some(diagnostic(Part::Argument(number)));
        }
        let mut results = numbered(&function.results).filter(|(_, one)| one.has_handle_data);
        let (number, _) = results.find(|(_, result)| {
            let target = function.returns.get(&result.name).copied().flatten();
            match target.and_then(|target| self.output(&target)) {
                Some(Output::Argument(argument)) => !function.may_be_handle(argument),
                _ => false,
            }
        })?;
        Some(diagnostic(Part::Result(number)))
    }

    /// Returns the diagnostic that an importer finds in the nodes of the arguments when it builds
    /// the function for a call.
    pub(super) fn uncallable(&self) -> Option<BoxedDiagnostic> {
        let diagnostics = numbered(&self.function.arguments).filter_map(|(number, argument)| {
            Some((number, self.function.given.importer_diagnostic(number, argument)?))
        });
        let (number, (found, expected)) = diagnostics.into_iter().next()?;
        Some(
            InstantiationDiagnostic::of(Part::Argument(number), ImportDiagnosticKind::Shape)
                .with(found, expected),
        )
    }
}
