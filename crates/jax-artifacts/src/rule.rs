//! Rules, by which programs tell reasons and warnings apart.

use std::fmt::{self, Display, Formatter};

/// Why a file is refused or warned about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// A version, code or number that came after the release.
    TooNew,
    /// A file, version or form that the release no longer reads.
    TooOld,
    /// An operation that the release does not have.
    UnknownOp,
    /// A type of Python that the release does not make: a node of a tree, an effect.
    MissingType,
    /// Something that this release does not take, and others do.
    ReleaseRefuses,
    /// Bytes that no release reads.
    Corrupt,
    /// The file loads, and every call of its function is refused. A warning.
    NotCallable,
    /// The file loads, and a call ends the process. A warning.
    CallCrashes,
    /// The file loads, and its derivative does not. A warning.
    DerivativeRefused,
    /// A custom call of which jax promises nothing. A warning.
    CustomCall,
    /// A newer release refuses the file. A warning.
    Expires,
}

impl Rule {
    /// Every rule.
    pub const ALL: &'static [Self] = &[
        Self::TooNew,
        Self::TooOld,
        Self::UnknownOp,
        Self::MissingType,
        Self::ReleaseRefuses,
        Self::Corrupt,
        Self::NotCallable,
        Self::CallCrashes,
        Self::DerivativeRefused,
        Self::CustomCall,
        Self::Expires,
    ];

    /// Returns the id, for programs.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::TooNew => "too_new",
            Self::TooOld => "too_old",
            Self::UnknownOp => "unknown_op",
            Self::MissingType => "missing_type",
            Self::ReleaseRefuses => "release_refuses",
            Self::Corrupt => "corrupt",
            Self::NotCallable => "not_callable",
            Self::CallCrashes => "call_crashes",
            Self::DerivativeRefused => "derivative_refused",
            Self::CustomCall => "custom_call",
            Self::Expires => "expires",
        }
    }
}

impl Display for Rule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}
