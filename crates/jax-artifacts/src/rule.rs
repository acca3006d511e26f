//! Rules, by which programs distinguish reasons and warnings.

use std::fmt::{self, Display, Formatter};

/// The reason why a file is refused or warned about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// A version, code or number that is newer than the release.
    TooNew,
    /// A file, version or form that the release no longer reads.
    TooOld,
    /// An operation that the release does not have.
    UnknownOp,
    /// A Python type that the release cannot create: a tree node, an effect.
    MissingType,
    /// Something that this release does not accept, but others do.
    ReleaseRefuses,
    /// Bytes that no release reads.
    Corrupt,
    /// The file loads, and every call of its function is refused. A warning.
    NotCallable,
    /// The file loads, and a call ends the process. A warning.
    CallCrashes,
    /// The file loads, and its derivative does not. A warning.
    DerivativeRefused,
    /// A custom call without a compatibility promise by jax. A warning.
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

    /// Returns the id of the rule, for programs.
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
