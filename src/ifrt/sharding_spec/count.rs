//! The number of shards of a spec.

use crate::ifrt::IfrtError;

/// Returns the number of shards as the messages carry it.
pub(super) fn count(shards: usize) -> Result<i32, IfrtError> {
    let overflow = IfrtError::Overflow { what: "the number of shards", bits: 31 };
    i32::try_from(shards).map_err(|_| overflow)
}

/// Fails if the number of shards is negative.
pub(super) fn require_count(shards: i32) -> Result<(), IfrtError> {
    if shards < 0 {
        return Err(IfrtError::Invalid(format!("found {shards} shards; expected 0 or more")));
    }
    Ok(())
}
