//! Arguments of `matrix`.

use clap::{Args, ValueEnum};

/// Arguments of `matrix`.
#[derive(Debug, Args)]
pub(crate) struct MatrixArguments {
    /// The form of the page; json is that of `--json`.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = MatrixFormat::Text)]
    pub(crate) format: MatrixFormat,
}

/// The form of a page of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MatrixFormat {
    /// For people.
    Text,
    /// Tables of Markdown.
    Markdown,
    /// A page of HTML.
    Html,
    /// One object a row.
    Json,
}
