//! Finds shapes that shape functions refuse inside functions: in called functions, with the shapes
//! of the calls, and in functions that are loaded one by one.
//!
//! Depends on the places of functions and the operations of nodes, but not on the operations' shape
//! functions.

use std::{borrow::Borrow, collections::HashMap, rc::Rc};

use super::{
    body::{Body, Owner, Owners},
    function_memo::Library,
    instantiate::numbered,
};
use crate::{
    graph::{
        GraphError,
        diagnostic::Part,
        function_names::FunctionNames,
        index::{ArgumentShape, FunctionIndex},
        name_of,
        release::Releases,
        shapes::{
            BodyMismatch, ByNode, Called, CalledFunctions, Constants, FunctionNode, ShapedFunction,
            ShapedSignatures, Tensor,
        },
        source::Extent,
    },
    ops::Operation,
};

/// Limit on the depth of nested calls; shapes of deeper calls are unknown.
const DEEPEST: u32 = 64;

/// Limits on the nodes of functions that are checked for all calls of a graph, and on the functions
/// that are kept: real models have some thousand. Beyond them, shapes are unknown.
const MOST_NODES: usize = 1 << 18;

/// The functions that the nodes of a graph call, each read at its first call.
pub(super) struct CalledShapes<'c> {
    library: Library<'c>,
    /// The GraphDef version of the graph's producer.
    producer: i32,
    /// The functions, by the hash of the name; `None` for one whose shapes are unknown.
    functions: HashMap<u64, Option<Rc<CalledFunction<'c>>>>,
    reader: ShapeReader<'c>,
    depth: u32,
    /// Number of nodes visited so far, bounded by [`MOST_NODES`].
    nodes: usize,
}

/// Number of functions that are kept regardless of size. Beyond it, small ones are read for each
/// call.
const KEPT: usize = 1 << 10;

/// Length in bytes up to which a function is small.
const SMALL: u64 = 1 << 9;

/// A function that is called.
struct CalledFunction<'c> {
    place: Extent,
    shaped: ShapedFunction<'c, Rc<FunctionIndex>>,
}

impl<'c> CalledShapes<'c> {
    pub(super) fn of(library: Library<'c>, producer: i32) -> Self {
        let (functions, reader) = (HashMap::new(), ShapeReader::default());
        Self { library, producer, functions, reader, depth: 0, nodes: 0 }
    }

    fn function(&mut self, name: u64) -> Result<Option<Rc<CalledFunction<'c>>>, GraphError> {
        if let Some(known) = self.functions.get(&name) {
            return Ok(known.clone());
        }
        let Library { names, memo, .. } = self.library;
        let mut found = None;
        if let Some(place) = names.get(name).map(|function| function.place) {
            let index = memo.index(self.library, place)?;
            self.nodes = self.nodes.saturating_add(index.nodes.len());
            let shaped = self.reader.read(index, self.library)?;
            found = shaped.map(|shaped| Rc::new(CalledFunction { place, shaped }));
        }
        // In memory a function takes more than the bytes of a small one in the file.
        let is_small = found
            .as_ref()
            .is_some_and(|found| found.place.end.saturating_sub(found.place.start) < SMALL);
        if !is_small || self.functions.len() < KEPT {
            self.functions.insert(name, found.clone());
        }
        Ok(found)
    }

    /// Returns a mismatch with the names of the node that has it.
    fn named(
        &self,
        called: &CalledFunction<'_>,
        (node, mut mismatch): BodyMismatch,
    ) -> Result<BodyMismatch, GraphError> {
        if mismatch.within.is_none() {
            let Library { source, release, .. } = self.library;
            let part = Part::Node(node);
            let (function, name) = name_of::part_of_function(source, called.place, part, release)?;
            let operation = called.shaped.operation(node).unwrap_or_default().to_owned();
            mismatch.within = Some(FunctionNode { function, node: name, operation });
        }
        Ok((node, mismatch))
    }
}

impl CalledFunctions for CalledShapes<'_> {
    fn call(&mut self, function: u64, inputs: &[Tensor]) -> Called {
        let nothing = Ok(Ok(Vec::new()));
        if self.depth >= DEEPEST || self.nodes >= MOST_NODES {
            return nothing;
        }
        let Some(called) = self.function(function)? else { return nothing };
        self.nodes = self.nodes.saturating_add(called.shaped.nodes()).saturating_add(1);
        self.depth += 1;
        let inferred = called.shaped.infer(inputs, self.producer, self);
        self.depth -= 1;
        match inferred? {
            Ok(results) => Ok(Ok(results)),
            Err(mismatch) => Ok(Err(self.named(&called, mismatch)?.1)),
        }
    }
}

/// Returns the operation of this name from one of the releases that know it; `None` for functions.
fn operation<'r>(
    names: &FunctionNames,
    releases: Releases<'r>,
    name: &str,
) -> Option<Operation<'r>> {
    if names.find(name.as_bytes()).is_some() {
        return None;
    }
    let mut defined = releases.iter().rev().filter_map(|(_, registry)| registry.operation(name));
    defined.find(|found| !found.is_name_alone())
}

/// Reads the inputs of shape inference for functions, and caches the common facts of their nodes.
#[derive(Default)]
pub(super) struct ShapeReader<'c> {
    node_signatures: ShapedSignatures<'c>,
    constants: Constants,
}

impl<'c> ShapeReader<'c> {
    /// Returns a function of the library; `None` if names alone do not determine a node.
    fn read<F: Borrow<FunctionIndex>>(
        &mut self,
        function: F,
        library: Library<'c>,
    ) -> Result<Option<ShapedFunction<'c, F>>, GraphError> {
        let index = function.borrow();
        if index.oversized {
            return Ok(None);
        }
        let arguments = numbered(&index.arguments);
        let mut owners: Owners = arguments.map(|(n, a)| (a.name, Owner::Argument(n))).collect();
        owners.reserve(index.nodes.len());
        for (number, node) in numbered(&index.nodes) {
            // A list of arguments may have the name of a node.
            if owners.insert(node.name, Owner::Node(number)).is_some() {
                return Ok(None);
            }
        }
        let Library { source, names, releases, release, .. } = library;
        let mut constants = ByNode::default();
        for (number, place) in &index.constants {
            if let Some(tensor) = self.constants.read(source, *place, release)? {
                constants.insert(*number, tensor);
            }
        }
        let order = Body { function: index, owners }.visits(|_| true).in_order().collect();
        let find = |name: &str| operation(names, releases, name);
        Ok(Some(ShapedFunction::new(function, (&mut self.node_signatures, find), constants, order)))
    }
}

/// Treats the functions that nodes call as unknown.
struct NotCalled;

impl CalledFunctions for NotCalled {
    fn call(&mut self, _function: u64, _inputs: &[Tensor]) -> Called {
        Ok(Ok(Vec::new()))
    }
}

/// Returns the first node that a shape function refuses in a function that is loaded alone, in the
/// order of the importer's visits. Only the declared shapes of its arguments are known, and no
/// other function.
pub(super) fn alone<'c>(
    place: Extent,
    (library, reader): (Library<'c>, &mut ShapeReader<'c>),
) -> Result<Option<BodyMismatch>, GraphError> {
    if !library.follows_shapes {
        return Ok(None);
    }
    let function = library.memo.index(library, place)?;
    let shape = |(number, argument)| match function.given.shape(number, argument) {
        ArgumentShape::Known(dimensions) => Tensor::of_dimensions(dimensions),
        ArgumentShape::Unknown | ArgumentShape::Invalid(_) => Tensor::nothing(),
    };
    let arguments: Vec<Tensor> = numbered(&function.arguments).map(shape).collect();
    let Some(shaped) = reader.read(function, library)? else { return Ok(None) };
    Ok(shaped.infer(&arguments, i32::MAX, &mut NotCalled)?.err())
}

#[cfg(test)]
mod tests;
