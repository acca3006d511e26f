//! The element type of an npy file: NumPy's interpretation, and the corresponding type here.

use serdes::ifrt::DType;

use super::literal::Literal;

/// Maximum number of a type's characters that a message repeats.
const SHOWN: usize = 256;

/// Size of NumPy's longest element in bytes.
const LONGEST: u64 = i32::MAX as u64;

/// Type of an array's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Element {
    /// The type, or the reason why its elements cannot be moved.
    pub(super) dtype: Result<DType, String>,
    /// Size of an element in bytes; `None` for Python objects, whose size is unknown.
    pub(super) bytes: Option<u64>,
    /// True if the bytes of each number are big-endian.
    pub(super) big_endian: bool,
    /// True if it has Python objects, which are pickled.
    pub(super) is_pickled: bool,
    /// Number of elements of a sub-array in each.
    elements: u64,
}

impl Element {
    fn of(dtype: DType, bytes: u64, big_endian: bool) -> Self {
        Self { dtype: Ok(dtype), bytes: Some(bytes), big_endian, is_pickled: false, elements: 1 }
    }

    fn without(reason: String, bytes: Option<u64>) -> Self {
        Self { dtype: Err(reason), bytes, big_endian: false, is_pickled: false, elements: 1 }
    }

    /// Creates a structured element: several fields, or a sub-array.
    fn structured(bytes: Option<u64>, is_pickled: bool) -> Self {
        let reason = if is_pickled {
            "structured elements that hold Python objects, which only Python can read"
        } else {
            "structured elements have no counterpart in IFRT"
        };
        Self { is_pickled, ..Self::without(reason.to_owned(), bytes) }
    }
}

/// Parses the element type of a header; `None` if it is neither one of NumPy's nor one that JAX
/// adds.
pub(super) fn element(descr: &Literal) -> Option<Element> {
    // For elements with sub-arrays NumPy counts more elements than the shape has.
    field(descr).filter(|element| element.elements == 1 || element.is_pickled)
}

/// Parses the element type of a structured type's field.
fn field(descr: &Literal) -> Option<Element> {
    match descr {
        Literal::Text(text) => of_text(text),
        Literal::Tuple(parts) => match parts.as_slice() {
            [of, shape] => repeated(&field(of)?, count(shape)?),
            _ => None,
        },
        Literal::List(fields) => of_fields(fields),
        _ => None,
    }
}

/// Returns the number of elements in a sub-array field.
fn count(shape: &Literal) -> Option<u64> {
    let extent = |literal: &Literal| match literal {
        Literal::Int(Some(extent)) => u64::try_from(*extent).ok(),
        _ => None,
    };
    match shape {
        Literal::Tuple(extents) => {
            extents.iter().try_fold(1_u64, |product, one| product.checked_mul(extent(one)?))
        }
        one => extent(one),
    }
}

fn repeated(element: &Element, count: u64) -> Option<Element> {
    let bytes = match element.bytes {
        Some(bytes) => Some(bytes.checked_mul(count).filter(|bytes| *bytes <= LONGEST)?),
        None => None,
    };
    Some(Element { elements: count, ..Element::structured(bytes, element.is_pickled) })
}

fn of_fields(fields: &[Literal]) -> Option<Element> {
    let (mut bytes, mut is_pickled) = (Some(0_u64), false);
    let mut names = std::collections::HashSet::new();
    for described in fields {
        let (Literal::Tuple(parts) | Literal::List(parts)) = described else { return None };
        let (name, found) = match parts.as_slice() {
            [name, of] => (name, field(of)?),
            [name, of, shape] => (name, repeated(&field(of)?, count(shape)?)?),
            _ => return None,
        };
        let name = match name {
            Literal::Text(name) => name,
            // A title and a name.
            Literal::Tuple(both) => match both.as_slice() {
                [Literal::Text(_), Literal::Text(name)] => name,
                _ => return None,
            },
            _ => return None,
        };
        if !names.insert(name) && !name.is_empty() {
            return None;
        }
        bytes = bytes.zip(found.bytes).and_then(|(sum, bytes)| sum.checked_add(bytes));
        is_pickled |= found.is_pickled;
    }
    if bytes.is_some_and(|bytes| bytes > LONGEST) {
        return None;
    }
    Some(Element::structured(bytes, is_pickled))
}

fn of_text(text: &str) -> Option<Element> {
    if text.contains(',')
        || text.starts_with(['(', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
    {
        return of_list(text);
    }
    let (order, code) = match text.chars().next()? {
        order @ ('<' | '>' | '|' | '=') => (Some(order), text.get(1..)?),
        _ => (None, text),
    };
    let big_endian = order == Some('>');
    let coded = CODES.iter().chain(LETTERS).find(|(name, ..)| *name == code);
    if let Some((_, dtype, bytes)) = coded {
        return Some(Element::of(*dtype, *bytes, big_endian));
    }
    // Other names have no byte order.
    if order.is_none()
        && let Some((_, dtype, bytes)) = NAMES.iter().find(|(name, ..)| *name == code)
    {
        return Some(Element::of(*dtype, *bytes, false));
    }
    // NumPy has no bfloat16; arrays of ml_dtypes are written like this, and nothing else with two
    // bytes is.
    if code == "V2" && !big_endian {
        return Some(Element::of(DType::BF16, 2, false));
    }
    of_other(text, code, order)
}

/// Parses NumPy types that have no counterpart.
fn of_other(text: &str, code: &str, order: Option<char>) -> Option<Element> {
    let shown: String = text.chars().take(SHOWN).collect();
    let says = |reason: &str| format!("the element type '{}' {reason}", shown.escape_default());
    let none = "has no counterpart in IFRT";
    let sized = |bytes: u64| Element::without(says(none), Some(bytes));
    let objects = || Element {
        is_pickled: true,
        ..Element::without(says("holds Python objects, which only Python can read"), None)
    };
    match code {
        "O" | "O4" | "O8" | "T" => return Some(objects()),
        "object" | "object_" if order.is_none() => return Some(objects()),
        "V1" => {
            let reason = "is written for nine different types alike; save it as safetensors";
            return Some(Element::without(says(reason), Some(1)));
        }
        "g" | "f16" => return Some(sized(16)),
        "G" | "c32" => return Some(sized(32)),
        "c" => return Some(sized(1)),
        "float128" | "longdouble" if order.is_none() => return Some(sized(16)),
        "complex256" | "clongdouble" if order.is_none() => return Some(sized(32)),
        "str" | "str_" | "unicode" | "bytes" | "bytes_" | "void" if order.is_none() => {
            return Some(sized(0));
        }
        _ => {}
    }
    let flexible = code.strip_prefix(['S', 'a', 'V', 'U']);
    if let Some(length) = flexible {
        let length: u64 = if length.is_empty() { 0 } else { plain(length)? };
        let bytes = if code.starts_with('U') { length.checked_mul(4)? } else { length };
        return (bytes <= LONGEST).then(|| sized(bytes));
    }
    let dates = ["M8", "m8", "datetime64", "timedelta64"];
    let unit = dates.iter().enumerate().find_map(|(number, name)| {
        code.strip_prefix(name).filter(|_| number < 2 || order.is_none())
    });
    is_unit(unit?).then(|| sized(8))
}

/// Returns true if the unit of a date, in brackets after a number, is one of NumPy's.
fn is_unit(text: &str) -> bool {
    const UNITS: [&str; 14] =
        ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "generic"];
    if text.is_empty() {
        return true;
    }
    let Some(inside) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) else {
        return false;
    };
    let unit = inside.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = inside.strip_suffix(unit).unwrap_or_default();
    UNITS.contains(&unit) && (number.is_empty() || plain(number).is_some())
}

/// Parses a number that consists of digits only.
fn plain(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Parses a list of types, each with an optional repeat count: `2i4`, `(2,3)f4`, `f4,i8`.
fn of_list(text: &str) -> Option<Element> {
    let (first, mut rest) = item(text)?;
    if rest.is_none() {
        return Some(first);
    }
    let (mut bytes, mut is_pickled) = (first.bytes, first.is_pickled);
    while let Some(behind) = rest.filter(|rest| !rest.is_empty()) {
        let (found, behind) = item(behind)?;
        bytes = bytes.zip(found.bytes).and_then(|(sum, bytes)| sum.checked_add(bytes));
        is_pickled |= found.is_pickled;
        rest = behind;
    }
    Some(Element::structured(bytes, is_pickled))
}

/// Parses the first type of such a list; returns it with the text after its comma.
fn item(text: &str) -> Option<(Element, Option<&str>)> {
    let (number, rest) = match text.strip_prefix('(') {
        Some(inside) => {
            let (inside, behind) = inside.split_once(')')?;
            // Parentheses without a comma are not a tuple.
            let extents = Some(inside.split(',').map(str::trim)).filter(|_| inside.contains(','));
            let product = extents?.try_fold(1_u64, |product, extent| match extent {
                "" => Some(product),
                extent => product.checked_mul(plain(extent)?),
            });
            (product?, behind)
        }
        None => {
            let behind = text.trim_start_matches(|c: char| c.is_ascii_digit());
            let number = text.strip_suffix(behind)?;
            (if number.is_empty() { 1 } else { plain(number)? }, behind)
        }
    };
    let (code, behind) = match rest.split_once(',') {
        Some((code, behind)) => (code.trim(), Some(behind.trim_start())),
        None => (rest, None),
    };
    // A list cannot be nested.
    let code = Some(code).filter(|code| !is_of_list(code))?;
    Some((repeated(&of_text(code)?, number)?, behind))
}

/// Returns true if the type is a list of several, or begins with a repeat count.
fn is_of_list(text: &str) -> bool {
    text.contains(',') || text.starts_with(|c: char| c == '(' || c.is_ascii_digit())
}

type Named = (&'static str, DType, u64);

/// Types with a letter and a size.
const CODES: &[Named] = &[
    ("b1", DType::Pred, 1),
    ("i1", DType::S8, 1),
    ("i2", DType::S16, 2),
    ("i4", DType::S32, 4),
    ("i8", DType::S64, 8),
    ("u1", DType::U8, 1),
    ("u2", DType::U16, 2),
    ("u4", DType::U32, 4),
    ("u8", DType::U64, 8),
    // ml_dtypes writes only float8_e5m2 like this.
    ("f1", DType::F8E5M2, 1),
    ("f2", DType::F16, 2),
    ("f4", DType::F32, 4),
    ("f8", DType::F64, 8),
    ("c8", DType::C64, 8),
    ("c16", DType::C128, 16),
];

/// Types with a letter only, as on 64-bit platforms.
const LETTERS: &[Named] = &[
    ("?", DType::Pred, 1),
    ("b", DType::S8, 1),
    ("B", DType::U8, 1),
    ("h", DType::S16, 2),
    ("H", DType::U16, 2),
    ("i", DType::S32, 4),
    ("I", DType::U32, 4),
    ("l", DType::S64, 8),
    ("L", DType::U64, 8),
    ("q", DType::S64, 8),
    ("Q", DType::U64, 8),
    ("n", DType::S64, 8),
    ("N", DType::U64, 8),
    ("p", DType::S64, 8),
    ("P", DType::U64, 8),
    ("e", DType::F16, 2),
    ("f", DType::F32, 4),
    ("d", DType::F64, 8),
    ("F", DType::C64, 8),
    ("D", DType::C128, 16),
];

/// Types by name: NumPy's, and those of ml_dtypes.
const NAMES: &[Named] = &[
    ("bool", DType::Pred, 1),
    ("bool_", DType::Pred, 1),
    ("byte", DType::S8, 1),
    ("int8", DType::S8, 1),
    ("short", DType::S16, 2),
    ("int16", DType::S16, 2),
    ("intc", DType::S32, 4),
    ("int32", DType::S32, 4),
    ("int", DType::S64, 8),
    ("int_", DType::S64, 8),
    ("intp", DType::S64, 8),
    ("int64", DType::S64, 8),
    ("long", DType::S64, 8),
    ("longlong", DType::S64, 8),
    ("ubyte", DType::U8, 1),
    ("uint8", DType::U8, 1),
    ("ushort", DType::U16, 2),
    ("uint16", DType::U16, 2),
    ("uintc", DType::U32, 4),
    ("uint32", DType::U32, 4),
    ("uint", DType::U64, 8),
    ("uintp", DType::U64, 8),
    ("uint64", DType::U64, 8),
    ("ulong", DType::U64, 8),
    ("ulonglong", DType::U64, 8),
    ("half", DType::F16, 2),
    ("float16", DType::F16, 2),
    ("single", DType::F32, 4),
    ("float32", DType::F32, 4),
    ("double", DType::F64, 8),
    ("float", DType::F64, 8),
    ("float64", DType::F64, 8),
    ("csingle", DType::C64, 8),
    ("complex64", DType::C64, 8),
    ("cdouble", DType::C128, 16),
    ("complex", DType::C128, 16),
    ("complex128", DType::C128, 16),
    ("bfloat16", DType::BF16, 2),
    ("float8_e3m4", DType::F8E3M4, 1),
    ("float8_e4m3", DType::F8E4M3, 1),
    ("float8_e4m3b11fnuz", DType::F8E4M3B11FNUZ, 1),
    ("float8_e4m3fn", DType::F8E4M3FN, 1),
    ("float8_e4m3fnuz", DType::F8E4M3FNUZ, 1),
    ("float8_e5m2", DType::F8E5M2, 1),
    ("float8_e5m2fnuz", DType::F8E5M2FNUZ, 1),
    ("float8_e8m0fnu", DType::F8E8M0FNU, 1),
    ("float4_e2m1fn", DType::F4E2M1FN, 1),
    ("float6_e2m3fn", DType::F6E2M3FN, 1),
    ("float6_e3m2fn", DType::F6E3M2FN, 1),
    ("int1", DType::S1, 1),
    ("int2", DType::S2, 1),
    ("int4", DType::S4, 1),
    ("uint1", DType::U1, 1),
    ("uint2", DType::U2, 1),
    ("uint4", DType::U4, 1),
];
