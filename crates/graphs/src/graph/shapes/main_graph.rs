//! The shapes of the nodes outside functions, in the order in which the importer visits them.
//!
//! Depends on the edges, but not on shape functions.

use std::{collections::HashMap, rc::Rc};

use super::{
    body::CalledFunctions,
    constants::Constants,
    inference::{ShapeRule, with_said_shapes},
    known::Known,
    node::ShapedNode,
    shape::{Inferred, Mismatch},
    tensor::Tensor,
};
use crate::{
    graph::{
        GraphError,
        attributes::Attributes,
        index::{GraphIndex, Input, NodeGroup},
        node_attributes::NodeAttributes,
        node_signatures::NodeSignatures,
        release::Releases,
        rules::Output,
        source::{Extent, Source},
    },
    ops::Operation,
};

/// The first diagnostic that a shape function reports.
#[derive(Clone, Debug)]
pub(in super::super) struct ShapeDiagnostic {
    /// The number of the node.
    pub(in super::super) node: u32,
    pub(in super::super) mismatch: Box<Mismatch>,
}

/// A graph whose shapes are inferred.
#[derive(Clone, Copy)]
pub(in super::super) struct ShapedGraph<'g> {
    pub(in super::super) source: Source<'g>,
    pub(in super::super) index: &'g GraphIndex,
    pub(in super::super) node_signatures: &'g NodeSignatures<'g>,
    pub(in super::super) releases: Releases<'g>,
    /// The GraphDef version of the release that parses the graph.
    pub(in super::super) release: i32,
    /// The GraphDef version of the graph's producer.
    pub(in super::super) producer: i32,
}

/// Returns the first node, in the order of the visits, that a shape function of any release
/// certainly refuses.
///
/// Shapes depend on a release's definition of an operation only through defaults, which no release
/// has changed.
///
/// `called` infers the outputs of the functions that nodes call; with `None`, these are unknown.
pub(in super::super) fn first_diagnostic(
    graph: ShapedGraph<'_>,
    order: impl Iterator<Item = u32>,
    called: Option<&mut dyn CalledFunctions>,
) -> Result<Option<ShapeDiagnostic>, GraphError> {
    let mut walk = Walk {
        graph,
        called,
        rules: HashMap::default(),
        known: Known::of(graph.index.nodes().len()),
        read: NodeAttributes::default(),
        constants: Constants::default(),
        none: Rc::default(),
        near: None,
    };
    for node in order {
        if let Some(mismatch) = walk.visit(node)? {
            return Ok(Some(ShapeDiagnostic { node, mismatch }));
        }
    }
    Ok(None)
}

struct Walk<'g, 'c> {
    graph: ShapedGraph<'g>,
    called: Option<&'c mut dyn CalledFunctions>,
    /// By operation.
    rules: HashMap<&'g str, ShapeRule, foldhash::quality::RandomState>,
    known: Known,
    read: NodeAttributes,
    constants: Constants,
    /// The empty attributes that stand for those that are not read.
    none: Rc<Attributes>,
    /// The places that were found last.
    near: Option<NodeGroup>,
}

impl<'g> Walk<'g, '_> {
    /// Returns the operation of a node from one of the releases that know it; `None` for functions.
    fn operation(&self, node: u32) -> Option<Operation<'g>> {
        let ShapedGraph { index, node_signatures, releases, .. } = self.graph;
        let signature = node_signatures.get(index.nodes().get(node as usize)?.signature())?;
        let known = node_signatures.operation(signature).filter(|known| !known.is_function())?;
        let mut defined = releases.ids().rev().map(|release| known.operation(release));
        defined.find_map(|operation| operation.filter(|operation| !operation.is_name_alone()))
    }

    /// Infers the shapes of a node whose inputs were inferred, except those that close loops.
    fn visit(&mut self, node: u32) -> Result<Option<Box<Mismatch>>, GraphError> {
        let index = self.graph.index;
        let call = index.call_of(node).filter(|calling| calling.call.inside);
        let is_said = index.output_shapes_of(node).is_some();
        let inputs = self.inputs(node);
        let (Some(calling), Some(called)) = (call, &mut self.called) else {
            return self.visit_operation(node, &inputs, is_said);
        };
        let outputs = called.call(calling.call.function, &inputs)?;
        let attributes = self.attributes(node, is_said)?;
        Ok(self.keep(node, outputs, &attributes))
    }

    /// Infers the shapes of a node that calls no function.
    fn visit_operation(
        &mut self,
        node: u32,
        inputs: &[Tensor],
        is_said: bool,
    ) -> Result<Option<Box<Mismatch>>, GraphError> {
        let Some(operation) = self.operation(node) else { return Ok(None) };
        let rule = *self.rules.entry(operation.name()).or_insert_with(|| ShapeRule::of(operation));
        if rule.is_empty() && !is_said {
            return Ok(None);
        }
        if operation.name() == "Const" && self.keep_constant(node)? {
            return Ok(None);
        }
        let attributes = self.attributes(node, rule.reads_attributes || is_said)?;
        let shaped = ShapedNode {
            operation,
            attributes: &attributes,
            inputs,
            producer: self.graph.producer,
            is_in_body: false,
        };
        let outputs = rule.infer(&shaped);
        Ok(self.keep(node, outputs, &attributes))
    }

    /// Keeps the tensor of a constant, if it is in the canonical encoding; constants are not
    /// shared.
    fn keep_constant(&mut self, node: u32) -> Result<bool, GraphError> {
        let place = self.place_of(node)?;
        let tensor = self.constants.canonical(self.graph.source, place)?;
        let is_kept = tensor.is_some();
        self.known.set(node, tensor.into_iter().collect());
        Ok(is_kept)
    }

    /// Keeps the outputs of a node, merged with the shapes that it declares.
    fn keep(
        &mut self,
        node: u32,
        outputs: Inferred<Vec<Tensor>>,
        attributes: &Attributes,
    ) -> Option<Box<Mismatch>> {
        match outputs.and_then(|outputs| with_said_shapes(outputs, attributes)) {
            Ok(outputs) => {
                self.known.set(node, outputs);
                None
            }
            Err(mismatch) => Some(mismatch),
        }
    }

    /// Returns the attributes of a node, if requested.
    fn attributes(&mut self, node: u32, are_wanted: bool) -> Result<Rc<Attributes>, GraphError> {
        if !are_wanted {
            return Ok(Rc::clone(&self.none));
        }
        let ShapedGraph { source, release, .. } = self.graph;
        let place = self.place_of(node)?;
        self.read.read(source, place, release)
    }

    /// Returns the extent of a node in the file. Most nodes are visited in the order in which they
    /// are written.
    fn place_of(&mut self, node: u32) -> Result<Extent, GraphError> {
        let near = self.near.as_ref().and_then(|near| near.place_of(node));
        if near.is_none() {
            self.near = self.graph.index.places_around(self.graph.source, node)?;
        }
        let place = near.or_else(|| self.near.as_ref()?.place_of(node));
        place.ok_or_else(GraphError::moved_node)
    }

    fn inputs(&self, node: u32) -> Vec<Tensor> {
        let index = self.graph.index;
        let inputs =
            index.inputs(node).iter().filter(|input| index.output(**input) != Output::CONTROL);
        let tensor = |input: &Input| {
            let (from, output) = (index.source(*input)?, index.output(*input).number()?);
            self.known.get(from, output as usize).cloned()
        };
        inputs.map(|input| tensor(input).unwrap_or_default()).collect()
    }
}
