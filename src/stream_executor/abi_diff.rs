//! What a change of layout demands of the version, by the StreamExecutor versioning strategy (seed 000).
//!
//! A layout is read from a JSON file, because a header under work is not in this crate. The form, of which `crates/abi/layouts.json` is an
//! example:
//!
//! ```json
//! {
//!   "released": {
//!     "SP_TimerFns": {
//!       "struct_size": 24,
//!       "fields": [
//!         {"name": "struct_size", "kind": "size_t", "offset": 0, "size": 8},
//!         {"name": "ext", "kind": "void*", "offset": 8, "size": 8},
//!         {"name": "nanoseconds", "kind": "fn", "offset": 16, "size": 8}
//!       ]
//!     }
//!   },
//!   "released_version": {"SE_MAJOR": 0, "SE_MINOR": 0, "SE_PATCH": 1}
//! }
//! ```
//!
//! * A layout is an object of structs. A file is one layout, or holds several, nested as deep as one likes: `FILE#released`,
//!   `FILE#history/2.6.5`.
//! * A struct may be `{"same_as": "SECTION"}`: as in that section of the file. It may have `alignof`. A struct with `values` (names and numbers)
//!   instead of fields is an enumeration.
//! * A field may have `signature` (text that is compared), `"deprecated": true`, and `"zero": "meaningful"` for a field whose 0 or NULL is a
//!   value, so that it cannot be deprecated by leaving it zero. Without it, zero means "not there".
//! * The version of a section is in `SECTION_version` beside it, or in `released_version` of the file.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// Which number of the version must move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bump {
    /// None: nothing changed that anybody could see.
    None,
    /// PATCH: a bug fix.
    Patch,
    /// MINOR: an addition that older builds can ignore.
    Minor,
    /// MAJOR: older builds break.
    Major,
}

impl Bump {
    /// Its name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Patch => "patch",
            Self::Minor => "minor",
            Self::Major => "major",
        }
    }
}

impl fmt::Display for Bump {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The struct.
    pub structure: String,
    /// The field; empty where the change is of the whole struct.
    pub field: String,
    /// What happened: `removed`, `added`, `appended`, `inserted`, `reordered`, `renamed`, `repurposed`, `retyped`, `deprecated`,
    /// `struct_size`, `alignment`.
    pub change: &'static str,
    /// What it demands.
    pub requires: Bump,
    /// The rule behind it.
    pub why: String,
}

/// What changed between two layouts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diff {
    /// What all changes together demand.
    pub required: Bump,
    /// The changes, in the order of the structs of the old layout, then the new ones.
    pub changes: Vec<Change>,
    /// MAJOR, MINOR and PATCH of both layouts, where the files say them.
    pub versions: (Option<[i64; 3]>, Option<[i64; 3]>),
}

impl Diff {
    /// Which number did move, if both versions are known.
    #[must_use]
    pub fn moved(&self) -> Option<Bump> {
        let (old, new) = (self.versions.0?, self.versions.1?);
        Some(if old[0] != new[0] {
            Bump::Major
        } else if old[1] != new[1] {
            Bump::Minor
        } else if old[2] != new[2] {
            Bump::Patch
        } else {
            Bump::None
        })
    }

    /// What a person should know besides: that the number did not move as it must, and that MAJOR 0 promises nothing.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(moved) = self.moved()
            && moved < self.required
        {
            notes.push(format!(
                "{} must move and {} moved: older builds cannot tell the two layouts apart by the version",
                self.required.as_str().to_uppercase(),
                if moved == Bump::None { "nothing".to_owned() } else { moved.as_str().to_uppercase() }
            ));
        }
        if self.versions.0.is_some_and(|version| version[0] == 0) && self.required > Bump::None {
            notes.push(
                "MAJOR is 0, the bake-in period: the strategy does not promise compatibility yet; the answer is what it would demand after it"
                    .to_owned(),
            );
        }
        notes
    }
}

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
    #[error("{path} has no layout `{section}`: {found}; name one with {path}#SECTION")]
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
    structs: Vec<Structure>,
    version: Option<[i64; 3]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Structure {
    name: String,
    struct_size: u64,
    alignment: Option<u64>,
    fields: Vec<Field>,
    values: Vec<(String, i64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    name: String,
    kind: String,
    offset: u64,
    size: u64,
    signature: Option<String>,
    deprecated: bool,
    zero_is_meaningful: bool,
}

impl Field {
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.size)
    }

    fn overlaps(&self, other: &Self) -> bool {
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
        let found = find(&root, section)
            .ok_or_else(|| missing(format!("it has {}", sections(&root).join(", "))))?;
        let object = found.as_object().filter(|object| is_layout(object));
        let object = object.ok_or_else(|| {
            missing(format!("that is not a layout; it has {}", sections(&root).join(", ")))
        })?;
        let mut structs = Vec::new();
        for (name, value) in object {
            if value.is_object() && !name.ends_with("version") {
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

/// The paths of the layouts in a file, two levels deep.
fn sections(root: &Value) -> Vec<String> {
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
    found
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
    fields.sort_by_key(|field| field.offset);
    let last = fields.iter().map(Field::end).max().unwrap_or_default();
    Ok(Structure {
        name: name.to_owned(),
        struct_size: value.get("struct_size").and_then(Value::as_u64).unwrap_or(last),
        alignment: value.get("alignof").and_then(Value::as_u64),
        fields,
        values,
    })
}

fn parse_field(value: &Value) -> Option<Field> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let number =
        |key: &str| value.get(key).and_then(Value::as_u64).filter(|&number| number < 1 << 32);
    Some(Field {
        name: text("name")?.to_owned(),
        kind: text("kind")?.split_whitespace().collect::<Vec<_>>().join(" "),
        offset: number("offset")?,
        size: number("size")?,
        signature: text("signature").map(str::to_owned),
        deprecated: value.get("deprecated").and_then(Value::as_bool).unwrap_or_default(),
        zero_is_meaningful: text("zero") == Some("meaningful"),
    })
}

/// Compares two layouts.
#[must_use]
pub fn diff(old: &LayoutDocument, new: &LayoutDocument) -> Diff {
    let mut changes = Changes::default();
    for before in &old.structs {
        match new.structs.iter().find(|after| after.name == before.name) {
            Some(after) => compare(before, after, &mut changes),
            None => changes.add(
                &before.name,
                "",
                "removed",
                Bump::Major,
                "a struct cannot be removed: older plug-ins still hand it over".to_owned(),
            ),
        }
    }
    for after in &new.structs {
        if !old.structs.iter().any(|before| before.name == after.name) {
            changes.add(
                &after.name,
                "",
                "added",
                Bump::Minor,
                "a new struct is a backwards compatible addition".to_owned(),
            );
        }
    }
    let changes = changes.0;
    let required = changes.iter().map(|change| change.requires).max().unwrap_or(Bump::None);
    Diff { required, changes, versions: (old.version, new.version) }
}

#[derive(Default)]
struct Changes(Vec<Change>);

impl Changes {
    fn add(
        &mut self,
        structure: &str,
        field: &str,
        change: &'static str,
        requires: Bump,
        why: String,
    ) {
        self.0.push(Change {
            structure: structure.to_owned(),
            field: field.to_owned(),
            change,
            requires,
            why,
        });
    }
}

fn compare(before: &Structure, after: &Structure, changes: &mut Changes) {
    let name = before.name.as_str();
    for field in &before.fields {
        match after.fields.iter().find(|other| other.name == field.name) {
            Some(other) => compare_field(name, field, other, changes),
            None => lost_field(before, after, field, changes),
        }
    }
    let end = before.fields.iter().map(Field::end).max().unwrap_or_default();
    let mut appended = None;
    for field in &after.fields {
        if before.fields.iter().any(|other| other.name == field.name)
            || renamed_from(before, after, field).is_some()
        {
            continue;
        }
        if let Some(old) = before.fields.iter().find(|old| old.overlaps(field)) {
            let why = format!(
                "bytes {} to {} meant {} and now mean {}: a member cannot be repurposed, and struct_size cannot tell, because older structs are long enough",
                field.offset,
                field.end(),
                old.name,
                field.name
            );
            changes.add(name, &field.name, "repurposed", Bump::Major, why);
        } else if field.offset < before.struct_size.max(end) {
            let why = format!(
                "it lies at {} inside the {} bytes that older builds announce, so that they seem to have it: members can only be appended",
                field.offset,
                before.struct_size.max(end)
            );
            changes.add(name, &field.name, "inserted", Bump::Major, why);
        } else {
            let why = format!(
                "a member behind the last one is found by struct_size ({} and more)",
                field.end()
            );
            changes.add(name, &field.name, "appended", Bump::Minor, why);
            appended = appended.max(Some(field.end()));
        }
    }
    if let Some(end) = appended.filter(|&end| after.struct_size < end) {
        let why = format!(
            "struct_size is {} and the last member ends at {end}: it must move with the members, or nobody can see that they are there",
            after.struct_size
        );
        changes.add(name, "", "struct_size", Bump::Major, why);
    } else if after.struct_size < before.struct_size {
        let why = format!(
            "struct_size shrank from {} to {}: older builds take the members behind it for missing",
            before.struct_size, after.struct_size
        );
        changes.add(name, "", "struct_size", Bump::Major, why);
    } else if after.struct_size > before.struct_size && appended.is_none() {
        let covered = after.fields.iter().map(Field::end).max().unwrap_or_default();
        let (bump, why) = if after.struct_size <= covered {
            (Bump::Patch, "struct_size now covers members that were there: a bug fix")
        } else {
            (Bump::Major, "struct_size announces more than there is: readers would read beyond it")
        };
        changes.add(name, "", "struct_size", bump, why.to_owned());
    }
    if after.alignment.is_some_and(|alignment| alignment > 8) && after.alignment != before.alignment
    {
        let why = "the strategy supports an alignment of 8 bytes at most".to_owned();
        changes.add(name, "", "alignment", Bump::Major, why);
    }
    compare_values(before, after, changes);
}

fn compare_field(name: &str, before: &Field, after: &Field, changes: &mut Changes) {
    let mut add = |change, requires, why| changes.add(name, &before.name, change, requires, why);
    if before.offset != after.offset {
        let why = format!(
            "it moved from byte {} to byte {}: members cannot be reordered",
            before.offset, after.offset
        );
        add("reordered", Bump::Major, why);
    }
    if before.kind != after.kind || before.size != after.size {
        let why = format!(
            "it was {} of {} bytes and is {} of {}: a new type is a new member, and the old one is deprecated",
            before.kind, before.size, after.kind, after.size
        );
        add("retyped", Bump::Major, why);
    } else if let (Some(old), Some(new)) = (&before.signature, &after.signature)
        && old != new
    {
        let why =
            format!("its signature was `{old}` and is `{new}`: a member cannot be repurposed");
        add("repurposed", Bump::Major, why);
    }
    if after.deprecated && !before.deprecated {
        if before.zero_is_meaningful || after.zero_is_meaningful {
            let why = "0 or NULL is a value of it, so that leaving it zero does not say that it is deprecated".to_owned();
            add("deprecated", Bump::Major, why);
        } else {
            let why = "it can be left zero, which older builds take as not there".to_owned();
            add("deprecated", Bump::Minor, why);
        }
    }
}

/// The old field that a new one took the place and type of, under another name.
fn renamed_from<'a>(before: &'a Structure, after: &Structure, field: &Field) -> Option<&'a Field> {
    let old = before.fields.iter().find(|old| {
        old.offset == field.offset && old.kind == field.kind && old.size == field.size
    })?;
    let is_gone = !after.fields.iter().any(|other| other.name == old.name);
    let is_new = !before.fields.iter().any(|other| other.name == field.name);
    (is_gone && is_new).then_some(old)
}

fn lost_field(before: &Structure, after: &Structure, field: &Field, changes: &mut Changes) {
    let name = before.name.as_str();
    let successor = after
        .fields
        .iter()
        .find(|new| renamed_from(before, after, new).is_some_and(|old| old.name == field.name));
    if let Some(successor) = successor {
        let why = format!(
            "it is called {} now: renaming is adding a member behind the last one and deprecating this one",
            successor.name
        );
        changes.add(name, &field.name, "renamed", Bump::Major, why);
    } else {
        let why = "a member cannot be removed: it can be deprecated by leaving it zero".to_owned();
        changes.add(name, &field.name, "removed", Bump::Major, why);
    }
}

fn compare_values(before: &Structure, after: &Structure, changes: &mut Changes) {
    for (value, number) in &before.values {
        match after.values.iter().find(|(other, _)| other == value) {
            Some((_, same)) if same == number => {}
            Some((_, other)) => changes.add(
                &before.name,
                value,
                "repurposed",
                Bump::Major,
                format!("its number was {number} and is {other}"),
            ),
            None => changes.add(
                &before.name,
                value,
                "removed",
                Bump::Major,
                "older builds still send it".to_owned(),
            ),
        }
    }
    for (value, _) in &after.values {
        if !before.values.iter().any(|(other, _)| other == value) {
            changes.add(
                &before.name,
                value,
                "added",
                Bump::Minor,
                "a new value is a backwards compatible addition".to_owned(),
            );
        }
    }
}

#[cfg(test)]
#[path = "abi_diff_tests.rs"]
mod tests;
