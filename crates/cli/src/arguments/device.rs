//! Options of `save` and `restore` for the device, and for the durability of files.

use clap::{Args, ValueEnum};

use crate::numbers::whole_number;

/// Options for the device.
#[derive(Debug, Args)]
pub(crate) struct DeviceArguments {
    /// A shared library of a StreamExecutor or a PJRT plug-in, the latter with options of its
    /// client if need be: PATH[:KEY=VALUE,...]; or the embedded reference plug-in:
    /// host[:devices=N,memory=BYTES].
    #[arg(long, value_name = "PLUGIN", default_value = "host")]
    pub(crate) plugin: String,
    /// The ordinal of the device.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole_number::<i32>)]
    pub(crate) device: i32,
    /// The layout of the library, instead of the detected one.
    #[arg(long, value_name = "NAME")]
    pub(crate) layout: Option<String>,
}

/// Durability of written files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SyncMode {
    /// The data and the folder are on the disk before the command ends.
    Data,
    /// The system writes when it likes.
    None,
}
