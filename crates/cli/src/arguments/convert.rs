//! Arguments of `convert`.

use std::path::PathBuf;

use clap::Args;

use crate::numbers::plain_number;

use crate::arguments::SyncMode;

/// Arguments of `convert`.
#[derive(Debug, Args)]
pub(crate) struct ConvertArguments {
    /// First what is read, one or several: .pt, .pth, .safetensors, .safetensors.index.json, .npz, .npy, .sds, the prefix
    /// of a TensorFlow V2 checkpoint, or `-` for standard input; and last, what is written:
    /// .sds, .safetensors, .npz, .npy, the prefix of a checkpoint, or `-` for standard output.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Path of the output; without this it is the last of the paths.
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// Write a portable artifact of StableHLO for readers of this version, 1.0 or later, where
    /// nothing is lost.
    #[arg(long, value_name = "VERSION")]
    pub(crate) to_stablehlo: Option<String>,
    /// Write a message of IFRT as readers of this version understand it: current, week-4-old,
    /// minimum, or a number of the IFRT SerDes line. A bare message needs its type, as --kind
    /// ArraySpec; a serialized value names its own.
    #[arg(
        long,
        value_name = "VERSION",
        conflicts_with = "to_stablehlo",
        allow_hyphen_values = true
    )]
    pub(crate) to_serdes: Option<String>,
    /// Kind of standard input, where its first bytes do not say: torch, safetensors, npy, npz or
    /// device_state; with --to-serdes the type of a bare message of IFRT.
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// Kind to write to standard output: device_state (the default), safetensors or npy.
    #[arg(long, value_name = "KIND")]
    pub(crate) to_kind: Option<String>,
    /// Only tensors whose name matches; may be repeated.
    #[arg(long, value_name = "GLOB")]
    pub(crate) only: Vec<String>,
    /// Write safetensors files of at most this number of bytes of tensors each, and their index;
    /// also with kB, MB, GB, KiB, MiB or GiB behind the number.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) shard_bytes: Option<u64>,
    /// The version that the reader of a state understands: current, week-4-old, minimum, or a
    /// number of the IFRT SerDes line, at which the container is written as builds of that number's
    /// day read it.
    #[arg(long, value_name = "VERSION", default_value = "current", allow_hyphen_values = true)]
    pub(crate) serdes_version: String,
    /// When the command counts the file as written.
    #[arg(long, value_enum, default_value_t = SyncMode::Data)]
    pub(crate) sync: SyncMode,
    /// Leave out what is no tensor of numbers or strings, and what the target cannot hold of types,
    /// instead of refusing.
    #[arg(long)]
    pub(crate) skip_unsupported: bool,
}

/// Units behind a number of bytes, each with its size in bytes.
const UNITS: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// Returns a number of bytes, 1 or more.
fn parse_bytes(text: &str) -> Result<u64, String> {
    let unit = UNITS.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)));
    let (number, unit) = unit.unwrap_or((text, 1));
    let bytes = plain_number::<u64>(number.trim_end()).and_then(|number| number.checked_mul(unit));
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "expected a number of bytes, 1 or more, as 5GB or 1073741824".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_in_the_units_that_people_write() {
        assert_eq!(parse_bytes("1073741824"), Ok(1 << 30));
        assert_eq!(parse_bytes("5GB"), Ok(5_000_000_000));
        assert_eq!(parse_bytes("2 GiB"), Ok(2 << 30));
        assert_eq!(parse_bytes("3kB"), Ok(3000));
        for text in ["", "0", "+5", "+5GB", "GB", "-1", "1.5GB", "1TB", "99999999999GiB", "0KiB"] {
            assert!(parse_bytes(text).is_err(), "{text:?}");
        }
    }
}
