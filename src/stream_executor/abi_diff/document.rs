//! Layouts as they are written in JSON files; the form is described in the parent.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// Layouts that cannot be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutFileError {
    /// System: the file cannot be read.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// Bytes: the file is no JSON.
    #[error("{path} is not JSON: {error}; see the documentation of `abi diff` for its form")]
    NotJson {
        /// The file.
        path: PathBuf,
        /// Where, and what is wrong.
        error: serde_json::Error,
    },
    /// Caller: the file has no such section.
    #[error("{path} has no layout {}: {found}; name one with {path}#SECTION",
        if section.is_empty() { "by itself".to_owned() } else { format!("`{section}`") })]
    NoSection {
        /// The file.
        path: PathBuf,
        /// The section asked for.
        section: String,
        /// What there is.
        found: String,
    },
    /// Bytes: a struct is not of the documented form.
    #[error("{at}: found {found}, expected {expected}")]
    Malformed {
        /// Where: section, struct, field.
        at: String,
        /// What is there.
        found: String,
        /// What should be.
        expected: &'static str,
    },
}

/// A layout that was read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutDocument {
    pub(super) structs: Vec<Structure>,
    pub(super) version: Option<[i64; 3]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Structure {
    pub(super) name: String,
    pub(super) struct_size: u64,
    pub(super) alignment: Option<u64>,
    pub(super) deprecated: bool,
    pub(super) fields: Vec<Field>,
    pub(super) values: Vec<(String, i64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) signature: Option<String>,
    pub(super) deprecated: bool,
    pub(super) zero_is_meaningful: bool,
}

impl Field {
    pub(super) fn end(&self) -> u64 {
        self.offset.saturating_add(self.size)
    }

    /// What two fields share of which one is the other under another name.
    pub(super) fn place(&self) -> (u64, u64, &str) {
        (self.offset, self.size, &self.kind)
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.offset < other.end() && other.offset < self.end()
    }
}

/// How deep `same_as` may lead from section to section.
const LONGEST_CHAIN: usize = 8;

impl LayoutDocument {
    /// Reads `FILE` or `FILE#SECTION`.
    ///
    /// # Errors
    /// [`LayoutFileError`], by what is wrong.
    pub fn read(argument: &str) -> Result<Self, LayoutFileError> {
        let (file, section) = match argument.rsplit_once('#') {
            Some((file, section)) => (file, section),
            None => (argument, ""),
        };
        let path = PathBuf::from(file);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| LayoutFileError::Unreadable { path: path.clone(), error })?;
        Self::parse(&text, section, &path)
    }

    /// Reads the layout `section` of `text`; the empty section is the whole. `path` is named in errors.
    ///
    /// # Errors
    /// [`LayoutFileError`], by what is wrong.
    pub fn parse(text: &str, section: &str, path: &Path) -> Result<Self, LayoutFileError> {
        let root: Value = serde_json::from_str(text)
            .map_err(|error| LayoutFileError::NotJson { path: path.to_owned(), error })?;
        let missing = |found: String| LayoutFileError::NoSection {
            path: path.to_owned(),
            section: section.to_owned(),
            found,
        };
        let found =
            find(&root, section).ok_or_else(|| missing(format!("it has {}", sections(&root))))?;
        let object = found.as_object().filter(|object| is_layout(object));
        let object = object
            .ok_or_else(|| missing(format!("that is not a layout; it has {}", sections(&root))))?;
        let mut structs = Vec::new();
        for (name, value) in object {
            let is_version = name == "version" || name.ends_with("_version");
            if value.is_object() && !is_version {
                structs.push(structure(&root, section, name, value, LONGEST_CHAIN)?);
            }
        }
        Ok(Self { structs, version: version(&root, section, object) })
    }
}

/// The value at a path of names with slashes between them.
fn find<'a>(root: &'a Value, section: &str) -> Option<&'a Value> {
    section.split('/').filter(|name| !name.is_empty()).try_fold(root, |value, name| value.get(name))
}

/// Whether an object is a layout: some value of it is a struct.
fn is_layout(object: &Map<String, Value>) -> bool {
    object
        .values()
        .any(|value| ["fields", "same_as", "values"].iter().any(|key| value.get(key).is_some()))
}

/// The paths of the layouts in a file, two levels deep, for people.
fn sections(root: &Value) -> String {
    let mut found = Vec::new();
    for (name, value) in root.as_object().into_iter().flatten() {
        let Some(object) = value.as_object() else { continue };
        if is_layout(object) {
            found.push(format!("`{name}`"));
            continue;
        }
        for (inner, value) in object {
            if value.as_object().is_some_and(is_layout) {
                found.push(format!("`{name}/{inner}`"));
            }
        }
    }
    if found.is_empty() { "none".to_owned() } else { found.join(", ") }
}

fn version(root: &Value, section: &str, layout: &Map<String, Value>) -> Option<[i64; 3]> {
    let beside = format!("{section}_version");
    let value = layout
        .get("version")
        .or_else(|| find(root, &beside))
        .or_else(|| root.get("released_version"))?;
    let number = |name: &str| value.get(name).and_then(Value::as_i64);
    Some([number("SE_MAJOR")?, number("SE_MINOR")?, number("SE_PATCH")?])
}

fn structure(
    root: &Value,
    section: &str,
    name: &str,
    value: &Value,
    chain: usize,
) -> Result<Structure, LayoutFileError> {
    let at = format!("{section}/{name}");
    let malformed =
        |found: String, expected| LayoutFileError::Malformed { at: at.clone(), found, expected };
    if let Some(same_as) = value.get("same_as").and_then(Value::as_str) {
        // A note may follow the section's name.
        let sections = [same_as, same_as.split_whitespace().next().unwrap_or_default()];
        let other = sections
            .into_iter()
            .find_map(|section| Some((section, find(root, section)?.get(name)?)))
            .filter(|_| chain > 0);
        let (section, other) = other.ok_or_else(|| {
            malformed(format!("same_as `{same_as}`"), "a section of the file with this struct")
        })?;
        return structure(root, section, name, other, chain - 1);
    }
    let mut values = Vec::new();
    for (name, number) in value.get("values").and_then(Value::as_object).into_iter().flatten() {
        let number = number
            .as_i64()
            .ok_or_else(|| malformed(format!("`{name}`: {number}"), "a number for each value"))?;
        values.push((name.clone(), number));
    }
    let mut fields = Vec::new();
    let list = value.get("fields").and_then(Value::as_array);
    if list.is_none() && value.get("values").is_none() {
        return Err(malformed("neither fields nor values".to_owned(), "a struct or enumeration"));
    }
    for field in list.into_iter().flatten() {
        fields.push(parse_field(field).ok_or_else(|| {
            malformed(field.to_string(), "a field with name, kind, offset and size (below 2^32)")
        })?);
    }
    let mut names = HashSet::new();
    if let Some(twice) = fields.iter().find(|field| !names.insert(&field.name)) {
        return Err(malformed(format!("two fields `{}`", twice.name), "each name once"));
    }
    fields.sort_by_key(|field| field.offset);
    let last = fields.iter().map(Field::end).max().unwrap_or_default();
    Ok(Structure {
        name: name.to_owned(),
        struct_size: value.get("struct_size").and_then(Value::as_u64).unwrap_or(last),
        alignment: value.get("alignof").and_then(Value::as_u64),
        deprecated: value.get("deprecated").and_then(Value::as_bool).unwrap_or_default(),
        fields,
        values,
    })
}

/// C text with the blanks that it needs, between words, and no others: `const void *` and `const void*` are the same.
fn without_blanks(text: &str) -> String {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let mut tight = String::with_capacity(text.len());
    for part in text.split_whitespace() {
        if tight.ends_with(is_word) && part.starts_with(is_word) {
            tight.push(' ');
        }
        tight.push_str(part);
    }
    tight
}

fn parse_field(value: &Value) -> Option<Field> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let number =
        |key: &str| value.get(key).and_then(Value::as_u64).filter(|&number| number < 1 << 32);
    Some(Field {
        name: text("name")?.to_owned(),
        kind: without_blanks(text("kind")?),
        offset: number("offset")?,
        size: number("size")?,
        signature: text("signature").map(without_blanks),
        deprecated: value.get("deprecated").and_then(Value::as_bool).unwrap_or_default(),
        zero_is_meaningful: text("zero") == Some("meaningful"),
    })
}
