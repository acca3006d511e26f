//! Diagnostics of bodies that cannot be built.
//!
//! Depends on the diagnostics and their texts, but not on the checks that find them.

use std::rc::Rc;

use crate::graph::{
    ImportDiagnosticKind,
    diagnostic::{BodyDiagnosticKind, Part},
    index::FunctionIndex,
    rules::shown,
    source::Extent,
};

/// The reason for which a body cannot be built.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct InstantiationDiagnostic {
    /// The part of the function that has it.
    pub(in super::super) part: Part,
    pub(in super::super) kind: InstantiationDiagnosticKind,
    /// The operation, where the part is a node.
    pub(in super::super) operation: String,
    pub(in super::super) found: String,
    pub(in super::super) expected: String,
}

/// A diagnostic before it is reported.
pub(in super::super) type BoxedDiagnostic = Box<InstantiationDiagnostic>;

/// A diagnostic in a function of the library.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct FunctionDiagnostic {
    /// The extent of the function in the file.
    pub(in super::super) function: Extent,
    /// Shared by functions with the same diagnostic.
    pub(in super::super) diagnostic: Rc<InstantiationDiagnostic>,
}

/// The kind of a diagnostic of a body.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum InstantiationDiagnosticKind {
    /// A diagnostic that is independent of the release.
    Names(BodyDiagnosticKind),
    /// A diagnostic that another release may not have.
    Release(BodyDiagnosticKind),
    Import(ImportDiagnosticKind),
}

impl InstantiationDiagnostic {
    pub(in super::super) fn names(part: Part, kind: BodyDiagnosticKind) -> BoxedDiagnostic {
        let kind = InstantiationDiagnosticKind::Names(kind);
        Box::new(Self { kind, ..*Self::of(part, ImportDiagnosticKind::FunctionBody) })
    }

    pub(in super::super) fn of(part: Part, kind: ImportDiagnosticKind) -> BoxedDiagnostic {
        let (operation, found, expected) = Default::default();
        Box::new(Self {
            part,
            kind: InstantiationDiagnosticKind::Import(kind),
            operation,
            found,
            expected,
        })
    }

    /// Sets the value found and the value expected.
    pub(in super::super) fn with(
        mut self: Box<Self>,
        found: impl AsRef<str>,
        expected: impl AsRef<str>,
    ) -> BoxedDiagnostic {
        self.found = shown(found.as_ref().as_bytes());
        self.expected = shown(expected.as_ref().as_bytes());
        self
    }

    /// Sets the operation of a node.
    pub(in super::super) fn of_operation(
        mut self: Box<Self>,
        function: &FunctionIndex,
        number: u32,
    ) -> BoxedDiagnostic {
        let node = function.nodes.get(number as usize);
        let signature = node.and_then(|node| function.node_signatures.get(node.signature as usize));
        self.operation =
            signature.map_or_else(String::new, |signature| shown(signature.operation.as_bytes()));
        self
    }

    /// Returns the diagnostic for a function with a name that is too long to be read.
    pub(in super::super) fn oversized() -> BoxedDiagnostic {
        let diagnostic = Self::of(Part::Function, ImportDiagnosticKind::Oversized);
        diagnostic.with("a name or text of over 1 MiB", "a function that can be looked at")
    }
}
