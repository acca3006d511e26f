//! The types of elements as numbers that cross to a plug-in and come back.

use serdes_abi::pjrt::{ElementType, Minor};

use crate::PjrtError;

/// Returns the number of a type in calls of a plug-in of that minor.
///
/// # Errors
/// [`PjrtError::InvalidArgument`] if that minor does not know the type.
pub(super) fn number_of(element_type: ElementType, minor: Minor) -> Result<i32, PjrtError> {
    element_type.number_in(minor).ok_or_else(|| PjrtError::InvalidArgument {
        what: "the element type",
        found: element_type.name().to_owned(),
        expected: format!("one that PJRT {minor} knows: plug-ins crash on others"),
    })
}

/// Returns the type of a number that a call gave.
///
/// # Errors
/// [`PjrtError::BadAnswer`] if there is none in that minor that has data.
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
