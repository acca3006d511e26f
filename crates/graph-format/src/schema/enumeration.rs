//! An enumeration of TensorFlow's messages.
//!
//! Does not depend on the table of enumerations.

/// An enumeration: names and their numbers.
#[derive(Debug)]
pub struct EnumType {
    values: &'static [(&'static str, i32)],
}

impl EnumType {
    /// Creates an enumeration with these values.
    pub(super) const fn new(values: &'static [(&'static str, i32)]) -> Self {
        Self { values }
    }

    /// Returns the number of a name, if the enumeration has it.
    pub fn number(&self, name: &str) -> Option<i32> {
        self.values.iter().find(|value| value.0 == name).map(|value| value.1)
    }

    /// Returns the name of a number, if the enumeration has it.
    pub fn name(&self, number: i32) -> Option<&'static str> {
        self.values.iter().find(|value| value.1 == number).map(|value| value.0)
    }
}
