//! Resolves the inputs of nodes in a body, and checks their types.

use super::{
    build::{Definitions, Instantiation, numbered},
    diagnostic::{BoxedDiagnostic, InstantiationDiagnostic},
    types::{Item, Runs, type_diagnostic},
};
use crate::{
    graph::{
        ImportDiagnosticKind,
        diagnostic::{BodyDiagnosticKind, Part},
        importer::count,
        index::{BodyInput, BodyNode, Element, Suffix, Target},
    },
    ops::type_name,
};

impl<D: Definitions> Instantiation<'_, D> {
    pub(super) fn inputs(&mut self) -> Result<(), BoxedDiagnostic> {
        let function = self.function;
        let mut rest = function.inputs.as_slice();
        for (number, node) in numbered(&function.nodes) {
            let own = rest.partition_point(|input| input.node <= number);
            let (inputs, behind) = rest.split_at_checked(own).unwrap_or((rest, &[]));
            rest = behind;
            let missing = self.node_inputs(number, node, inputs)?;
            self.missing_references.extend(missing.map(|input| (number, input)));
        }
        Ok(())
    }

    /// Checks that the inputs of a node have the types that it takes; an input that should be a
    /// reference is returned, as that diagnostic is reported later.
    fn node_inputs(
        &self,
        number: u32,
        node: &BodyNode,
        inputs: &[BodyInput],
    ) -> Result<Option<u32>, BoxedDiagnostic> {
        let mut reference = None;
        let mut at = 0;
        if self.types_of(node).is_some_and(|types| types.is_open) {
            return self.open_inputs(number, inputs).map(|()| None);
        }
        let Some(types) = self.types_of(node) else {
            return Err(self.at_node(number, ImportDiagnosticKind::UnknownOperation));
        };
        for argument in &types.inputs {
            let expected = argument.as_ref().map_err(|diagnostic| {
                type_diagnostic(Part::Node(number), diagnostic.clone())
                    .of_operation(self.function, number)
            })?;
            let mut runs = Runs::of(&expected.types, 0);
            let mut left = expected.types.len();
            while left > 0 {
                let Some(input) = inputs.get(at) else {
                    return Err(self.input_count(number, inputs, "more inputs"));
                };
                if self.is_open(&input.target) {
                    // The number of tensors is unknown.
                    return Ok(reference);
                }
                let Some(item) = self.item(&input.target) else {
                    return Err(self.unknown_input(number, at));
                };
                if item.count > left {
                    let diagnostic = self.at_node(number, ImportDiagnosticKind::InputCount);
                    let found = format!("{} tensors as input {at}", item.count);
                    return Err(diagnostic.with(found, format!("at most {left}")));
                }
                self.compare(number, count(at), item, &mut runs)?;
                left -= item.count;
                if expected.is_reference && !item.is_reference {
                    reference.get_or_insert(count(at));
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

    /// Checks that the inputs of a node with unknown inputs exist.
    fn open_inputs(&self, number: u32, inputs: &[BodyInput]) -> Result<(), BoxedDiagnostic> {
        let is_there = |target: &Target| match target.control {
            true => self.is_control(target),
            false => self.is_open(target) || self.item(target).is_some(),
        };
        match inputs.iter().position(|input| !is_there(&input.target)) {
            Some(position) => Err(self.unknown_input(number, position)),
            None => Ok(()),
        }
    }

    /// Returns true if an input or a result names a node whose outputs are unknown.
    pub(super) fn is_open(&self, target: &Target) -> bool {
        let mut types = self.nodes(target).filter_map(|node| self.types_of(node));
        !target.control && types.any(|types| types.is_open)
    }

    /// Checks that the tensors of an input have the types that the node takes there.
    pub(super) fn compare(
        &self,
        node: u32,
        input: u32,
        item: Item<'_>,
        runs: &mut Runs<'_>,
    ) -> Result<(), BoxedDiagnostic> {
        let (mut given, mut left) = (item.runs(), item.count);
        while left > 0 {
            let (Some((expected, most)), Some((found, many))) = (runs.next(), given.next()) else {
                break;
            };
            if expected.data_type != found.data_type {
                let diagnostic = self.at_node(node, ImportDiagnosticKind::InputType { input });
                return Err(
                    diagnostic.with(type_name(found.data_type), type_name(expected.data_type))
                );
            }
            let step = most.min(many).min(left);
            runs.step(step);
            given.step(step);
            left -= step;
        }
        Ok(())
    }

    /// Returns the item that an input or a result names.
    pub(super) fn item(&self, target: &Target) -> Option<Item<'_>> {
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

    /// Returns a node without outputs, which is named without an output.
    fn no_output(&self, target: &Target) -> Option<Item<'_>> {
        let mut types = self.nodes(target).filter_map(|node| self.types_of(node));
        types.find(|types| types.outputs.is_empty())?;
        Some(Item { types: &self.nothing, from: 0, count: 0, is_reference: false })
    }

    fn output(&self, target: &Target) -> Option<Item<'_>> {
        let mut nodes = self.nodes(target).filter_map(|node| self.types_of(node));
        let output =
            nodes.find_map(|types| types.outputs.get(*types.by_name.get(&target.output)?))?;
        match target.element {
            Element::All => Some(Item::whole(output)),
            Element::Number(number) => Item::element(output, number),
            Element::Nowhere => None,
        }
    }

    /// Returns true if a control input names an argument, a node, or an output of one.
    pub(super) fn is_control(&self, target: &Target) -> bool {
        match target.suffix {
            Suffix::None => {
                self.argument_names.contains_key(&target.name)
                    || self.node_names.contains_key(&target.name)
            }
            _ => {
                let named = Target { control: false, ..*target };
                self.is_open(&named) || self.item(&named).is_some()
            }
        }
    }

    /// Returns the nodes of the name, mostly one.
    fn nodes(&self, target: &Target) -> impl Iterator<Item = &BodyNode> {
        let first = self.node_names.get(&target.name).into_iter();
        let others = self.namesakes.get(&target.name).into_iter().flatten();
        first.chain(others).filter_map(|node| self.function.nodes.get(*node as usize))
    }

    fn unknown_input(&self, number: u32, input: usize) -> BoxedDiagnostic {
        let diagnostic =
            InstantiationDiagnostic::names(Part::Node(number), BodyDiagnosticKind::UnknownInput);
        diagnostic.of_operation(self.function, number).with(
            format!("input {input} that names nothing in the function"),
            "NODE:OUTPUT:NUMBER, with the output's name in the release",
        )
    }

    fn input_count(&self, number: u32, inputs: &[BodyInput], expected: &str) -> BoxedDiagnostic {
        let data = inputs.iter().filter(|input| !input.target.control).count();
        let noun = if data == 1 { "input" } else { "inputs" };
        self.at_node(number, ImportDiagnosticKind::InputCount)
            .with(format!("{data} {noun}"), expected)
    }
}
