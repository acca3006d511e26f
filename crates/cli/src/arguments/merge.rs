//! Arguments of `merge`.

use std::path::PathBuf;

use clap::{Args, builder::NonEmptyStringValueParser};

use crate::arguments::SyncMode;

/// Arguments of `merge`.
#[derive(Debug, Args)]
pub(crate) struct MergeArguments {
    /// The state, as the processes named it with `-o`.
    pub(crate) name: PathBuf,
    /// The processes' name for their save.
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) id: String,
    /// When the command counts the state as written.
    #[arg(long, value_enum, default_value_t = SyncMode::Data)]
    pub(crate) sync: SyncMode,
}
