//! The index of shards.

use std::{
    borrow::Cow,
    cell::Cell,
    collections::{BTreeMap, HashMap},
    fmt,
    path::Path,
};

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serdes_files::{ReadAt, read_at::read_arriving};

use super::{
    super::{Error, json::Ordered},
    KIND,
};

/// Extensions of the files that an index names, as they appear in the index's name.
const SHARDS: [&str; 3] = ["safetensors", "bin", "pt"];

/// Maximum size of an index in bytes: there are models of some hundred thousand tensors.
const LONGEST: u64 = 100_000_000;

/// Returns true if a path has the name of an index: `model.safetensors.index.json`, optionally with
/// the name of a variant between any two of its parts but the last, as diffusers and transformers
/// write it (`model.safetensors.index.fp16.json`).
#[doc(hidden)]
pub fn is_index(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let mut parts: Vec<&str> = name.split('.').collect();
    if parts.pop() != Some("json") || parts.is_empty() {
        return false;
    }
    let at = |part: &str| parts.iter().skip(1).rposition(|found| *found == part);
    let shards = SHARDS.iter().find_map(|ending| at(ending));
    shards
        .zip(at("index"))
        .is_some_and(|(shards, index)| shards < index && parts.len() <= index + 3)
}

/// Returns true if bytes begin like an index: a JSON object with an object under `weight_map`. They
/// may end anywhere after that key.
#[doc(hidden)]
pub fn begins_like_index(head: &[u8]) -> bool {
    struct Keys<'f>(&'f Cell<bool>);

    impl<'de> Visitor<'de> for Keys<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object with a weight_map")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(key) = map.next_key::<Cow<'_, str>>()? {
                if key == "weight_map" {
                    self.0.set(true);
                    break;
                }
                map.next_value::<IgnoredAny>()?;
            }
            Ok(())
        }
    }

    let found = Cell::new(false);
    // The text after the key may be cut off: only the key matters.
    let _ = serde_json::Deserializer::from_slice(head).deserialize_map(Keys(&found));
    found.get()
}

/// Returns true if a name is that of an index, including variants of a model.
pub(super) fn names_files(name: &str) -> bool {
    is_index(Path::new(name))
}

/// The index: the file of each tensor.
#[derive(Debug)]
pub(super) struct Index {
    /// Names of tensors and of files, in the order of the text.
    pub(super) weights: Vec<(String, String)>,
    /// Size of all tensors in bytes, from the index's `metadata`; `None` if it is missing or no
    /// number.
    pub(super) total_size: Option<u64>,
}

impl Index {
    /// Reads an index; `path` is for messages.
    pub(super) fn read(file: &dyn ReadAt, path: &Path) -> Result<Self, Error> {
        let corrupt = |found: String, expected| Error::corrupt(path, KIND, found, expected);
        let read = |error| Error::io("read", path, error);
        let size = file.size().map_err(read)?;
        if size > LONGEST {
            return Err(corrupt(format!("more than {LONGEST} bytes"), "an index"));
        }
        let text = read_arriving(file, 0, size).map_err(read)?;
        let object: Object = serde_json::from_slice(&text)
            .map_err(|error| corrupt(format!("an index with {error}"), "a weight_map in JSON"))?;
        let Object { weight_map: Ordered(weights), total_size } = object;
        for (name, file) in &weights {
            // A name with a path would open files outside of the folder.
            if !is_plain(file) {
                return Err(corrupt(
                    format!("{name:?} in the file {file:?}"),
                    "the name of a file beside the index",
                ));
            }
        }
        Ok(Self { weights, total_size })
    }

    /// Returns the named files in the order of the text, each with its number of tensors.
    pub(super) fn files(&self) -> Vec<(&str, usize)> {
        let mut numbers = HashMap::new();
        let mut files: Vec<(&str, usize)> = Vec::new();
        for (_, file) in &self.weights {
            let number = *numbers.entry(&**file).or_insert(files.len());
            match files.get_mut(number) {
                Some((_, tensors)) => *tensors += 1,
                None => files.push((file, 1)),
            }
        }
        files
    }
}

/// Returns the paths of the files that the index at a path names; empty if it cannot be read.
#[doc(hidden)]
pub fn files_of_index(tree: &dyn serdes_files::Tree, path: &Path) -> Vec<std::path::PathBuf> {
    let shown = tree.name(path);
    let index = tree.open(path).ok().and_then(|file| Index::read(&*file, Path::new(&shown)).ok());
    let Some(index) = index else { return Vec::new() };
    index.files().iter().map(|(file, _)| path.with_file_name(file)).collect()
}

/// Returns true if the text is a file name without a path.
fn is_plain(file: &str) -> bool {
    !file.is_empty() && file != "." && file != ".." && !file.contains(['/', '\\', '\0', ':'])
}

/// Encodes an index.
pub(super) fn encode(weights: &BTreeMap<&str, &String>, bytes: u64) -> Vec<u8> {
    let object = serde_json::json!({ "metadata": { "total_size": bytes }, "weight_map": weights });
    let mut text = format!("{object:#}").into_bytes();
    text.push(b'\n');
    text
}

/// The JSON object of an index; other keys are ignored.
struct Object {
    weight_map: Ordered<String>,
    total_size: Option<u64>,
}

/// Returns the size of all tensors from the index's metadata.
fn total_size(metadata: &serde_json::Value) -> Option<u64> {
    let size = metadata.get("total_size")?;
    // Some libraries write a floating-point number.
    let float = || size.as_f64().filter(|size| *size >= 0.0 && size.fract() == 0.0);
    size.as_u64().or_else(|| float().map(|size| size as u64))
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
                let (mut weight_map, mut size) = (None, None);
                while let Some(key) = map.next_key::<String>()? {
                    if key == "metadata" {
                        size = total_size(&map.next_value()?);
                    } else if key != "weight_map" {
                        map.next_value::<IgnoredAny>()?;
                    } else if weight_map.replace(map.next_value()?).is_some() {
                        return Err(de::Error::duplicate_field("weight_map"));
                    }
                }
                let missing = || de::Error::missing_field("weight_map");
                Ok(Object { weight_map: weight_map.ok_or_else(missing)?, total_size: size })
            }
        }

        deserializer.deserialize_map(Entries)
    }
}
