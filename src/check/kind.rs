//! Which kind of artifact a file is: by its content first, then by its name.

use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;

use crate::artifact::ReadAt;
use crate::artifact::table::Table;

/// A kind of artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Kind {
    /// A SavedModel: a directory with `saved_model.pb`, or that file.
    SavedModel,
    /// A V2 checkpoint: an index and its data shards.
    TensorBundle,
    /// A V1 checkpoint: one or more tables.
    CheckpointV1,
    /// A device state.
    DeviceState,
    /// A shared library, which may be a plug-in.
    Plugin,
    /// A MetaGraphDef, as it stands beside a checkpoint.
    MetaGraph,
    /// A GraphDef in text form.
    GraphDefText,
    /// A message of IFRT's SerDes.
    IfrtSerialized,
    /// A GraphDef.
    GraphDef,
}

/// A name that no kind has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no kind \"{found}\"; the kinds are {}", Kind::ALL.map(Kind::id).join(", "))]
pub struct UnknownKind {
    /// The text found, cut to 60 characters.
    pub found: String,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::SavedModel,
        Self::TensorBundle,
        Self::CheckpointV1,
        Self::DeviceState,
        Self::Plugin,
        Self::MetaGraph,
        Self::GraphDefText,
        Self::IfrtSerialized,
        Self::GraphDef,
    ];

    /// The name that programs compare.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::SavedModel => "saved_model",
            Self::TensorBundle => "tensor_bundle",
            Self::CheckpointV1 => "checkpoint_v1",
            Self::DeviceState => "device_state",
            Self::Plugin => "plugin",
            Self::MetaGraph => "meta_graph",
            Self::GraphDefText => "graph_def_text",
            Self::IfrtSerialized => "ifrt_serialized",
            Self::GraphDef => "graph_def",
        }
    }

    /// The line whose numbers decide whether a consumer takes it, if a single one does.
    #[must_use]
    pub const fn line(self) -> Option<&'static str> {
        match self {
            Self::SavedModel | Self::MetaGraph | Self::GraphDefText | Self::GraphDef => {
                Some("graph_def")
            }
            Self::TensorBundle => Some("tensor_bundle"),
            Self::CheckpointV1 => Some("checkpoint"),
            Self::DeviceState => Some("device_state"),
            Self::IfrtSerialized => Some("ifrt_serdes"),
            Self::Plugin => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.id() == text)
            .ok_or_else(|| UnknownKind { found: text.chars().take(60).collect() })
    }
}

/// The first bytes of a device state; the first cannot open a protobuf message, as it would be a tag of a wire type that does not exist.
const DEVICE_STATE: &[u8] = b"\x8fSDS\r\n\x1a\n";
/// The last bytes of a device state.
const DEVICE_STATE_END: &[u8] = b"\x8fSDSend\n";
/// The first bytes of a shared library.
const ELF: &[u8] = b"\x7fELF";
/// The last bytes of a table.
const TABLE: [u8; 8] = 0xdb47_7524_8b80_fb57_u64.to_le_bytes();
/// What the type names of IFRT's messages begin with.
const IFRT: &[u8] = b"xla::ifrt::";

/// How a kind was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// By the content or by the name.
    Certain(Kind),
    /// By nothing at all: a graph, as everything else is.
    Otherwise,
}

/// Tells the kind of a file from its content and its name.
pub(super) fn detect(source: &dyn ReadAt, name: Option<&Path>) -> io::Result<Told> {
    let size = source.size()?;
    let mut head = [0; 32];
    let head = read_up_to(source, &mut head, 0)?;
    let mut tail = [0; 8];
    let tail = read_up_to(source, &mut tail, size.saturating_sub(8))?;
    let file =
        name.and_then(Path::file_name).map(|name| name.to_string_lossy()).unwrap_or_default();
    let certain = if head.starts_with(DEVICE_STATE) || tail == DEVICE_STATE_END {
        Kind::DeviceState
    } else if head.starts_with(ELF) {
        Kind::Plugin
    } else if tail == TABLE {
        if file.ends_with(".index") || is_bundle(source) {
            Kind::TensorBundle
        } else {
            Kind::CheckpointV1
        }
    } else if let Some(kind) = by_name(&file) {
        kind
    } else if is_ifrt(head) {
        Kind::IfrtSerialized
    } else {
        return Ok(Told::Otherwise);
    };
    Ok(Told::Certain(certain))
}

/// What the name alone says.
pub(super) fn by_name(file: &str) -> Option<Kind> {
    let kind = if file == "saved_model.pb" || file == "saved_model.pbtxt" {
        Kind::SavedModel
    } else if file.ends_with(".sds") {
        Kind::DeviceState
    } else if file.ends_with(".meta") {
        Kind::MetaGraph
    } else if file.ends_with(".pbtxt") {
        Kind::GraphDefText
    } else if file.ends_with(".index") {
        Kind::TensorBundle
    } else if file.contains(".ckpt") {
        Kind::CheckpointV1
    } else {
        return None;
    };
    Some(kind)
}

/// Whether the value under the empty key of a table is the header of a bundle.
///
/// Both formats have a message there whose fields the other one would step over; the first tag tells them apart. Field 1 is a number
/// in a bundle (`num_shards`), and a message in a V1 checkpoint.
fn is_bundle(source: &dyn ReadAt) -> bool {
    let header = Table::open(source).and_then(|table| table.get(b""));
    matches!(header, Ok(Some(value)) if matches!(value.first(), Some(0x08 | 0x10 | 0x1a)))
}

/// Whether a message begins with a type name of IFRT's.
fn is_ifrt(head: &[u8]) -> bool {
    matches!(head.split_at_checked(2), Some(([0x0a, length], name)) if usize::from(*length) >= IFRT.len() && name.starts_with(IFRT))
}

/// Whether a file ends as a table does.
pub(super) fn is_table(path: &Path) -> bool {
    let tail = || -> io::Result<bool> {
        let file = std::fs::File::open(path)?;
        let size = file.size()?;
        let mut tail = [0; 8];
        Ok(read_up_to(&file, &mut tail, size.saturating_sub(8))? == TABLE)
    };
    tail().unwrap_or(false)
}

fn read_up_to<'b>(source: &dyn ReadAt, buffer: &'b mut [u8], offset: u64) -> io::Result<&'b [u8]> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..)
        && !rest.is_empty()
    {
        match source.read_at(rest, offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(buffer.get(..filled).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(bytes: &[u8], name: &str) -> Told {
        detect(&bytes, Some(Path::new(name))).unwrap()
    }

    #[test]
    fn content_comes_before_the_name_and_the_name_before_anything_else() {
        assert_eq!(told(b"\x8fSDS\r\n\x1a\n...", "x.pbtxt"), Told::Certain(Kind::DeviceState));
        assert_eq!(told(b"\x7fELF....", "x.meta"), Told::Certain(Kind::Plugin));
        assert_eq!(
            told(b"\x57\xfb\x80\x8b\x24\x75\x47\xdb", "a.index"),
            Told::Certain(Kind::TensorBundle)
        );
        assert_eq!(told(b"", "x.sds"), Told::Certain(Kind::DeviceState));
        assert_eq!(told(b"\x0a\x0e", "x.sds"), Told::Certain(Kind::DeviceState));
        assert_eq!(told(b"", "model.ckpt-00000-of-00001"), Told::Certain(Kind::CheckpointV1));
        assert_eq!(told(b"", "saved_model.pb"), Told::Certain(Kind::SavedModel));
        assert_eq!(told(b"\x0a\x14xla::ifrt::Something", "x"), Told::Certain(Kind::IfrtSerialized));
        assert_eq!(told(b"\x0a\x03x::", "x.pb"), Told::Otherwise);
        assert_eq!(told(b"", "x.pb"), Told::Otherwise);
    }

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in Kind::ALL {
            assert_eq!(kind.id().parse(), Ok(kind));
        }
        assert!("nothing".parse::<Kind>().unwrap_err().to_string().contains("saved_model"));
    }
}
