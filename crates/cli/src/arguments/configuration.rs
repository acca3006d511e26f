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
}
