//! Guidance on behaviours: their importance for hosts, their source in a header, and the remedy for
//! a plug-in.

/// The importance of a behaviour for hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The C API requires it, and hosts rely on it.
    Required,
    /// A careful plug-in handles input that no correct host passes.
    Robust,
}

impl Class {
    /// Returns `required` or `robust`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Robust => "robust",
        }
    }
}

/// The guidance on a behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guidance {
    /// The importance for hosts.
    pub class: Class,
    /// The position in a header that requires it.
    pub written: &'static str,
    /// The change for a plug-in that does not do it.
    pub remedy: &'static str,
}

/// The guidance on several related behaviours.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The names of the behaviours; a name that ends in `*` matches all names with this prefix.
    pub names: &'static [&'static str],
    /// The guidance.
    pub guidance: Guidance,
}

impl Row {
    /// Returns a row of behaviours that hosts rely on.
    #[must_use]
    pub const fn required(
        names: &'static [&'static str],
        written: &'static str,
        remedy: &'static str,
    ) -> Self {
        Self { names, guidance: Guidance { class: Class::Required, written, remedy } }
    }

    /// Returns a row of behaviours of careful plug-ins.
    #[must_use]
    pub const fn robust(
        names: &'static [&'static str],
        written: &'static str,
        remedy: &'static str,
    ) -> Self {
        Self { names, guidance: Guidance { class: Class::Robust, written, remedy } }
    }

    fn is_about(&self, behaviour: &str) -> bool {
        self.names.iter().any(|name| match name.strip_suffix('*') {
            Some(beginning) => behaviour.starts_with(beginning),
            None => *name == behaviour,
        })
    }
}

/// Returns the guidance on a behaviour among `rows`.
#[must_use]
pub fn guidance_among(rows: &[Row], behaviour: &str) -> Option<Guidance> {
    rows.iter().find(|row| row.is_about(behaviour)).map(|row| row.guidance)
}
