//! The tensors of arguments of functions, and of inputs and outputs of their nodes.
//!
//! Depends on types and their counts, but not on nodes or functions.

use std::collections::HashMap;

use super::diagnostic::{BoxedDiagnostic, InstantiationDiagnostic};
use crate::{
    graph::{
        ImportDiagnosticKind,
        diagnostic::{BodyDiagnosticKind, Part},
        importer::binding::{BoundValue, value_type},
        index::Argument as WrittenArgument,
        node_rules::{ElementType, NodeType, TypeList, TypeRun},
    },
    ops::{Argument, ArgumentSource, Operation, type_name},
};

/// Type numbers above this one are reference types.
const REFERENCES: i32 = 100;

/// The tensors of one argument of a node.
#[derive(Clone, Debug)]
pub(in super::super) struct ArgumentTypes {
    /// Without references.
    pub(in super::super) types: TypeList,
    pub(super) is_reference: bool,
}

/// The reason why the types of an argument cannot be determined.
#[derive(Clone, Debug)]
pub(in super::super) enum TypeDiagnostic {
    /// The attribute is missing and has no default.
    Missing(String),
    /// The number of tensors is negative.
    Negative(String, i64),
}

/// The types of the inputs and outputs of nodes of one signature.
#[derive(Clone, Debug, Default)]
pub(super) struct SignatureTypes {
    pub(super) inputs: Vec<Result<ArgumentTypes, TypeDiagnostic>>,
    pub(super) outputs: Vec<ArgumentTypes>,
    /// The outputs that inputs and results refer to, by the numbers of their names.
    pub(super) by_name: HashMap<u32, usize>,
    /// The reason why the outputs cannot be determined.
    pub(super) output_diagnostic: Option<TypeDiagnostic>,
    /// A number beyond 32 bits, or a value that is not a number, which is detected only when the
    /// node is created.
    pub(super) late_diagnostic: Option<LateDiagnostic>,
    pub(super) has_shape_function: bool,
    /// Only the name of the operation is known: any inputs and outputs are accepted.
    pub(super) is_open: bool,
}

/// A diagnostic of a node that is reported when the node is created.
#[derive(Clone, Debug)]
pub(super) enum LateDiagnostic {
    /// The attribute is not a number.
    Kind(String),
    /// The attribute is not a type.
    Type(String),
    /// The number is too large.
    Number(String, i64),
    /// An argument of a function without a type.
    NoType(String),
    /// A reference to a reference.
    Reference(String),
}

/// Tensors that an input or a result names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'t> {
    pub(super) types: &'t TypeList,
    pub(super) from: u64,
    pub(super) count: u64,
    pub(super) is_reference: bool,
}

impl<'t> Item<'t> {
    pub(super) fn runs(self) -> Runs<'t> {
        Runs::of(self.types, self.from)
    }
}

/// Iterates over types from a position.
#[derive(Clone, Copy)]
pub(super) struct Runs<'t> {
    pub(super) runs: &'t [TypeRun],
    pub(super) at: u64,
}

impl<'t> Runs<'t> {
    pub(super) fn of(types: &'t TypeList, from: u64) -> Self {
        let behind = types.runs().partition_point(|run| run.end <= from);
        Self { runs: types.runs().get(behind..).unwrap_or_default(), at: from }
    }

    /// Returns the next type and its number of repetitions.
    pub(super) fn next(&self) -> Option<(ElementType, u64)> {
        let run = self.runs.first()?;
        Some((run.element, run.end.saturating_sub(self.at)))
    }

    pub(super) fn step(&mut self, by: u64) {
        self.at = self.at.saturating_add(by);
        while let Some((run, rest)) = self.runs.split_first()
            && run.end <= self.at
        {
            self.runs = rest;
        }
    }
}

impl<'t> Item<'t> {
    pub(super) fn whole(argument: &'t ArgumentTypes) -> Self {
        let ArgumentTypes { types, is_reference } = argument;
        Self { types, from: 0, count: types.len(), is_reference: *is_reference }
    }

    pub(super) fn element(argument: &'t ArgumentTypes, number: u32) -> Option<Self> {
        let (from, whole) = (u64::from(number), Self::whole(argument));
        (from < whole.count).then_some(Self { from, count: 1, ..whole })
    }

    pub(super) fn shown(self) -> String {
        match self.types.get(self.from) {
            Some(element) if self.count == 1 => type_name(element.data_type).into_owned(),
            _ => shown_types(self.types),
        }
    }
}

/// Formats types for messages.
pub(super) fn shown_types(types: &TypeList) -> String {
    let mut before = 0;
    let runs = types.runs().iter().take(8).map(|run| {
        let many = run.end.saturating_sub(std::mem::replace(&mut before, run.end));
        let name = type_name(run.element.data_type);
        if many == 1 { name.into_owned() } else { format!("{name} × {many}") }
    });
    let shown = runs.collect::<Vec<_>>().join(", ");
    if shown.is_empty() { "nothing".to_owned() } else { shown }
}

/// Returns the tensors of an argument, where `value` says what the attributes are.
pub(in super::super) fn argument_types(
    argument: &Argument<'_>,
    value: impl Fn(&str) -> Option<BoundValue>,
) -> Result<ArgumentTypes, TypeDiagnostic> {
    types_of(argument, argument.source(), value)
}

/// Returns the types that a node takes and gives, and the number of tensors of each of its outputs,
/// if no call decides about them; `None` if anything about its types is an error.
pub(in super::super) fn fixed_types(
    definition: Operation<'_>,
    value: impl Fn(&str) -> Option<BoundValue>,
) -> Option<(NodeType, Vec<u64>)> {
    let (mut types, mut counts) = (NodeType::default(), Vec::new());
    let arguments = definition.inputs().map(|one| (one, false));
    for (argument, is_output) in arguments.chain(definition.outputs().map(|one| (one, true))) {
        let ArgumentTypes { types: tensors, is_reference } =
            argument_types(&argument, &value).ok()?;
        if late_diagnostic(&argument, &value).is_some() {
            return None;
        }
        let list = if is_output { &mut types.outputs } else { &mut types.inputs };
        let mut begin = 0;
        for run in tensors.runs() {
            list.push(ElementType::new(run.element.data_type, is_reference), run.end - begin);
            begin = run.end;
        }
        if is_output {
            counts.push(tensors.len());
        }
    }
    Some((types, counts))
}

/// Returns the source of an argument's type inside of the function: a declared type takes
/// precedence over an attribute. For the node that calls the function, it is the other way round.
pub(super) fn source_of<'a>(
    argument: &Argument<'a>,
    written: Option<&WrittenArgument>,
) -> ArgumentSource<'a> {
    match written {
        Some(written) if written.data_type != 0 && !written.list_attribute => {
            ArgumentSource::Fixed(written.data_type)
        }
        _ => argument.source(),
    }
}

/// Returns the tensors of an argument that has its type from `source`.
pub(super) fn types_of(
    argument: &Argument<'_>,
    source: ArgumentSource<'_>,
    value: impl Fn(&str) -> Option<BoundValue>,
) -> Result<ArgumentTypes, TypeDiagnostic> {
    let find = |name: &str| value(name).ok_or_else(|| TypeDiagnostic::Missing(name.to_owned()));
    let is_reference = argument.is_reference();
    if let ArgumentSource::List(name) = source {
        return Ok(ArgumentTypes { types: find(name)?.types(), is_reference });
    }
    let many = match argument.number_attribute() {
        None => 1,
        Some(name) => {
            let number = find(name)?.number();
            // The importer keeps the low 32 bits.
            let low = number as i32;
            u64::try_from(low).map_err(|_| TypeDiagnostic::Negative(name.to_owned(), number))?
        }
    };
    let data_type = match source {
        ArgumentSource::Attribute(name) => find(name)?.data_type(),
        ArgumentSource::Fixed(number) => number,
        ArgumentSource::List(_) => 0,
    };
    let mut types = TypeList::default();
    types.push(value_type(data_type), many);
    Ok(ArgumentTypes { types, is_reference })
}

/// Returns the diagnostic that keeps a node from being created although its inputs fit.
pub(super) fn late_diagnostic(
    argument: &Argument<'_>,
    value: impl Fn(&str) -> Option<BoundValue>,
) -> Option<LateDiagnostic> {
    if argument.source() == ArgumentSource::Fixed(0) {
        return Some(LateDiagnostic::NoType(argument.name().to_owned()));
    }
    if let ArgumentSource::Attribute(name) = argument.source()
        && argument.is_reference()
        && value(name)?.data_type() > REFERENCES
    {
        return Some(LateDiagnostic::Reference(name.to_owned()));
    }
    let name = argument.number_attribute()?;
    match value(name)? {
        BoundValue::Int(number) if i32::try_from(number).is_ok() => {
            // The kind of the type is checked for a list of tensors, but not for a single one.
            let ArgumentSource::Attribute(name) = argument.source() else { return None };
            let is_type = matches!(value(name)?, BoundValue::Type(_));
            (!is_type).then(|| LateDiagnostic::Type(name.to_owned()))
        }
        BoundValue::Int(number) => Some(LateDiagnostic::Number(name.to_owned(), number)),
        _ => Some(LateDiagnostic::Kind(name.to_owned())),
    }
}

impl LateDiagnostic {
    pub(super) fn diagnostic(&self, part: Part) -> BoxedDiagnostic {
        match self {
            Self::Kind(name) => {
                let kind = ImportDiagnosticKind::AttributeKind { attribute: name.clone() };
                InstantiationDiagnostic::of(part, kind).with(format!("{name} is no number"), "int")
            }
            Self::Type(name) => {
                let kind = ImportDiagnosticKind::AttributeKind { attribute: name.clone() };
                InstantiationDiagnostic::of(part, kind).with(format!("{name} is no type"), "type")
            }
            Self::Number(name, number) => {
                let kind = ImportDiagnosticKind::AttributeNumber { attribute: name.clone() };
                InstantiationDiagnostic::of(part, kind)
                    .with(format!("{name} = {number}"), "at most 2147483647")
            }
            Self::Reference(name) => {
                let kind = ImportDiagnosticKind::AttributeType { attribute: name.clone() };
                InstantiationDiagnostic::of(part, kind)
                    .with(format!("{name} is a reference"), "no reference")
            }
            Self::NoType(name) => {
                let diagnostic = InstantiationDiagnostic::names(part, BodyDiagnosticKind::NoType);
                diagnostic.with(format!("argument {name} without a type"), "a type")
            }
        }
    }
}

pub(super) fn type_diagnostic(part: Part, diagnostic: TypeDiagnostic) -> BoxedDiagnostic {
    match diagnostic {
        TypeDiagnostic::Missing(name) => {
            let kind = ImportDiagnosticKind::AttributesMissing { attributes: vec![name.clone()] };
            InstantiationDiagnostic::of(part, kind).with("", format!("attribute {name}"))
        }
        TypeDiagnostic::Negative(name, number) => {
            let kind = ImportDiagnosticKind::AttributeNumber { attribute: name.clone() };
            InstantiationDiagnostic::of(part, kind).with(format!("{name} = {number}"), "at least 0")
        }
    }
}
