//! References of operations to attributes and types, and the reasons why reading stops.

use crate::cursor::{Cursor, Damage, Result};

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
    /// The name of the dialect.
    pub dialect: String,
    /// True for a type, false for an attribute.
    pub is_type: bool,
    /// The code.
    pub code: u64,
    /// Position in the file, in bytes.
    pub at: usize,
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

/// A step of a walk over operations into the regions of one, or out of them.
#[derive(Clone, Copy, Debug)]
pub enum Nesting<'a> {
    /// A block begins.
    Block {
        /// The number of its first argument among the values of the scope.
        first_argument: u64,
        /// Number of its arguments.
        arguments: u64,
        /// Type and location of each, from the first on.
        types: Cursor<'a>,
    },
    /// A region with blocks is over.
    EndOfRegion,
    /// All regions of an operation are over.
    EndOfRegions,
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

    /// Takes a step into regions or out of them. Nothing is done by default.
    ///
    /// # Errors
    /// [`Stop`] where reading is to end.
    fn nest(&mut self, step: Nesting<'a>) -> Result<(), Stop> {
        let _ = step;
        Ok(())
    }
}
