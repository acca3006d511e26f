//! The header of a safetensors file: JSON that lists its tensors.

use std::{collections::HashMap, fmt};

use serde::de::{
    Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
    value::SeqAccessDeserializer,
};

use super::super::Metadata;

/// Key of the file's metadata.
const METADATA: &str = "__metadata__";

/// A tensor in the header.
pub(super) struct Entry {
    pub(super) dtype: String,
    pub(super) shape: Vec<u64>,
    /// Begin and end of the data, relative to the end of the header.
    pub(super) data_offsets: (u64, u64),
}

/// Accepts the same as the reference implementation, which derives it: the keys in any order, other
/// keys beside them, or a list of the three values. Implemented by hand, because a derive would be
/// the only one in a default build and would require building serde's macros.
impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Description;

        impl<'de> Visitor<'de> for Description {
            type Value = Entry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a tensor with dtype, shape and data_offsets")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
                let (mut dtype, mut shape, mut data_offsets) = (None, None, None);
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "dtype" => read_once(&mut dtype, "dtype", &mut map)?,
                        "shape" => read_once(&mut shape, "shape", &mut map)?,
                        "data_offsets" => read_once(&mut data_offsets, "data_offsets", &mut map)?,
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(Entry {
                    dtype: dtype.ok_or_else(|| A::Error::missing_field("dtype"))?,
                    shape: shape.ok_or_else(|| A::Error::missing_field("shape"))?,
                    data_offsets: data_offsets
                        .ok_or_else(|| A::Error::missing_field("data_offsets"))?,
                })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Entry, A::Error> {
                let values = Deserialize::deserialize(SeqAccessDeserializer::new(seq))?;
                let (dtype, shape, data_offsets) = values;
                Ok(Entry { dtype, shape, data_offsets })
            }
        }

        deserializer.deserialize_struct("Entry", &["dtype", "shape", "data_offsets"], Description)
    }
}

/// Reads the value of a key that must not be repeated.
fn read_once<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    value: &mut Option<T>,
    key: &'static str,
    map: &mut A,
) -> Result<(), A::Error> {
    if value.is_some() {
        return Err(A::Error::duplicate_field(key));
    }
    *value = Some(map.next_value()?);
    Ok(())
}

/// The header, in the order of the text.
#[derive(Default)]
pub(super) struct Header {
    pub(super) metadata: Metadata,
    pub(super) tensors: Vec<(String, Entry)>,
    /// Entries that a later entry of the same name replaces, as in the reference implementation's
    /// map.
    pub(super) replaced: Vec<(String, Entry)>,
}

/// Entries by key, in the order of each key's first occurrence; the last value of a repeated key
/// counts.
struct Latest<V> {
    entries: Vec<(String, V)>,
    places: HashMap<String, usize>,
}

impl<V> Latest<V> {
    fn new() -> Self {
        Self { entries: Vec::new(), places: HashMap::new() }
    }

    /// Adds an entry; returns the value that it replaces.
    fn insert(&mut self, key: &str, value: V) -> Option<V> {
        let known = self.places.get(key).and_then(|place| self.entries.get_mut(*place));
        if let Some((_, known)) = known {
            return Some(std::mem::replace(known, value));
        }
        self.places.insert(key.to_owned(), self.entries.len());
        self.entries.push((key.to_owned(), value));
        None
    }
}

/// Metadata of a file.
struct Words(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Words;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Words, A::Error> {
                let mut words = Latest::new();
                while let Some((key, value)) = map.next_entry::<String, String>()? {
                    words.insert(&key, value);
                }
                Ok(Words(words.entries))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Header;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
                let (mut header, mut tensors) = (Header::default(), Latest::new());
                let mut has_metadata = false;
                while let Some(key) = map.next_key::<String>()? {
                    if key != METADATA {
                        let replaced = tensors.insert(&key, map.next_value()?);
                        header.replaced.extend(replaced.map(|entry| (key, entry)));
                        continue;
                    }
                    if std::mem::replace(&mut has_metadata, true) {
                        return Err(A::Error::custom(format!("{METADATA:?} twice")));
                    }
                    let words = map.next_value::<Option<Words>>()?;
                    header.metadata = words.map(|Words(entries)| entries);
                }
                header.tensors = tensors.entries;
                Ok(header)
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// A tensor for the header.
pub(super) struct Description<'a> {
    pub(super) name: &'a str,
    pub(super) dtype: &'static str,
    pub(super) shape: &'a [i64],
    pub(super) bytes: u64,
}

/// Encodes the header and its length, byte for byte like the reference implementation for tensors
/// in this order; `None` if an offset does not fit.
pub(super) fn encode(metadata: &Metadata, tensors: &[Description<'_>]) -> Option<Vec<u8>> {
    use serde_json::json;

    let mut text = String::from("{");
    let mut entry = |name: &str, value: String| {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&json!(name).to_string());
        text.push(':');
        text.push_str(&value);
    };
    if let Some(metadata) = metadata {
        let pairs: Vec<_> = metadata
            .iter()
            .map(|(key, value)| format!("{}:{}", json!(key), json!(value)))
            .collect();
        entry(METADATA, format!("{{{}}}", pairs.join(",")));
    }
    let mut begin = 0_u64;
    for tensor in tensors {
        let end = begin.checked_add(tensor.bytes)?;
        let value = format!(
            "{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{begin},{end}]}}",
            tensor.dtype,
            json!(tensor.shape)
        );
        entry(tensor.name, value);
        begin = end;
    }
    text.push('}');
    let length = text.len().next_multiple_of(8);
    let mut bytes = Vec::with_capacity(8 + length);
    bytes.extend((length as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.resize(8 + length, b' ');
    Some(bytes)
}
