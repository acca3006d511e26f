//! The kinds of memory that arrays live in, by name.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use crate::wire::BackwardWriter;

/// The kind of memory that an array lives in, such as `device` or `pinned_host`; unset for the
/// default of the devices.
///
/// A kind that is set to an empty name differs from an unset one, also in messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(from = "Option<String>", into = "Option<String>"))]
pub struct MemoryKind(Option<Name>);

/// Names that nearly every array has, which are not allocated, and all others.
#[derive(Clone)]
enum Name {
    Known(&'static str),
    Other(Arc<str>),
}

/// The kinds of memory that clients of JAX have.
const KNOWN: [&str; 3] = ["device", "pinned_host", "unpinned_host"];

impl Name {
    fn new(name: &str) -> Self {
        match KNOWN.into_iter().find(|known| *known == name) {
            Some(known) => Self::Known(known),
            None => Self::Other(name.into()),
        }
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Known(name) => name,
            Self::Other(name) => name,
        }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl MemoryKind {
    /// Creates the kind with this name.
    pub fn new(name: impl AsRef<str>) -> Self {
        Self(Some(Name::new(name.as_ref())))
    }

    /// Returns the default kind of the devices.
    pub const fn unset() -> Self {
        Self(None)
    }

    /// Returns the name; `None` for the default kind of the devices.
    pub fn name(&self) -> Option<&str> {
        self.0.as_ref().map(Name::as_str)
    }

    /// Returns true if a name is set.
    pub const fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// Returns this kind, or `default_kind` of the devices if it is unset.
    #[must_use]
    pub fn canonical(self, default_kind: &Self) -> Self {
        if self.is_set() { self } else { default_kind.clone() }
    }

    /// Writes the name as the field with this number, if a name is set.
    pub(super) fn write(&self, field: u32, out: &mut BackwardWriter) {
        if let Some(name) = self.name() {
            out.bytes(field, name.as_bytes());
        }
    }

    pub(super) fn to_message(&self) -> Option<String> {
        self.name().map(str::to_owned)
    }

    pub(super) fn from_message(name: Option<&str>) -> Self {
        Self(name.map(Name::new))
    }
}

impl From<Option<String>> for MemoryKind {
    fn from(name: Option<String>) -> Self {
        Self::from_message(name.as_deref())
    }
}

impl From<MemoryKind> for Option<String> {
    fn from(kind: MemoryKind) -> Self {
        kind.to_message()
    }
}

impl From<&str> for MemoryKind {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

/// Formats as the name, or as `(default)`.
impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name().unwrap_or("(default)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_name_is_not_the_default() {
        assert_ne!(MemoryKind::new(""), MemoryKind::unset());
        assert_eq!(MemoryKind::unset().to_message(), None);
        assert_eq!(MemoryKind::new("").to_message(), Some(String::new()));
        assert_eq!(MemoryKind::from_message(Some("")), MemoryKind::new(""));
    }

    #[test]
    fn known_and_other_names_are_compared_by_their_text() {
        let mut kinds =
            ["pinned_host", "tpu_hbm", "device", "", "unpinned_host"].map(MemoryKind::new);
        kinds.sort();
        let names: Vec<_> = kinds.iter().map(|kind| kind.name().unwrap()).collect();
        assert_eq!(names, ["", "device", "pinned_host", "tpu_hbm", "unpinned_host"]);
        assert_eq!(MemoryKind::from(Some("device".to_owned())), MemoryKind::new("device"));
        assert_eq!(format!("{:?}", MemoryKind::new("device")), "MemoryKind(Some(\"device\"))");
    }

    #[test]
    fn an_unset_kind_becomes_that_of_the_devices() {
        let device = MemoryKind::new("device");
        assert_eq!(MemoryKind::unset().canonical(&device), device);
        assert_eq!(MemoryKind::new("").canonical(&device), MemoryKind::new(""));
    }
}
