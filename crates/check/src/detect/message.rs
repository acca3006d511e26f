//! Protobuf messages other than graphs. A parser of graphs would read them as empty graphs, because
//! it skips unknown fields.

use std::io;

use serdes_wire::varint;

use super::{super::Kind, file::File};

/// Limit on the fields of a message that are read.
const MOST_FIELDS: usize = 4096;

/// Limit on the length of a fingerprint, which has five numbers, versions and an identifier.
const LONGEST_FINGERPRINT: u64 = 1024;

/// A field of the outermost message.
struct Field {
    number: u32,
    content: Content,
}

enum Content {
    Number(u64),
    /// The offset and the length of the bytes; they may exceed the file.
    Bytes(u64, u64),
}

/// Returns `None` at a field of a wire type that neither kind has.
fn next(file: &File<'_>, at: &mut u64) -> io::Result<Option<Field>> {
    let mut bytes = [0; 20];
    let bytes = file.read(&mut bytes, *at)?;
    let field = || {
        let mut rest = bytes;
        let tag = varint::wrapping(&mut rest, varint::LONGEST)?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0)?;
        let value = varint::wrapping(&mut rest, varint::LONGEST)?;
        let header = (bytes.len() - rest.len()) as u64;
        match tag & 7 {
            0 => Some((header, Field { number, content: Content::Number(value) })),
            2 => {
                let content = Content::Bytes(*at + header, value);
                Some((header.saturating_add(value), Field { number, content }))
            }
            _ => None,
        }
    };
    let Some((length, field)) = field() else { return Ok(None) };
    *at = at.saturating_add(length);
    Ok(Some(field))
}

/// Returns the kind of a message other than a graph, if it is a known one.
pub(super) fn kind(file: &File<'_>) -> io::Result<Option<Kind>> {
    if is_onnx(file)? {
        return Ok(Some(Kind::Onnx));
    }
    Ok(is_fingerprint(file)?.then_some(Kind::Fingerprint))
}

/// Returns true if a message is a ModelProto of ONNX: its field 1 is a small number (the version of
/// the representation), its field 7 a graph. In a GraphDef field 1 is a node, and there is no field
/// 7; in a SavedModel field 1 is a number, and there are two fields.
fn is_onnx(file: &File<'_>) -> io::Result<bool> {
    let (mut at, mut version, mut graph) = (0, false, false);
    for _ in 0..MOST_FIELDS {
        let Some(field) = next(file, &mut at)? else { return Ok(false) };
        match (field.number, field.content) {
            (1, Content::Number(1..=1000)) => version = true,
            (5, Content::Number(_)) => {}
            (7, Content::Bytes(start, length)) => graph = is_onnx_graph(file, start, length)?,
            (2 | 3 | 4 | 6 | 8 | 14 | 20 | 25 | 26, Content::Bytes(..)) => {}
            // Custom extensions.
            (100.., _) => {}
            _ => return Ok(false),
        }
        if version && graph {
            return Ok(true);
        }
        if at >= file.size {
            break;
        }
    }
    Ok(false)
}

/// Returns true if a message begins with a field of ONNX's GraphProto, whose fields are all
/// messages or strings.
fn is_onnx_graph(file: &File<'_>, start: u64, length: u64) -> io::Result<bool> {
    let mut at = start;
    if length == 0 {
        return Ok(true);
    }
    let first = next(file, &mut at)?;
    Ok(first.is_some_and(|field| {
        matches!(field.number, 1 | 2 | 5 | 10..=16) && matches!(field.content, Content::Bytes(..))
    }))
}

/// Returns true if a message is the fingerprint of a SavedModel: five numbers, of which at least
/// one is as large as a hash is, the versions under 6, an identifier under 7, and nothing else.
fn is_fingerprint(file: &File<'_>) -> io::Result<bool> {
    if file.size > LONGEST_FINGERPRINT {
        return Ok(false);
    }
    let (mut at, mut numbers, mut hash) = (0, 0, false);
    while at < file.size {
        match next(file, &mut at)? {
            Some(Field { number: 1..=5, content: Content::Number(value) }) => {
                numbers += 1;
                hash |= value > u64::from(u32::MAX);
            }
            Some(Field { number: 6 | 7, content: Content::Bytes(..) }) => {}
            _ => return Ok(false),
        }
    }
    Ok(at == file.size && numbers >= 3 && hash)
}
