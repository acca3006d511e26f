//! Arguments of `ops`.

use clap::Args;

/// Arguments of `ops`.
#[derive(Debug, Args)]
pub(crate) struct OpsArguments {
    /// The release, such as 2.16 (patches of a release have the same operations).
    #[arg(value_name = "RELEASE")]
    pub(crate) release: String,
    /// An operation of it, or a newer or older release to compare it with.
    #[arg(value_name = "NAME|RELEASE")]
    pub(crate) other: Option<String>,
}
