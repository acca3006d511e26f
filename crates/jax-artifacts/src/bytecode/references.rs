//! References of operations to attributes and types, and the reasons why reading stops.

use super::cursor::{Cursor, Damage, Result};

/// The kind of attribute that a reference requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Any attribute.
    Anything,
    /// A location.
    Location,
    /// A string.
    Text,
    /// A dictionary.
    Dictionary,
}

/// A code that no reader knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCode {
    pub(crate) dialect: String,
    pub(crate) is_type: bool,
    pub(crate) code: u64,
    pub(crate) at: usize,
}

/// The reason why reading stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Bytes that mean nothing.
    Damaged(Damage),
    /// A code of an attribute or type that no reader knows.
    UnknownCode(UnknownCode),
}

impl From<Damage> for Stop {
    fn from(damage: Damage) -> Self {
        Self::Damaged(damage)
    }
}

/// The attributes and types that operations refer to.
pub trait References<'a> {
    /// Reads the number of an attribute.
    ///
    /// # Errors
    /// [`Stop`] if there is none of that number, or it is not as it should be.
    fn attribute(&mut self, cursor: &mut Cursor<'a>, wanted: Wanted) -> Result<usize, Stop>;

    /// Takes the number of a type, which was read at the cursor.
    ///
    /// # Errors
    /// As [`attribute`](Self::attribute).
    fn type_of(&mut self, index: u64, cursor: &Cursor<'a>) -> Result<usize, Stop>;
}
