//! Diagnostics of nodes, with texts that are read from the node itself.

use super::{context::Context, judge};
use crate::{
    graph::{
        DeprecatedOperation, GraphError, ImportDiagnostic, ImportDiagnosticKind,
        StructureDiagnostic, StructureDiagnosticKind,
        node_at::{self, NodeAt},
        node_rules::{ElementType, NodeRules, shape_diagnostic},
        node_signatures::LoaderProfile,
        rules::shown,
        shapes::Mismatch,
    },
    ops::type_name,
};

/// A diagnostic of a node, before its texts are read.
#[derive(Clone, Debug)]
pub(super) enum NodeDiagnostic {
    Colocation,
    Unknown,
    /// An attribute breaks a rule. The text is read again when the diagnostic is reported.
    Attributes,
    InputCount {
        found: u64,
        expected: u64,
    },
    Deprecated(DeprecatedOperation),
    OutputIndex {
        input: u32,
    },
    InputType {
        input: u32,
        given: ElementType,
        expected: ElementType,
    },
    NoShapeFunction,
    /// An attribute has an invalid shape. It is inferred again when the diagnostic is reported.
    Shape,
    /// The shapes of inputs are incompatible.
    ShapesOfInputs(Box<Mismatch>),
    /// The node declares too few output shapes.
    FewShapes {
        found: u64,
        expected: u64,
    },
    /// The node declares an invalid output shape.
    BadShape {
        output: u64,
    },
    /// The node calls a placeholder, which only a caller could replace.
    UnboundCall,
    /// The called function cannot be built.
    Call(Box<ImportDiagnostic>),
    /// The node begins a loop with too many inputs from outside the loop.
    LoopInputs,
    Cycle,
}

impl NodeDiagnostic {
    /// Returns an operation that is deprecated by its definition alone.
    pub(super) fn deprecated_by_definition(operation: &str, version: i32) -> Self {
        let name = operation.to_owned();
        Self::Deprecated(DeprecatedOperation { name, version, replacement: None })
    }

    /// Returns the input that the diagnostic is about.
    fn input(&self) -> Option<u32> {
        match self {
            Self::OutputIndex { input } | Self::InputType { input, .. } => Some(*input),
            _ => None,
        }
    }
}

/// A node and its diagnostic.
#[derive(Clone, Debug)]
pub(super) struct DiagnosedNode {
    pub(super) node: u32,
    pub(super) diagnostic: NodeDiagnostic,
}

/// A loader and its diagnostic.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) profile: LoaderProfile,
    pub(super) found: Option<DiagnosedNode>,
}

/// Creates the diagnostics of loaders. They mostly find the same node, which is read once: it may
/// be as large as the file.
pub(super) struct Diagnostics<'c> {
    context: &'c Context<'c>,
    /// The last node that was read, by its number and the input that was asked for.
    last: Option<((u32, Option<u32>), NodeAt)>,
}

impl<'c> Diagnostics<'c> {
    pub(super) fn new(context: &'c Context<'c>) -> Self {
        Self { context, last: None }
    }

    /// Returns the diagnostic that a loader has found.
    pub(super) fn import_diagnostic(
        &mut self,
        pending: Pending,
    ) -> Result<Option<ImportDiagnostic>, GraphError> {
        let Pending { profile, found: Some(DiagnosedNode { node, diagnostic }) } = pending else {
            return Ok(None);
        };
        if let NodeDiagnostic::Call(diagnostic) = diagnostic {
            return Ok(Some(*diagnostic));
        }
        let context = self.context;
        let key = (node, diagnostic.input());
        let node = match self.last.take() {
            Some((last, node)) if last == key => node,
            _ => {
                let place = judge::place_of(context.source, context.index, key.0)?;
                node_at::read(context.source, place, key.1, context.release)?
            }
        };
        let diagnostic = to_diagnostic(context, profile, &node, diagnostic);
        self.last = Some((key, node));
        Ok(Some(diagnostic))
    }
}

/// Formats a number of inputs: `1 input`, `2 inputs`.
fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Formats a type: `DT_FLOAT`, or `DT_FLOAT_REF` for a reference.
fn element(element: ElementType) -> String {
    let reference = if element.is_reference { "_REF" } else { "" };
    format!("{}{reference}", type_name(element.data_type))
}

fn to_diagnostic(
    context: &Context<'_>,
    profile: LoaderProfile,
    node: &NodeAt,
    diagnostic: NodeDiagnostic,
) -> ImportDiagnostic {
    let (name, operation) = (shown(&node.name), shown(&node.operation));
    let input = shown(&node.input);
    let structure =
        |kind| ImportDiagnosticKind::Structure(StructureDiagnostic::new(kind, name.clone()));
    let none = String::new;
    let (kind, found, expected) = match diagnostic {
        NodeDiagnostic::Colocation => {
            (structure(StructureDiagnosticKind::UnknownColocation), none(), none())
        }
        NodeDiagnostic::LoopInputs => {
            (structure(StructureDiagnosticKind::LoopInputs), none(), none())
        }
        NodeDiagnostic::Cycle => (structure(StructureDiagnosticKind::Cycle), none(), none()),
        NodeDiagnostic::Unknown => {
            (ImportDiagnosticKind::UnknownOperation, operation.clone(), none())
        }
        NodeDiagnostic::NoShapeFunction => {
            (ImportDiagnosticKind::NoShapeFunction, operation.clone(), none())
        }
        NodeDiagnostic::Shape => match shape_diagnostic(&operation, &node.attributes) {
            Some(diagnostic) => return diagnostic.into_import_diagnostic(name, None, operation),
            None => (ImportDiagnosticKind::Shape, none(), none()),
        },
        NodeDiagnostic::ShapesOfInputs(mismatch) => {
            let Mismatch { found, expected, .. } = *mismatch;
            (ImportDiagnosticKind::Shape, found, expected)
        }
        NodeDiagnostic::Attributes => return attributes(context, profile, node, name, operation),
        NodeDiagnostic::InputCount { found, expected } => {
            let inputs = |count| counted(count, "input");
            (ImportDiagnosticKind::InputCount, inputs(found), inputs(expected))
        }
        NodeDiagnostic::Deprecated(entry) => {
            let found = format!("producer {}", context.producer);
            let expected = format!("a producer below {}", entry.version);
            (ImportDiagnosticKind::Deprecated(entry), found, expected)
        }
        NodeDiagnostic::UnboundCall => {
            let kind = ImportDiagnosticKind::AttributeKind { attribute: "f".to_owned() };
            (kind, "f = placeholder".to_owned(), "func".to_owned())
        }
        NodeDiagnostic::FewShapes { found, expected } => {
            let found = format!("_output_shapes of {}", counted(found, "output"));
            (ImportDiagnosticKind::Shape, found, counted(expected, "output"))
        }
        NodeDiagnostic::BadShape { output } => {
            let found = format!("_output_shapes[{output}]");
            (ImportDiagnosticKind::Shape, found, "a shape that a tensor can have".to_owned())
        }
        NodeDiagnostic::OutputIndex { input: number } => {
            let kind = ImportDiagnosticKind::OutputIndex { input: number };
            (kind, input, "an output that the node has".to_owned())
        }
        NodeDiagnostic::InputType { input: number, given, expected } => {
            let kind = ImportDiagnosticKind::InputType { input: number };
            (kind, format!("{} from {input:?}", element(given)), element(expected))
        }
        NodeDiagnostic::Call(diagnostic) => return *diagnostic,
    };
    ImportDiagnostic { kind, node: name, function: None, operation, found, expected }
}

/// Applies the rules of attributes again, for the texts of their diagnostic.
fn attributes(
    context: &Context<'_>,
    LoaderProfile { release, strictness }: LoaderProfile,
    node: &NodeAt,
    name: String,
    operation: String,
) -> ImportDiagnostic {
    let rules = NodeRules { registry: context.releases.registry(release), strictness };
    let known = context.node_signatures.operation_named(&node.operation);
    let diagnostic =
        known.and_then(|known| rules.node_type(known.operation(release)?, &node.attributes).err());
    match diagnostic {
        Some(diagnostic) => diagnostic.into_import_diagnostic(name, None, operation),
        // The rules give the same answer each time.
        None => {
            let (kind, nothing) = (ImportDiagnosticKind::UnknownOperation, String::new());
            let (found, expected) = (nothing.clone(), nothing);
            ImportDiagnostic { kind, node: name, function: None, operation, found, expected }
        }
    }
}
