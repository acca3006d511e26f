//! Detects the kind of a file: by its content first, then by its name; anything else is a graph,
//! which has no magic number.
//!
//! Reads a few kilobytes at both ends of a file of any size, and a bounded number of small pieces
//! of nested data. A GraphDef is never detected as anything else: each mark is one that no protobuf
//! parser accepts, or one that a graph cannot have at that position (the reasons are given at the
//! marks). The only exception is a bare message of IFRT, which has no mark either: a file that is
//! not called `.pb` may be one instead of a graph without nodes. Does not depend on the readers or
//! on verdicts.

mod archive;
mod file;
mod flatbuffer;
mod ifrt;
mod message;
mod mlir;
mod msgpack;
mod names;
mod text;

use std::{io, path::Path};

use self::file::File;
use super::Kind;
use serdes_checkpoints::{table, tensor_bundle};
use serdes_files::{ReadAt, read_at::read_up_to};
use serdes_tensors::LONGEST_SAFETENSORS_HEADER;

pub(super) use file::HEAD;
pub(super) use mlir::MAGIC as MLIR;
pub(super) use names::{of_empty_file, of_judged};
pub(super) use text::is_pointer_of_git_lfs;

/// The first bytes of a shared library.
const ELF: &[u8] = b"\x7fELF";
/// The last bytes of a table.
const TABLE: [u8; 8] = table::MAGIC.to_le_bytes();

/// The result of a detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detected {
    /// Detected by the content of the file.
    ByContent(Kind),
    /// Detected by the name of the file only.
    ByName(Kind),
    /// Not detected: treated as a graph.
    Unmarked,
}

impl Detected {
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::ByContent(kind) | Self::ByName(kind) => kind,
            Self::Unmarked => Kind::GraphDef,
        }
    }
}

/// Detects the kind of a file from its content and its name.
pub(super) fn detect(source: &dyn ReadAt, name: Option<&Path>) -> io::Result<Detected> {
    let size = source.size()?;
    let mut head = [0; HEAD];
    let head = read_up_to(source, &mut head, 0)?;
    let file_name =
        name.and_then(Path::file_name).map(|name| name.to_string_lossy()).unwrap_or_default();
    let lower = file_name.to_ascii_lowercase();
    let file = File { source, size, head, name: &lower };
    if head.is_empty() {
        return Ok(of_empty_file(&file_name).map_or(Detected::Unmarked, Detected::ByName));
    }
    if let Some(kind) = by_ends(&file, &file_name)? {
        return Ok(Detected::ByContent(kind));
    }
    if let Some(kind) = by_content(&file)? {
        return Ok(Detected::ByContent(kind));
    }
    let is_text = text::is_text(&file)?;
    if let Some(kind) = of_judged(&file_name)
        && !(is_text && names::says_text(&lower))
    {
        return Ok(Detected::ByName(kind));
    }
    if ifrt::is_serialized(head) {
        return Ok(Detected::ByContent(Kind::IfrtSerialized));
    }
    if is_text {
        return Ok(Detected::ByContent(Kind::Text));
    }
    Ok(match names::of_other(&lower) {
        // A graph with the name of a fingerprint; a fingerprint begins with a number.
        Some(Kind::Fingerprint) if begins_like_graph(head) => Detected::ByContent(Kind::GraphDef),
        Some(kind) => Detected::ByName(kind),
        // A message of IFRT has no mark, so a name of TensorFlow's messages takes precedence.
        None if !names::says_protobuf(&lower) && ifrt::is_bare(&file)? => {
            Detected::ByContent(Kind::IfrtMessage)
        }
        None => Detected::Unmarked,
    })
}

/// Returns true if a message begins with a node, a library or the versions of a graph.
fn begins_like_graph(head: &[u8]) -> bool {
    matches!(head.first(), Some(0x0a | 0x12 | 0x22))
}

/// Returns the kind that the content of a file shows beyond doubt, used when it contradicts the
/// name or the expected kind.
pub(super) fn foreign(source: &dyn ReadAt) -> io::Result<Option<Kind>> {
    Ok(match detect(source, None)? {
        // A bare message of IFRT has no mark: it is not beyond doubt.
        Detected::ByContent(Kind::IfrtMessage) => None,
        Detected::ByContent(kind) if !kind.is_judged() => Some(kind),
        _ => None,
    })
}

/// Returns the kind by the marks of kinds that this project reads; they may be at the end.
fn by_ends(file: &File<'_>, name: &str) -> io::Result<Option<Kind>> {
    let mut tail = [0; 8];
    let tail = file.read(&mut tail, file.size.saturating_sub(8))?;
    // The first byte of a state would be a protobuf tag of a wire type that does not exist.
    Ok(
        if file.head.starts_with(&serdes_device_state::MAGIC)
            || tail == serdes_device_state::END_MAGIC
        {
            Some(Kind::DeviceState)
        } else if file.head.starts_with(ELF) {
            Some(Kind::Plugin)
        } else if tail == TABLE {
            Some(if name.ends_with(".index") || tensor_bundle::is_index(file.source) {
                Kind::TensorBundle
            } else {
                Kind::CheckpointV1
            })
        } else {
            None
        },
    )
}

/// Returns the kind by the marks of other kinds, which take precedence over any name.
fn by_content(file: &File<'_>) -> io::Result<Option<Kind>> {
    let head = file.head;
    let kind = if let Some(kind) = by_first_bytes(head).or_else(|| mlir::kind(file)) {
        Some(kind)
    } else if is_hdf5(head) {
        Some(Kind::Hdf5)
    } else if archive::is_zip(head) {
        Some(archive::kind(file)?)
    } else if flatbuffer::is_tflite(file) {
        Some(Kind::Tflite)
    } else if flatbuffer::is_jax_export(file)? {
        Some(Kind::JaxExport)
    } else if is_safetensors(head) {
        Some(Kind::Safetensors)
    } else if msgpack::is_flax(head) {
        Some(Kind::Flax)
    } else if let Some(kind) = text::marked(file) {
        Some(kind)
    } else {
        message::kind(file)?
    };
    Ok(kind)
}

/// Detects formats by their first bytes. None of them begins with the tag of a field of a graph.
fn by_first_bytes(head: &[u8]) -> Option<Kind> {
    const MARKS: &[(&[u8], Kind)] = &[
        (b"\x93NUMPY", Kind::Npy),
        (b"GGUF", Kind::Gguf),
        (b"\x1f\x8b\x08", Kind::Gzip),
        // PyTorch before 1.6: a pickle whose first value is this number.
        (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", Kind::Torch),
        (b"\xff\xd8\xff", Kind::Other),
        (b"\x89PNG\r\n\x1a\n", Kind::Other),
        (b"GIF8", Kind::Other),
        (b"%PDF-", Kind::Other),
        (b"BZh", Kind::Other),
        (b"\xfd7zXZ\0", Kind::Other),
        (b"\x28\xb5\x2f\xfd", Kind::Other),
        (b"\x04\x22\x4d\x18", Kind::Other),
        (b"7z\xbc\xaf\x27\x1c", Kind::Other),
        (b"PAR1", Kind::Other),
        (b"ARROW1\0\0", Kind::Other),
        (b"SQLite format 3\0", Kind::Other),
        (b"MZ\x90\0", Kind::Other),
    ];
    let found = MARKS.iter().find(|(mark, _)| head.starts_with(mark)).map(|(_, kind)| *kind);
    found.or_else(|| {
        let is_tar = head.get(257..262) == Some(b"ustar");
        // A pickle of protocol 4 or 5 begins with a frame.
        let is_pickle = matches!(head, [0x80, 4 | 5, 0x95, ..]);
        (is_tar || is_pickle).then_some(Kind::Other)
    })
}

/// Returns true if the signature of HDF5 is at the beginning or after a user block, whose size is a
/// power of two from 512.
fn is_hdf5(head: &[u8]) -> bool {
    [0, 512, 1024, 2048]
        .iter()
        .any(|at| head.get(*at..).is_some_and(|rest| rest.starts_with(b"\x89HDF\r\n\x1a\n")))
}

/// Returns true if a file begins with the length of a header and a header of JSON. A graph that
/// begins so has NULs in the name of its first node, which no importer accepts.
fn is_safetensors(head: &[u8]) -> bool {
    let Some((length, header)) = head.split_first_chunk() else { return false };
    let length = u64::from_le_bytes(*length);
    if !(2..=LONGEST_SAFETENSORS_HEADER).contains(&length) || header.first() != Some(&b'{') {
        return false;
    }
    let here = usize::try_from(length).unwrap_or(usize::MAX).min(header.len());
    text::is_json(header.get(..here).unwrap_or_default(), here as u64 == length)
}

/// Returns true if a file ends like a table.
pub(super) fn is_table(source: &dyn ReadAt) -> bool {
    let tail = || -> io::Result<bool> {
        let mut tail = [0; 8];
        Ok(read_up_to(source, &mut tail, source.size()?.saturating_sub(8))? == TABLE)
    };
    tail().unwrap_or(false)
}

#[cfg(test)]
mod tests;
