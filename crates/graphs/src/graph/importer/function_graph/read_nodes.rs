//! Finds the diagnostics in the attributes that Python reads from the nodes of an imported
//! function: colocation, device, and the name of the gradient.
//!
//! Depends on the values that Python cannot read, but not on operations.

use super::{
    super::{
        concrete_functions::LoadDefinitions,
        instantiate::{BoxedDiagnostic, Definitions, InstantiationDiagnostic, numbered},
    },
    CLASSES, FunctionGraph,
};
use crate::graph::{ImportDiagnosticKind, diagnostic::Part, node_rules::GradientName};

impl FunctionGraph<'_> {
    /// Returns a device, or the attribute `_class`, that Python cannot read; the nodes of arguments
    /// come first.
    pub(super) fn device(&self) -> Option<BoxedDiagnostic> {
        let function = self.function;
        let found = "an attribute _class that Python cannot read";
        let is_bad = |number| function.given.attributes(number).is_some_and(|one| one.bad_class);
        let mut arguments = numbered(&function.arguments);
        if let Some((number, _)) = arguments.find(|(number, _)| is_bad(*number)) {
            let diagnostic =
                InstantiationDiagnostic::of(Part::Argument(number), ImportDiagnosticKind::Python);
            return Some(diagnostic.with(found, CLASSES));
        }
        if let Some((number, _)) = numbered(&function.nodes).find(|(_, node)| node.bad_class) {
            let diagnostic = self.at_node(number, ImportDiagnosticKind::Python);
            return Some(diagnostic.with(found, CLASSES));
        }
        let (number, _) = numbered(&function.nodes).find(|(_, node)| node.bad_device)?;
        let diagnostic = self.at_node(number, ImportDiagnosticKind::Device);
        Some(diagnostic.with("a device that is none", "/job:NAME/replica:0/task:0/device:CPU:0"))
    }

    /// Returns the name of a gradient that Python cannot look up.
    pub(super) fn gradient(&self, definitions: &LoadDefinitions<'_>) -> Option<BoxedDiagnostic> {
        let registry = definitions.registry();
        let has_type = |number: i32| {
            // Python accepts a reference to a type as a type.
            registry.has_type(number)
                || number.checked_sub(100).is_some_and(|n| registry.has_type(n))
        };
        let is_bad = |gradient: GradientName| match gradient {
            GradientName::Read => false,
            GradientName::Unreadable => true,
            GradientName::OfType(number) => !has_type(number),
        };
        let of_argument = |number| {
            let attributes = self.function.given.attributes(number);
            attributes.is_some_and(|one| is_bad(one.gradient))
        };
        let mut arguments = numbered(&self.function.arguments);
        let argument = arguments.find(|(number, _)| of_argument(*number));
        let argument = argument.map(|(number, _)| {
            InstantiationDiagnostic::of(Part::Argument(number), ImportDiagnosticKind::Python)
        });
        let node = || {
            let mut nodes = numbered(&self.function.nodes);
            let (number, _) = nodes.find(|(_, node)| is_bad(node.gradient))?;
            Some(self.at_node(number, ImportDiagnosticKind::Python))
        };
        let diagnostic = argument.or_else(node)?;
        Some(diagnostic.with("an attribute _gradient_op_type that Python cannot look up", "a text"))
    }
}
