//! Builds the body of a function for one release, as its importer does for the first call.
//!
//! The order is TensorFlow's: what the call gives, the arguments, placeholders and operations, the
//! outputs of all nodes, their inputs, what is returned, names; then the graph that comes of it:
//! references, cycles, shape functions. Attributes are looked at only where the type or number of
//! an argument depends on them, and then taken for what they are not: a number that is none is 0.
//!
//! Knows the function, the release and the call. It must never know who calls, nor how the function
//! is written.

use std::{borrow::Cow, collections::HashMap};

use super::{
    binding::{BoundValue, Scope, plain},
    body::{Body, Owner},
    count,
};
use crate::artifact::{
    graph::{
        ImportFaultKind,
        attributes::AttributeValue,
        fault::{BodyFaultKind, Part},
        index::{BodyInput, BodyKind, BodyNode, Element, FunctionIndex, NameMap, Suffix, Target},
        node_rules::{ElementType, TypeList, TypeRun},
        rules::{is_body_name, shown},
    },
    ops::{Argument, ArgumentSource, Operation, Registry, type_name},
};

/// Names that one list of arguments or results makes are compared up to this many: a function with
/// more arguments cannot be called, because TensorFlow counts each of them as a node.
const LONGEST_LIST: u64 = 1 << 16;

/// Numbers of types above this one are those of references.
const REFERENCES: i32 = 100;

/// Why a body cannot be built.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    /// The part of the function that has it.
    pub(super) part: Part,
    pub(super) kind: FindingKind,
    /// The operation, where the part is a node.
    pub(super) operation: String,
    pub(super) found: String,
    pub(super) expected: String,
}

/// The same where it is handed on.
pub(super) type BodyFinding = Box<Finding>;

/// What is wrong with a body.
#[derive(Clone, Debug)]
pub(super) enum FindingKind {
    /// Something that depends on no release.
    Names(BodyFaultKind),
    Import(ImportFaultKind),
}

impl Finding {
    pub(super) fn names(part: Part, kind: BodyFaultKind) -> BodyFinding {
        let kind = FindingKind::Names(kind);
        Box::new(Self { kind, ..*Self::of(part, ImportFaultKind::FunctionBody) })
    }

    pub(super) fn of(part: Part, kind: ImportFaultKind) -> BodyFinding {
        let (operation, found, expected) = Default::default();
        Box::new(Self { part, kind: FindingKind::Import(kind), operation, found, expected })
    }

    /// The same with what is there and what should be.
    pub(super) fn with(
        mut self: Box<Self>,
        found: impl AsRef<str>,
        expected: impl AsRef<str>,
    ) -> BodyFinding {
        self.found = shown(found.as_ref().as_bytes());
        self.expected = shown(expected.as_ref().as_bytes());
        self
    }

    /// The same with the operation of a node.
    pub(super) fn of_operation(
        mut self: Box<Self>,
        function: &FunctionIndex,
        number: u32,
    ) -> BodyFinding {
        let node = function.nodes.get(number as usize);
        let kind = node.and_then(|node| function.kinds.get(node.kind as usize));
        self.operation = kind.map_or_else(String::new, |kind| shown(kind.operation.as_bytes()));
        self
    }

    /// A function with a name that nobody looks at whole.
    pub(super) fn oversized() -> BodyFinding {
        let fault = Self::of(Part::Function, ImportFaultKind::Oversized);
        fault.with("a name or text of over 1 MiB", "a function that can be looked at")
    }
}

/// A function that can be built.
#[derive(Clone, Debug, Default)]
pub(super) struct Built {
    /// So many inputs the call must have.
    pub(super) inputs: u64,
    /// So many outputs the call must have.
    pub(super) outputs: u64,
    /// A node without a shape function, which not every loader asks for.
    pub(super) no_shape_function: Option<BodyFinding>,
}

/// Where the definitions of operations come from: the functions of the library first.
pub(super) trait Definitions {
    /// The operation or function of this name.
    fn find(&self, name: &str) -> Option<Operation<'_>>;

    /// The release.
    fn registry(&self) -> &Registry;
}

/// The tensors of one argument of a node.
#[derive(Clone, Debug)]
struct ArgumentTypes {
    /// Without references.
    types: TypeList,
    is_reference: bool,
}

/// Why the types of an argument cannot be known.
#[derive(Clone, Debug)]
enum TypeFault {
    /// The attribute is not there and has no default.
    Missing(String),
    /// The number of tensors is negative.
    Negative(String, i64),
}

/// What nodes of one kind take and give.
#[derive(Clone, Debug, Default)]
struct KindTypes {
    inputs: Vec<Result<ArgumentTypes, TypeFault>>,
    outputs: Vec<ArgumentTypes>,
    /// The outputs that inputs and results refer to, by the numbers of their names.
    by_name: HashMap<u32, usize>,
    /// Why the outputs cannot be known.
    output_fault: Option<TypeFault>,
    /// A number that is beyond 32 bits, or none, which is seen only once the node is made.
    late_fault: Option<LateFault>,
    has_shape_function: bool,
    /// Nothing but the name of the operation is known: anything goes.
    is_open: bool,
}

/// What is wrong with a node, seen when it is made.
#[derive(Clone, Debug)]
enum LateFault {
    /// The attribute is no number.
    Kind(String),
    /// The number is too large.
    Number(String, i64),
    /// An argument of a function without a type.
    NoType(String),
    /// A reference to what is a reference already.
    Reference(String),
}

/// Tensors that an input or a result names.
#[derive(Clone, Copy, Debug)]
struct Item<'t> {
    types: &'t TypeList,
    from: u64,
    count: u64,
    is_reference: bool,
}

impl<'t> Item<'t> {
    fn runs(self) -> Runs<'t> {
        Runs::of(self.types, self.from)
    }
}

/// Walks over types from a position on.
#[derive(Clone, Copy)]
struct Runs<'t> {
    runs: &'t [TypeRun],
    at: u64,
}

impl<'t> Runs<'t> {
    fn of(types: &'t TypeList, from: u64) -> Self {
        let behind = types.runs().partition_point(|run| run.end <= from);
        Self { runs: types.runs().get(behind..).unwrap_or_default(), at: from }
    }

    /// The next type, and how many of it come.
    fn next(&self) -> Option<(ElementType, u64)> {
        let run = self.runs.first()?;
        Some((run.element, run.end.saturating_sub(self.at)))
    }

    fn step(&mut self, by: u64) {
        self.at = self.at.saturating_add(by);
        while let Some((run, rest)) = self.runs.split_first()
            && run.end <= self.at
        {
            self.runs = rest;
        }
    }
}

/// A function that is being built.
pub(super) struct Instantiation<'a, D> {
    function: &'a FunctionIndex,
    scope: Scope<'a>,
    definitions: &'a D,
    /// By kind: whether its attributes can be bound.
    unbound: Vec<Option<String>>,
    /// By kind; `None` for an operation that is not there.
    kinds: Vec<Option<KindTypes>>,
    arguments: Vec<ArgumentTypes>,
    argument_names: NameMap<u32>,
    node_names: NameMap<u32>,
    /// A list of arguments has the name of a node.
    is_ambiguous: bool,
    /// The first reference that is asked for and not given, by node.
    reference_fault: Option<BodyFinding>,
    /// The types of a node that gives nothing.
    nothing: TypeList,
    built: Built,
}

/// What of a function a list of operations decides.
pub(super) fn instantiate<D: Definitions>(
    function: &FunctionIndex,
    scope: Scope<'_>,
    definitions: &D,
) -> Result<Built, BodyFinding> {
    let mut body = Instantiation {
        function,
        scope,
        definitions,
        unbound: Vec::new(),
        kinds: Vec::new(),
        arguments: Vec::new(),
        argument_names: NameMap::default(),
        node_names: NameMap::default(),
        is_ambiguous: false,
        reference_fault: None,
        nothing: TypeList::default(),
        built: Built::default(),
    };
    if function.oversized {
        return Err(Finding::oversized());
    }
    body.call()?;
    body.arguments()?;
    body.operations()?;
    body.outputs()?;
    body.inputs()?;
    body.results()?;
    body.names()?;
    body.graph()?;
    Ok(body.built)
}

/// The members of a list with their numbers.
pub(super) fn numbered<T>(list: &[T]) -> impl Iterator<Item = (u32, &T)> {
    (0_u32..).zip(list)
}

impl<D: Definitions> Instantiation<'_, D> {
    /// Whether the call gives the attributes that the signature asks for.
    fn call(&self) -> Result<(), BodyFinding> {
        let at_call = |kind| Finding::of(Part::Function, kind);
        for attribute in self.scope.signature.attributes() {
            let name = attribute.name().to_owned();
            match self.scope.given(attribute.name()) {
                None if attribute.default().is_some() => {}
                None => {
                    let kind =
                        ImportFaultKind::AttributesMissing { attributes: vec![name.clone()] };
                    return Err(at_call(kind).with("", format!("attribute {name}")));
                }
                Some(value) if !value.is_of(attribute.kind()) => {
                    let expected = attribute.kind().to_string();
                    let found = format!("another kind of value as {name}");
                    let kind = ImportFaultKind::AttributeKind { attribute: name };
                    return Err(at_call(kind).with(found, expected));
                }
                Some(value) if !value.is_known(self.definitions.registry()) => {
                    let found = format!("an unknown type as {name}");
                    let kind = ImportFaultKind::AttributeType { attribute: name };
                    return Err(at_call(kind).with(found, "a type of the release"));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn arguments(&mut self) -> Result<(), BodyFinding> {
        let scope = self.scope;
        let given = |name: &str| scope.get(name.as_bytes());
        for (number, argument) in (0_u32..).zip(self.scope.signature.inputs()) {
            let part = Part::Argument(number);
            let types =
                argument_types(&argument, given).map_err(|fault| type_fault(part, fault))?;
            if types.types.len() == 0 {
                let fault = Finding::of(part, ImportFaultKind::FunctionBody);
                return Err(fault.with("an argument of no tensor", "at least one tensor"));
            }
            self.built.inputs = self.built.inputs.saturating_add(types.types.len());
            self.arguments.push(types);
            let name = self.function.arguments.get(number as usize).map(|argument| argument.name);
            if self.argument_names.insert(name.unwrap_or_default(), number).is_some() {
                return Err(Finding::names(part, BodyFaultKind::Duplicate));
            }
        }
        Ok(())
    }

    /// Whether each node has its attributes and its operation.
    fn operations(&mut self) -> Result<(), BodyFinding> {
        for kind in &self.function.kinds {
            let unbound =
                kind.attributes.iter().find(|(_, value)| self.scope.bind(*value).is_none());
            self.unbound.push(unbound.map(|(name, value)| show_attribute(name, value)));
            let definition = self.definitions.find(&kind.operation);
            self.kinds.push(definition.map(|definition| self.kind_types(kind, definition)));
        }
        for (number, node) in numbered(&self.function.nodes) {
            if let Some(found) = self.unbound.get(node.kind as usize).and_then(Option::as_ref) {
                let fault = self.at_node(number, ImportFaultKind::FunctionBody);
                return Err(fault.with(found.as_str(), "a value, or an attribute of the call"));
            }
            if self.types_of(node).is_none() {
                return Err(self.at_node(number, ImportFaultKind::UnknownOperation));
            }
        }
        Ok(())
    }

    fn kind_types(&self, kind: &BodyKind, definition: Operation<'_>) -> KindTypes {
        let value = |name: &str| match kind.attributes.get(name) {
            Some(value) => self.scope.bind(value),
            None => definition.attribute(name)?.default().map(BoundValue::of_default),
        };
        let mut types = KindTypes {
            has_shape_function: definition.has_shape_function(),
            is_open: definition.is_name_alone(),
            ..KindTypes::default()
        };
        for argument in definition.outputs() {
            match argument_types(&argument, value) {
                Ok(output) => {
                    if let Some(name) = self.function.outputs.find(argument.name()) {
                        types.by_name.entry(name).or_insert(types.outputs.len());
                    }
                    types.outputs.push(output);
                }
                Err(fault) => {
                    types.output_fault = Some(fault);
                    break;
                }
            }
        }
        types.inputs =
            definition.inputs().map(|argument| argument_types(&argument, value)).collect();
        let arguments = definition.inputs().chain(definition.outputs());
        types.late_fault = arguments.into_iter().find_map(|argument| late_fault(&argument, value));
        types
    }

    /// The outputs of all nodes, and whether two nodes have one name.
    fn outputs(&mut self) -> Result<(), BodyFinding> {
        for (number, node) in numbered(&self.function.nodes) {
            let Some(types) = self.types_of(node) else { continue };
            if let Some(fault) = &types.output_fault {
                let fault = type_fault(Part::Node(number), fault.clone());
                return Err(fault.of_operation(self.function, number));
            }
            let is_named_alone = types.outputs.is_empty();
            let mut is_free = self.node_names.insert(node.name, number).is_none();
            if let Some(argument) = self.argument_names.get(&node.name) {
                let types = self.arguments.get(*argument as usize);
                let is_list = types.is_some_and(|argument| argument.types.len() > 1);
                is_free &= is_list && !is_named_alone;
                self.is_ambiguous = true;
            }
            if !is_free {
                return Err(Finding::names(Part::Node(number), BodyFaultKind::Duplicate));
            }
        }
        Ok(())
    }

    fn inputs(&mut self) -> Result<(), BodyFinding> {
        let function = self.function;
        let mut rest = function.inputs.as_slice();
        for (number, node) in numbered(&function.nodes) {
            let own = rest.partition_point(|input| input.node <= number);
            let (inputs, behind) = rest.split_at_checked(own).unwrap_or((rest, &[]));
            rest = behind;
            let reference = self.node_inputs(number, node, inputs)?;
            if self.reference_fault.is_none() {
                self.reference_fault = reference;
            }
        }
        Ok(())
    }

    /// Whether the inputs of a node are what it takes; a reference that it does not get is a fault
    /// that is seen later.
    fn node_inputs(
        &self,
        number: u32,
        node: &BodyNode,
        inputs: &[BodyInput],
    ) -> Result<Option<BodyFinding>, BodyFinding> {
        let mut reference = None;
        let mut at = 0;
        if self.types_of(node).is_some_and(|types| types.is_open) {
            return self.open_inputs(number, inputs).map(|()| None);
        }
        for argument in self.types_of(node).map(|types| types.inputs.as_slice()).unwrap_or_default()
        {
            let expected = argument.as_ref().map_err(|fault| {
                type_fault(Part::Node(number), fault.clone()).of_operation(self.function, number)
            })?;
            let mut runs = Runs::of(&expected.types, 0);
            let mut left = expected.types.len();
            while left > 0 {
                let Some(input) = inputs.get(at) else {
                    return Err(self.input_count(number, inputs, "more inputs"));
                };
                if self.is_open(&input.target) {
                    // How many tensors it is, nobody can say.
                    return Ok(reference);
                }
                let Some(item) = self.item(&input.target) else {
                    return Err(self.unknown_input(number, at));
                };
                if item.count > left {
                    let fault = self.at_node(number, ImportFaultKind::InputCount);
                    let found = format!("{} tensors as input {at}", item.count);
                    return Err(fault.with(found, format!("at most {left}")));
                }
                self.compare(number, count(at), item, &mut runs)?;
                left -= item.count;
                if expected.is_reference && !item.is_reference && reference.is_none() {
                    let kind = ImportFaultKind::InputType { input: count(at) };
                    let fault = self.at_node(number, kind);
                    reference = Some(fault.with("no reference", "a reference to a variable"));
                }
                at += 1;
            }
        }
        for (position, input) in inputs.iter().enumerate().skip(at) {
            if !input.target.control {
                return Err(self.input_count(number, inputs, "fewer inputs"));
            }
            if !self.is_control(&input.target) {
                return Err(self.unknown_input(number, position));
            }
        }
        Ok(reference)
    }

    /// Whether the inputs of a node that takes anything are there.
    fn open_inputs(&self, number: u32, inputs: &[BodyInput]) -> Result<(), BodyFinding> {
        let is_there = |target: &Target| match target.control {
            true => self.is_control(target),
            false => self.is_open(target) || self.item(target).is_some(),
        };
        match inputs.iter().position(|input| !is_there(&input.target)) {
            Some(position) => Err(self.unknown_input(number, position)),
            None => Ok(()),
        }
    }

    /// Whether an input or a result names a node of whose outputs nothing is known.
    fn is_open(&self, target: &Target) -> bool {
        let types = self.node(target).and_then(|node| self.types_of(node));
        !target.control && types.is_some_and(|types| types.is_open)
    }

    /// Whether the tensors of an input are of the types that the node takes there.
    fn compare(
        &self,
        node: u32,
        input: u32,
        item: Item<'_>,
        runs: &mut Runs<'_>,
    ) -> Result<(), BodyFinding> {
        let (mut given, mut left) = (item.runs(), item.count);
        while left > 0 {
            let (Some((expected, most)), Some((found, many))) = (runs.next(), given.next()) else {
                break;
            };
            if expected.data_type != found.data_type {
                let fault = self.at_node(node, ImportFaultKind::InputType { input });
                return Err(fault.with(type_name(found.data_type), type_name(expected.data_type)));
            }
            let step = most.min(many).min(left);
            runs.step(step);
            given.step(step);
            left -= step;
        }
        Ok(())
    }

    /// What an input or a result names.
    fn item(&self, target: &Target) -> Option<Item<'_>> {
        if target.control {
            return None;
        }
        let argument = || {
            let number = *self.argument_names.get(&target.name)?;
            self.arguments.get(number as usize)
        };
        match target.suffix {
            Suffix::None => argument().map(Item::whole).or_else(|| self.no_output(target)),
            Suffix::Zero | Suffix::Number => argument()
                .and_then(|argument| Item::element(argument, target.argument_element?))
                .or_else(|| self.output(target)),
            _ => self.output(target),
        }
    }

    /// A node that gives nothing, named by itself.
    fn no_output(&self, target: &Target) -> Option<Item<'_>> {
        let types = self.types_of(self.node(target)?)?;
        types.outputs.is_empty().then_some(Item {
            types: &self.nothing,
            from: 0,
            count: 0,
            is_reference: false,
        })
    }

    fn output(&self, target: &Target) -> Option<Item<'_>> {
        let types = self.types_of(self.node(target)?)?;
        let output = types.outputs.get(*types.by_name.get(&target.output)?)?;
        match target.element {
            Element::All => Some(Item::whole(output)),
            Element::Number(number) => Item::element(output, number),
            Element::Nowhere => None,
        }
    }

    /// Whether a control input names an argument, a node, or an output of one.
    fn is_control(&self, target: &Target) -> bool {
        match target.suffix {
            Suffix::None => {
                self.argument_names.contains_key(&target.name) || self.node(target).is_some()
            }
            _ => {
                let named = Target { control: false, ..*target };
                self.is_open(&named) || self.item(&named).is_some()
            }
        }
    }

    fn node(&self, target: &Target) -> Option<&BodyNode> {
        self.function.nodes.get(*self.node_names.get(&target.name)? as usize)
    }

    fn results(&mut self) -> Result<(), BodyFinding> {
        let scope = self.scope;
        let given = |name: &str| scope.get(name.as_bytes());
        let mut outputs = 0_u64;
        for (number, result) in (0_u32..).zip(scope.signature.outputs()) {
            let part = Part::Result(number);
            let names = |kind| Finding::names(part, kind);
            let name = self.function.results.get(number as usize).map(|result| result.name);
            let returned = self.function.returns.get(&name.unwrap_or_default());
            let Some(target) = returned else { return Err(names(BodyFaultKind::NoResult)) };
            let types = argument_types(&result, given).map_err(|fault| type_fault(part, fault))?;
            if target.as_ref().is_some_and(|target| self.is_open(target)) {
                outputs = outputs.saturating_add(types.types.len());
                continue;
            }
            let Some(item) = target.as_ref().and_then(|target| self.item(target)) else {
                return Err(names(BodyFaultKind::UnknownResult));
            };
            let (found, expected) = (item.shown(), shown_types(&types.types));
            let is_same = types.types.len() == item.count && types.types.len() > 0;
            let mut runs = Runs::of(&types.types, 0);
            if !is_same || self.compare(0, 0, item, &mut runs).is_err() {
                return Err(names(BodyFaultKind::ResultType).with(found, expected));
            }
            outputs = outputs.saturating_add(types.types.len());
        }
        self.built.outputs = outputs;
        Ok(())
    }

    /// Whether the nodes that come of arguments, nodes and results have names of their own.
    fn names(&self) -> Result<(), BodyFinding> {
        let fault = |part, kind| Err(Finding::names(part, kind));
        let mut made: NameMap<Part> = NameMap::default();
        for (number, argument) in (0_u32..).zip(self.scope.signature.inputs()) {
            let many = self.arguments.get(number as usize).map_or(1, |types| types.types.len());
            for name in generated(argument.name(), many) {
                if !is_body_name(name.as_bytes()) {
                    return fault(Part::Argument(number), BodyFaultKind::Name);
                }
                if made
                    .insert(self.function.hash(name.as_bytes()), Part::Argument(number))
                    .is_some()
                {
                    return fault(Part::Argument(number), BodyFaultKind::Duplicate);
                }
            }
        }
        for (number, node) in numbered(&self.function.nodes) {
            let kind = match made.insert(node.name, Part::Node(number)) {
                _ if node.bad_name => BodyFaultKind::Name,
                Some(_) => BodyFaultKind::Duplicate,
                None if node.no_operation => BodyFaultKind::NoOperation,
                None if node.input_order => BodyFaultKind::InputOrder,
                None => continue,
            };
            return fault(Part::Node(number), kind);
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
                    return fault(Part::Result(number), BodyFaultKind::Name);
                }
                if made.insert(self.function.hash(name.as_bytes()), Part::Result(number)).is_some()
                {
                    return fault(Part::Result(number), BodyFaultKind::Duplicate);
                }
            }
        }
        Ok(())
    }

    /// What is seen once the nodes are put into a graph.
    fn graph(&mut self) -> Result<(), BodyFinding> {
        for (number, node) in numbered(&self.function.nodes) {
            if let Some(late) = self.types_of(node).and_then(|types| types.late_fault.as_ref()) {
                let fault = late.finding(Part::Node(number));
                return Err(fault.of_operation(self.function, number));
            }
            if let Some(fault) = &self.reference_fault
                && fault.part == Part::Node(number)
            {
                return Err(fault.clone());
            }
        }
        if !self.is_ambiguous {
            let arguments = self.argument_names.iter();
            let arguments = arguments.map(|(name, number)| (*name, Owner::Argument(*number)));
            let nodes = self.node_names.iter().map(|(name, node)| (*name, Owner::Node(*node)));
            let body = Body { function: self.function, owners: arguments.chain(nodes).collect() };
            if let Some(cycle) = body.cycle() {
                return Err(Finding::names(cycle.part, cycle.kind));
            }
        }
        self.arguments_by_hand()?;
        self.called_functions()?;
        for (number, node) in numbered(&self.function.nodes) {
            if self.types_of(node).is_some_and(|types| !types.has_shape_function) {
                let fault = self.at_node(number, ImportFaultKind::NoShapeFunction);
                self.built.no_shape_function = Some(fault);
                break;
            }
        }
        Ok(())
    }

    /// Whether each PartitionedCall that is looked into says which function it calls.
    fn called_functions(&self) -> Result<(), BodyFinding> {
        for (number, node) in numbered(&self.function.nodes) {
            let Some(kind) = self.function.kinds.get(node.kind as usize) else { continue };
            let is_call = matches!(&*kind.operation, "PartitionedCall" | "StatefulPartitionedCall");
            let disabled = kind.attributes.get("_disable_call_shape_inference");
            let is_looked_into = !matches!(
                disabled,
                Some(AttributeValue::Bool(true) | AttributeValue::Placeholder(_))
            );
            if !is_call || !is_looked_into {
                continue;
            }
            let name = || "f".to_owned();
            let value = kind.attributes.get("f").and_then(|value| self.scope.bind(value));
            match value {
                Some(value) if value.is_function() => {}
                Some(_) => {
                    let kind = ImportFaultKind::AttributeKind { attribute: name() };
                    return Err(self.at_node(number, kind).with("f is no function", "func"));
                }
                None => {
                    let kind = ImportFaultKind::AttributesMissing { attributes: vec![name()] };
                    return Err(self.at_node(number, kind).with("", "attribute f"));
                }
            }
        }
        Ok(())
    }

    /// Arguments and results that are written as nodes name one of the call by its number.
    fn arguments_by_hand(&mut self) -> Result<(), BodyFinding> {
        for (number, node) in numbered(&self.function.nodes) {
            let Some(kind) = self.function.kinds.get(node.kind as usize) else { continue };
            let is_argument = kind.operation == "_Arg";
            if !is_argument && kind.operation != "_Retval" {
                continue;
            }
            let index = kind.attributes.get("index").and_then(|value| self.scope.bind(value));
            let index = match index {
                Some(BoundValue::Int(index)) => u64::try_from(index).ok(),
                None => {
                    let attributes = vec!["index".to_owned()];
                    let kind = ImportFaultKind::AttributesMissing { attributes };
                    return Err(self.at_node(number, kind).with("", "attribute index"));
                }
                Some(_) => None,
            };
            let Some(index) = index else {
                let fault = self.at_node(number, ImportFaultKind::FunctionBody);
                return Err(fault.with("an index that is none", "the number of an argument"));
            };
            let most = if is_argument { &mut self.built.inputs } else { &mut self.built.outputs };
            *most = (*most).max(index.saturating_add(1));
        }
        Ok(())
    }

    fn types_of(&self, node: &BodyNode) -> Option<&KindTypes> {
        self.kinds.get(node.kind as usize)?.as_ref()
    }

    fn at_node(&self, number: u32, kind: ImportFaultKind) -> BodyFinding {
        Finding::of(Part::Node(number), kind).of_operation(self.function, number)
    }

    fn unknown_input(&self, number: u32, input: usize) -> BodyFinding {
        let fault = Finding::names(Part::Node(number), BodyFaultKind::UnknownInput);
        fault.of_operation(self.function, number).with(
            format!("input {input} that names nothing in the function"),
            "NODE:OUTPUT:NUMBER, with the output's name in the release",
        )
    }

    fn input_count(&self, number: u32, inputs: &[BodyInput], expected: &str) -> BodyFinding {
        let data = inputs.iter().filter(|input| !input.target.control).count();
        let noun = if data == 1 { "input" } else { "inputs" };
        self.at_node(number, ImportFaultKind::InputCount).with(format!("{data} {noun}"), expected)
    }
}

impl<'t> Item<'t> {
    fn whole(argument: &'t ArgumentTypes) -> Self {
        let ArgumentTypes { types, is_reference } = argument;
        Self { types, from: 0, count: types.len(), is_reference: *is_reference }
    }

    fn element(argument: &'t ArgumentTypes, number: u32) -> Option<Self> {
        let (from, whole) = (u64::from(number), Self::whole(argument));
        (from < whole.count).then_some(Self { from, count: 1, ..whole })
    }

    fn shown(self) -> String {
        match self.types.get(self.from) {
            Some(element) if self.count == 1 => type_name(element.data_type).into_owned(),
            _ => shown_types(self.types),
        }
    }
}

/// Types for messages.
fn shown_types(types: &TypeList) -> String {
    let mut before = 0;
    let runs = types.runs().iter().take(8).map(|run| {
        let many = run.end.saturating_sub(std::mem::replace(&mut before, run.end));
        let name = type_name(run.element.data_type);
        if many == 1 { name.into_owned() } else { format!("{name} × {many}") }
    });
    let shown = runs.collect::<Vec<_>>().join(", ");
    if shown.is_empty() { "nothing".to_owned() } else { shown }
}

/// The names of the nodes that an argument or result of so many tensors becomes.
fn generated(name: &str, many: u64) -> impl Iterator<Item = Cow<'_, str>> {
    (0..many.min(LONGEST_LIST)).map(move |number| match many {
        1 => Cow::Borrowed(name),
        _ => Cow::Owned(format!("{name}_{number}")),
    })
}

/// The tensors of an argument, where `value` says what the attributes are.
fn argument_types(
    argument: &Argument<'_>,
    value: impl Fn(&str) -> Option<BoundValue>,
) -> Result<ArgumentTypes, TypeFault> {
    let find = |name: &str| value(name).ok_or_else(|| TypeFault::Missing(name.to_owned()));
    let is_reference = argument.is_reference();
    if let ArgumentSource::List(name) = argument.source() {
        return Ok(ArgumentTypes { types: find(name)?.types(), is_reference });
    }
    let many = match argument.number_attribute() {
        None => 1,
        Some(name) => {
            let number = find(name)?.number();
            // The importer keeps the low 32 bits.
            let low = number as i32;
            u64::try_from(low).map_err(|_| TypeFault::Negative(name.to_owned(), number))?
        }
    };
    let data_type = match argument.source() {
        ArgumentSource::Attribute(name) => find(name)?.data_type(),
        ArgumentSource::Fixed(number) => number,
        ArgumentSource::List(_) => 0,
    };
    let mut types = TypeList::default();
    types.push(plain(data_type), many);
    Ok(ArgumentTypes { types, is_reference })
}

/// What keeps a node from being made although its inputs fit.
fn late_fault(
    argument: &Argument<'_>,
    value: impl Fn(&str) -> Option<BoundValue>,
) -> Option<LateFault> {
    if argument.source() == ArgumentSource::Fixed(0) {
        return Some(LateFault::NoType(argument.name().to_owned()));
    }
    if let ArgumentSource::Attribute(name) = argument.source()
        && argument.is_reference()
        && value(name)?.data_type() > REFERENCES
    {
        return Some(LateFault::Reference(name.to_owned()));
    }
    let name = argument.number_attribute()?;
    match value(name)? {
        BoundValue::Int(number) if i32::try_from(number).is_ok() => None,
        BoundValue::Int(number) => Some(LateFault::Number(name.to_owned(), number)),
        _ => Some(LateFault::Kind(name.to_owned())),
    }
}

impl LateFault {
    fn finding(&self, part: Part) -> BodyFinding {
        match self {
            Self::Kind(name) => {
                let kind = ImportFaultKind::AttributeKind { attribute: name.clone() };
                Finding::of(part, kind).with(format!("{name} is no number"), "int")
            }
            Self::Number(name, number) => {
                let kind = ImportFaultKind::AttributeNumber { attribute: name.clone() };
                Finding::of(part, kind).with(format!("{name} = {number}"), "at most 2147483647")
            }
            Self::Reference(name) => {
                let kind = ImportFaultKind::AttributeType { attribute: name.clone() };
                Finding::of(part, kind).with(format!("{name} is a reference"), "no reference")
            }
            Self::NoType(name) => {
                let finding = Finding::names(part, BodyFaultKind::NoType);
                finding.with(format!("argument {name} without a type"), "a type")
            }
        }
    }
}

fn type_fault(part: Part, fault: TypeFault) -> BodyFinding {
    match fault {
        TypeFault::Missing(name) => {
            let kind = ImportFaultKind::AttributesMissing { attributes: vec![name.clone()] };
            Finding::of(part, kind).with("", format!("attribute {name}"))
        }
        TypeFault::Negative(name, number) => {
            let kind = ImportFaultKind::AttributeNumber { attribute: name.clone() };
            Finding::of(part, kind).with(format!("{name} = {number}"), "at least 0")
        }
    }
}

/// An attribute that cannot be bound, for messages.
fn show_attribute(name: &[u8], value: AttributeValue<'_>) -> String {
    format!("{} = {value}", shown(name))
}
