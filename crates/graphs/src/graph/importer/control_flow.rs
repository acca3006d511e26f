//! Checks the loops of a function that a session inlines: each node must be in one frame.
//!
//! `Enter` begins a frame, which has a name, and `Exit` ends it; a node with inputs from frames of
//! two names can never run. Measured on TensorFlow 2.12, 2.16 and 2.21.
//!
//! Depends on nodes and edges, but not on the callers of the function.

use std::collections::{HashMap, VecDeque};

use super::{
    body::{self, Owner},
    function_memo::Library,
    instantiate::{BoxedDiagnostic, InstantiationDiagnostic, numbered},
};
use crate::graph::{
    GraphError, ImportDiagnosticKind, attributes::AttributeValue, diagnostic::Part,
    index::FunctionIndex, source::Extent,
};

/// Part of the names of the loop conditions of which a frame may have several.
const COUNTERS: &str = "LoopCounter";

/// The effect of a node on frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Enter,
    Exit,
    Condition,
    Other,
}

impl Role {
    fn of(operation: &str) -> Self {
        match operation {
            "Enter" | "RefEnter" => Self::Enter,
            "Exit" | "RefExit" => Self::Exit,
            "LoopCond" => Self::Condition,
            _ => Self::Other,
        }
    }
}

/// A frame as one node sees it: the node that begins it and the one that begins the frame around
/// it, by their numbers, and which of the names it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    begin: usize,
    around: usize,
    name: u32,
}

/// A function whose frames are being checked.
struct Frames<'f> {
    function: &'f FunctionIndex,
    /// By node signature.
    roles: Vec<Role>,
    /// Pairs of source and target, ascending. Arguments and the start of nodes without inputs have
    /// the number behind the last node.
    edges: Vec<(usize, usize)>,
    /// The names of frames, each with its number; the name of no frame is empty.
    names: HashMap<&'f [u8], u32>,
    /// The frame of each node that the walk has reached.
    found: Vec<Option<Frame>>,
}

/// Returns the diagnostic in the frames of the function at an extent of the file.
pub(super) fn diagnostic(
    library: Library<'_>,
    (function, place): (&FunctionIndex, Extent),
) -> Result<Option<BoxedDiagnostic>, GraphError> {
    let roles: Vec<Role> =
        function.node_signatures.iter().map(|signature| Role::of(&signature.operation)).collect();
    if !roles.iter().any(|role| matches!(role, Role::Enter | Role::Condition)) {
        return Ok(None);
    }
    let mut frames = Frames {
        function,
        roles,
        edges: edges(function),
        names: HashMap::from([(&b""[..], 0)]),
        found: vec![None; function.nodes.len() + 1],
    };
    match frames.walk() {
        Some(found) => Ok(Some(found)),
        None => frames.loops(library, place),
    }
}

/// Returns the edges of the function; see [`Frames::edges`].
fn edges(function: &FunctionIndex) -> Vec<(usize, usize)> {
    let source = function.nodes.len();
    let owners = body::owners(function);
    let mut takes = vec![false; source];
    let mut edges = Vec::with_capacity(function.inputs.len());
    for input in &function.inputs {
        let to = input.node as usize;
        let from = match owners.get(&input.target.name) {
            Some(Owner::Node(from)) => *from as usize,
            Some(Owner::Argument(_)) => source,
            None => continue,
        };
        edges.push((from, to));
        if let Some(takes) = takes.get_mut(to) {
            *takes = true;
        }
    }
    let first = (0..).zip(takes).filter(|(_, takes)| !takes);
    edges.extend(first.map(|(node, _)| (source, node)));
    edges.sort_unstable();
    edges
}

impl<'f> Frames<'f> {
    fn role(&self, node: usize) -> Role {
        let signature = self.function.nodes.get(node).map(|node| node.signature);
        signature
            .and_then(|signature| self.roles.get(signature as usize))
            .copied()
            .unwrap_or(Role::Other)
    }

    fn of(&self, node: usize) -> Option<Frame> {
        self.found.get(node).copied().flatten()
    }

    /// Follows the edges from the start, and returns a node that is reached from two frames.
    fn walk(&mut self) -> Option<BoxedDiagnostic> {
        let source = self.function.nodes.len();
        let outside = Frame { begin: source, around: source, name: 0 };
        *self.found.last_mut()? = Some(outside);
        let edges = std::mem::take(&mut self.edges);
        let mut ready = VecDeque::from([source]);
        while let Some(node) = ready.pop_front() {
            let own = self.of(node)?;
            let given = match self.role(node) {
                Role::Exit => self.of(own.around)?,
                _ => own,
            };
            let begin = edges.partition_point(|(from, _)| *from < node);
            let gives = edges.get(begin..)?.iter().take_while(|(from, _)| *from == node);
            for (_, to) in gives {
                let is_new = self.of(*to).is_none();
                if let Some(diagnostic) = self.come(*to, given) {
                    return Some(diagnostic);
                }
                if is_new {
                    ready.push_back(*to);
                }
            }
        }
        None
    }

    /// Records that a node is reached from a frame.
    fn come(&mut self, node: usize, from: Frame) -> Option<BoxedDiagnostic> {
        let is_enter = self.role(node) == Role::Enter;
        let Some(known) = self.of(node) else {
            let frame = match is_enter {
                true => match self.name_of(node) {
                    Ok(name) => Frame { begin: node, around: from.begin, name },
                    Err(diagnostic) => return Some(diagnostic),
                },
                false => from,
            };
            if let Some(found) = self.found.get_mut(node) {
                *found = Some(frame);
            }
            return None;
        };
        let name = match is_enter {
            true => self.of(known.around)?.name,
            false => known.name,
        };
        let texts = ("inputs from two frames", "inputs from one frame");
        (name != from.name).then(|| self.at(node, texts))
    }

    /// Returns the number of the name of the frame that a node enters.
    fn name_of(&mut self, node: usize) -> Result<u32, BoxedDiagnostic> {
        let function = self.function;
        let signature = function
            .nodes
            .get(node)
            .and_then(|node| function.node_signatures.get(node.signature as usize));
        let name = match signature.and_then(|signature| signature.attributes.get("frame_name")) {
            Some(AttributeValue::String(text)) if text.length > 0 => text.bytes.unwrap_or_default(),
            // The caller of the function gives the frame its name.
            Some(AttributeValue::Placeholder(text)) => text.bytes.unwrap_or_default(),
            _ => return Err(self.at(node, ("a frame without a name", "a name as frame_name"))),
        };
        let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        Ok(*self.names.entry(name).or_insert(next))
    }

    /// Checks that each frame has one parent frame and one loop condition.
    fn loops(
        &self,
        library: Library<'_>,
        place: Extent,
    ) -> Result<Option<BoxedDiagnostic>, GraphError> {
        let is_counter = |node: u32| {
            let (_, name) = library.memo.names(library, place, Part::Node(node))?;
            Ok::<bool, GraphError>(name.contains(COUNTERS))
        };
        let mut around: HashMap<u32, u32> = HashMap::new();
        let mut conditions: HashMap<u32, u32> = HashMap::new();
        for (number, _) in numbered(&self.function.nodes) {
            let node = number as usize;
            let Some(frame) = self.of(node) else { continue };
            let outer = self.of(frame.around).map_or(0, |outer| outer.name);
            if *around.entry(frame.name).or_insert(outer) != outer {
                return Ok(Some(self.at(node, ("a frame in two others", "a frame in one other"))));
            }
            if self.role(node) != Role::Condition {
                continue;
            }
            if let Some(other) = conditions.insert(frame.name, number)
                && !is_counter(other)?
                && !is_counter(number)?
            {
                return Ok(Some(self.at(node, ("a second LoopCond of a loop", "one LoopCond"))));
            }
        }
        Ok(None)
    }

    fn at(&self, node: usize, (found, expected): (&str, &str)) -> BoxedDiagnostic {
        let node = u32::try_from(node).unwrap_or(u32::MAX);
        let diagnostic =
            InstantiationDiagnostic::of(Part::Node(node), ImportDiagnosticKind::FunctionBody);
        diagnostic.of_operation(self.function, node).with(found, expected)
    }
}

#[cfg(test)]
mod tests;
