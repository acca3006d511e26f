//! The shapes of the nodes in a function, whatever the call gives it.
//!
//! Of arguments, of constants and of what functions give nothing is known here: a body is looked at
//! once, not once a call.
//!
//! Knows what hangs together in a function. It must never know what an operation does with shapes.

use std::collections::HashMap;

use super::{
    inference::ShapeRule, known::Known, node::ShapedNode, shape::Mismatch, tensor::Tensor,
};
use crate::artifact::{
    graph::{
        attributes::{AttributeValue, Attributes},
        index::{BodyInput, BodyKind, Element, FunctionIndex, Name, Target},
        node_rules::{NodeFault, shape_fault},
    },
    ops::Operation,
};

/// The most outputs of one name that are told apart.
const MOST_TENSORS: usize = 1 << 10;

/// A function whose shapes are followed.
pub(in super::super) struct ShapedBody<'b> {
    pub(in super::super) function: &'b FunctionIndex,
    /// By kind of node: the operation; none where it is a function.
    pub(in super::super) operations: Vec<Option<Operation<'b>>>,
    /// The nodes in an order in which inputs come first, but for those that close loops.
    pub(in super::super) order: &'b [u32],
}

/// What the nodes of one kind have in common.
struct Kind<'b> {
    operation: Operation<'b>,
    rule: ShapeRule,
    /// By the number of its name: where an output begins, and how many tensors it is.
    outputs: HashMap<u32, (usize, usize)>,
    /// A shape in an attribute that is none.
    fault: Option<Box<Mismatch>>,
}

/// The first node, in this order, that a shape function refuses for certain, by its number.
pub(in super::super) fn first_body_fault(body: &ShapedBody<'_>) -> Option<(u32, Box<Mismatch>)> {
    let function = body.function;
    let kinds = function.kinds.iter().zip(&body.operations);
    let kinds = kinds.map(|(kind, operation)| Some(Kind::of(function, kind, (*operation)?)));
    let nodes = (0_u32..).zip(&function.nodes).map(|(number, node)| (node.name, number));
    let mut walk = Walk {
        function,
        kinds: kinds.collect(),
        nodes: nodes.collect(),
        known: Known::of(function.nodes.len()),
    };
    let mut find = |node: &u32| Some((*node, walk.visit(*node).err()?));
    body.order.iter().find_map(&mut find)
}

/// A node of a function. Which version the caller was written with is nothing that it knows.
fn in_body<'n>(
    operation: Operation<'n>,
    attributes: &'n Attributes,
    inputs: &'n [Tensor],
) -> ShapedNode<'n> {
    ShapedNode { operation, attributes, inputs, producer: 0, is_in_body: true }
}

impl<'b> Kind<'b> {
    fn of(function: &FunctionIndex, kind: &'b BodyKind, operation: Operation<'b>) -> Self {
        let attributes = &kind.attributes;
        let node = in_body(operation, attributes, &[]);
        let (mut outputs, mut at) = (HashMap::new(), 0_usize);
        for argument in operation.outputs() {
            let Some(count) = node.tensors(&argument) else { break };
            if let Some(name) = function.outputs.find(argument.name()) {
                outputs.insert(name, (at, count));
            }
            at = at.saturating_add(count);
        }
        let is_given = |(_, value)| matches!(value, AttributeValue::Placeholder(_));
        let fault = if attributes.iter().any(is_given) {
            None
        } else {
            shape_fault(operation.name(), attributes)
        };
        let fault = fault.map(|fault| {
            let NodeFault { found, expected, .. } = *fault;
            Mismatch::new(found, expected)
        });
        Self { operation, rule: ShapeRule::of(operation), outputs, fault }
    }
}

struct Walk<'b> {
    function: &'b FunctionIndex,
    kinds: Vec<Option<Kind<'b>>>,
    nodes: HashMap<Name, u32>,
    known: Known,
}

impl Walk<'_> {
    fn visit(&mut self, number: u32) -> Result<(), Box<Mismatch>> {
        let Some(node) = self.function.nodes.get(number as usize) else { return Ok(()) };
        let kind = self.kinds.get(node.kind as usize).and_then(Option::as_ref);
        let attributes = self.function.kinds.get(node.kind as usize).map(|kind| &kind.attributes);
        let (Some(kind), Some(attributes)) = (kind, attributes) else { return Ok(()) };
        if let Some(fault) = &kind.fault {
            return Err(fault.clone());
        }
        // A kind has the constant of one of its nodes.
        if kind.rule.is_empty() || kind.operation.name() == "Const" {
            return Ok(());
        }
        let Some(inputs) = self.inputs(number) else { return Ok(()) };
        let operation = kind.operation;
        let node = in_body(operation, attributes, &inputs);
        let outputs = kind.rule.infer(&node)?;
        self.known.set(number, outputs);
        Ok(())
    }

    /// The tensors that a node takes; `None` if nobody knows how many they are.
    fn inputs(&self, number: u32) -> Option<Vec<Tensor>> {
        let all = &self.function.inputs;
        let from = all.partition_point(|input| input.node < number);
        let own = all.get(from..)?.iter().take_while(|input| input.node == number);
        let mut tensors = Vec::new();
        for BodyInput { target, .. } in own.filter(|input| !input.target.control) {
            self.push(target, &mut tensors)?;
        }
        Some(tensors)
    }

    fn push(&self, target: &Target, tensors: &mut Vec<Tensor>) -> Option<()> {
        let Some(node) = self.nodes.get(&target.name) else {
            let mut arguments = self.function.arguments.iter();
            let argument = arguments.find(|argument| argument.name == target.name)?;
            let is_list = argument.number_attribute || argument.list_attribute;
            let is_one = !is_list || target.argument_element.is_some();
            return is_one.then(|| tensors.push(Tensor::nothing()));
        };
        let kind = self.function.nodes.get(*node as usize)?.kind;
        let (first, count) =
            *self.kinds.get(kind as usize)?.as_ref()?.outputs.get(&target.output)?;
        let named = match target.element {
            Element::Number(number) => {
                let at = first.checked_add(usize::try_from(number).ok()?)?;
                at..at.checked_add(1)?
            }
            Element::All if count <= MOST_TENSORS => first..first.checked_add(count)?,
            Element::All | Element::Nowhere => return None,
        };
        tensors.extend(named.map(|at| self.known.get(*node, at).cloned().unwrap_or_default()));
        Some(())
    }
}
