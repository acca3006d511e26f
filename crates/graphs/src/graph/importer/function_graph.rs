//! Finds the diagnostics in the graph that `tf.saved_model.load` creates from one function.
//!
//! Python turns the function into a graph whose arguments are placeholders, and imports that. First
//! it looks up all operations and the names of all inputs, which must be written in full. Then the
//! importer treats the nodes like those of any graph, with the release itself as the producer.
//!
//! Depends on one function and one release, but not on the library.

mod arguments;
mod calls;
mod read_nodes;
mod written;

use std::{collections::HashMap, rc::Rc};

use super::{
    body::{Body, Owner},
    concrete_functions::{ConcreteFunction, LoadDefinitions},
    count,
    instantiate::{
        BoxedDiagnostic, Definitions, FunctionDiagnostic, InstantiationDiagnostic, numbered,
    },
    signature_facts::tensors,
};
use crate::{
    graph::{
        DeprecatedOperation, DeprecatedOperations, ImportDiagnosticKind,
        attributes::AttributeValue,
        diagnostic::{BodyDiagnosticKind, Part},
        function_attributes,
        index::{
            BodyInput, BodyNode, BodySignature, Element, FunctionIndex, Name, NameMap, Suffix,
            Target,
        },
        node_rules::{ElementType, NodeRuleDiagnostic, NodeRules, NodeType, Strictness},
        shapes::BodyMismatch,
        source::Extent,
    },
    ops::{Operation, type_name},
};

/// The found and the expected item for an output whose type depends on the call.
pub(super) const UNTYPED: (&str, &str) =
    ("an output whose type only a call tells", "a type of its own");

/// The value that Python accepts for the attribute `_class`.
pub(super) const CLASSES: &str = "a list of texts";

/// The facts of nodes of one signature in a release.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SignatureInGraph {
    types: Result<NodeType, Box<NodeRuleDiagnostic>>,
    /// The first tensor of each output among all outputs, and its number of tensors as Python
    /// counts them, by the number of the output's name.
    outputs: HashMap<u32, (u64, u64)>,
    /// The version since which the operation is deprecated, if it is in the release.
    deprecated_since: Option<i32>,
    is_open: bool,
}

/// Returns the facts of the node signatures of a function's nodes in a release; `None` for an
/// operation that the release lacks. If two releases agree in all of them and know the same types,
/// they agree about the function.
pub(super) fn signatures_in_graph(
    function: &FunctionIndex,
    definitions: &LoadDefinitions<'_>,
) -> Vec<Option<SignatureInGraph>> {
    let signature = |signature: &Rc<BodySignature>| {
        let definition = definitions.find(&signature.operation)?;
        Some(SignatureInGraph::of(function, signature, definition, definitions))
    };
    function.node_signatures.iter().map(signature).collect()
}

/// A function as a graph.
struct FunctionGraph<'a> {
    function: &'a FunctionIndex,
    node_signatures: &'a [Option<SignatureInGraph>],
    arguments: NameMap<u32>,
    nodes: NameMap<u32>,
}

/// Loads a function whose [node signatures](signatures_in_graph) are these, and whose callees were
/// loaded before; `shapes` is the first node that a shape function refuses, and `steps` counts the
/// steps for all functions of a library.
pub(super) fn reexport(
    (function, place): (&FunctionIndex, Extent),
    node_signatures: &[Option<SignatureInGraph>],
    shapes: Option<&BodyMismatch>,
    definitions: &LoadDefinitions<'_>,
    deprecated: &DeprecatedOperations,
    steps: &mut u64,
) -> Result<ConcreteFunction, FunctionDiagnostic> {
    let named = |(number, name)| (name, number);
    let graph = FunctionGraph {
        function,
        node_signatures,
        arguments: numbered(&function.arguments).map(|(n, a)| (n, a.name)).map(named).collect(),
        nodes: numbered(&function.nodes).map(|(n, node)| (n, node.name)).map(named).collect(),
    };
    let own = |diagnostic| FunctionDiagnostic { function: place, diagnostic: Rc::from(diagnostic) };
    let before = graph
        .argument_shapes()
        .or_else(|| graph.unknown_operation())
        .or_else(|| graph.unknown_input())
        .or_else(|| graph.structure())
        .or_else(|| graph.arguments(definitions))
        .or_else(|| graph.visit(definitions, deprecated, shapes));
    if let Some(diagnostic) = before {
        return Err(own(diagnostic));
    }
    if let Some(found) = graph.wrong_binding(definitions) {
        return Err(found);
    }
    let called = graph.called(definitions);
    let partitioned = graph.partitioned(&called, definitions);
    if let Some(found) = partitioned.or_else(|| definitions.diagnostic_of_called(&called, steps)) {
        return Err(found);
    }
    let after = graph
        .untyped()
        .or_else(|| graph.device())
        .or_else(|| graph.results())
        .or_else(|| graph.control_outputs())
        .or_else(|| graph.handles())
        .or_else(|| graph.target(definitions))
        .or_else(|| graph.gradient(definitions))
        .or_else(|| graph.attributes(definitions))
        .or_else(|| graph.repeated_control_output());
    match after.or_else(|| graph.placeholder(definitions)) {
        Some(diagnostic) => Err(own(diagnostic)),
        None => Ok(graph.concrete_function(place, definitions)),
    }
}

impl SignatureInGraph {
    fn of(
        function: &FunctionIndex,
        signature: &BodySignature,
        definition: Operation<'_>,
        definitions: &LoadDefinitions<'_>,
    ) -> Self {
        let registry = definitions.registry();
        let rules = NodeRules { registry, strictness: Strictness::Load };
        let types = rules.node_type(definition, &signature.attributes);
        let (mut outputs, mut at) = (HashMap::new(), 0_u64);
        for output in definition.outputs() {
            let many = tensors(&output, |name| signature.attributes.get(name));
            if let Some(name) = function.outputs.find(output.name()) {
                outputs.insert(name, (at, many));
            }
            at = at.saturating_add(many);
        }
        let version = registry.graph_def_version();
        let deprecated_since = definition.deprecated_since().filter(|since| version >= *since);
        Self { types, outputs, deprecated_since, is_open: definition.is_name_alone() }
    }
}

/// An output that an input names.
enum Output {
    Argument(u32),
    /// The output of a node by its number among all of them.
    Node {
        node: u32,
        output: u64,
    },
    /// An output of a node whose outputs are unknown.
    Open,
}

impl FunctionGraph<'_> {
    fn unknown_operation(&self) -> Option<BoxedDiagnostic> {
        let (number, _) =
            numbered(&self.function.nodes).find(|(_, node)| self.signature(node).is_none())?;
        Some(self.at_node(number, ImportDiagnosticKind::UnknownOperation))
    }

    fn signature(&self, node: &BodyNode) -> Option<&SignatureInGraph> {
        self.node_signatures.get(node.signature as usize)?.as_ref()
    }

    fn at_node(&self, number: u32, kind: ImportDiagnosticKind) -> BoxedDiagnostic {
        InstantiationDiagnostic::of(Part::Node(number), kind).of_operation(self.function, number)
    }

    /// Inputs for which Python finds no output.
    fn unknown_input(&self) -> Option<BoxedDiagnostic> {
        let input = self.function.inputs.iter().find(|input| !self.is_there(&input.target))?;
        let inputs = self.function.inputs.iter().take_while(|other| !std::ptr::eq(*other, input));
        let position = inputs.filter(|other| other.node == input.node).count();
        Some(self.at_node(input.node, ImportDiagnosticKind::Python).with(
            format!("input {position} that names nothing in the function"),
            "NODE:OUTPUT:NUMBER, with the output's name in the release",
        ))
    }

    fn is_there(&self, target: &Target) -> bool {
        if target.control {
            return target.suffix == Suffix::None
                && (self.arguments.contains_key(&target.name)
                    || self.nodes.contains_key(&target.name));
        }
        self.output(target).is_some()
    }

    fn output(&self, target: &Target) -> Option<Output> {
        if target.suffix == Suffix::None {
            return self.arguments.get(&target.name).map(|number| Output::Argument(*number));
        }
        let node = *self.nodes.get(&target.name)?;
        let signature = self.signature(self.function.nodes.get(node as usize)?)?;
        if signature.is_open {
            return Some(Output::Open);
        }
        let (first, many) = *signature.outputs.get(&target.output)?;
        let Element::Number(number) = target.element else { return None };
        let number = u64::from(number);
        (number < many).then(|| Output::Node { node, output: first.saturating_add(number) })
    }

    /// Returns the diagnostic that keeps the nodes from forming a graph.
    fn structure(&self) -> Option<BoxedDiagnostic> {
        let mut names: NameMap<()> = NameMap::default();
        for (number, argument) in numbered(&self.function.arguments) {
            let kind = match names.insert(argument.name, ()) {
                _ if argument.bad_graph_name => BodyDiagnosticKind::Name,
                Some(()) => BodyDiagnosticKind::Duplicate,
                None => continue,
            };
            return Some(InstantiationDiagnostic::names(Part::Argument(number), kind));
        }
        for (number, node) in numbered(&self.function.nodes) {
            let kind = match names.insert(node.name, ()) {
                _ if node.bad_graph_name => BodyDiagnosticKind::Name,
                Some(()) => BodyDiagnosticKind::Duplicate,
                None if node.input_order => BodyDiagnosticKind::InputOrder,
                None => continue,
            };
            return Some(InstantiationDiagnostic::names(Part::Node(number), kind));
        }
        None
    }

    /// Visits the nodes in the importer's order.
    fn visit(
        &self,
        definitions: &LoadDefinitions<'_>,
        deprecated: &DeprecatedOperations,
        shapes: Option<&BodyMismatch>,
    ) -> Option<BoxedDiagnostic> {
        let arguments = self.arguments.iter().map(|(name, n)| (*name, Owner::Argument(*n)));
        let nodes = self.nodes.iter().map(|(name, n)| (*name, Owner::Node(*n)));
        let body = Body { function: self.function, owners: arguments.chain(nodes).collect() };
        let visits = body.visits(|_| true);
        let starts = self.starts();
        // The first diagnostic is that of the node which is visited first.
        for number in visits.in_order() {
            let from = starts.get(number as usize).copied().unwrap_or_default();
            let end = starts.get(number as usize + 1).copied().unwrap_or_default();
            let inputs = self.function.inputs.get(from..end).unwrap_or_default();
            let diagnostic = self.node_diagnostic(number, inputs, definitions, deprecated);
            if diagnostic.is_some() {
                return diagnostic;
            }
            if let Some((node, mismatch)) = shapes
                && *node == number
            {
                let diagnostic = self.at_node(number, ImportDiagnosticKind::Shape);
                return Some(diagnostic.with(&mismatch.found, &mismatch.expected));
            }
        }
        let unvisited = visits.unvisited()?;
        Some(InstantiationDiagnostic::names(Part::Node(unvisited), BodyDiagnosticKind::Cycle))
    }

    /// Returns the index of each node's first input among all inputs, followed by the number of
    /// inputs.
    fn starts(&self) -> Vec<usize> {
        let mut starts = Vec::with_capacity(self.function.nodes.len() + 1);
        let mut at = 0;
        for number in 0..=count(self.function.nodes.len()) {
            starts.push(at);
            let rest = self.function.inputs.get(at..).unwrap_or_default();
            at += rest.partition_point(|input| input.node <= number);
        }
        starts
    }

    /// Returns the diagnostic of one node.
    fn node_diagnostic(
        &self,
        number: u32,
        inputs: &[BodyInput],
        definitions: &LoadDefinitions<'_>,
        deprecated: &DeprecatedOperations,
    ) -> Option<BoxedDiagnostic> {
        let signature = self.signature(self.function.nodes.get(number as usize)?)?;
        let types = match &signature.types {
            Ok(types) => types,
            Err(diagnostic) => {
                let NodeRuleDiagnostic { kind, found, expected } = &**diagnostic;
                return Some(self.at_node(number, kind.clone()).with(found, expected));
            }
        };
        let data = inputs.iter().filter(|input| !input.target.control);
        let many = data.clone().count() as u64;
        if !types.inputs.may_be(many) {
            let inputs = |many| format!("{many} {}", if many == 1 { "input" } else { "inputs" });
            let diagnostic = self.at_node(number, ImportDiagnosticKind::InputCount);
            return Some(diagnostic.with(inputs(many), inputs(types.inputs.len())));
        }
        if let Some(version) = signature.deprecated_since {
            return Some(self.deprecated(number, version, definitions, deprecated));
        }
        (0_u32..).zip(data).find_map(|(position, input)| {
            let expected = types.inputs.get(position.into())?;
            let given = self.element(&input.target)?;
            if expected.takes(given) {
                return None;
            }
            let kind = ImportDiagnosticKind::InputType { input: position };
            let shown = |element: ElementType| {
                let reference = if element.is_reference { "_REF" } else { "" };
                format!("{}{reference}", type_name(element.data_type))
            };
            Some(self.at_node(number, kind).with(shown(given), shown(expected)))
        })
    }

    /// Returns the type of an output, where it is known.
    fn element(&self, target: &Target) -> Option<ElementType> {
        match self.output(target)? {
            Output::Open => None,
            Output::Argument(number) => {
                let data_type = self.function.arguments.get(number as usize)?.data_type;
                Some(ElementType::new(data_type, false))
            }
            Output::Node { node, output } => {
                let signature = self.signature(self.function.nodes.get(node as usize)?)?;
                signature.types.as_ref().ok()?.outputs.get(output)
            }
        }
    }

    fn deprecated(
        &self,
        number: u32,
        version: i32,
        definitions: &LoadDefinitions<'_>,
        deprecated: &DeprecatedOperations,
    ) -> BoxedDiagnostic {
        let diagnostic = self.at_node(number, ImportDiagnosticKind::UnknownOperation);
        let name = diagnostic.operation.clone();
        let listed = deprecated.find_entry(name.as_bytes()).map(|(_, entry)| entry.clone());
        let entry = listed.unwrap_or(DeprecatedOperation { name, version, replacement: None });
        let found = format!("producer {}", definitions.registry().graph_def_version());
        let expected = format!("a producer below {}", entry.version);
        self.at_node(number, ImportDiagnosticKind::Deprecated(entry)).with(found, expected)
    }

    /// Returns an output whose type only a caller could determine: Python creates a tensor for each
    /// output, and has no name for such a type.
    fn untyped(&self) -> Option<BoxedDiagnostic> {
        let is_untyped = |node: &BodyNode| {
            let types = self.signature(node).and_then(|signature| signature.types.as_ref().ok());
            let mut runs = types.into_iter().flat_map(|types| types.outputs.runs());
            runs.any(|run| run.element.data_type == 0)
        };
        let (number, _) = numbered(&self.function.nodes).find(|(_, node)| is_untyped(node))?;
        let diagnostic = self.at_node(number, ImportDiagnosticKind::Python);
        Some(diagnostic.with(UNTYPED.0, UNTYPED.1))
    }

    /// Returns the diagnostic of the first result for which Python finds no tensor to return.
    fn results(&self) -> Option<BoxedDiagnostic> {
        let is_unresolved = |target: &Option<Option<Target>>| {
            target.flatten().is_none_or(|target| self.output(&target).is_none())
        };
        let mut results = numbered(&self.function.results)
            .map(|(number, result)| (number, self.function.returns.get(&result.name).copied()));
        let (number, _) = results.find(|(_, target)| is_unresolved(target))?;
        let diagnostic =
            InstantiationDiagnostic::of(Part::Result(number), ImportDiagnosticKind::Python);
        Some(diagnostic.with("a result that nothing in the function is", "NODE:OUTPUT:NUMBER"))
    }

    /// Checks the nodes for which the function waits at its end, by the names of its control
    /// outputs: `None` if one names no node or argument, else true if no two name the same.
    fn control_nodes(&self) -> Option<bool> {
        let has_name =
            |name: &Name| self.arguments.contains_key(name) || self.nodes.contains_key(name);
        self.function.control_nodes(has_name)
    }

    /// Returns a control output that does not name a node.
    fn control_outputs(&self) -> Option<BoxedDiagnostic> {
        let base = || InstantiationDiagnostic::of(Part::Function, ImportDiagnosticKind::Python);
        let diagnostic =
            || base().with("a control output that nothing in the function is", "a node");
        self.control_nodes().is_none().then(diagnostic)
    }

    /// Returns a node that is named by two control outputs.
    fn repeated_control_output(&self) -> Option<BoxedDiagnostic> {
        let base = || InstantiationDiagnostic::of(Part::Function, ImportDiagnosticKind::Python);
        let diagnostic = || base().with("a node that is two control outputs", "a node for each");
        (self.control_nodes() == Some(false)).then(diagnostic)
    }

    /// Returns an attribute of the function that no function of Python can have.
    fn attributes(&self, definitions: &LoadDefinitions<'_>) -> Option<BoxedDiagnostic> {
        let version = definitions.registry().graph_def_version();
        let mut names = self.function.unusual_attributes.iter();
        let unknown = names.find(|name| !function_attributes::is_known(name, version))?;
        let diagnostic = InstantiationDiagnostic::of(Part::Function, ImportDiagnosticKind::Python);
        let found = format!("an attribute {unknown:?} of the function");
        Some(diagnostic.with(found, "one that functions of Python may have"))
    }

    /// Returns an attribute that is a placeholder and that the operation does not know: the graph
    /// cannot be made a function again.
    fn placeholder(&self, definitions: &LoadDefinitions<'_>) -> Option<BoxedDiagnostic> {
        let unknown = self.function.node_signatures.iter().map(|signature| {
            let operation = definitions.find(&signature.operation)?;
            let mut open = placeholders(signature)
                .filter(|(attribute, _)| operation.attribute(attribute).is_none());
            open.next().map(|(attribute, _)| attribute)
        });
        let unknown: Vec<Option<String>> = unknown.collect();
        let mut nodes = numbered(&self.function.nodes);
        nodes.find_map(|(number, node)| {
            let attribute = unknown.get(node.signature as usize)?.clone()?;
            let found = format!("a placeholder as attribute {attribute}");
            let diagnostic =
                self.at_node(number, ImportDiagnosticKind::AttributeUnknown { attribute });
            Some(diagnostic.with(found, "a value"))
        })
    }
}

/// Returns the attributes of a node signature that are placeholders, with what these name.
fn placeholders(signature: &BodySignature) -> impl Iterator<Item = (String, String)> + '_ {
    signature.attributes.iter().filter_map(|(name, value)| {
        let AttributeValue::Placeholder(of) = value else { return None };
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        (of.length > 0).then(|| (text(name), text(of.bytes.unwrap_or_default())))
    })
}
