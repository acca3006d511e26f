//! Why a body cannot be built.
//!
//! Knows the faults of functions and their texts. It must never know how they are found.

use crate::graph::{
    ImportFaultKind,
    fault::{BodyFaultKind, Part},
    index::FunctionIndex,
    rules::shown,
};

/// Why a body cannot be built.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Finding {
    /// The part of the function that has it.
    pub(in super::super) part: Part,
    pub(in super::super) kind: FindingKind,
    /// The operation, where the part is a node.
    pub(in super::super) operation: String,
    pub(in super::super) found: String,
    pub(in super::super) expected: String,
}

/// The same where it is handed on.
pub(in super::super) type BodyFinding = Box<Finding>;

/// The kind of a fault of a body.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum FindingKind {
    /// Something that depends on no release.
    Names(BodyFaultKind),
    /// The same where another release may have it otherwise.
    Release(BodyFaultKind),
    Import(ImportFaultKind),
}

impl Finding {
    pub(in super::super) fn names(part: Part, kind: BodyFaultKind) -> BodyFinding {
        let kind = FindingKind::Names(kind);
        Box::new(Self { kind, ..*Self::of(part, ImportFaultKind::FunctionBody) })
    }

    pub(in super::super) fn of(part: Part, kind: ImportFaultKind) -> BodyFinding {
        let (operation, found, expected) = Default::default();
        Box::new(Self { part, kind: FindingKind::Import(kind), operation, found, expected })
    }

    /// The same with what is there and what should be.
    pub(in super::super) fn with(
        mut self: Box<Self>,
        found: impl AsRef<str>,
        expected: impl AsRef<str>,
    ) -> BodyFinding {
        self.found = shown(found.as_ref().as_bytes());
        self.expected = shown(expected.as_ref().as_bytes());
        self
    }

    /// The same with the operation of a node.
    pub(in super::super) fn of_operation(
        mut self: Box<Self>,
        function: &FunctionIndex,
        number: u32,
    ) -> BodyFinding {
        let node = function.nodes.get(number as usize);
        let kind = node.and_then(|node| function.kinds.get(node.kind as usize));
        self.operation = kind.map_or_else(String::new, |kind| shown(kind.operation.as_bytes()));
        self
    }

    /// The finding for a function with a name that is too long to be read.
    pub(in super::super) fn oversized() -> BodyFinding {
        let fault = Self::of(Part::Function, ImportFaultKind::Oversized);
        fault.with("a name or text of over 1 MiB", "a function that can be looked at")
    }
}
