//! Arguments of `inspect`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `inspect`.
#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    /// A file, a saved model's folder, a checkpoint prefix, or `-`.
    pub(crate) path: PathBuf,
    /// Kind of the input, where its name and content do not say; of a bare message of IFRT its
    /// type: ArraySpec, Shape, DType, HloSharding and the like.
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// Show of a SavedModel what `saved_model_cli show --all` lists: each signature with its
    /// inputs and outputs, the functions, the assets, the fingerprint and the types of operations.
    #[arg(long)]
    pub(crate) signatures: bool,
}
