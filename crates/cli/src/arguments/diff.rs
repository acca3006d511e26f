//! Arguments of `diff`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// One side: any source of tensors, or `-` for standard input.
    pub(crate) a: PathBuf,
    /// The other side.
    pub(crate) b: PathBuf,
    /// Tolerance for numbers relative to the size of B's; 0 unless it is given.
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    pub(crate) rtol: Option<f64>,
    /// Absolute tolerance for numbers, in addition; 0 unless it is given.
    #[arg(long, value_name = "Y", allow_hyphen_values = true)]
    pub(crate) atol: Option<f64>,
    /// Kind of standard input, where its first bytes do not say: safetensors, npy, npz or
    /// device_state.
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
}
