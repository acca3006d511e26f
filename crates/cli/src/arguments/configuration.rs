//! Options about `serdes.toml`.

use std::path::PathBuf;

use clap::Args;

/// Options about `serdes.toml`.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ConfigurationArguments {
    /// The configuration, in place of the serdes.toml of the working directory or the nearest one
    /// above it.
    #[arg(long, value_name = "FILE", conflicts_with = "no_config")]
    pub(crate) config: Option<PathBuf>,
    /// Read no serdes.toml.
    #[arg(long)]
    pub(crate) no_config: bool,
    /// Leave warnings as they are, where serdes.toml has `strict = true`.
    #[arg(long, overrides_with = "strict")]
    pub(crate) no_strict: bool,
    /// Take files of no kind that is judged, where serdes.toml has `require-known = true`.
    #[arg(long, overrides_with = "require_known")]
    pub(crate) no_require_known: bool,
}
