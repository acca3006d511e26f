//! Detection of a file's format from its name or its bytes.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use serdes_checkpoints::{checkpoint_state::begins_like_state, table, tensor_bundle};
use serdes_device_state::MAGIC;
use serdes_files::{ReadAt, read_at::read_up_to};

use super::{Error, sharded, torch};

/// Number of bytes at the start of a file for detecting its format.
const HEAD: usize = 4096;

/// A format of tensor files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Form {
    /// A safetensors file.
    Safetensors,
    /// NumPy's npy: one tensor.
    Npy,
    /// NumPy's npz: an archive of npy files.
    Npz,
    /// A device state.
    DeviceState,
    /// A TensorFlow V2 checkpoint: several files, named by the prefix that they share.
    TensorBundle,
    /// A file of PyTorch's `torch.save`; read-only.
    Torch,
    /// The index of several files of tensors: `NAME.safetensors.index.json`.
    ShardIndex,
    /// A TensorFlow V1 checkpoint: a file, or files that match a pattern; read-only.
    CheckpointV1,
    /// TensorFlow's list of the checkpoints in a folder, of which the newest is read.
    CheckpointState,
}

impl Form {
    /// Every form.
    pub const ALL: &'static [Self] = &[
        Self::Safetensors,
        Self::Npy,
        Self::Npz,
        Self::DeviceState,
        Self::TensorBundle,
        Self::Torch,
        Self::ShardIndex,
        Self::CheckpointV1,
        Self::CheckpointState,
    ];

    /// Returns `safetensors`, `npy`, `npz`, `device_state`, `tensor_bundle`, `torch`,
    /// `shard_index`, `checkpoint_v1` or `checkpoint_state`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Safetensors => "safetensors",
            Self::Npy => "npy",
            Self::Npz => "npz",
            Self::DeviceState => "device_state",
            Self::TensorBundle => "tensor_bundle",
            Self::Torch => "torch",
            Self::ShardIndex => "shard_index",
            Self::CheckpointV1 => "checkpoint_v1",
            Self::CheckpointState => "checkpoint_state",
        }
    }

    /// Returns the format for the name of a path; a name without a known suffix is the prefix of a
    /// checkpoint, which is not a file.
    pub(super) fn of_name(path: &Path) -> Self {
        if sharded::is_index(path) {
            return Self::ShardIndex;
        }
        let extension =
            path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match extension.to_ascii_lowercase().as_str() {
            "safetensors" => Self::Safetensors,
            "npy" => Self::Npy,
            "npz" => Self::Npz,
            "sds" => Self::DeviceState,
            "pt" | "pth" => Self::Torch,
            _ => Self::TensorBundle,
        }
    }

    /// Detects the format from bytes, except for checkpoints, which are several files.
    pub(super) fn of_content(source: &dyn ReadAt) -> std::io::Result<Option<Self>> {
        let mut head = [0; HEAD];
        let head = read_up_to(source, &mut head, 0)?;
        Ok(match head {
            head if head.starts_with(&MAGIC) => Some(Self::DeviceState),
            [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Some(Self::Npy),
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(Self::Npz),
            head if torch::is_legacy(head) => Some(Self::Torch),
            // The length of a safetensors header is below 2^27.
            [_, _, _, 0..8, 0, 0, 0, 0, ..] => Some(Self::Safetensors),
            head if sharded::begins_like_index(head) => Some(Self::ShardIndex),
            head => tensorflow_form_of(source, head)?,
        })
    }

    /// Returns the format from name and contents, if either determines it: a magic number takes
    /// precedence over the name.
    pub(super) fn of_both(name: Self, content: Option<Self>) -> Option<Self> {
        match (name, content) {
            // A TorchScript program is also an archive; the reader reports it.
            (Self::Torch, Some(Self::Npz)) => Some(Self::Torch),
            // A header length alone is not a magic number.
            (Self::TensorBundle, content) => content,
            (name, None | Some(Self::Safetensors)) => Some(name),
            (_, content) => content,
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Form {
    type Err = Error;

    /// Parses the name of a format.
    ///
    /// # Errors
    /// [`Error::UnknownForm`] for an unknown name.
    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.iter().copied().find(|form| form.as_str() == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|form| form.as_str()).collect();
            let names = names.join(", ");
            unknown(
                Path::new(name),
                &format!("is no kind of file of tensors; expected one of {names}"),
            )
        })
    }
}

pub(super) fn unknown(path: &Path, reason: &str) -> Error {
    Error::UnknownForm { path: PathBuf::from(path), reason: reason.to_owned() }
}

/// Detects one of TensorFlow's formats: a list of checkpoints, a V1 checkpoint, or the index of a
/// V2 one.
fn tensorflow_form_of(source: &dyn ReadAt, head: &[u8]) -> std::io::Result<Option<Form>> {
    if begins_like_state(head) {
        return Ok(Some(Form::CheckpointState));
    }
    let mut tail = [0; 8];
    let tail = read_up_to(source, &mut tail, source.size()?.saturating_sub(8))?;
    let is_table = tail == table::MAGIC.to_le_bytes();
    Ok(is_table.then(|| match tensor_bundle::is_index(source) {
        true => Form::TensorBundle,
        false => Form::CheckpointV1,
    }))
}
