//! The index of shards.

use std::{collections::BTreeMap, fmt, fs, path::Path};

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::{
    super::{Error, json::Ordered},
    KIND,
};
use crate::{
    files::{Files, ReadAt, Tree, read_at::read_arriving},
    storage::Storage,
};

/// What the name of an index ends in.
const ENDINGS: [&str; 3] = [".safetensors.index.json", ".bin.index.json", ".pt.index.json"];

/// Bytes of the longest index: there are models of some hundred thousand tensors.
const LONGEST: u64 = 100_000_000;

/// Whether a path is that of an index, by its name.
pub(in super::super) fn is_index(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Which tensor is in which file.
#[derive(Debug)]
pub(super) struct Index {
    /// Names of tensors and of files, in the order of the text.
    pub(super) weights: Vec<(String, String)>,
}

impl Index {
    /// Reads the index at a path.
    pub(super) fn read(storage: &Storage, path: &Path) -> Result<Self, Error> {
        let file = storage.open(path);
        let shown = storage.name(path);
        let path = Path::new(&shown);
        let corrupt = |found: String, expected| Error::corrupt(path, KIND, found, expected);
        let file = file.map_err(|error| Error::io("open", path, error))?;
        let read = |error| Error::io("read", path, error);
        let size = file.size().map_err(read)?;
        if size > LONGEST {
            return Err(corrupt(format!("more than {LONGEST} bytes"), "an index"));
        }
        let text = read_arriving(&*file, 0, size).map_err(read)?;
        let object: Object = serde_json::from_slice(&text)
            .map_err(|error| corrupt(format!("an index with {error}"), "a weight_map in JSON"))?;
        let Ordered(weights) = object.weight_map;
        for (name, file) in &weights {
            // A name that leads elsewhere would have files read that nobody meant.
            if !is_plain(file) {
                return Err(corrupt(
                    format!("{name:?} in the file {file:?}"),
                    "the name of a file beside the index",
                ));
            }
        }
        Ok(Self { weights })
    }
}

/// Whether it is the name of a file, and no way to one.
fn is_plain(file: &str) -> bool {
    !file.is_empty() && file != "." && file != ".." && !file.contains(['/', '\\', '\0', ':'])
}

/// The text of an index.
pub(super) fn encode(weights: &BTreeMap<&str, String>, bytes: u64) -> Vec<u8> {
    let object = serde_json::json!({ "metadata": { "total_size": bytes }, "weight_map": weights });
    let mut text = format!("{object:#}").into_bytes();
    text.push(b'\n');
    text
}

/// The object of an index; what else is in it is nobody's business.
struct Object {
    weight_map: Ordered<String>,
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a weight_map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut weight_map = None;
                while let Some(key) = map.next_key::<String>()? {
                    if key != "weight_map" {
                        map.next_value::<IgnoredAny>()?;
                    } else if weight_map.replace(map.next_value()?).is_some() {
                        return Err(de::Error::duplicate_field("weight_map"));
                    }
                }
                let missing = || de::Error::missing_field("weight_map");
                Ok(Object { weight_map: weight_map.ok_or_else(missing)? })
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

/// Takes an index away that would say of other files what these hold.
pub(super) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove", path, error))
        }
        _ => Ok(()),
    }
}
