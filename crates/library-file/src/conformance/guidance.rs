//! Guidance on behaviours: how much hosts rest on one, where it is written, and how a plug-in is
//! mended.

/// The weight of a behaviour for hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The C API demands it, and hosts rest on it.
    Required,
    /// A careful plug-in does it with input that no correct host gives.
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
    /// Its weight for hosts.
    pub class: Class,
    /// The place in a header that demands it.
    pub written: &'static str,
    /// The change for a plug-in that does not do it.
    pub remedy: &'static str,
}

/// The guidance on several behaviours of one subject.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Their names; one that ends in `*` stands for all that begin so.
    pub names: &'static [&'static str],
    /// The guidance.
    pub guidance: Guidance,
}

impl Row {
    /// Returns a row of behaviours that hosts rest on.
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
