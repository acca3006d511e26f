//! Orders of dimensions.

use std::fmt;

use super::IfrtError;

/// Fails unless `values` contains each of 0 to n - 1 once.
pub(in crate::ifrt) fn check_permutation<T>(field: &str, values: &[T]) -> Result<(), IfrtError>
where
    T: Copy + fmt::Debug + TryInto<usize>,
{
    let mut seen = vec![false; values.len()];
    for value in values {
        let place = (*value).try_into().ok().and_then(|index| seen.get_mut(index));
        match place {
            Some(seen) if !*seen => *seen = true,
            _ => {
                return Err(IfrtError::Invalid(format!(
                    "{field} is {values:?}; with {} dimensions it must hold each of 0 to {} once",
                    values.len(),
                    values.len().saturating_sub(1),
                )));
            }
        }
    }
    Ok(())
}
