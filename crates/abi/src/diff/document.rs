//! Layouts in JSON files; the parent module describes the format.

use std::{collections::HashSet, path::Path};

use serde_json::{Map, Value};

use super::{
    error::LayoutFileError,
    layout::{Field, LayoutDocument, Source, Structure, Zero},
    outcome::Deprecation,
    successors,
};

/// The maximum number of `same_as` steps from section to section.
const LONGEST_CHAIN: usize = 8;

impl LayoutDocument {
    /// Parses the layout `section` of `text`; an empty section means the whole text. `path` is used
    /// in errors.
    ///
    /// # Errors
    /// [`LayoutFileError`], by the kind of problem.
    pub fn parse(text: &str, section: &str, path: &Path) -> Result<Self, LayoutFileError> {
        let no_json = |error: serde_json::Error| LayoutFileError::NotJson {
            path: path.to_owned(),
            error: error.to_string(),
        };
        let root: Value = serde_json::from_str(text).map_err(no_json)?;
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
        successors::check(&structs, section)?;
        let version = version(&root, section, object)?;
        Ok(Self { structs, version, source: Source::File, remarks: Vec::new() })
    }
}

/// Returns the value at a path of names separated by slashes.
fn find<'a>(root: &'a Value, section: &str) -> Option<&'a Value> {
    section.split('/').filter(|name| !name.is_empty()).try_fold(root, |value, name| value.get(name))
}

/// Returns `true` if an object is a layout: one of its values is a struct.
fn is_layout(object: &Map<String, Value>) -> bool {
    object
        .values()
        .any(|value| ["fields", "same_as", "values"].iter().any(|key| value.get(key).is_some()))
}

/// Returns the paths of the layouts in a file, two levels deep, for people.
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

/// Returns MAJOR, MINOR and PATCH of a section, if the file has them.
fn version(
    root: &Value,
    section: &str,
    layout: &Map<String, Value>,
) -> Result<Option<[i64; 3]>, LayoutFileError> {
    let beside = format!("{section}_version");
    let found = layout
        .get("version")
        .or_else(|| find(root, &beside))
        .or_else(|| root.get("released_version"));
    let Some(value) = found else { return Ok(None) };
    let number = |name: &str| {
        let number = value.get(format!("SE_{name}")).or_else(|| value.get(name))?.as_i64()?;
        (number >= 0).then_some(number)
    };
    match (number("MAJOR"), number("MINOR"), number("PATCH")) {
        (Some(major), Some(minor), Some(patch)) => Ok(Some([major, minor, patch])),
        _ => Err(LayoutFileError::Malformed {
            at: format!("the version of `{section}`"),
            found: value.to_string(),
            expected: "the numbers SE_MAJOR, SE_MINOR and SE_PATCH",
        }),
    }
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
        let other = section_with(root, same_as, name).filter(|_| chain > 0);
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
        let parsed = parse_field(field).map_err(|expected| malformed(field.to_string(), expected));
        fields.push(parsed?);
    }
    let mut names = HashSet::new();
    if let Some(twice) = fields.iter().find(|field| !names.insert(&field.name)) {
        return Err(malformed(format!("two fields `{}`", twice.name), "each name once"));
    }
    fields.sort_by_key(|field| field.offset);
    let last = fields.iter().map(Field::end).max().unwrap_or_default();
    let number = |key: &str, expected| match value.get(key) {
        None => Ok(None),
        Some(number) => match number.as_u64() {
            Some(number) => Ok(Some(number)),
            None => Err(malformed(format!("`{key}`: {number}"), expected)),
        },
    };
    let (deprecation, replaced_by) =
        deprecation(value).map_err(|expected| malformed(value.to_string(), expected))?;
    Ok(Structure {
        name: name.to_owned(),
        struct_size: number("struct_size", "a number of bytes")?.unwrap_or(last),
        alignment: number("alignof", "a number of bytes")?,
        deprecation,
        replaced_by,
        fields,
        values,
    })
}

/// Returns the section that `same_as` names, possibly followed by a note, and the struct `name` in
/// it.
fn section_with<'a>(root: &'a Value, same_as: &'a str, name: &str) -> Option<(&'a str, &'a Value)> {
    let sections = [same_as, same_as.split_whitespace().next().unwrap_or_default()];
    sections.into_iter().find_map(|section| Some((section, find(root, section)?.get(name)?)))
}

/// Returns C text with only the necessary blanks, between words: `const void *` and `const void*`
/// are the same.
pub(super) fn without_blanks(text: &str) -> String {
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

/// Parses a field. The error is the expected form.
fn parse_field(value: &Value) -> Result<Field, &'static str> {
    const FORM: &str = "a field with name, kind, offset and size (below 2^32)";
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let number = |key: &str| {
        value.get(key).and_then(Value::as_u64).filter(|&number| number < 1 << 32).ok_or(FORM)
    };
    let (deprecation, replaced_by) = deprecation(value)?;
    let signature = match value.get("signature") {
        None => None,
        Some(signature) => Some(signature.as_str().ok_or("a text as `signature`")?),
    };
    Ok(Field {
        name: text("name").ok_or(FORM)?.to_owned(),
        kind: without_blanks(text("kind").ok_or(FORM)?),
        offset: number("offset")?,
        size: number("size")?,
        signature: signature.map(without_blanks),
        deprecation,
        replaced_by,
        zero: match value.get("zero").map(Value::as_str) {
            None => Zero::Unmarked,
            Some(Some("no-op")) => Zero::NoOp,
            Some(Some("meaningful")) => Zero::Meaningful,
            Some(_) => return Err("`zero` to be \"no-op\" or \"meaningful\", or not there"),
        },
        required: flag(value, "required", "true or false as `required`")?,
    })
}

/// Reads the deprecation of a field or a struct, and its successor.
fn deprecation(value: &Value) -> Result<(Option<Deprecation>, Option<String>), &'static str> {
    let deprecation = match value.get("deprecated") {
        None | Some(Value::Bool(false)) => None,
        Some(Value::Bool(true)) => Some(Deprecation::ByZero),
        Some(Value::String(word)) if word == "announced" => Some(Deprecation::Announced),
        Some(_) => return Err("true or false or \"announced\" as `deprecated`"),
    };
    let replaced_by = match value.get("replaced_by") {
        None => None,
        Some(name) => Some(name.as_str().ok_or("a name as `replaced_by`")?.to_owned()),
    };
    if replaced_by.is_some() && deprecation.is_none() {
        return Err("`\"deprecated\": true` (or \"announced\") beside `replaced_by`");
    }
    Ok((deprecation, replaced_by))
}

/// Returns the boolean value of a key; false if the key is absent.
fn flag(value: &Value, key: &str, expected: &'static str) -> Result<bool, &'static str> {
    value.get(key).map_or(Ok(false), |flag| flag.as_bool().ok_or(expected))
}
