//! Finds the tensors that the saver of a meta graph reads from a checkpoint.
//!
//! Depends on the restoring operations, but not on checkpoints.

use std::{collections::HashMap, ops::Range};

use super::{
    find::Names,
    input::node_name,
    node::Node,
    program::{ByName, Calls, Program, origin},
    tensors::{Fit, RestoredTable, RestoredTensor, RestoredTensors, TableShape},
};

/// The range of the tensors of each restoring node in the list of all.
type Positions<'n> = HashMap<&'n [u8], Range<usize>>;

/// Returns the tensors that are read when these nodes are run; `None` if unknown.
pub(super) fn restored(program: &Program<'_>, run: &Names) -> Option<RestoredTensors> {
    let all = program.nodes();
    let outside: Vec<&Node> =
        run.iter().filter_map(|name| all.get(name.as_slice()).copied()).collect();
    let mut found = RestoredTensors::default();
    restored_by(&outside, &all, &mut found)?;
    let calls = Calls::of(program, &outside);
    for (function, body) in calls.bodies() {
        let by_name: ByName<'_> =
            body.nodes.iter().map(|node| (node.name.as_slice(), node)).collect();
        let is_run = |node: &&Node| node.operation != b"RestoreV2" || body.uses(node);
        let nodes: Vec<&Node> = body.nodes.iter().filter(is_run).collect();
        let positions = restored_by(&nodes, &by_name, &mut found)?;
        let arguments = body.argument_numbers();
        let handle = |argument: &[u8]| {
            let position = *arguments.get(argument)?;
            let input = calls.call_of(function)?.inputs.get(position)?;
            origin(&all, input).map(|(node, _)| node)
        };
        add_tables(&nodes, &by_name, &positions, handle, &mut found.tables);
    }
    Some(found)
}

/// Adds the tensors that these nodes restore.
fn restored_by<'n>(
    run: &[&'n Node],
    nodes: &ByName<'n>,
    found: &mut RestoredTensors,
) -> Option<Positions<'n>> {
    let mut positions = Positions::new();
    for node in run {
        match node.operation.as_slice() {
            b"RestoreV2" => {
                let start = found.tensors.len();
                add_tensors(node, nodes, &mut found.tensors)?;
                positions.insert(&node.name, start..found.tensors.len());
            }
            // Operations of the first releases, which read only files of that time.
            b"Restore" | b"RestoreSlice" => return None,
            _ => {}
        }
    }
    for node in run {
        if let Some((input, fit)) = fit_of(node, nodes)
            && let Some(position) = position_behind(nodes, &positions, input)
            && let Some(tensor) = found.tensors.get_mut(position)
        {
            tensor.fit = fit;
        }
    }
    Some(positions)
}

/// Returns the restored tensor that is an input of a node, and the shape that the node requires of
/// it.
fn fit_of<'n>(node: &'n Node, nodes: &ByName<'n>) -> Option<(&'n [u8], Fit)> {
    match (node.operation.as_slice(), node.inputs.as_slice()) {
        (b"Assign", [variable, value, ..]) if node.validates_shape != Some(false) => {
            let (variable, _) = origin(nodes, variable)?;
            let sizes = variable.shape.as_ref()?.known()?.to_vec();
            Some((value, Fit::Shape(sizes)))
        }
        (b"Reshape", [value, shape, ..]) => {
            let (shape, _) = origin(nodes, shape)?;
            let sizes = shape.constant.as_ref()?.all_numbers()?;
            let product = |all: i64, size: &i64| all.checked_mul(*size).filter(|_| *size >= 0);
            Some((value, Fit::Elements(sizes.iter().try_fold(1, product)?)))
        }
        _ => None,
    }
}

/// Adds the tensors that one node restores.
fn add_tensors<'n>(
    node: &'n Node,
    nodes: &ByName<'n>,
    tensors: &mut Vec<RestoredTensor>,
) -> Option<()> {
    let [_, names, slices, ..] = node.inputs.as_slice() else { return None };
    let texts = |input: &'n [u8]| origin(nodes, input)?.0.constant.as_ref()?.all_texts();
    let (names, slices) = (texts(names)?, texts(slices)?);
    if names.len() != slices.len() || names.len() != node.types.len() {
        return None;
    }
    for ((name, slice), data_type) in names.into_iter().zip(slices).zip(&node.types) {
        tensors.push(RestoredTensor { name, slice, data_type: *data_type, fit: Fit::Any });
    }
    Some(())
}

/// Returns the position of the restored tensor that an input leads to.
fn position_behind<'n>(
    nodes: &ByName<'n>,
    positions: &Positions<'n>,
    input: &'n [u8],
) -> Option<usize> {
    let (node, output) = origin(nodes, input)?;
    let of_node = positions.get(node.name.as_slice())?;
    of_node.start.checked_add(output).filter(|position| *position < of_node.end)
}

/// Adds the tables that these nodes fill.
fn add_tables<'n>(
    run: &[&'n Node],
    nodes: &ByName<'n>,
    positions: &Positions<'n>,
    handle_of: impl Fn(&[u8]) -> Option<&'n Node>,
    tables: &mut Vec<RestoredTable>,
) {
    for node in run.iter().filter(|node| node.operation == b"LookupTableImportV2") {
        let [handle, keys, values, ..] = node.inputs.as_slice() else { continue };
        let table = handle_of(node_name(handle));
        let shape = match table.map(|node| node.operation.as_slice()) {
            Some(b"MutableHashTableV2") => TableShape::Scalars,
            Some(b"MutableHashTableOfTensorsV2") => {
                let sizes = table.and_then(|node| node.shape.as_ref()?.known());
                TableShape::Values(sizes.map(<[i64]>::to_vec))
            }
            Some(b"MutableDenseHashTableV2") => TableShape::Rows,
            _ => TableShape::Unknown,
        };
        let position = |input| position_behind(nodes, positions, input);
        if let Some((keys, values)) = position(keys).zip(position(values)) {
            tables.push(RestoredTable { keys, values, shape });
        }
    }
}
