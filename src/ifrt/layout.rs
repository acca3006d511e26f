//! Layouts: the order of array dimensions in memory, and the envelope that holds any registered
//! layout.

mod compact;
mod pjrt;

use std::fmt;

pub use compact::CompactLayout;
pub use pjrt::PjRtLayout;

use super::{IfrtError, kinds::kinds};
use crate::proto::xla::ifrt;

kinds! {
    ($) by for_each_kind
    /// Any layout (`xla::ifrt::Layout`). The envelope has no version; the layout inside has.
    enum Layout {
        /// A dense layout.
        Compact(CompactLayout),
        /// A layout in the form of XLA.
        PjRt(PjRtLayout),
    }
    /// The envelope has no version: the layout inside is written at the requested one.
    ToProto,
    /// The envelope has no version: the layout inside says its own. No options are needed.
    FromProto as ifrt::LayoutProto
}

/// Fails unless `values` holds each of 0 to n - 1 once.
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

#[cfg(test)]
mod tests;
