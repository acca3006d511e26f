//! Named values: options of clients, and attributes of plug-ins.

use std::{ffi::c_int, ptr};

use serdes_abi::pjrt::{Minor, args::PJRT_NamedValue};

use super::border::{list, text};
use crate::PjrtError;

/// The value of an option or attribute.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A text.
    Text(String),
    /// An integer.
    Integer(i64),
    /// A list of integers.
    Integers(Vec<i64>),
    /// A floating-point number of 32 bits.
    Float(f32),
    /// A boolean.
    Bool(bool),
}

const TEXT: c_int = 0;
const INTEGER: c_int = 1;
const INTEGERS: c_int = 2;
const FLOAT: c_int = 3;
const BOOL: c_int = 4;
/// The first minor with booleans, the newest of these types.
const BOOL_SINCE: Minor = Minor::new(30);

/// Options of clients with a known type of value. Plug-ins end the process on a value of another
/// type.
const KNOWN: &[(&str, c_int)] = &[
    ("allocator", TEXT),
    ("cpu_device_count", INTEGER),
    ("memory_fraction", FLOAT),
    ("node_id", INTEGER),
    ("num_nodes", INTEGER),
    ("platform_name", TEXT),
    ("preallocate", BOOL),
    ("visible_devices", INTEGERS),
];

impl Value {
    fn number(&self) -> c_int {
        match self {
            Self::Text(_) => TEXT,
            Self::Integer(_) => INTEGER,
            Self::Integers(_) => INTEGERS,
            Self::Float(_) => FLOAT,
            Self::Bool(_) => BOOL,
        }
    }
}

const fn type_name(number: c_int) -> &'static str {
    match number {
        TEXT => "a text",
        INTEGER => "an integer",
        INTEGERS => "a list of integers",
        FLOAT => "a number",
        _ => "true or false",
    }
}

/// Returns options in the form that a plug-in of `minor` takes. They point into `options`.
///
/// # Errors
/// [`PjrtError::InvalidArgument`] for a value of a type on which a plug-in would end the process.
pub(super) fn named_values(
    options: &[(String, Value)],
    minor: Minor,
) -> Result<Vec<PJRT_NamedValue>, PjrtError> {
    options.iter().map(|(name, value)| named_value(name, value, minor)).collect()
}

fn named_value(name: &str, value: &Value, minor: Minor) -> Result<PJRT_NamedValue, PjrtError> {
    let number = value.number();
    let known = KNOWN.iter().find(|(known, _)| *known == name);
    let expected = match known {
        Some(&(_, expected)) if expected != number => Some(type_name(expected).to_owned()),
        _ if number == BOOL && minor < BOOL_SINCE => {
            Some(format!("another type: true and false came with {BOOL_SINCE}"))
        }
        _ => None,
    };
    if let Some(expected) = expected {
        let found = format!("`{name}`: {value:?}");
        return Err(PjrtError::InvalidArgument {
            what: "an option of the client",
            found,
            expected,
        });
    }
    let (bits, count) = match value {
        Value::Text(text) => (text.as_ptr().expose_provenance() as u64, text.len()),
        Value::Integer(integer) => (integer.cast_unsigned(), 1),
        Value::Integers(integers) => (integers.as_ptr().expose_provenance() as u64, integers.len()),
        Value::Float(float) => (u64::from(float.to_bits()), 1),
        Value::Bool(bool) => (u64::from(*bool), 1),
    };
    Ok(PJRT_NamedValue {
        struct_size: size_of::<PJRT_NamedValue>(),
        extension_start: ptr::null_mut(),
        name: name.as_ptr().cast(),
        name_size: name.len(),
        r#type: number,
        value: bits,
        value_size: count,
    })
}

/// Reads a value that a plug-in returned; `None` for an unknown type.
///
/// # Safety
/// The memory that it points to exists.
pub(super) unsafe fn read(
    call: &'static str,
    found: &PJRT_NamedValue,
) -> Result<Option<(String, Value)>, PjrtError> {
    let address = |bits: u64| usize::try_from(bits).unwrap_or_default();
    // SAFETY: the name has the declared number of bytes.
    let name = unsafe { text(call, "the name of an attribute", found.name, found.name_size) }?;
    let value = match found.r#type {
        TEXT => {
            let start = ptr::with_exposed_provenance(address(found.value));
            // SAFETY: the union holds the address of a text of this length.
            Value::Text(unsafe { text(call, "an attribute", start, found.value_size) }?)
        }
        INTEGER => Value::Integer(found.value.cast_signed()),
        INTEGERS => {
            let start = ptr::with_exposed_provenance::<i64>(address(found.value));
            // SAFETY: the union holds the address of this number of integers.
            Value::Integers(
                unsafe { list(call, "an attribute", start, found.value_size) }?.to_vec(),
            )
        }
        FLOAT => Value::Float(f32::from_bits(found.value as u32)),
        BOOL => Value::Bool(found.value & 0xff != 0),
        _ => return Ok(None),
    };
    Ok(Some((name, value)))
}

/// Returns the named values of a plug-in, without those of unknown types.
///
/// # Safety
/// `start` points to `count` values, or is NULL, and their pointees live for the call.
pub(super) unsafe fn attributes(
    call: &'static str,
    start: *const PJRT_NamedValue,
    count: usize,
) -> Result<Vec<(String, Value)>, PjrtError> {
    // SAFETY: guaranteed by the caller.
    let found = unsafe { list(call, "its attributes", start, count) }?;
    // SAFETY: guaranteed by the caller.
    let values = found.iter().filter_map(|value| unsafe { read(call, value) }.transpose());
    values.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_of_a_type_that_crashes_plugins_is_refused() {
        let refused = |name: &str, value: Value, minor: u32| {
            named_values(&[(name.to_owned(), value)], Minor::new(minor)).is_err()
        };
        assert!(refused("cpu_device_count", Value::Text("4".to_owned()), 81));
        assert!(!refused("cpu_device_count", Value::Integer(4), 81));
        assert!(refused("preallocate", Value::Integer(1), 81));
        assert!(refused("preallocate", Value::Bool(true), 29));
        assert!(!refused("something_else", Value::Float(0.5), 29));
    }

    #[test]
    fn values_come_back_as_they_went() {
        let options = [
            ("a".to_owned(), Value::Text("text".to_owned())),
            ("b".to_owned(), Value::Integer(-7)),
            ("c".to_owned(), Value::Integers(vec![1, -2])),
            ("d".to_owned(), Value::Float(0.25)),
            ("e".to_owned(), Value::Bool(true)),
        ];
        for (found, expected) in named_values(&options, Minor::NEWEST).unwrap().iter().zip(&options)
        {
            // SAFETY: it points into `options`.
            assert_eq!(unsafe { read("f", found) }.unwrap().as_ref(), Some(expected));
        }
    }
}
