//! Finds the diagnostics that the importer reports while it visits the nodes, for several releases
//! in one pass.
//!
//! Nodes are visited one after another, each checked in TensorFlow's order, and the first
//! diagnostic ends the visit for a release. Most nodes are the same in every release, and are
//! checked once for all of them.
//!
//! Depends on the edges, but not on the derivation of a node's types.

mod shapes;

use std::{collections::HashSet, rc::Rc};

use super::{
    callee_diagnostics::CalleeDiagnostics,
    concrete_functions::{ConcreteFunction, ConcreteFunctions},
    context::Context,
    diagnostics::{DiagnosedNode, Diagnostics, NodeDiagnostic, Pending},
    judge,
    visits::Visits,
};
use crate::graph::{
    GraphError, ImportDiagnostic,
    index::{CallingNode, Input, OutputShapes},
    node_at,
    node_rules::{NodeRules, NodeType, Strictness},
    node_signatures::{Judged, LoaderProfile, NodeSignature},
    release::{PerRelease, ReleaseId},
    rules::{Output, shown},
    shapes::ShapeDiagnostic,
};

/// Returns the first diagnostic that a loader of each release finds, if any; the loader checks
/// nodes as `strictness` says.
pub(super) fn first_diagnostics(
    context: &Context<'_>,
    visits: &Visits,
    strictness: Strictness,
    functions: Functions<'_>,
    shapes: Option<&ShapeDiagnostic>,
) -> Result<PerRelease<Option<ImportDiagnostic>>, GraphError> {
    let pending = |release, _: &_| {
        let profile = LoaderProfile { release, strictness };
        Pending { profile, found: None }
    };
    let pending = context.releases.map(pending);
    let mut slow = needing_slow_path(context);
    slow.extend(shapes.map(|diagnostic| diagnostic.node));
    let mut walk =
        Walk { context, visits, shapes, slow, pending, back_edges: Vec::new(), functions };
    // If all nodes are known to be valid except for their calls, only calling nodes are visited.
    let calling = context.index.calls().iter().map(|call| call.number);
    let calling = calling.filter(|_| context.index.nodes().is_empty());
    for node in visits.in_order().chain(calling) {
        if !walk.is_valid(node) {
            walk.take_slow_path(node)?;
        }
        if let Some(crash) = visits.crash().filter(|crash| crash.at == node) {
            walk.all_find(&DiagnosedNode {
                node: crash.head,
                diagnostic: NodeDiagnostic::LoopInputs,
            });
        }
        if walk.is_over() {
            break;
        }
    }
    walk.finish();
    let mut diagnostics = Diagnostics::new(context);
    walk.pending.try_map(|_, pending| diagnostics.import_diagnostic(pending))
}

/// The functions that nodes call.
#[derive(Clone, Copy)]
pub(super) enum Functions<'f> {
    /// The functions as written in the library.
    Written(&'f CalleeDiagnostics<'f>),
    /// The functions after `tf.saved_model.load` of each release.
    Reexported(&'f ConcreteFunctions<'f>),
}

/// Nodes that are colocated with missing nodes, have deprecated operations, or call functions,
/// existing or not.
fn needing_slow_path(context: &Context<'_>) -> HashSet<u32> {
    let index = context.index;
    let deprecated = index.deprecated().iter().map(|node| node.number);
    let calls = index.calls().iter().map(|call| call.number);
    let unbound = index.unbound_calls().iter().copied();
    index.unresolved_colocations().chain(deprecated).chain(calls).chain(unbound).collect()
}

/// An input that closes a loop.
#[derive(Clone, Copy, Debug)]
struct BackEdge {
    node: u32,
    input: u32,
}

/// A visit of all nodes.
struct Walk<'w> {
    context: &'w Context<'w>,
    visits: &'w Visits,
    /// The first node that a shape function refuses.
    shapes: Option<&'w ShapeDiagnostic>,
    /// Nodes that need the slow path for any node signature.
    slow: HashSet<u32>,
    pending: PerRelease<Pending>,
    back_edges: Vec<BackEdge>,
    functions: Functions<'w>,
}

/// Returns the inputs of a node with their positions.
fn numbered(inputs: &[Input]) -> impl Iterator<Item = (u32, Input)> + '_ {
    (0_u32..).zip(inputs.iter().copied())
}

impl Walk<'_> {
    fn is_over(&self) -> bool {
        self.pending.values().all(|pending| pending.found.is_some())
    }

    /// Records a diagnostic for each loader that has none yet.
    fn all_find(&mut self, found: &DiagnosedNode) {
        for (_, pending) in self.pending.iter_mut() {
            pending.found.get_or_insert_with(|| found.clone());
        }
    }

    /// Returns the output that an input names.
    fn output(&self, input: Input) -> Output {
        self.context.index.output(input)
    }

    fn node_signature(&self, node: u32) -> Option<&NodeSignature> {
        self.context.signature_of(node)
    }

    /// Returns the types of a node, if they are the same for all loaders.
    fn common_types(&self, node: u32) -> Option<&NodeType> {
        self.context.node_signatures.types(self.node_signature(node)?.common_types()?)
    }

    /// Returns the types of a node for a loader, if it is valid in isolation.
    fn types(&self, node: u32, profile: LoaderProfile) -> Option<&NodeType> {
        if let Some(function) = self.concrete_function(node, profile.release) {
            return Some(&function.types);
        }
        let node = self.context.index.nodes().get(node as usize)?;
        self.context.node_signatures.types_of(node.signature(), profile)
    }

    /// Returns the function that is the operation of a node, if the functions are not those of the
    /// file.
    fn concrete_function(&self, node: u32, release: ReleaseId) -> Option<&ConcreteFunction> {
        let Functions::Reexported(functions) = self.functions else { return None };
        let call = self.context.index.call_of(node).filter(|call| call.call.direct)?;
        functions.of_release(release).get(call.call.function).map(Rc::as_ref)
    }

    /// Returns true if the recorded facts of a node differ from the file, because it calls a
    /// function that was exported again.
    fn calls_concrete_function(&self, node: u32) -> bool {
        matches!(self.functions, Functions::Reexported(..)) && self.slow.contains(&node)
    }

    /// Returns true if a node is visited before another.
    fn is_before(&self, node: u32, other: u32) -> bool {
        self.visits.of(node) < self.visits.of(other)
    }

    /// Returns true if the node is certainly valid for every loader. False requires the slow path.
    fn is_valid(&self, node: u32) -> bool {
        let needs_only_types =
            self.node_signature(node).is_some_and(|node_signature| node_signature.needs_only_types);
        if !needs_only_types || self.slow.contains(&node) {
            return false;
        }
        let Some(types) = self.common_types(node) else { return false };
        let mut data_inputs = 0;
        for input in self.context.index.inputs(node) {
            if input.is_control() {
                continue;
            }
            let expected = types.inputs.get(data_inputs);
            data_inputs += 1;
            let (Some(expected), Some(number)) = (expected, self.output(*input).number()) else {
                return false;
            };
            let Some(from) = self.context.index.source(*input) else { return false };
            if self.calls_concrete_function(from) {
                return false;
            }
            let given = self.common_types(from).and_then(|from| from.outputs.get(number.into()));
            if !given.is_some_and(|given| expected.takes(given)) || !self.is_before(from, node) {
                return false;
            }
        }
        let is_shaped = |said: OutputShapes| said.valid >= types.outputs.len();
        types.inputs.may_be(data_inputs)
            && self.context.index.output_shapes_of(node).is_none_or(is_shaped)
    }

    /// Checks a node for each loader that has no diagnostic yet.
    fn take_slow_path(&mut self, node: u32) -> Result<(), GraphError> {
        let back = numbered(self.context.index.inputs(node)).filter(|(_, input)| {
            let from = self.context.index.source(*input);
            self.output(*input).is_data() && from.is_some_and(|from| !self.is_before(from, node))
        });
        let back: Vec<_> = back.map(|(input, _)| BackEdge { node, input }).collect();
        self.back_edges.extend(back);
        for release in self.context.releases.ids() {
            let Pending { profile, found: None } = self.pending[release] else { continue };
            let diagnostic = self.diagnostic_of(node, profile)?;
            self.pending[release].found =
                diagnostic.map(|diagnostic| DiagnosedNode { node, diagnostic });
        }
        Ok(())
    }

    /// Returns the diagnostic of a node for one loader, in the importer's order.
    fn diagnostic_of(
        &self,
        node: u32,
        profile: LoaderProfile,
    ) -> Result<Option<NodeDiagnostic>, GraphError> {
        if profile.strictness == Strictness::Session {
            return Ok(self.session_diagnostic(node, profile));
        }
        let is_slow = self.slow.contains(&node);
        if is_slow && self.context.index.has_unresolved_colocation(node) {
            return Ok(Some(NodeDiagnostic::Colocation));
        }
        let own = match self.concrete_function(node, profile.release) {
            Some(function) => self.by_signature(node, function, profile)?,
            None => self.by_itself(node, profile),
        };
        let diagnostic = self
            .output_index(node, profile)
            .or(own)
            .or_else(|| self.edge_type(node, profile))
            .or_else(|| self.shape_function(node, profile));
        let call = self.context.index.call_of(node);
        // The outputs that a call declares are compared with those of its function.
        let is_inside = call.is_some_and(|calling| calling.call.inside);
        let diagnostic =
            diagnostic.or_else(|| (!is_inside).then(|| self.shapes_of_inputs(node))?);
        if diagnostic.is_some() {
            return Ok(diagnostic);
        }
        if let Some(call) = call
            && let tensors = self.tensors(call, profile)
            && let Some(diagnostic) = self.called(call, tensors, profile)?
        {
            return Ok(Some(NodeDiagnostic::Call(Box::new(diagnostic))));
        }
        if let Some(diagnostic) = self.shapes_of_called(node) {
            return Ok(Some(NodeDiagnostic::Call(Box::new(diagnostic))));
        }
        if is_slow && self.context.index.unbound_calls().binary_search(&node).is_ok() {
            return Ok(Some(NodeDiagnostic::UnboundCall));
        }
        Ok(self.shapes_of_inputs(node).or_else(|| self.output_shapes(node, profile)))
    }

    /// Returns the number of inputs and outputs of a node that calls a function.
    fn tensors(&self, call: &CallingNode, profile: LoaderProfile) -> (u64, u64) {
        match self.types(call.number, profile) {
            Some(types) => (types.inputs.len(), types.outputs.len()),
            None => (call.inputs.into(), call.call.outputs.map_or(u64::MAX, u64::from)),
        }
    }

    /// Returns the diagnostic of the function that a node calls.
    fn called(
        &self,
        call: &CallingNode,
        tensors: (u64, u64),
        profile: LoaderProfile,
    ) -> Result<Option<ImportDiagnostic>, GraphError> {
        match self.functions {
            Functions::Written(callees) => callees.diagnostic(call, tensors, profile),
            Functions::Reexported(functions) => {
                let registry = self.context.releases.registry(profile.release);
                functions.of_release(profile.release).import_diagnostic(registry, call, tensors)
            }
        }
    }

    /// Returns the attributes and the number of inputs of a node whose operation is a function.
    fn by_signature(
        &self,
        node: u32,
        function: &ConcreteFunction,
        profile: LoaderProfile,
    ) -> Result<Option<NodeDiagnostic>, GraphError> {
        let Context { source, release, releases, .. } = *self.context;
        let registry = releases.registry(profile.release);
        if function.is_open()
            && let Some(operation) = function.operation()
        {
            let place = judge::place_of(source, self.context.index, node)?;
            let read = node_at::read(source, place, None, release)?;
            let rules = NodeRules { registry, strictness: Strictness::Load };
            if let Err(diagnostic) = rules.node_type(operation, &read.attributes) {
                let (name, operation) = (shown(&read.name), shown(&read.operation));
                let diagnostic = diagnostic.into_import_diagnostic(name, None, operation);
                return Ok(Some(NodeDiagnostic::Call(Box::new(diagnostic))));
            }
        }
        let inputs = self.context.index.inputs(node).iter();
        let found = inputs.filter(|input| !input.is_control()).count() as u64;
        let expected = function.types.inputs.len();
        Ok((found != expected).then_some(NodeDiagnostic::InputCount { found, expected }))
    }

    /// Returns the diagnostic that keeps a session from creating a node and its edges. A session
    /// rejects only extra inputs, and checks neither deprecation nor shapes nor functions.
    fn session_diagnostic(&self, node: u32, profile: LoaderProfile) -> Option<NodeDiagnostic> {
        if let Some(diagnostic) = self.output_index(node, profile) {
            return Some(diagnostic);
        }
        let types = match self.node_signature(node)?.judged(profile) {
            Judged::Unknown => return Some(NodeDiagnostic::Unknown),
            Judged::InvalidAttributes => return Some(NodeDiagnostic::Attributes),
            Judged::Types(types) => self.context.node_signatures.types(types)?,
        };
        let expected = types.inputs.len();
        self.find_edge(node, |position, input| {
            if u64::from(position) >= expected {
                return Some(self.too_many_inputs(node, expected));
            }
            self.type_diagnostic(node, position, input, profile)
        })
    }

    fn too_many_inputs(&self, node: u32, expected: u64) -> NodeDiagnostic {
        let inputs = self.context.index.inputs(node).iter();
        let found = inputs.filter(|input| !input.is_control()).count() as u64;
        NodeDiagnostic::InputCount { found, expected }
    }

    /// Returns an input that names an output which its node does not have.
    fn output_index(&self, node: u32, profile: LoaderProfile) -> Option<NodeDiagnostic> {
        let is_nowhere = |input: Input| {
            let number = self.output(input).number()?;
            let from = self.context.index.source(input)?;
            let types = self.types(from, profile)?;
            Some(self.is_before(from, node) && u64::from(number) >= types.outputs.len())
        };
        let mut inputs = numbered(self.context.index.inputs(node));
        let (input, _) = inputs.find(|(_, input)| is_nowhere(*input) == Some(true))?;
        Some(NodeDiagnostic::OutputIndex { input })
    }

    /// Returns the operation, the attributes, the number of inputs, the deprecation.
    fn by_itself(&self, node: u32, profile: LoaderProfile) -> Option<NodeDiagnostic> {
        let node_signature = self.node_signature(node)?;
        match node_signature.judged(profile) {
            Judged::Unknown => return Some(NodeDiagnostic::Unknown),
            Judged::InvalidAttributes => return Some(NodeDiagnostic::Attributes),
            Judged::Types(types) => {
                let types = self.context.node_signatures.types(types)?;
                let inputs = self.context.index.inputs(node).iter();
                let found = inputs.filter(|input| !input.is_control()).count() as u64;
                if !types.inputs.may_be(found) {
                    return Some(NodeDiagnostic::InputCount {
                        found,
                        expected: types.inputs.len(),
                    });
                }
            }
        }
        self.deprecation(node, node_signature, profile)
    }

    fn deprecation(
        &self,
        node: u32,
        node_signature: &NodeSignature,
        profile: LoaderProfile,
    ) -> Option<NodeDiagnostic> {
        let Context { node_signatures, producer, .. } = *self.context;
        let listed = self.context.index.deprecated_operation_of(node);
        let entry = listed.and_then(|entry| self.context.deprecated.entries().get(entry as usize));
        if let Some(entry) = entry {
            let is_refused = producer >= entry.version;
            return is_refused.then(|| NodeDiagnostic::Deprecated(entry.clone()));
        }
        let definition = node_signatures.operation(node_signature)?.operation(profile.release)?;
        let version = definition.deprecated_since().filter(|version| producer >= *version)?;
        Some(NodeDiagnostic::deprecated_by_definition(definition.name(), version))
    }

    /// Returns an input with another type than the operation requires.
    fn edge_type(&self, node: u32, profile: LoaderProfile) -> Option<NodeDiagnostic> {
        self.find_edge(node, |position, input| self.type_diagnostic(node, position, input, profile))
    }

    /// Returns the first diagnostic that `find` returns for a data input, by its position, from a
    /// node that is visited before this one.
    fn find_edge(
        &self,
        node: u32,
        find: impl Fn(u32, Input) -> Option<NodeDiagnostic>,
    ) -> Option<NodeDiagnostic> {
        let inputs = numbered(self.context.index.inputs(node));
        let mut data = inputs.filter(|(_, input)| self.output(*input).is_data());
        data.find_map(|(position, input)| {
            let from = self.context.index.source(input)?;
            self.is_before(from, node).then(|| find(position, input)).flatten()
        })
    }

    /// Returns the diagnostic of the type of one input.
    fn type_diagnostic(
        &self,
        node: u32,
        position: u32,
        input: Input,
        profile: LoaderProfile,
    ) -> Option<NodeDiagnostic> {
        let Some(number) = self.output(input).number() else {
            return Some(NodeDiagnostic::OutputIndex { input: position });
        };
        let from = self.context.index.source(input)?;
        let expected = self.types(node, profile)?.inputs.get(position.into())?;
        let given = self.types(from, profile)?.outputs.get(number.into())?;
        let fits = expected.takes(given);
        (!fits).then_some(NodeDiagnostic::InputType { input: position, given, expected })
    }

    fn shape_function(&self, node: u32, profile: LoaderProfile) -> Option<NodeDiagnostic> {
        let node_signature = self.node_signature(node)?;
        let known = self.context.node_signatures.operation(node_signature)?;
        let definition = known.operation(profile.release)?;
        let is_missing = profile.needs_shape_functions()
            && !known.is_function()
            && !definition.has_shape_function();
        let shape = node_signature.has_shape_diagnostic.then_some(NodeDiagnostic::Shape);
        is_missing.then_some(NodeDiagnostic::NoShapeFunction).or(shape)
    }

    /// Reports the diagnostics that occur once all nodes were visited: nodes that were never
    /// visited, then the edges that close loops.
    fn finish(&mut self) {
        if self.is_over() {
            return;
        }
        let cycle = self
            .visits
            .unvisited()
            .map(|node| DiagnosedNode { node, diagnostic: NodeDiagnostic::Cycle });
        for release in self.context.releases.ids() {
            let Pending { profile, found: None } = self.pending[release] else { continue };
            let found = cycle.clone().or_else(|| self.back_edge_diagnostic(profile));
            self.pending[release].found = found;
        }
    }

    fn back_edge_diagnostic(&self, profile: LoaderProfile) -> Option<DiagnosedNode> {
        self.back_edges.iter().find_map(|BackEdge { node, input: position }| {
            let input = *self.context.index.inputs(*node).get(*position as usize)?;
            let from = self.context.index.source(input)?;
            let outputs = self.types(from, profile).map(|types| types.outputs.len());
            let number = self.output(input).number();
            let is_nowhere = match (number, outputs) {
                (Some(number), Some(outputs)) => u64::from(number) >= outputs,
                _ => number.is_none(),
            };
            let expected = self.types(*node, profile).map(|types| types.inputs.len());
            let diagnostic = if is_nowhere {
                Some(NodeDiagnostic::OutputIndex { input: *position })
            } else if let Some(expected) = expected.filter(|most| u64::from(*position) >= *most) {
                Some(self.too_many_inputs(*node, expected))
            } else {
                self.type_diagnostic(*node, *position, input, profile)
            };
            Some(DiagnosedNode { node: *node, diagnostic: diagnostic? })
        })
    }
}
