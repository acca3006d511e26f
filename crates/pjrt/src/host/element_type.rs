//! The numbers of element types in calls of a plug-in.

use serdes_abi::pjrt::{ElementType, Minor};

use crate::PjrtError;

/// Returns the number of a type in calls of a plug-in of `minor`.
///
/// # Errors
/// [`PjrtError::InvalidArgument`] if `minor` does not have the type.
pub(super) fn number_of(element_type: ElementType, minor: Minor) -> Result<i32, PjrtError> {
    element_type.number_in(minor).ok_or_else(|| PjrtError::InvalidArgument {
        what: "the element type",
        found: element_type.name().to_owned(),
        expected: format!("one that PJRT {minor} knows: plug-ins crash on others"),
    })
}

/// Returns the type of a number that a call returned.
///
/// # Errors
/// [`PjrtError::BadAnswer`] if `minor` has no such type, or it has no data.
pub(super) fn of_answer(
    call: &'static str,
    number: i32,
    minor: Minor,
) -> Result<ElementType, PjrtError> {
    ElementType::of_number_in(number, minor).ok_or_else(|| PjrtError::BadAnswer {
        call,
        what: "an element type",
        found: number.to_string(),
        expected: "one of its version that has data",
    })
}
