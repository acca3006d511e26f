//! The files that tables are made of: assets that are read while a model is loaded, and files that
//! are no assets.
//!
//! Knows how the path of an asset comes to the operation that reads it. It must never know files.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{
    find::Names,
    input::node_name,
    node::Node,
    program::{ByName, Calls, Program, origin},
};
use crate::artifact::graph::GraphError;

/// Operations that fill a table from a file, the path of which is their second input.
const READERS: [&[u8]; 2] = [b"InitializeTableFromTextFileV2", b"InitializeTableFromTextFile"];
const PATH: usize = 1;

/// Steps from an operation back to the tensor that takes the path.
const MOST_STEPS: usize = 8;

/// The names of the nodes that take the paths of assets which are read when these nodes are run.
pub(super) fn read_while_loaded(
    program: &Program<'_>,
    run: &Names,
    assets: &HashSet<&[u8]>,
) -> HashSet<Vec<u8>> {
    let all = program.nodes();
    let outside: Vec<&Node> =
        run.iter().filter_map(|name| all.get(name.as_slice()).copied()).collect();
    let variables = assigned(&all);
    let asset = |input: &[u8]| asset_behind(&all, &variables, input, assets);
    let path_of = |node: &&Node| READERS.contains(&node.operation.as_slice());
    let mut found: HashSet<Vec<u8>> = HashSet::new();
    for node in outside.iter().copied().filter(path_of) {
        found.extend(node.inputs.get(PATH).and_then(|input| asset(input)));
    }
    let calls = Calls::of(program, &outside);
    for (function, body) in calls.bodies() {
        let by_name: ByName<'_> =
            body.nodes.iter().map(|node| (node.name.as_slice(), node)).collect();
        let arguments = body.argument_numbers();
        for node in body.nodes.iter().filter(path_of) {
            let input = node.inputs.get(PATH).and_then(|input| argument_behind(&by_name, input));
            let position = input.and_then(|argument| arguments.get(argument));
            let call = calls.call_of(function).zip(position);
            let outer = call.and_then(|(call, position)| call.inputs.get(*position));
            found.extend(outer.and_then(|input| asset(input)));
        }
    }
    found
}

/// The paths of files that tables outside of functions are filled from and that are no assets: the
/// exporter has left them where they were.
pub(super) fn read_from_elsewhere(
    program: &mut Program<'_>,
    assets: &HashSet<&[u8]>,
) -> Result<BTreeSet<Vec<u8>>, GraphError> {
    program.gather_inputs(&READERS, PATH)?;
    if program.is_unclear {
        return Ok(BTreeSet::new());
    }
    let all = program.nodes();
    let readers = all.values().filter(|node| READERS.contains(&node.operation.as_slice()));
    let constants = readers.filter_map(|node| {
        let (from, _) = origin(&all, node.inputs.get(PATH)?)?;
        let is_asset = assets.contains(from.name.as_slice());
        match from.constant.as_ref()?.texts.as_slice() {
            [path] if from.operation == b"Const" && !is_asset => Some(path.clone()),
            _ => None,
        }
    });
    Ok(constants.collect())
}

/// The inputs that are assigned to each variable outside of functions.
fn assigned<'n>(all: &ByName<'n>) -> HashMap<&'n [u8], Vec<&'n [u8]>> {
    let mut variables: HashMap<&[u8], Vec<&[u8]>> = HashMap::new();
    for node in all.values().filter(|node| node.operation == b"AssignVariableOp") {
        if let [variable, value, ..] = node.inputs.as_slice() {
            variables.entry(node_name(variable)).or_default().push(value);
        }
    }
    variables
}

/// The argument of a function that an input is.
fn argument_behind<'n>(nodes: &ByName<'n>, input: &'n [u8]) -> Option<&'n [u8]> {
    let mut input = input;
    for _ in 0..MOST_STEPS {
        match nodes.get(node_name(input)) {
            None => return Some(node_name(input)),
            Some(node) if node.operation == b"Identity" => input = node.inputs.first()?,
            Some(_) => return None,
        }
    }
    None
}

/// The asset whose path an input outside of functions is.
fn asset_behind(
    all: &ByName<'_>,
    variables: &HashMap<&[u8], Vec<&[u8]>>,
    input: &[u8],
    assets: &HashSet<&[u8]>,
) -> Option<Vec<u8>> {
    let mut input = input;
    for _ in 0..MOST_STEPS {
        let name = node_name(input);
        if assets.contains(name) {
            return Some(name.to_vec());
        }
        let node = all.get(name)?;
        let first = node.inputs.first()?;
        match node.operation.as_slice() {
            b"ReadVariableOp" => {
                let (variable, _) = origin(all, first)?;
                let values = variables.get(variable.name.as_slice())?.iter();
                input = values.copied().find(|value| assets.contains(node_name(value)))?;
            }
            b"Identity" | b"PlaceholderWithDefault" => input = first,
            _ => return None,
        }
    }
    None
}
