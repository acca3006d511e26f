//! Contents of a file that cannot be read.

/// A tensor or a value of a source that a device state cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// Name of the tensor or value.
    pub name: String,
    /// The reason, with the type as the file names it.
    pub reason: String,
}

impl Refused {
    /// Creates a refusal from the name and the reason.
    pub fn new(name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { name: name.into(), reason: reason.into() }
    }
}
