//! Arguments of `explain`.

use clap::Args;

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// The id of the rule, in letters of any size; without it the rules are listed.
    pub(crate) rule: Option<String>,
}
