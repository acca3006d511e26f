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

/// An attribute or type code that no reader knows.
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
    /// Malformed bytes.
    Damaged(Damage),
    /// A code of an attribute or type that no reader knows.
    UnknownCode(UnknownCode),
}

impl From<Damage> for Stop {
    fn from(damage: Damage) -> Self {
        Self::Damaged(damage)
    }
}

/// A step of a walk into the regions of an operation, or out of them.
#[derive(Clone, Copy, Debug)]
pub enum Nesting<'a> {
    /// A block begins.
    Block {
        /// The number of the block's first argument among the values of the scope.
        first_argument: u64,
        /// Number of the block's arguments.
        arguments: u64,
        /// Type and location of each argument, starting with the first.
        types: Cursor<'a>,
    },
    /// A region with blocks ends.
    EndOfRegion,
    /// All regions of an operation end.
    EndOfRegions,
}

/// The attributes and types that operations refer to.
pub trait References<'a> {
    /// Reads the number of an attribute.
    ///
    /// # Errors
    /// [`Stop`] if there is no attribute of that number, or it is not of the required kind.
    fn attribute(&mut self, cursor: &mut Cursor<'a>, wanted: Wanted) -> Result<usize, Stop>;

    /// Takes the number of a type, which was read at the cursor.
    ///
    /// # Errors
    /// As [`attribute`](Self::attribute).
    fn type_of(&mut self, index: u64, cursor: &Cursor<'a>) -> Result<usize, Stop>;

    /// Takes a step into regions or out of them. The default does nothing.
    ///
    /// # Errors
    /// [`Stop`] to end the reading.
    fn nest(&mut self, step: Nesting<'a>) -> Result<(), Stop> {
        let _ = step;
        Ok(())
    }
}
