//! The keys of `serdes.toml`.

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A list of texts.
    List,
    /// A text, or a list of them.
    Texts,
    /// `true` or `false`.
    Flag,
}

/// A key of the table `check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    /// `paths`.
    Paths,
    /// `exclude`.
    Exclude,
    /// `tensorflow`.
    Tensorflow,
    /// `jax`.
    Jax,
    /// `tags`.
    Tags,
    /// `strict`.
    Strict,
    /// `require-known`.
    RequireKnown,
    /// `custom-ops`.
    CustomOps,
}

impl Key {
    /// All keys, in the order in which they are shown.
    pub(super) const ALL: [Self; 8] = [
        Self::Paths,
        Self::Exclude,
        Self::Tensorflow,
        Self::Jax,
        Self::Tags,
        Self::Strict,
        Self::RequireKnown,
        Self::CustomOps,
    ];

    /// Returns the key's name in the file.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Paths => "paths",
            Self::Exclude => "exclude",
            Self::Tensorflow => "tensorflow",
            Self::Jax => "jax",
            Self::Tags => "tags",
            Self::Strict => "strict",
            Self::RequireKnown => "require-known",
            Self::CustomOps => "custom-ops",
        }
    }

    /// Returns the type of its value.
    pub(super) const fn form(self) -> Form {
        match self {
            Self::Paths | Self::Exclude | Self::Tags | Self::CustomOps => Form::List,
            Self::Tensorflow | Self::Jax => Form::Texts,
            Self::Strict | Self::RequireKnown => Form::Flag,
        }
    }
}

/// Key of the table of levels.
pub(super) const LEVELS: &str = "levels";
