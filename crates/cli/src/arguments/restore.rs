//! Arguments of `restore`.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::{DeviceArguments, SyncMode};

/// Arguments of `restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// The state file, or `-` for standard input.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) device: DeviceArguments,
    /// Read the device back into this file: .safetensors, .npy, .npz, .sds, any other name the
    /// prefix of a V2 checkpoint. Or `-` for standard output.
    #[arg(long, value_name = "FILE2")]
    pub(crate) to: Option<PathBuf>,
    /// Kind to write to standard output: safetensors (the default), npy or device_state.
    #[arg(long, value_name = "KIND", requires = "to")]
    pub(crate) to_kind: Option<String>,
    /// The version that the reader of a state at FILE2 understands: current, week-4-old, minimum, or
    /// a number of the IFRT SerDes line, at which the container is written as builds of that
    /// number's day read it.
    #[arg(
        long,
        value_name = "VERSION",
        default_value = "current",
        requires = "to",
        allow_hyphen_values = true
    )]
    pub(crate) serdes_version: String,
    /// Only tensors whose name matches; may be repeated.
    #[arg(long, value_name = "GLOB")]
    pub(crate) only: Vec<String>,
    /// Take what is whole from a truncated or damaged state, and say what is not.
    #[arg(long)]
    pub(crate) salvage: bool,
    /// Read FILE past the system's page cache, which spares the cache and is slower; through it,
    /// with a warning, where the file system refuses.
    #[arg(long, conflicts_with = "salvage")]
    pub(crate) direct: bool,
    /// Say if the types, the memory and the mesh of the state fit the devices of the plug-in, and move
    /// nothing: status 0 if they do as it was saved, 1 if not.
    #[arg(long, conflicts_with_all = ["to", "salvage", "direct"])]
    pub(crate) dry_run: bool,
    /// When the command counts FILE2 as written.
    #[arg(long, value_enum, default_value_t = SyncMode::Data)]
    pub(crate) sync: SyncMode,
}
