//! Arguments of `config`.

use clap::Args;

use super::CheckArguments;

/// Arguments of `config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    /// Print the JSON schema of serdes.toml, for editors.
    #[arg(long)]
    pub(crate) schema: bool,
    #[command(flatten)]
    pub(crate) check: CheckArguments,
}
