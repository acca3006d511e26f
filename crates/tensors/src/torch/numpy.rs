//! NumPy arrays and scalars in a pickle.
//!
//! Source of the orders of arguments and states: NumPy's `numpy/core/src/multiarray/methods.c` and
//! `descriptor.c`.

use serdes::ifrt::DType;

use super::{
    super::{
        error::cut,
        number::{float, integer},
    },
    error::TorchError,
    globals::Known,
    json::{number_in_json, text_in_json},
    made::{Array, Made},
    names::name_of,
    value::{Items, Value, ValueId, Values},
};

/// Maximum number of dimensions of a NumPy array.
const MOST_DIMENSIONS: usize = 64;

/// Maximum number of characters that are kept of a scalar's text.
const LONGEST_TEXT: usize = 1 << 16;

/// Element type of an array.
#[derive(Clone, Copy)]
enum Elements {
    Typed(DType),
    /// UTF-32 text.
    Text,
}

struct Type {
    elements: Elements,
    is_big_endian: bool,
}

/// The types that have a counterpart, without the mark of their byte order.
const TYPES: &[(&str, DType, usize)] = &[
    ("f8", DType::F64, 8),
    ("f4", DType::F32, 4),
    ("f2", DType::F16, 2),
    ("i8", DType::S64, 8),
    ("i4", DType::S32, 4),
    ("i2", DType::S16, 2),
    ("i1", DType::S8, 1),
    ("u8", DType::U64, 8),
    ("u4", DType::U32, 4),
    ("u2", DType::U16, 2),
    ("u1", DType::U8, 1),
    ("b1", DType::Pred, 1),
    ("c16", DType::C128, 16),
    ("c8", DType::C64, 8),
];

/// Returns the type that a call of `numpy.dtype` describes, or the description of a type without a
/// counterpart.
fn element_type(values: &Values, id: ValueId) -> Result<Result<Type, String>, TorchError> {
    let damaged = || TorchError::damaged("an array without a type of elements", "a numpy.dtype");
    let Value::Call { function, arguments } = values.get(id) else { return Err(damaged()) };
    if values.known(function) != Some(Known::NumpyType) {
        return Ok(Err(format!("the type {}", name_of(values, function))));
    }
    let code = values.items(arguments).and_then(|mut items| items.next()).ok_or_else(damaged)?;
    let Some(code) = values.text_of(code) else {
        return Ok(Err(format!("the type {}", name_of(values, code))));
    };
    let (own_order, code) = match code.split_at_checked(1) {
        Some((order @ ("<" | ">" | "=" | "|"), rest)) => (order, rest),
        _ => ("=", code),
    };
    // Version, byte order, and the facts of types with several fields.
    let order = values.state(id).and_then(|state| values.items(state)?.nth(1));
    let order = order.and_then(|order| values.text_of(order)).unwrap_or(own_order);
    let is_big_endian = order == ">";
    let known = TYPES.iter().find(|(name, ..)| *name == code);
    if let Some((_, dtype, _)) = known {
        return Ok(Ok(Type { elements: Elements::Typed(*dtype), is_big_endian }));
    }
    if code.starts_with('U') {
        return Ok(Ok(Type { elements: Elements::Text, is_big_endian }));
    }
    Ok(Err(format!("the type {}", cut(code))))
}

/// Returns the size of the units whose bytes are swapped to change the byte order: a complex number
/// has two.
fn width(dtype: DType) -> usize {
    let bytes = TYPES.iter().find(|(_, known, _)| *known == dtype).map_or(1, |(.., bytes)| *bytes);
    match dtype {
        DType::C64 | DType::C128 => bytes / 2,
        _ => bytes,
    }
}

/// Returns the bytes of a value: bytes, or the form in which protocol 2 writes them.
fn bytes_of(values: &Values, id: ValueId) -> Result<Option<Vec<u8>>, TorchError> {
    match values.get(id) {
        Value::Bytes(bytes) => Ok(Some(bytes.to_vec())),
        Value::Call { function, arguments } if values.known(function) == Some(Known::Encode) => {
            let mut items = values.items(arguments).into_iter().flatten();
            let (text, encoding) = (items.next(), items.next());
            let text = text.and_then(|text| values.text_of(text));
            let encoding = encoding.and_then(|encoding| values.text_of(encoding));
            let (Some(text), Some("latin1" | "latin-1")) = (text, encoding) else {
                return Ok(None);
            };
            let bytes = text.chars().map(|letter| u8::try_from(u32::from(letter)));
            bytes.collect::<Result<_, _>>().map(Some).map_err(|_| {
                TorchError::damaged("bytes with letters beyond Latin-1", "letters of a byte each")
            })
        }
        // Empty bytes in protocol 2.
        Value::Call { function, arguments }
            if values.known(function) == Some(Known::Bytes)
                && values.items(arguments).is_some_and(|mut items| items.next().is_none()) =>
        {
            Ok(Some(Vec::new()))
        }
        _ => Ok(None),
    }
}

/// Returns a scalar from the arguments type and bytes.
pub(super) fn scalar(values: &Values, arguments: Items<'_>) -> Result<Made, TorchError> {
    let damaged = || TorchError::damaged("a scalar of NumPy's", "its type and its bytes");
    let [of_type, bytes] = arguments.array().ok_or_else(damaged)?;
    let other = |what: String| Ok(Made::Other(format!("a scalar of NumPy's of {what}")));
    let found = match element_type(values, of_type)? {
        Ok(found) => found,
        Err(what) => return other(what),
    };
    let Some(mut bytes) = bytes_of(values, bytes)? else { return other("no bytes".to_owned()) };
    match found.elements {
        Elements::Text => {
            let text = utf_32(&bytes, found.is_big_endian).ok_or_else(damaged)?;
            Ok(Made::Plain(text_in_json(&text)))
        }
        Elements::Typed(dtype) => {
            if found.is_big_endian {
                bytes.reverse();
            }
            match plain(dtype, &bytes) {
                Some(text) => Ok(Made::Plain(text)),
                None if matches!(dtype, DType::C64 | DType::C128) => {
                    other("complex numbers".to_owned())
                }
                None => Err(damaged()),
            }
        }
    }
}

/// Returns a number in JSON; `None` if the number of bytes is wrong, or it is complex.
fn plain(dtype: DType, bytes: &[u8]) -> Option<String> {
    let (.., size) = TYPES.iter().find(|(_, known, _)| *known == dtype)?;
    if bytes.len() != *size {
        return None;
    }
    if dtype == DType::Pred {
        return Some((*bytes != [0]).to_string());
    }
    match integer(dtype, bytes) {
        Some(number) => Some(number.to_string()),
        None => float(dtype, bytes).map(number_in_json),
    }
}

/// Returns UTF-32 text without trailing NULs.
fn utf_32(bytes: &[u8], is_big_endian: bool) -> Option<String> {
    let (words, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() || words.len() > LONGEST_TEXT {
        return None;
    }
    let letter = |word: &[u8; 4]| {
        char::from_u32(match is_big_endian {
            true => u32::from_be_bytes(*word),
            false => u32::from_le_bytes(*word),
        })
    };
    let text: String = words.iter().map(letter).collect::<Option<_>>()?;
    Some(text.trim_end_matches('\0').to_owned())
}

/// Returns an array from the arguments class, shape and type of `_reconstruct`, which have no
/// effect, and from the state version, shape, type, order and bytes.
pub(super) fn array(
    values: &Values,
    mut arguments: Items<'_>,
    state: Option<ValueId>,
) -> Result<Made, TorchError> {
    let class = arguments.next();
    if class.and_then(|class| values.known(class)) != Some(Known::NumpyArrayClass) {
        let name = class.map_or_else(String::new, |class| name_of(values, class));
        return Ok(Made::Other(format!("an object of {name}")));
    }
    let parts = state.and_then(|state| values.items(state)?.array());
    let Some([_, shape, of_type, order, bytes]) = parts else {
        return Err(TorchError::damaged("an array of NumPy's", "its shape, type and bytes"));
    };
    let is_fortran = matches!(values.get(order), Value::Bool(true));
    of_parts(values, shape, of_type, is_fortran, bytes)
}

/// Returns an array from the arguments bytes, type, shape and order of `_frombuffer`.
pub(super) fn array_of_buffer(values: &Values, arguments: Items<'_>) -> Result<Made, TorchError> {
    let Some([bytes, of_type, shape, order]) = arguments.array() else {
        return Err(TorchError::damaged("an array of NumPy's", "its bytes, type and shape"));
    };
    of_parts(values, shape, of_type, values.text_of(order) == Some("F"), bytes)
}

fn of_parts(
    values: &Values,
    shape: ValueId,
    of_type: ValueId,
    is_fortran: bool,
    bytes: ValueId,
) -> Result<Made, TorchError> {
    let other = |what: String| Ok(Made::Other(format!("an array of NumPy's of {what}")));
    let (dtype, is_big_endian) = match element_type(values, of_type)? {
        Ok(Type { elements: Elements::Typed(dtype), is_big_endian }) => (dtype, is_big_endian),
        Ok(_) => return other("texts".to_owned()),
        Err(what) => return other(what),
    };
    let damaged = || TorchError::damaged("an array of NumPy's", "as many bytes as its shape says");
    let extents = values.items(shape).ok_or_else(damaged)?.take(MOST_DIMENSIONS + 1);
    let shape: Vec<u64> =
        extents.map(|extent| values.unsigned(extent)).collect::<Option<_>>().ok_or_else(damaged)?;
    let Some(mut bytes) = bytes_of(values, bytes)? else { return other("no bytes".to_owned()) };
    let size = TYPES.iter().find(|(_, known, _)| *known == dtype).map_or(1, |(.., size)| *size);
    let wanted = match shape.contains(&0) {
        true => Some(0),
        false => shape.iter().try_fold(size as u64, |bytes, extent| bytes.checked_mul(*extent)),
    };
    if shape.len() > MOST_DIMENSIONS || wanted != Some(bytes.len() as u64) {
        return Err(damaged());
    }
    if is_big_endian {
        bytes.chunks_exact_mut(width(dtype)).for_each(<[u8]>::reverse);
    }
    Ok(Made::Array(Array { dtype, shape, is_fortran, bytes }))
}
