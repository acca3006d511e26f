//! The rule by which a plug-in checks the struct size that a caller declares.

use super::slots::{CallRecord, Slots};
use crate::SizeRule;

/// Finds the rule by calling a function without inputs, with its own size and with a larger one.
pub(crate) fn size_rule(slots: &Slots) -> SizeRule {
    const CALL: &str = "PJRT_Plugin_Attributes";
    let Some((_, own)) = slots.calls().find(|(name, _)| *name == CALL) else {
        return SizeRule::AtLeast;
    };
    let is_taken = |struct_size: usize| {
        // SAFETY: the function has no input but the size, and the record has space for its output
        // in the newest layout, regardless of the declared size.
        let answer = unsafe { slots.call(&CALL, &mut CallRecord::new(own + LONGER), struct_size) };
        !matches!(answer, Err(error) if !error.is_unsupported())
    };
    if is_taken(own) && !is_taken(own + LONGER) { SizeRule::Equal } else { SizeRule::AtLeast }
}

/// The number of bytes by which a declared size is increased.
pub(crate) const LONGER: usize = 8;
