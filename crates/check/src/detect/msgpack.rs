//! Msgpack as `flax.serialization` writes trees of arrays: nested maps, with each array in an
//! extension type.

/// The extension type that flax uses for an array.
const ARRAY: u8 = 1;

/// Limit on the values that are read: an array is among the first of a tree.
const MOST_VALUES: usize = 1024;

/// Returns true if bytes begin a map with string keys that contains an array of flax. The first
/// byte of a map, 0x80 to 0xdf, would be the tag of a field that graphs do not have.
pub(super) fn is_flax(head: &[u8]) -> bool {
    let mut rest = head;
    let is_map = matches!(take(&mut rest), Some(Value::Map));
    is_map && matches!(take(&mut rest), Some(Value::Text)) && has_array(rest)
}

fn has_array(mut rest: &[u8]) -> bool {
    for _ in 0..MOST_VALUES {
        match take(&mut rest) {
            Some(Value::Extension(ARRAY, content)) => return is_array(content),
            Some(_) => {}
            None => return false,
        }
    }
    false
}

/// Returns true if the bytes of an extension begin with a shape, a type name, and the elements.
fn is_array(content: &[u8]) -> bool {
    let Some((0x93, mut rest)) = content.split_first().map(|(first, rest)| (*first, rest)) else {
        return false;
    };
    let Some(Value::Array(extents)) = take(&mut rest) else { return false };
    let are_extents =
        (0..extents).take(MOST_VALUES).all(|_| matches!(take(&mut rest), Some(Value::Other)));
    are_extents && matches!(take(&mut rest), Some(Value::Text))
}

enum Value<'b> {
    /// A map or an array, followed by its values.
    Map,
    Array(usize),
    Text,
    /// An extension: its type and its bytes, as far as they are available.
    Extension(u8, &'b [u8]),
    Other,
}

/// Takes the next value, without nested values.
fn take<'b>(rest: &mut &'b [u8]) -> Option<Value<'b>> {
    let tag = number(rest, 1)?;
    Some(match tag {
        0x80..=0x8f => Value::Map,
        0xde => number(rest, 2).map(|_| Value::Map)?,
        0xdf => number(rest, 4).map(|_| Value::Map)?,
        0x90..=0x9f => Value::Array(tag & 0xf),
        0xdc => Value::Array(number(rest, 2)?),
        0xdd => Value::Array(number(rest, 4)?),
        0xa0..=0xbf => skip(rest, tag & 0x1f, Value::Text)?,
        0xd9..=0xdb => {
            let length = number(rest, 1 << (tag - 0xd9))?;
            skip(rest, length, Value::Text)?
        }
        0xc4..=0xc6 => {
            let length = number(rest, 1 << (tag - 0xc4))?;
            skip(rest, length, Value::Other)?
        }
        0xc7..=0xc9 => {
            let length = number(rest, 1 << (tag - 0xc7))?;
            extension(rest, length)?
        }
        0xd4..=0xd8 => extension(rest, 1 << (tag - 0xd4))?,
        0xc0 | 0xc2 | 0xc3 | 0..=0x7f | 0xe0..=0xff => Value::Other,
        0xcc | 0xd0 => skip(rest, 1, Value::Other)?,
        0xcd | 0xd1 => skip(rest, 2, Value::Other)?,
        0xca | 0xce | 0xd2 => skip(rest, 4, Value::Other)?,
        0xcb | 0xcf | 0xd3 => skip(rest, 8, Value::Other)?,
        _ => return None,
    })
}

fn extension<'b>(rest: &mut &'b [u8], length: usize) -> Option<Value<'b>> {
    let kind = u8::try_from(number(rest, 1)?).ok()?;
    let content = rest.get(..length.min(rest.len()))?;
    *rest = rest.get(length..).unwrap_or_default();
    Some(Value::Extension(kind, content))
}

fn skip<'b>(rest: &mut &'b [u8], length: usize, value: Value<'b>) -> Option<Value<'b>> {
    *rest = rest.get(length..)?;
    Some(value)
}

/// Reads a big-endian number of `bytes` bytes.
fn number(rest: &mut &[u8], bytes: usize) -> Option<usize> {
    let (number, behind) = rest.split_at_checked(bytes)?;
    *rest = behind;
    Some(number.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_of_arrays_is_told_from_other_msgpack() {
        let array = b"\x93\x92\x02\x03\xa7float32\xc4\x04abcd";
        let extension = [&[0xc7, u8::try_from(array.len()).unwrap(), 1], &array[..]].concat();
        let nested = [&b"\x82\xa4step\x07\xa6params\x81\xa1w"[..], &extension].concat();
        assert!(is_flax(&nested));
        assert!(is_flax(&nested[..nested.len() - 3]));
        for length in 0..22 {
            assert!(!is_flax(&nested[..length]), "{length}");
        }
        for other in [
            &b""[..],
            b"\x80",
            b"\x81\xa1a\x07",
            b"\x81\x07\x07",
            b"\x93\x01\x02\x03",
            b"\x81\xa1a\xc7\x02\x01ab",
        ] {
            assert!(!is_flax(other), "{other:?}");
        }
    }
}
