//! Types and strings of a module, for messages.

use serdes_mlir_bytecode::{Cursor, Tables, vhlo::type_name};

/// Limit on the depth of nested types; deeper ones are left out.
const DEEPEST: usize = 4;
/// Approximate limit on the length of a text, in bytes.
const LONGEST: usize = 256;

/// A dimension whose size is known only at run time.
const DYNAMIC: i64 = i64::MIN;

/// Returns a string attribute of VHLO.
pub(super) fn string_of<'a>(tables: &Tables<'a>, attribute: usize) -> Option<&'a [u8]> {
    let (code, mut contents) = vhlo(tables, attribute, false)?;
    let string = if code == 14 { contents.varint().ok()? } else { return None };
    Some(tables.string(usize::try_from(string).ok()?))
}

/// Returns the code and the parts of an attribute or a type of VHLO.
pub(super) fn vhlo<'a>(
    tables: &Tables<'a>,
    index: usize,
    is_type: bool,
) -> Option<(u64, Cursor<'a>)> {
    let entries = if is_type { &tables.types } else { &tables.attributes };
    let entry = tables.entry(entries, index)?;
    if !entry.is_encoded || tables.dialect(entry.dialect) != b"vhlo" {
        return None;
    }
    let mut contents = entry.contents;
    Some((contents.varint().ok()?, contents))
}

/// Returns the types of a function's inputs and outputs, if the attribute is a function type with
/// at most `room` parts.
pub(super) fn signature(
    tables: &Tables<'_>,
    attribute: usize,
    room: u64,
) -> Option<(Vec<String>, Vec<String>)> {
    let (code, mut contents) = vhlo(tables, attribute, false)?;
    let function = if code == 17 { number(&mut contents)? } else { return None };
    let (code, mut contents) = vhlo(tables, function, true)?;
    if code != 8 {
        return None;
    }
    let mut list = || {
        let count = contents.varint().ok().filter(|count| *count <= room)?;
        let mut texts = Vec::new();
        for _ in 0..count {
            texts.push(type_text(tables, number(&mut contents)?, 0));
        }
        Some(texts)
    };
    Some((list()?, list()?))
}

fn number(cursor: &mut Cursor<'_>) -> Option<usize> {
    usize::try_from(cursor.varint().ok()?).ok()
}

/// Returns a type as StableHLO prints it.
fn type_text(tables: &Tables<'_>, index: usize, depth: usize) -> String {
    let text = if depth < DEEPEST { text_of_parts(tables, index, depth) } else { None };
    text.unwrap_or_else(|| "?".to_owned())
}

fn text_of_parts(tables: &Tables<'_>, index: usize, depth: usize) -> Option<String> {
    let (code, mut contents) = vhlo(tables, index, true)?;
    if let Some(name) = type_name(code) {
        return Some(name.to_owned());
    }
    let inside = depth.saturating_add(1);
    Some(match code {
        1 => format!("complex<{}>", type_text(tables, number(&mut contents)?, inside)),
        20 | 21 | 41 => {
            if code == 21 {
                contents.varint().ok()?;
            }
            let mut text = if code == 41 { "buffer<" } else { "tensor<" }.to_owned();
            for _ in 0..contents.varint().ok()? {
                let value = contents.varint().ok()?;
                let magnitude = (value >> 1).cast_signed();
                let size = if value & 1 == 0 { magnitude } else { !magnitude };
                if text.len() >= LONGEST {
                    return None;
                }
                text += &if size == DYNAMIC { "?x".to_owned() } else { format!("{size}x") };
            }
            text += &type_text(tables, number(&mut contents)?, inside);
            text + ">"
        }
        22 => "token".to_owned(),
        23 | 42 => {
            let mut parts = Vec::new();
            for _ in 0..contents.varint().ok()?.min(4) {
                parts.push(type_text(tables, number(&mut contents)?, inside));
            }
            let name = if code == 23 { "tuple" } else { "future" };
            let mut text = format!("{name}<{}>", parts.join(", "));
            if let Some((end, _)) = text.char_indices().nth(LONGEST) {
                text.truncate(end);
            }
            text
        }
        24 | 30 => "quantized".to_owned(),
        25 => format!("tensor<*x{}>", type_text(tables, number(&mut contents)?, inside)),
        _ => return None,
    })
}
