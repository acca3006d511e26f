//! The files from which tables are initialized: assets that are read while a model is loaded.
//!
//! Depends on the way from an asset's path to the operation that reads it, but not on files.

use std::collections::{HashMap, HashSet};

use super::{
    find::Names,
    input::node_name,
    node::{Node, TableLines},
    program::{ByName, Calls, Program, origin},
};

/// Operations that initialize a table from a file, whose path is their second input.
pub(super) const READERS: [&[u8]; 2] =
    [b"InitializeTableFromTextFileV2", b"InitializeTableFromTextFile"];
pub(super) const PATH: usize = 1;

/// Operations that assign a value to a variable.
pub(super) const ASSIGNS: [&[u8]; 2] = [b"AssignVariableOp", b"Assign"];

/// Limit on the steps from an operation back to the tensor that receives the path.
pub(super) const MOST_STEPS: usize = 8;

/// The lines that are read from an asset, by the name of the node that receives its path.
pub(super) type ReadLines = HashMap<Vec<u8>, Vec<TableLines>>;

/// Returns the lines of assets that are read when these nodes are run.
pub(super) fn read_while_loaded(
    program: &Program<'_>,
    run: &Names,
    assets: &HashSet<&[u8]>,
) -> ReadLines {
    let all = program.nodes();
    let outside: Vec<&Node> =
        run.iter().filter_map(|name| all.get(name.as_slice()).copied()).collect();
    let variables = assigned(&all);
    let asset = |input: &[u8]| asset_behind(&all, &variables, input, assets);
    let path_of = |node: &&Node| READERS.contains(&node.operation.as_slice());
    let mut found = ReadLines::new();
    let mut note = |node: &Node, asset: Option<Vec<u8>>| {
        let lines = node.lines.as_deref().cloned().unwrap_or_default();
        let known = asset.map(|asset| found.entry(asset).or_default());
        if let Some(known) = known.filter(|known| !known.contains(&lines)) {
            known.push(lines);
        }
    };
    for node in outside.iter().copied().filter(path_of) {
        note(node, node.inputs.get(PATH).and_then(|input| asset(input)));
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
            note(node, outer.and_then(|input| asset(input)));
        }
    }
    found
}

/// Returns the inputs that are assigned to each variable outside functions.
pub(super) fn assigned<'n>(all: &ByName<'n>) -> HashMap<&'n [u8], Vec<&'n [u8]>> {
    let mut variables: HashMap<&[u8], Vec<&[u8]>> = HashMap::new();
    for node in all.values().filter(|node| ASSIGNS.contains(&node.operation.as_slice())) {
        if let [variable, value, ..] = node.inputs.as_slice() {
            variables.entry(node_name(variable)).or_default().push(value);
        }
    }
    variables
}

/// Returns the argument of a function that an input leads to.
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

/// Returns the asset whose path an input outside functions receives.
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
