//! Attributes by name. The module does not depend on the meaning of an attribute.

use std::fmt;

use bytes::Bytes;

use super::{IfrtError, list_notation::write_list};
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats,
        fields::{Fields, Joined, Value},
        wire_format::{Encoded, WireFormat, described_by_bytes},
    },
    proto::xla::ifrt::AttributeMapProto,
    version::SerDesVersion,
    wire::BackwardWriter,
};

const FORMATS: Formats = Formats::of("AttributeMap");

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum AttributeValue {
    /// Bytes, usually text.
    String(#[cfg_attr(feature = "serde", serde(with = "bytes_as_list"))] Bytes),
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int64(i64),
    /// A list of integers.
    Int64List(Vec<i64>),
    /// A floating-point number.
    Float(f32),
}

#[cfg(feature = "serde")]
mod bytes_as_list {
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        bytes: &Bytes,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Bytes, D::Error> {
        Vec::<u8>::deserialize(deserializer).map(Bytes::from)
    }
}

impl AttributeValue {
    const fn type_name(&self) -> &'static str {
        match self {
            Self::String(_) => "string",
            Self::Bool(_) => "bool",
            Self::Int64(_) => "int64",
            Self::Int64List(_) => "list of int64",
            Self::Float(_) => "float",
        }
    }
}

/// Formats text in quotes; bytes that are not UTF-8 become replacement characters.
impl fmt::Display for AttributeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String(bytes) => write!(f, "{:?}", String::from_utf8_lossy(bytes)),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int64(value) => write!(f, "{value}"),
            Self::Int64List(values) => write_list(f, values),
            Self::Float(value) => write!(f, "{value:?}"),
        }
    }
}

macro_rules! from_rust {
    ($($rust:ty => $variant:ident($convert:expr);)*) => {$(
        impl From<$rust> for AttributeValue {
            fn from(value: $rust) -> Self {
                Self::$variant($convert(value))
            }
        }
    )*};
}

from_rust! {
    Bytes => String(|value| value);
    Vec<u8> => String(Bytes::from);
    String => String(Bytes::from);
    &str => String(|value: &str| Bytes::copy_from_slice(value.as_bytes()));
    bool => Bool(|value| value);
    i64 => Int64(|value| value);
    Vec<i64> => Int64List(|value| value);
    f32 => Float(|value| value);
}

/// Attributes by name: initialisation data, device attributes, costs.
///
/// ```
/// use serdes::ifrt::AttributeMap;
///
/// let map = AttributeMap::from_iter([("cores", 8.into()), ("name", "v5".into())]);
/// assert_eq!(map.int64("cores")?, 8);
/// assert!(map.bool("cores").is_err());
/// # Ok::<(), serdes::ifrt::IfrtError>(())
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct AttributeMap {
    /// Sorted by name, each name once. Maps are small and mostly read and written as a whole, which
    /// is faster with a list than with a tree.
    attributes: Vec<(String, AttributeValue)>,
}

/// Defines a look-up by name and type.
macro_rules! getter {
    ($(#[$doc:meta])* $name:ident $variant:ident $expected:literal -> $rust:ty, $value:ident => $result:expr) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// [`IfrtError::MissingAttribute`] or [`IfrtError::AttributeType`], which name the
        /// attribute.
        pub fn $name(&self, key: &str) -> Result<$rust, IfrtError> {
            match self.get(key)? {
                AttributeValue::$variant($value) => Ok($result),
                other => Err(IfrtError::AttributeType {
                    key: key.to_owned(),
                    found: other.type_name(),
                    expected: $expected,
                }),
            }
        }
    };
}

impl AttributeMap {
    /// Creates a map without attributes.
    pub const fn new() -> Self {
        Self { attributes: Vec::new() }
    }

    /// Returns the value of the attribute `key`.
    ///
    /// # Errors
    /// [`IfrtError::MissingAttribute`], which names the attribute.
    pub fn get(&self, key: &str) -> Result<&AttributeValue, IfrtError> {
        match self.place(key).map(|place| self.attributes.get(place)) {
            Ok(Some((_, value))) => Ok(value),
            _ => Err(IfrtError::MissingAttribute { key: key.to_owned() }),
        }
    }

    getter! {
        /// Returns the bytes of the attribute `key`.
        string String "string" -> &Bytes, value => value
    }
    getter! {
        /// Returns the boolean of the attribute `key`.
        bool Bool "bool" -> bool, value => *value
    }
    getter! {
        /// Returns the integer of the attribute `key`.
        int64 Int64 "int64" -> i64, value => *value
    }
    getter! {
        /// Returns the integers of the attribute `key`.
        int64_list Int64List "list of int64" -> &[i64], value => value
    }
    getter! {
        /// Returns the floating-point number of the attribute `key`.
        float Float "float" -> f32, value => *value
    }

    /// Returns the index of the attribute `key`, or the index to insert it at.
    fn place(&self, key: &str) -> Result<usize, usize> {
        self.attributes.binary_search_by(|(name, _)| name.as_str().cmp(key))
    }

    /// Returns the map of `attributes`; if a name occurs several times, the last value counts.
    fn of(mut attributes: Vec<(String, AttributeValue)>) -> Self {
        if !attributes.is_sorted_by(|(left, _), (right, _)| left < right) {
            // The sort is stable, so attributes with the same name stay in their order.
            attributes.sort_by(|(left, _), (right, _)| left.cmp(right));
            attributes.reverse();
            attributes.dedup_by(|(earlier, _), (later, _)| earlier == later);
            attributes.reverse();
        }
        Self { attributes }
    }

    /// Sets an attribute and returns its previous value. A map of many attributes is built faster
    /// from an iterator.
    pub fn set(
        &mut self,
        key: impl Into<String>,
        value: impl Into<AttributeValue>,
    ) -> Option<AttributeValue> {
        let (key, value) = (key.into(), value.into());
        match self.place(&key) {
            Ok(place) => {
                self.attributes.get_mut(place).map(|(_, old)| std::mem::replace(old, value))
            }
            Err(place) => {
                self.attributes.insert(place, (key, value));
                None
            }
        }
    }

    /// Returns all attributes, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &AttributeValue)> {
        self.attributes.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Returns the number of attributes.
    pub fn len(&self) -> usize {
        self.attributes.len()
    }

    /// Returns true if there is no attribute.
    pub fn is_empty(&self) -> bool {
        self.attributes.is_empty()
    }
}

impl<K: Into<String>> FromIterator<(K, AttributeValue)> for AttributeMap {
    fn from_iter<I: IntoIterator<Item = (K, AttributeValue)>>(attributes: I) -> Self {
        Self::of(attributes.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }
}

impl fmt::Debug for AttributeMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Entries<'a>(&'a AttributeMap);
        impl fmt::Debug for Entries<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_map().entries(self.0.iter()).finish()
            }
        }
        f.debug_struct("AttributeMap").field("attributes", &Entries(self)).finish()
    }
}

/// Formats as `{cores: 8, name: "v5"}`.
impl fmt::Display for AttributeMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (index, (key, value)) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{key}: {value}")?;
        }
        f.write_str("}")
    }
}

described_by_bytes! {
    /// Writes format 0 at every version, the attributes in the order of their names.
    ToProto,
    /// Accepts format 0. An attribute without a value is an error.
    FromProto for AttributeMap as AttributeMapProto
}

/// An upper limit, in most cases, on the bytes of an attribute besides its name and value.
const AROUND: usize = 12;

impl WireFormat for AttributeMap {
    const NAME: &'static str = "AttributeMap";

    fn capacity(&self) -> usize {
        let size_of = |value: &AttributeValue| match value {
            AttributeValue::String(bytes) => bytes.len(),
            AttributeValue::Int64List(values) => 8 * values.len(),
            AttributeValue::Bool(_) | AttributeValue::Int64(_) | AttributeValue::Float(_) => 8,
        };
        let sizes = self.attributes.iter().map(|(key, value)| key.len() + size_of(value) + AROUND);
        sizes.sum()
    }

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        FORMATS.for_request(version).map(drop)
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        out.number(2, FORMATS.for_request(version)?);
        for (key, value) in self.attributes.iter().rev() {
            out.nested(1, |out| {
                out.nested(2, |out| value.write(out));
                if !key.is_empty() {
                    out.bytes(1, key.as_bytes());
                }
            });
        }
        Ok(())
    }

    fn read(message: Encoded<'_>, _: &DeserializeOptions) -> Result<Self, DecodeError> {
        // Capacity for attributes of 32 bytes each, so that short maps are not moved as they grow.
        let mut attributes = Vec::with_capacity(message.bytes().len() / 32 + 1);
        let (mut recorded, mut without_value) = (0, None);
        let mut fields = Fields::new(Self::NAME, message.bytes());
        loop {
            let entry = match fields.take_short(1) {
                Some(entry) => entry,
                None => match fields.next()? {
                    Some((1, value)) => value.bytes()?,
                    Some((2, value)) => {
                        recorded = value.number()?;
                        continue;
                    }
                    Some(_) => continue,
                    None => break,
                },
            };
            match read_entry(message, entry)? {
                (key, Some(value)) => attributes.push((key, value)),
                (key, None) => without_value = without_value.or(Some(key)),
            }
        }
        FORMATS.check_recorded(recorded)?;
        match without_value {
            None => Ok(Self::of(attributes)),
            Some(key) => Err(DecodeError::invalid_value(
                Self::NAME,
                format!(
                    "the attribute `{}` has the value case 0; expected one of the cases 1 to 5 (newer builds may \
                     have more)",
                    key.escape_debug()
                ),
            )),
        }
    }
}

impl AttributeValue {
    fn write(&self, out: &mut BackwardWriter) {
        match self {
            Self::String(bytes) => out.bytes(1, bytes),
            Self::Bool(value) => out.truth(2, *value),
            Self::Int64(value) => out.fixed64(3, value.to_le_bytes()),
            Self::Int64List(values) => out.nested(4, |out| out.packed_fixed64(1, values)),
            Self::Float(value) => out.fixed32(5, value.to_le_bytes()),
        }
    }

    /// Returns the last value in the message, or `None` if it has no value of a known type.
    // Not inlined: the value is built in the caller's memory, and building it needs the registers.
    #[inline(never)]
    fn read(message: Encoded<'_>) -> Result<Option<Self>, DecodeError> {
        let mut fields = Fields::new(AttributeMap::NAME, message.bytes());
        match fields.next()? {
            None => Ok(None),
            // Writers write exactly one value.
            Some((number, value)) if fields.is_at_end() => {
                Self::read_field(message, number, value, None)
            }
            Some(_) => Self::read_several(message),
        }
    }

    #[cold]
    fn read_several(message: Encoded<'_>) -> Result<Option<Self>, DecodeError> {
        let mut fields = Fields::new(AttributeMap::NAME, message.bytes());
        let mut found = None;
        while let Some((number, value)) = fields.next()? {
            found = Self::read_field(message, number, value, found)?;
        }
        Ok(found)
    }

    /// Returns the value of a field that follows the value `before`: a list continues an earlier
    /// one, and an unknown field changes nothing.
    #[inline(always)]
    fn read_field(
        message: Encoded<'_>,
        number: u32,
        value: Value<'_>,
        before: Option<Self>,
    ) -> Result<Option<Self>, DecodeError> {
        Ok(Some(match number {
            1 => Self::String(message.share(value.bytes()?)),
            2 => Self::Bool(value.truth()?),
            3 => Self::Int64(value.fixed64()?.cast_signed()),
            4 => {
                let mut list = match before {
                    Some(Self::Int64List(list)) => list,
                    _ => Vec::new(),
                };
                let mut fields = Fields::new(AttributeMap::NAME, value.bytes()?);
                if let Some(value) = fields.take_short_value(1) {
                    value.many_fixed64(&mut list)?;
                }
                while let Some((number, value)) = fields.next()? {
                    if number == 1 {
                        value.many_fixed64(&mut list)?;
                    }
                }
                Self::Int64List(list)
            }
            5 => Self::Float(f32::from_bits(value.fixed32()?)),
            _ => return Ok(before),
        }))
    }
}

/// Returns the name and the value of an attribute.
fn read_entry(
    message: Encoded<'_>,
    entry: &[u8],
) -> Result<(String, Option<AttributeValue>), DecodeError> {
    let mut fields = Fields::new(AttributeMap::NAME, entry);
    if let (Some(key), Some(value)) = (fields.take_short(1), fields.take_short(2))
        && fields.is_at_end()
        && let Ok(key) = std::str::from_utf8(key)
    {
        return Ok((key.to_owned(), AttributeValue::read(message.part(value))?));
    }
    let (mut key, mut value) = ("", Joined::default());
    let mut fields = Fields::new(AttributeMap::NAME, entry);
    while let Some((number, field)) = fields.next()? {
        match number {
            1 => key = field.text()?,
            2 => value.add(field.bytes()?),
            _ => {}
        }
    }
    Ok((key.to_owned(), AttributeValue::read(message.part(value.bytes()))?))
}

#[cfg(test)]
mod wire_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        codec::{FromProto as _, StatusCode},
        proto::xla::ifrt::attribute_map_proto,
    };

    fn every_type() -> AttributeMap {
        AttributeMap::from_iter([
            ("string", AttributeValue::from("value\0of\u{e9}")),
            ("bytes", AttributeValue::from(vec![0xff_u8, 0])),
            ("bool", true.into()),
            ("int64", (-5_i64).into()),
            ("list", vec![1_i64, -2, i64::MIN].into()),
            ("float", 1.5_f32.into()),
        ])
    }

    #[test]
    fn the_five_types_are_found_by_name_and_type() {
        let map = every_type();
        assert_eq!(map.string("bytes").unwrap()[..], [0xff, 0]);
        assert_eq!(map.bool("bool"), Ok(true));
        assert_eq!(map.int64("int64"), Ok(-5));
        assert_eq!(map.int64_list("list"), Ok(&[1, -2, i64::MIN][..]));
        assert_eq!(map.float("float"), Ok(1.5));
        let missing = map.float("mass").unwrap_err();
        assert_eq!(missing.code(), StatusCode::NotFound);
        assert!(missing.to_string().contains("`mass`"), "{missing}");
        let wrong = map.float("bool").unwrap_err();
        assert_eq!(wrong.code(), StatusCode::InvalidArgument);
        assert_eq!(wrong.to_string(), "the attribute `bool` is a bool; expected a float");
    }

    #[test]
    fn setting_replaces_and_equality_follows_the_content() {
        let mut map = every_type();
        assert_eq!(map, every_type());
        assert_eq!(map.set("bool", 7_i64), Some(AttributeValue::Bool(true)));
        assert_ne!(map, every_type());
        assert_eq!(map.len(), every_type().len());
        assert_eq!(map.set("new", "x"), None);
        assert_eq!(map.set("", "first"), None);
        assert_eq!(map.get("new"), Ok(&"x".into()));
        let names: Vec<_> = map.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["", "bool", "bytes", "float", "int64", "list", "new", "string"]);
    }

    #[test]
    fn of_attributes_with_one_name_the_last_one_counts() {
        let map: AttributeMap = [("b", 1_i64), ("a", 2), ("b", 3), ("a", 4), ("c", 5), ("b", 6)]
            .map(|(name, value)| (name, value.into()))
            .into_iter()
            .collect();
        assert_eq!(map.to_string(), "{a: 4, b: 6, c: 5}");
    }

    #[test]
    fn an_attribute_without_a_value_names_the_case_0() {
        let proto = AttributeMapProto {
            attributes: vec![attribute_map_proto::AttributesEntry {
                key: "key".to_owned(),
                value: Some(attribute_map_proto::Value { value: None }),
            }],
            version_number: 0,
        };
        let error = AttributeMap::from_proto(&proto, &DeserializeOptions::new()).unwrap_err();
        assert_eq!(error.code(), StatusCode::InvalidArgument);
        assert!(error.to_string().contains("`key` has the value case 0"), "{error}");
    }

    #[test]
    fn a_map_of_the_wrong_wire_type_is_refused_at_every_nesting() {
        let empty_entry = "\u{a}\u{2}\u{a}\u{0}";
        // The map's field as a varint, whose value a careless reader would use as the length of an
        // entry.
        let wrong = "\u{8}\u{2}\u{a}\u{0}";
        for (bytes, field) in [(empty_entry, "value case 0"), (wrong, "wire type")] {
            let error = AttributeMap::from_bytes(bytes.into(), &DeserializeOptions::new());
            let error = error.unwrap_err();
            assert_eq!(error.code(), StatusCode::InvalidArgument);
            assert!(error.to_string().contains(field), "{error}");
            let nested = [b"\x52\x04", bytes.as_bytes()].concat();
            let nested =
                super::super::ExecuteOptions::from_bytes(nested.into(), &DeserializeOptions::new());
            assert!(nested.unwrap_err().to_string().contains(field));
        }
    }

    #[test]
    fn a_recorded_number_1_is_refused_as_by_real_clients() {
        let error = AttributeMap::from_bytes("\u{10}\u{1}".into(), &DeserializeOptions::new());
        assert_eq!(error.unwrap_err().code(), StatusCode::FailedPrecondition);
    }

    #[test]
    fn the_text_form_lists_the_attributes_by_name() {
        assert_eq!(
            every_type().to_string(),
            r#"{bool: true, bytes: "�\0", float: 1.5, int64: -5, list: [1,-2,-9223372036854775808], string: "value\0ofé"}"#
        );
    }
}
