//! Contents of a file that cannot be read from it.

/// A tensor or a value of a source that no device state can hold.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// Its name.
    pub name: String,
    /// Why, with the type as the file calls it.
    pub reason: String,
}

impl Refused {
    /// Creates the tensor of that name, and why no state can hold it.
    pub fn new(name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { name: name.into(), reason: reason.into() }
    }
}
