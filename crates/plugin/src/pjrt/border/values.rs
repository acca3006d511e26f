//! Conversion of texts, lists and named values from and to the host.

use std::{
    ffi::{c_char, c_int},
    ptr, slice,
};

use serdes_abi::pjrt::{ElementType, args::*};

use crate::{
    Result, Status,
    pjrt::{Shape, Value},
};

/// The maximum number of entries in a list of the host; a larger number is certainly wrong.
const MOST_ENTRIES: usize = 1 << 20;

// The type numbers of values.
const TEXT: c_int = 0;
const INTEGER: c_int = 1;
const INTEGERS: c_int = 2;
const FLOAT: c_int = 3;
const BOOLEAN: c_int = 4;

/// Returns a list of the host; an empty one may have any address.
///
/// # Errors
/// `INVALID_ARGUMENT` if a non-empty list is at NULL, or there are too many entries.
///
/// # Safety
/// `start` is NULL, or points to `count` entries, which are not written during `'a`.
pub(super) unsafe fn list<'a, T>(start: *const T, count: usize, what: &str) -> Result<&'a [T]> {
    match count {
        0 => Ok(&[]),
        _ if start.is_null() || count > MOST_ENTRIES || !start.is_aligned() => {
            Err(Status::invalid_argument(format!("found {count} {what} at {start:?}")))
        }
        // SAFETY: not NULL and aligned; the rest is the caller's promise.
        _ => Ok(unsafe { slice::from_raw_parts(start, count) }),
    }
}

/// Returns bytes of the host, of any length.
///
/// # Errors
/// `INVALID_ARGUMENT` if there are bytes at NULL, or more than an address space has.
///
/// # Safety
/// As for [`list`].
pub(super) unsafe fn bytes<'a>(start: *const c_char, count: usize, what: &str) -> Result<&'a [u8]> {
    match count {
        0 => Ok(&[]),
        _ if start.is_null() || isize::try_from(count).is_err() => {
            Err(Status::invalid_argument(format!("found {count} bytes of {what} at {start:?}")))
        }
        // SAFETY: not NULL; the rest is the caller's promise.
        _ => Ok(unsafe { slice::from_raw_parts(start.cast(), count) }),
    }
}

/// Returns a text of the host; empty for NULL.
///
/// # Safety
/// `start` is NULL, or points to `length` bytes.
pub(super) unsafe fn text(start: *const c_char, length: usize) -> String {
    // SAFETY: the caller's promise.
    match unsafe { list(start.cast::<u8>(), length, "bytes of a text") } {
        Ok(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Err(_) => String::new(),
    }
}

/// Returns a shape of the host.
///
/// # Errors
/// `INVALID_ARGUMENT` for an unknown element type, and as [`Shape::new`].
///
/// # Safety
/// `dims` is NULL, or points to `count` numbers.
pub(super) unsafe fn shape(element_type: c_int, dims: *const i64, count: usize) -> Result<Shape> {
    let element_type = ElementType::of_number(element_type).ok_or_else(|| {
        Status::invalid_argument(format!(
            "found the element type {element_type}, which has no data or is newer than this \
             plug-in; expected a number of PJRT_Buffer_Type up to {}",
            ElementType::F6E3M2FN.number()
        ))
    })?;
    // SAFETY: the caller's promise.
    Shape::new(element_type, unsafe { list(dims, count, "dimensions") }?.to_vec())
}

/// Returns a layout of the host: the order of the dimensions if it has no tiles, or its strides;
/// [`HostLayout::Dense`] for NULL.
///
/// # Errors
/// `UNIMPLEMENTED` for tiles.
///
/// # Safety
/// `raw` is NULL or a layout, and the memory that it points to exists during `'a`.
pub(super) unsafe fn layout<'a>(raw: *const PJRT_Buffer_MemoryLayout) -> Result<HostLayout<'a>> {
    const TILED: c_int = 0;
    const STRIDES: c_int = 1;
    // SAFETY: the caller's promise.
    let Some(layout) = (unsafe { raw.as_ref() }) else { return Ok(HostLayout::Dense) };
    match layout.r#type {
        TILED if layout.value.num_tiles == 0 => {
            let (start, count) = (layout.value.minor_to_major, layout.value.minor_to_major_size);
            // SAFETY: the caller's promise.
            Ok(HostLayout::Order(unsafe { list(start, count, "dimensions of a layout") }?))
        }
        TILED => Err(Status::unimplemented("a layout in tiles; this plug-in knows none")),
        STRIDES => {
            // The other kind of the union: its list is at the same offset (see the test).
            let (start, count) = (layout.value.minor_to_major, layout.value.minor_to_major_size);
            // SAFETY: the caller's promise.
            Ok(HostLayout::Strides(unsafe { list(start, count, "strides of a layout") }?))
        }
        other => Err(Status::invalid_argument(format!("found {other} as the kind of a layout"))),
    }
}

/// A layout of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostLayout<'a> {
    /// No layout is given: the dimensions are in their order.
    Dense,
    /// An order of the dimensions, the fastest first.
    Order(&'a [i64]),
    /// Byte strides, from one element to the next in each dimension.
    Strides(&'a [i64]),
}

/// Returns named values of the host.
///
/// # Errors
/// `INVALID_ARGUMENT` for an unknown type of value, or a NULL pointer.
///
/// # Safety
/// `start` is NULL, or points to `count` values, whose pointees are valid.
pub(super) unsafe fn read(
    start: *const PJRT_NamedValue,
    count: usize,
) -> Result<Vec<(String, Value)>> {
    // SAFETY: the caller's promise.
    let values = unsafe { list(start, count, "options") }?;
    values
        .iter()
        .map(|given| {
            // SAFETY: the caller's promise.
            let name = unsafe { text(given.name, given.name_size) };
            // SAFETY: the caller's promise.
            let value = unsafe { value(given, &name) }?;
            Ok((name, value))
        })
        .collect()
}

/// # Safety
/// The memory that the value points to exists.
unsafe fn value(given: &PJRT_NamedValue, name: &str) -> Result<Value> {
    let address = usize::try_from(given.value);
    let pointer = || {
        address.map_err(|_| {
            Status::invalid_argument(format!("the option {name:?} points outside of memory"))
        })
    };
    let [low, ..] = given.value.to_le_bytes();
    Ok(match given.r#type {
        TEXT => {
            let start = ptr::with_exposed_provenance::<c_char>(pointer()?);
            // SAFETY: the caller's promise.
            Value::Text(unsafe { text(start, given.value_size) })
        }
        INTEGER => Value::Integer(given.value.cast_signed()),
        INTEGERS => {
            let start = ptr::with_exposed_provenance::<i64>(pointer()?);
            // SAFETY: the caller's promise.
            Value::Integers(unsafe { list(start, given.value_size, "numbers") }?.to_vec())
        }
        // The value is a union whose first bytes are the number.
        FLOAT => Value::Float(f32::from_bits((given.value & u64::from(u32::MAX)) as u32)),
        BOOLEAN => Value::Boolean(low != 0),
        other => {
            return Err(Status::invalid_argument(format!(
                "the option {name:?} has a value of the type {other}, which is not known"
            )));
        }
    })
}

/// Named values for the host to read.
#[derive(Debug)]
pub(in crate::pjrt) struct NamedValues {
    /// The names and values that the entries point to.
    _values: Box<[(String, Value)]>,
    entries: Box<[PJRT_NamedValue]>,
}

// SAFETY: the entries point to the values in the same struct, which are never written.
unsafe impl Send for NamedValues {}
// SAFETY: as above.
unsafe impl Sync for NamedValues {}

impl NamedValues {
    pub(in crate::pjrt) fn new(values: Vec<(String, Value)>) -> Self {
        let values = values.into_boxed_slice();
        let entries = values.iter().map(entry).collect();
        Self { _values: values, entries }
    }

    pub(super) fn entries(&self) -> &[PJRT_NamedValue] {
        &self.entries
    }
}

fn entry((name, value): &(String, Value)) -> PJRT_NamedValue {
    let (number, value, value_size) = match value {
        Value::Text(text) => (TEXT, text.as_ptr().expose_provenance() as u64, text.len()),
        Value::Integer(number) => (INTEGER, number.cast_unsigned(), 1),
        Value::Integers(list) => (INTEGERS, list.as_ptr().expose_provenance() as u64, list.len()),
        Value::Float(number) => (FLOAT, u64::from(number.to_bits()), 1),
        Value::Boolean(flag) => (BOOLEAN, u64::from(*flag), 1),
    };
    PJRT_NamedValue {
        struct_size: size_of::<PJRT_NamedValue>(),
        extension_start: ptr::null_mut(),
        name: name.as_ptr().cast(),
        name_size: name.len(),
        r#type: number,
        value,
        value_size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_went() {
        let values = vec![
            ("text".to_owned(), Value::Text("four".to_owned())),
            ("integer".to_owned(), Value::Integer(-4)),
            ("integers".to_owned(), Value::Integers(vec![1, -2, 3])),
            ("float".to_owned(), Value::Float(-0.5)),
            ("boolean".to_owned(), Value::Boolean(true)),
        ];
        let given = NamedValues::new(values.clone());
        let entries = given.entries();
        // SAFETY: the entries and what they point to are in `given`.
        assert_eq!(unsafe { read(entries.as_ptr(), entries.len()) }, Ok(values));
        let mut odd = entries[0];
        odd.r#type = 9;
        // SAFETY: as above.
        assert!(unsafe { read(&odd, 1) }.unwrap_err().message().contains("type 9"));
    }

    #[test]
    fn strides_lie_where_the_order_of_dimensions_does() {
        let of = |name, field| {
            let history = serdes_abi::pjrt::structure(name).unwrap();
            history.field(field, serdes_abi::pjrt::Minor::NEWEST).map(|field| field.offset)
        };
        let (tiled, strides) =
            ("PJRT_Buffer_MemoryLayout_Tiled", "PJRT_Buffer_MemoryLayout_Strides");
        assert_eq!(of(tiled, "minor_to_major"), of(strides, "byte_strides"));
        assert_eq!(of(tiled, "minor_to_major_size"), of(strides, "num_byte_strides"));
    }

    #[test]
    fn a_list_at_null_or_without_end_is_refused() {
        for (start, count) in [(ptr::null(), 1), (ptr::without_provenance::<i64>(8), usize::MAX)] {
            // SAFETY: neither is followed.
            assert!(unsafe { list(start, count, "numbers") }.is_err());
        }
        // SAFETY: there are none.
        assert_eq!(unsafe { shape(3, ptr::null(), 0) }.map(|shape| shape.host_bytes()), Ok(2));
        for number in [0, 23, 34, -1, i32::MAX] {
            // SAFETY: there are none.
            let error = unsafe { shape(number, ptr::null(), 0) }.unwrap_err();
            assert!(error.message().contains(&format!("type {number}")), "{error}");
        }
    }
}
