//! Reasons for which TensorFlow does not find a function equal to itself.
//!
//! Depends on one function, but not on the loaders that compare it.

use std::collections::HashSet;

use super::super::instantiate::{BoxedDiagnostic, InstantiationDiagnostic, numbered};
use crate::{
    graph::{
        ImportDiagnosticKind,
        attributes::TensorDiagnostic,
        diagnostic::{BodyDiagnosticKind, Part},
        index::FunctionIndex,
    },
    ops::Registry,
};

/// The form of a function that is compared with itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum ComparedFunction {
    /// The function as the file has it.
    Written,
    /// The function as `tf.saved_model.load` leaves it.
    Reexported,
}

/// The reasons for which TensorFlow does not find a function equal to itself.
#[derive(Debug, PartialEq)]
pub(in super::super) struct Unequal {
    /// A node has the name of another one.
    twice: Option<BoxedDiagnostic>,
    /// Nodes with tensors that cannot be read, and therefore not compared.
    tensors: Box<[(u32, TensorDiagnostic)]>,
    /// The same among the attributes of the function itself.
    own: Box<[TensorDiagnostic]>,
    /// Likewise among the attributes that it no longer has once it is loaded.
    passing: Box<[TensorDiagnostic]>,
}

impl Unequal {
    /// Returns true if the function equals itself in every release.
    pub(super) fn is_none(&self) -> bool {
        let are_read = self.tensors.is_empty() && self.own.is_empty() && self.passing.is_empty();
        self.twice.is_none() && are_read
    }

    /// Collects the reasons for a function. If it is `canonical`, its names are known to be unique.
    pub(super) fn of(function: &FunctionIndex, canonical: bool) -> Self {
        let mut known = HashSet::new();
        let mut nodes = numbered(&function.nodes).filter(|_| !canonical);
        let twice = nodes.find(|(_, node)| !known.insert(node.name));
        let diagnostic = |number| {
            InstantiationDiagnostic::names(Part::Node(number), BodyDiagnosticKind::Duplicate)
        };
        Self {
            twice: twice.map(|(number, _)| diagnostic(number)),
            tensors: function.malformed.as_slice().into(),
            own: function.own_tensors.lasting.as_slice().into(),
            passing: function.own_tensors.passing.as_slice().into(),
        }
    }

    /// Returns the diagnostic of a release in which the function is not equal to itself in this
    /// form; `None` if it is.
    pub(in super::super) fn in_release(
        &self,
        registry: &Registry,
        form: ComparedFunction,
    ) -> Option<BoxedDiagnostic> {
        let is_read = |diagnostic: TensorDiagnostic| match diagnostic {
            TensorDiagnostic::Malformed => false,
            TensorDiagnostic::OfType(number) => registry.has_type(number),
        };
        let mut tensors = self.tensors.iter().filter(|(_, diagnostic)| !is_read(*diagnostic));
        let tensor = || {
            let (number, _) = tensors.next()?;
            let diagnostic = InstantiationDiagnostic::of(
                Part::Node(*number),
                ImportDiagnosticKind::FunctionBody,
            );
            Some(diagnostic.with("a tensor that cannot be read", "a tensor"))
        };
        let own = || {
            let passing = self.passing.iter().filter(|_| form == ComparedFunction::Written);
            let mut tensors = self.own.iter().chain(passing);
            tensors.find(|diagnostic| !is_read(**diagnostic))?;
            let diagnostic =
                InstantiationDiagnostic::of(Part::Function, ImportDiagnosticKind::FunctionBody);
            Some(diagnostic.with("an attribute that is a tensor which cannot be read", "a tensor"))
        };
        self.twice.clone().or_else(tensor).or_else(own)
    }
}
