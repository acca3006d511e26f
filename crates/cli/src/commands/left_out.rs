//! Report of `save` and `convert` on values that are not kept with the tensors: attributes, keys
//! that are no texts, values that have no place in the target.

use serde_json::{Value, json};
use serdes_tensors::Refused;

use crate::terminal::Terminal;

/// Lines before the rest is only counted; with `--json` all of it is listed.
const LISTED: usize = 20;

/// Prints a warning for each value that was not kept, with the reason.
pub(crate) fn warn(left_out: &[Refused], terminal: &mut Terminal) {
    for Refused { name, reason, .. } in left_out.iter().take(LISTED) {
        terminal.warning(format_args!("{name:?}: {reason}"));
    }
    if let Some(more) = left_out.len().checked_sub(LISTED).filter(|more| *more > 0) {
        terminal.warning(format_args!("{more} more are not kept; --json lists all"));
    }
}

/// JSON object with the name of each value that was not kept, and the reason.
pub(crate) fn object(left_out: &[Refused]) -> Value {
    left_out.iter().map(|one| json!({ "name": one.name, "reason": one.reason })).collect()
}
