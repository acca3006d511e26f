//! Report of `save` and `convert` on lost values: attributes, keys that are not text, values that
//! the target cannot hold.

use serde_json::{Value, json};
use serdes_tensors::Refused;

use crate::terminal::Terminal;

/// Maximum number of lines, after which the rest is only counted; `--json` lists all.
const LISTED: usize = 20;

/// Prints a warning for each lost value, with the reason.
pub(crate) fn warn(left_out: &[Refused], terminal: &mut Terminal) {
    for Refused { name, reason, .. } in left_out.iter().take(LISTED) {
        terminal.warning(format_args!("{name:?}: {reason}"));
    }
    if let Some(more) = left_out.len().checked_sub(LISTED).filter(|more| *more > 0) {
        terminal.warning(format_args!("{more} more are not kept; --json lists all"));
    }
}

/// Returns a JSON object of the lost values' names with the reasons.
pub(crate) fn object(left_out: &[Refused]) -> Value {
    left_out.iter().map(|one| json!({ "name": one.name, "reason": one.reason })).collect()
}
