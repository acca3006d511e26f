//! The rule by which a plug-in checks the struct size that a caller declares.

use super::slots::{CallRecord, Slots};
use crate::SizeRule;

/// Calls a function that takes nothing with its own size and with more.
pub(crate) fn size_rule(slots: &Slots) -> SizeRule {
    const CALL: &str = "PJRT_Plugin_Attributes";
    let Some((_, own)) = slots.calls().find(|(name, _)| *name == CALL) else {
        return SizeRule::AtLeast;
    };
    let is_taken = |struct_size: usize| {
        // SAFETY: the function takes nothing but the size, and the record has room for what it
        // writes, in the newest layout, whatever is declared.
        let answer = unsafe { slots.call(&CALL, &mut CallRecord::new(own + LONGER), struct_size) };
        !matches!(answer, Err(error) if !error.is_unsupported())
    };
    if is_taken(own) && !is_taken(own + LONGER) { SizeRule::Equal } else { SizeRule::AtLeast }
}

/// By how much a struct is declared longer, in bytes.
pub(crate) const LONGER: usize = 8;
