//! Finds the tensors that a saver does not find in a checkpoint.

use std::collections::HashMap;

use serdes_graphs::graph::{Fit, RestoredTable, RestoredTensors, TableShape};

use super::{Checkpoint, RestoreError, error::shown};

/// Returns the reasons why a saver cannot restore, in the order of the tensors that it reads.
pub(crate) fn by_saver(restored: &RestoredTensors, checkpoint: &Checkpoint) -> Vec<RestoreError> {
    let lookup = checkpoint.lookup();
    let mut ascending: Vec<usize> = (0..restored.tensors.len()).collect();
    ascending.sort_by_key(|position| restored.tensors.get(*position).map(|tensor| &tensor.name));
    let mut errors: Vec<(usize, RestoreError)> = Vec::new();
    let mut shapes: HashMap<usize, Vec<i64>> = HashMap::new();
    for position in ascending {
        let Some(tensor) = restored.tensors.get(position) else { continue };
        let shape = lookup.restorable(&tensor.name, &tensor.slice, tensor.data_type);
        let fits = |shape: &[i64]| match &tensor.fit {
            Fit::Any => Ok(()),
            Fit::Shape(wanted) if wanted == shape => Ok(()),
            Fit::Shape(wanted) => Err(shown(wanted)),
            Fit::Elements(count) if elements(shape) == Some(*count) => Ok(()),
            Fit::Elements(count) => Err(format!("of {count} elements")),
        };
        match shape {
            Ok(shape) => {
                if let Err(expected) = fits(&shape) {
                    let name = String::from_utf8_lossy(&tensor.name).into_owned();
                    let found = shown(&shape);
                    errors.push((position, RestoreError::Shape { name, found, expected }));
                }
                shapes.insert(position, shape);
            }
            Err(error) => errors.push((position, error)),
        }
    }
    errors.sort_by_key(|(position, _)| *position);
    let mut errors: Vec<RestoreError> = errors.into_iter().map(|(_, error)| error).collect();
    let table = |table: &RestoredTable| {
        let (keys, values) = (shapes.get(&table.keys)?, shapes.get(&table.values)?);
        let name = String::from_utf8_lossy(&restored.tensors.get(table.values)?.name).into_owned();
        table_error(name, keys, values, &table.shape)
    };
    errors.extend(restored.tables.iter().filter_map(table));
    errors
}

/// Returns the reason why the values of a table do not match its keys, by their shapes.
pub(super) fn table_error(
    name: String,
    keys: &[i64],
    values: &[i64],
    shape: &TableShape,
) -> Option<RestoreError> {
    let fits = match shape {
        TableShape::Scalars => keys == values,
        TableShape::Values(sizes) => values
            .strip_prefix(keys)
            .is_some_and(|value| sizes.as_ref().is_none_or(|sizes| sizes == value)),
        TableShape::Rows => match (keys, values) {
            ([keys, _], [values, _]) => keys == values,
            _ => false,
        },
        TableShape::Unknown => keys.first() == values.first(),
    };
    let (found, expected) = (shown(values), format!("of a value for each key of {}", shown(keys)));
    (!fits).then_some(RestoreError::Shape { name, found, expected })
}

fn elements(shape: &[i64]) -> Option<i64> {
    shape.iter().try_fold(1_i64, |all, size| all.checked_mul(*size))
}
