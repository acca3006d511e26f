//! The shapes of the nodes in a function, for the inputs of a call.
//!
//! As in TensorFlow, the shapes of a function are inferred for each node that calls it, with the
//! shapes of that node's inputs. The arguments of a function without calls are unknown.
//!
//! Depends on the edges in a function, but not on shape functions or other functions.

use std::{borrow::Borrow, collections::HashMap, rc::Rc};

use super::{
    inference::ShapeRule,
    known::Known,
    node::ShapedNode,
    shape::{Inferred, Mismatch},
    tensor::Tensor,
};
use crate::{
    graph::{
        GraphError,
        attributes::{AttributeValue, Attributes},
        index::{BodyInput, BodySignature, Element, FunctionIndex, NameMap, Target},
        node_rules::{NodeRuleDiagnostic, shape_diagnostic},
    },
    ops::Operation,
};

/// Limit on the outputs with one name.
const MOST_TENSORS: usize = 1 << 10;

/// The outputs of a node that calls a function.
///
/// # Errors
/// If the file cannot be read; within that, the diagnostic of a shape function.
pub(in super::super) type Called = Result<Inferred<Vec<Tensor>>, GraphError>;

/// The functions that nodes call.
pub(in super::super) trait CalledFunctions {
    /// Infers the outputs of the function of this name for these inputs; fewer than it has if the
    /// last ones are unknown.
    fn call(&mut self, function: u64, inputs: &[Tensor]) -> Called;
}

/// A map by the numbers of nodes.
pub(in super::super) type ByNode<V> = HashMap<u32, V, foldhash::fast::RandomState>;

/// A function whose shapes are inferred.
pub(in super::super) struct ShapedFunction<'r, F> {
    function: F,
    node_signatures: Vec<Option<Rc<NodeSignature<'r>>>>,
    nodes: NameMap<u32>,
    constants: ByNode<Tensor>,
    /// The function that each node calls, if the importer infers its shapes.
    calls: ByNode<u64>,
    /// The nodes in an order in which inputs come first, except those that close loops.
    order: Vec<u32>,
}

/// The facts that nodes of one signature share.
struct NodeSignature<'r> {
    operation: Operation<'r>,
    rule: ShapeRule,
    /// True if the call gives an attribute.
    is_open: bool,
    /// The outputs: the number of the name, the start, and the number of tensors.
    outputs: Vec<(u32, usize, usize)>,
    /// An invalid shape in an attribute.
    diagnostic: Option<Box<Mismatch>>,
}

/// Limit on the node signatures that are remembered. At the limit the memory is cleared.
const MOST_SIGNATURES: usize = 1 << 12;

/// The facts of the node signatures in functions, each computed once for all functions that one
/// reader has read.
#[derive(Default)]
pub(in super::super) struct ShapedSignatures<'r> {
    /// Keyed by the address of a node signature, which is kept alive so that it is not reused.
    known: HashMap<*const BodySignature, KnownSignature<'r>, foldhash::fast::RandomState>,
}

/// A node signature with its facts; `None` for one that calls a function.
type KnownSignature<'r> = (Rc<BodySignature>, Option<Rc<NodeSignature<'r>>>);

impl<'r> ShapedSignatures<'r> {
    /// Returns the node signatures of a function; `find` returns the operation of each, `None` for
    /// a function.
    fn of_function(
        &mut self,
        function: &FunctionIndex,
        find: impl Fn(&str) -> Option<Operation<'r>>,
    ) -> Vec<Option<Rc<NodeSignature<'r>>>> {
        if self.known.len() > MOST_SIGNATURES {
            self.known.clear();
        }
        let signature = |signature: &Rc<BodySignature>| {
            let known = self.known.entry(Rc::as_ptr(signature)).or_insert_with(|| {
                let found = find(&signature.operation)
                    .map(|found| NodeSignature::of(function, signature, found));
                (Rc::clone(signature), found.map(Rc::new))
            });
            known.1.clone()
        };
        function.node_signatures.iter().map(signature).collect()
    }
}

/// The reason why a function is refused: the number of a node, and the diagnostic of its shape
/// function.
pub(in super::super) type BodyMismatch = (u32, Box<Mismatch>);

impl<'r, F: Borrow<FunctionIndex>> ShapedFunction<'r, F> {
    /// Returns a function with the operations of its node signatures, which `find` returns by name
    /// (none for functions), its constants by node, and its nodes in an order in which inputs come
    /// first.
    pub(in super::super) fn new(
        function: F,
        (node_signatures, find): (
            &mut ShapedSignatures<'r>,
            impl Fn(&str) -> Option<Operation<'r>>,
        ),
        constants: ByNode<Tensor>,
        order: Vec<u32>,
    ) -> Self {
        let index = function.borrow();
        let node_signatures = node_signatures.of_function(index, find);
        let nodes = (0_u32..).zip(&index.nodes).map(|(number, node)| (node.name, number)).collect();
        let inside = index.calls.iter().filter(|inner| inner.call.inside);
        let calls = inside.map(|inner| (inner.node, inner.call.function)).collect();
        Self { function, node_signatures, nodes, constants, calls, order }
    }

    /// Returns the operation of a node, unless that is a function.
    pub(in super::super) fn operation(&self, node: u32) -> Option<&str> {
        let signature = self.function.borrow().nodes.get(node as usize)?.signature;
        Some(self.node_signatures.get(signature as usize)?.as_ref()?.operation.name())
    }

    /// Returns the number of nodes of the function.
    pub(in super::super) fn nodes(&self) -> usize {
        self.function.borrow().nodes.len()
    }

    /// Infers the outputs of the function for these arguments; without arguments, all of them are
    /// unknown.
    ///
    /// # Errors
    /// If the file cannot be read; within that, the first node, in the order of the visits, that a
    /// shape function certainly refuses.
    pub(in super::super) fn infer(
        &self,
        arguments: &[Tensor],
        producer: i32,
        called: &mut dyn CalledFunctions,
    ) -> Result<Result<Vec<Tensor>, BodyMismatch>, GraphError> {
        let known = Known::of(self.nodes());
        let mut walk = Walk { body: self, function: self.function.borrow(), arguments, known };
        for node in &self.order {
            if let Err(mismatch) = walk.visit(*node, producer, called)? {
                return Ok(Err((*node, mismatch)));
            }
        }
        Ok(Ok(walk.results()))
    }
}

impl<'r> NodeSignature<'r> {
    fn of(function: &FunctionIndex, signature: &BodySignature, operation: Operation<'r>) -> Self {
        let attributes = &signature.attributes;
        let node = in_body(operation, attributes, &[], 0);
        let (mut outputs, mut at) = (Vec::new(), 0_usize);
        for argument in operation.outputs() {
            let Some(count) = node.tensors(&argument) else { break };
            // Another function may name it first.
            outputs.push((function.outputs.number(argument.name().as_bytes()), at, count));
            at = at.saturating_add(count);
        }
        let is_given = |value| matches!(value, AttributeValue::Placeholder(_));
        let diagnostic = if attributes.iter().any(|(_, value)| is_given(value)) {
            None
        } else {
            shape_diagnostic(operation.name(), attributes)
        };
        // Depends on the attributes of the call; types alone do not determine it.
        let is_type = |name: &str| name.starts_with('T') || name == "dtype";
        let mut names = operation.attributes().map(|attribute| attribute.name());
        let is_open =
            names.any(|name| !is_type(name) && attributes.get(name).is_some_and(is_given));
        let diagnostic = diagnostic.map(|diagnostic| {
            let NodeRuleDiagnostic { found, expected, .. } = *diagnostic;
            Mismatch::new(found, expected)
        });
        Self { operation, rule: ShapeRule::of(operation), is_open, outputs, diagnostic }
    }
}

fn in_body<'n>(
    operation: Operation<'n>,
    attributes: &'n Attributes,
    inputs: &'n [Tensor],
    producer: i32,
) -> ShapedNode<'n> {
    ShapedNode { operation, attributes, inputs, producer, is_in_body: true }
}

struct Walk<'w, 'r, F> {
    body: &'w ShapedFunction<'r, F>,
    function: &'w FunctionIndex,
    arguments: &'w [Tensor],
    known: Known,
}

impl<F> Walk<'_, '_, F> {
    /// Infers the shapes of a node whose inputs were inferred, except those that close loops.
    fn visit(
        &mut self,
        number: u32,
        producer: i32,
        called: &mut dyn CalledFunctions,
    ) -> Result<Inferred<()>, GraphError> {
        let outputs = if let Some(function) = self.body.calls.get(&number) {
            let inputs = self.inputs(number).unwrap_or_default();
            called.call(*function, &inputs)?
        } else if let Some(constant) = self.body.constants.get(&number) {
            Ok(vec![constant.clone()])
        } else {
            self.outputs(number, producer)
        };
        Ok(outputs.map(|outputs| self.known.set(number, outputs)))
    }

    /// Infers the outputs of a node that calls no function.
    fn outputs(&self, number: u32, producer: i32) -> Inferred<Vec<Tensor>> {
        let nothing = Ok(Vec::new());
        let Some(node) = self.function.nodes.get(number as usize) else { return nothing };
        let signature =
            self.body.node_signatures.get(node.signature as usize).and_then(Option::as_deref);
        let attributes = self
            .function
            .node_signatures
            .get(node.signature as usize)
            .map(|signature| &signature.attributes);
        let (Some(signature), Some(attributes)) = (signature, attributes) else { return nothing };
        if let Some(diagnostic) = &signature.diagnostic {
            return Err(diagnostic.clone());
        }
        // A node signature has the constant of one of its nodes.
        if signature.is_open || signature.rule.is_empty() || signature.operation.name() == "Const" {
            return nothing;
        }
        let Some(inputs) = self.inputs(number) else { return nothing };
        signature.rule.infer(&in_body(signature.operation, attributes, &inputs, producer))
    }

    /// Returns the input tensors of a node; `None` if their number is unknown.
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
        let Some(node) = self.body.nodes.get(&target.name) else {
            let mut arguments = self.function.arguments.iter();
            let place = arguments.position(|argument| argument.name == target.name)?;
            let is_list = |place: usize| {
                let argument = self.function.arguments.get(place);
                argument.is_none_or(|one| one.number_attribute || one.list_attribute)
            };
            if is_list(place) && target.argument_element.is_none() {
                return None;
            }
            // Only the call determines the number of tensors in a list.
            let known = self.arguments.get(place).filter(|_| !(0..=place).any(is_list));
            tensors.push(known.cloned().unwrap_or_default());
            return Some(());
        };
        let signature = self.function.nodes.get(*node as usize)?.signature;
        let Some(signature) = self.body.node_signatures.get(signature as usize)? else {
            // A function names its outputs itself.
            let is_one = matches!(target.element, Element::Number(_));
            return is_one.then(|| tensors.push(Tensor::nothing()));
        };
        let mut outputs = signature.outputs.iter();
        let (_, first, count) = *outputs.find(|(name, ..)| *name == target.output)?;
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
    /// Returns the tensors that the function returns, up to the first one whose source is unknown.
    fn results(&self) -> Vec<Tensor> {
        let mut results = Vec::new();
        for result in &self.function.results {
            let target = self.function.returns.get(&result.name).copied().flatten();
            let mut tensors = Vec::new();
            let is_list = result.number_attribute || result.list_attribute;
            let target = target.filter(|target| !is_list && !target.control);
            let pushed = target.and_then(|target| self.push(&target, &mut tensors));
            let (Some(()), Some(tensor), 1) = (pushed, tensors.pop(), tensors.len() + 1) else {
                break;
            };
            // Known values do not leave the function.
            results.push(Tensor { value: None, ..tensor });
        }
        results
    }
}
