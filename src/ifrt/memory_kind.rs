use std::{fmt, sync::Arc};

/// The kind of memory that an array lives in, such as `device` or `pinned_host`; unset for the default of the devices.
///
/// A kind that is set but empty is another value than an unset one, also on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(from = "Option<String>", into = "Option<String>"))]
pub struct MemoryKind(Option<Arc<str>>);

impl MemoryKind {
    /// The kind with this name.
    pub fn new(name: impl AsRef<str>) -> Self {
        Self(Some(name.as_ref().into()))
    }

    /// The default kind of the devices.
    pub const fn unset() -> Self {
        Self(None)
    }

    /// The name; `None` for the default kind of the devices.
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Whether a name is set.
    pub const fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// This kind, or `default_kind` of the devices if it is unset.
    #[must_use]
    pub fn canonical(self, default_kind: &Self) -> Self {
        if self.is_set() { self } else { default_kind.clone() }
    }

    pub(super) fn to_message(&self) -> Option<String> {
        self.name().map(str::to_owned)
    }

    pub(super) fn from_message(name: Option<&str>) -> Self {
        Self(name.map(Into::into))
    }
}

impl From<Option<String>> for MemoryKind {
    fn from(name: Option<String>) -> Self {
        Self(name.map(Into::into))
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

/// The name, or `(default)`.
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
    fn an_unset_kind_becomes_that_of_the_devices() {
        let device = MemoryKind::new("device");
        assert_eq!(MemoryKind::unset().canonical(&device), device);
        assert_eq!(MemoryKind::new("").canonical(&device), MemoryKind::new(""));
    }
}
