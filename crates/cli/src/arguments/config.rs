//! Arguments of `config`, and those of every command that reads `serdes.toml`.

use std::path::PathBuf;

use clap::Args;

use super::CheckArguments;

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

/// Arguments of `config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    /// Print the JSON schema of serdes.toml, for editors.
    #[arg(long)]
    pub(crate) schema: bool,
    #[command(flatten)]
    pub(crate) check: CheckArguments,
}
