//! Arguments of `save`.

use std::path::PathBuf;

use clap::{Args, builder::NonEmptyStringValueParser};

use crate::arguments::{DeviceArguments, SyncMode};

/// Arguments of `save`.
#[derive(Debug, Args)]
pub(crate) struct SaveArguments {
    /// Tensors: .safetensors, a TensorFlow V2 checkpoint prefix, .npy, .npz, a state file, or `-`
    /// for standard input.
    #[arg(long, required = true, value_name = "SOURCE")]
    pub(crate) from: Vec<PathBuf>,
    /// Kind of standard input, where its first bytes do not say: safetensors, npy, npz or
    /// device_state.
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// The state file; replaced as a whole or not at all. Or `-` for standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Write one part of a state that N processes save together, counted from 0: 0/4 to 3/4.
    /// `serdes merge` makes the state of them.
    #[arg(long, value_name = "K/N", requires = "id")]
    pub(crate) part: Option<String>,
    /// The processes' name for this save: the same text for all parts, another for every attempt.
    #[arg(long, value_name = "ID", requires = "part", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) device: DeviceArguments,
    /// The version that the reader understands: current, week-4-old, minimum, or a number of the
    /// IFRT SerDes line, at which the container is written as builds of that number's day read it.
    #[arg(long, value_name = "VERSION", default_value = "current", allow_hyphen_values = true)]
    pub(crate) serdes_version: String,
    /// When the command counts the file as written.
    #[arg(long, value_enum, default_value_t = SyncMode::Data)]
    pub(crate) sync: SyncMode,
    /// Write past the system's page cache; through it, with a warning, where the file system
    /// refuses.
    #[arg(long)]
    pub(crate) direct: bool,
    /// Leave out tensors whose type has no IFRT name instead of refusing.
    #[arg(long)]
    pub(crate) skip_unsupported: bool,
}
