//! The paths of files that initialize tables, if they are not assets or are stored in variables.
//!
//! Depends on the way from a path to the operation that reads the file, through variables and
//! placeholders with a default, but not on files.

use std::collections::{BTreeSet, HashSet};

use super::{
    assets::{ASSIGNS, MOST_STEPS, PATH, READERS, assigned},
    find::Names,
    input::node_name,
    node::Node,
    program::{ByName, Program},
};
use crate::graph::GraphError;

/// Variables that a node reads by reference; a session refuses to read them before they have a
/// value.
const REFERENCES: [&[u8]; 2] = [b"VariableV2", b"Variable"];

/// Limit on the paths through variables that are followed: real models have one for each table.
const MOST_VARIABLES: usize = 64;

/// Variables that are resource handles.
const HANDLES: [&[u8]; 1] = [b"VarHandleOp"];

/// A variable that holds the path of a table's file.
#[derive(Clone, Debug)]
pub struct PathVariable {
    /// The name of the node that creates it.
    pub name: String,
    /// True if loaders initialize the table before the variable has a value.
    pub is_unset: bool,
}

/// The paths that initialize tables outside functions.
#[derive(Debug, Default)]
pub(super) struct TablePaths {
    /// Paths that are not assets: the exporter did not copy the files.
    pub(super) elsewhere: BTreeSet<Vec<u8>>,
    /// For each path through a variable, the node that reads it and the variable.
    through: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The origins of a path.
#[derive(Default)]
struct Origins<'n> {
    constants: Vec<&'n Node>,
    /// The node that reads a variable, and the variable.
    through: Vec<(&'n Node, &'n Node)>,
    /// Names of nodes that were not read yet.
    unread: Vec<&'n [u8]>,
}

impl<'n> Origins<'n> {
    /// Follows the paths of all tables outside of functions.
    fn of(all: &ByName<'n>) -> Self {
        let values = assigned(all);
        let is_reader = |node: &&&Node| READERS.contains(&node.operation.as_slice());
        let mut origins = Self::default();
        for reader in all.values().filter(is_reader) {
            let mut open: Vec<(&[u8], Option<&Node>)> = Vec::new();
            open.extend(reader.inputs.get(PATH).map(|input| (node_name(input), None)));
            let mut steps = 0;
            while let Some((name, reading)) = open.pop() {
                steps += 1;
                let Some(node) = all.get(name).copied() else {
                    origins.unread.push(name);
                    continue;
                };
                if steps > MOST_STEPS {
                    break;
                }
                let operation = node.operation.as_slice();
                if operation == b"Const" {
                    origins.constants.push(node);
                } else if REFERENCES.contains(&operation) || HANDLES.contains(&operation) {
                    let reading = reading.filter(|_| origins.through.len() < MOST_VARIABLES);
                    origins.through.extend(reading.map(|reading| (reading, node)));
                    let values = values.get(name).into_iter().flatten().take(MOST_STEPS);
                    open.extend(values.map(|value| (node_name(value), None)));
                } else if let b"Identity" | b"ReadVariableOp" | b"PlaceholderWithDefault" =
                    operation
                {
                    let first = node.inputs.first();
                    open.extend(first.map(|input| (node_name(input), Some(node))));
                }
            }
        }
        origins
    }
}

impl TablePaths {
    /// Reads the sources of the file paths for tables outside functions; `assets` has the paths
    /// that are in the model. Returns nothing if too much would have to be read.
    pub(super) fn read(
        program: &mut Program<'_>,
        assets: &HashSet<&[u8]>,
    ) -> Result<Self, GraphError> {
        program.gather_inputs(&READERS, PATH)?;
        // Few models have such tables.
        if !program.has_any(&READERS) {
            return Ok(Self::default());
        }
        for _ in 0..MOST_STEPS {
            if program.is_unclear {
                return Ok(Self::default());
            }
            let unread: Names = {
                let all = program.nodes();
                let unread = Origins::of(&all).unread.into_iter();
                unread.filter(|name| !program.is_absent(name)).map(<[u8]>::to_vec).collect()
            };
            if unread.is_empty() {
                break;
            }
            program.read_nodes(&unread)?;
        }
        let all = program.nodes();
        let origins = Origins::of(&all);
        let is_asset = |node: &&&Node| assets.contains(node.name.as_slice());
        let constants = origins.constants.iter().filter(|node| !is_asset(node));
        let path = |node: &&Node| match node.constant.as_ref()?.texts.as_slice() {
            [path] => Some(path.clone()),
            _ => None,
        };
        let through = origins.through.iter();
        let through =
            through.map(|(reading, variable)| (reading.name.clone(), variable.name.clone()));
        Ok(Self { elsewhere: constants.filter_map(path).collect(), through: through.collect() })
    }

    /// Returns true if a path comes through a variable.
    pub(super) fn has_variables(&self) -> bool {
        !self.through.is_empty()
    }

    /// Returns the variables that are read while the nodes `run` are run, without being set before;
    /// `restored` are the nodes that are run before these, if they are known.
    pub(super) fn variables(
        &self,
        program: &Program<'_>,
        run: &Names,
        restored: Option<&Names>,
    ) -> Vec<PathVariable> {
        let all = program.nodes();
        let assigns = |name: &[u8], variable: &[u8]| {
            all.get(name).is_some_and(|node| {
                let first = node.inputs.first().map(|input| node_name(input));
                ASSIGNS.contains(&node.operation.as_slice()) && first == Some(variable)
            })
        };
        let mut found: Vec<PathVariable> = Vec::new();
        for (reading, variable) in &self.through {
            let is_ordered = before(&all, reading).iter().any(|name| assigns(name, variable));
            if !run.contains(reading) || is_ordered {
                continue;
            }
            let is_reference = all
                .get(variable.as_slice())
                .is_some_and(|node| REFERENCES.contains(&node.operation.as_slice()));
            let sets_it = |run: &Names| run.iter().any(|name| assigns(name, variable));
            // Reads by reference come before the other operations of the run.
            let is_late = is_reference || !sets_it(run);
            let is_unset = is_late && restored.is_some_and(|run| !sets_it(run));
            let name = String::from_utf8_lossy(variable).into_owned();
            if !found.iter().any(|known| known.name == name) {
                found.push(PathVariable { name, is_unset });
            }
        }
        found
    }
}

/// Returns the names of the nodes that are run before one.
fn before<'n>(all: &ByName<'n>, node: &'n [u8]) -> HashSet<&'n [u8]> {
    let mut found = HashSet::new();
    let mut open = vec![node];
    while let Some(name) = open.pop() {
        let inputs = all.get(name).into_iter().flat_map(|node| &node.inputs);
        for input in inputs.map(|input| node_name(input)) {
            if found.insert(input) {
                open.push(input);
            }
        }
    }
    found
}
