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
//! * A struct may be `{"same_as": "SECTION"}`: as in that section of the file. It may have `alignof` and `"deprecated": true`. A struct with
//!   `values` (names and numbers) instead of fields is an enumeration.
//! * A field may have `signature` (text that is compared; blanks do not count, nor do they in `kind`), `"deprecated": true`, and
//!   `"zero": "meaningful"` for a field whose 0 or NULL is a value, so that it cannot be deprecated by leaving it zero. Without it, zero
//!   means "not there".
//! * The version of a section is in `SECTION_version` beside it, or in `released_version` of the file.

mod document;

use std::collections::HashMap;
use std::fmt;

use document::{Field, Structure};
pub use document::{LayoutDocument, LayoutFileError};

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
        if let (Some(old), Some(new)) = self.versions
            && new < old
        {
            let numbers = |version: [i64; 3]| version.map(|number| number.to_string()).join(".");
            notes.push(format!(
                "the version went back from {} to {}: nobody can tell which layout is the newer one",
                numbers(old),
                numbers(new)
            ));
        } else if let Some(moved) = self.moved()
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

/// Compares two layouts.
#[must_use]
pub fn diff<'a>(old: &'a LayoutDocument, new: &'a LayoutDocument) -> Diff {
    let mut changes = Changes::default();
    let by_name = |document: &'a LayoutDocument| -> HashMap<&'a str, &'a Structure> {
        document.structs.iter().map(|structure| (structure.name.as_str(), structure)).collect()
    };
    let (known, found) = (by_name(old), by_name(new));
    for before in &old.structs {
        match found.get(before.name.as_str()) {
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
        if !known.contains_key(after.name.as_str()) {
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
    let (known, found) = (Fields::of(before), Fields::of(after));
    if after.deprecated && !before.deprecated {
        let why = "it works until a MAJOR removes it: its members can be left zero".to_owned();
        changes.add(name, "", "deprecated", Bump::Minor, why);
    }
    for field in &before.fields {
        match found.by_name.get(field.name.as_str()) {
            Some(other) => compare_field(name, field, other, changes),
            None => lost_field(before, &known, &found, field, changes),
        }
    }
    let end = before.fields.iter().map(Field::end).max().unwrap_or_default();
    let mut appended = None;
    for field in &after.fields {
        if known.by_name.contains_key(field.name.as_str())
            || renamed_from(&known, &found, field).is_some()
        {
            continue;
        }
        if let Some(old) = known.overlapping(field) {
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
    } else if after.struct_size > before.struct_size {
        let covered = after.fields.iter().map(Field::end).max().unwrap_or_default();
        // Padding behind the last member is no member.
        let padded = if appended.is_some() { covered.next_multiple_of(8) } else { covered };
        if after.struct_size > padded {
            let why = format!(
                "struct_size announces {} bytes and the last member ends at {covered}: readers would take what is added later for there",
                after.struct_size
            );
            changes.add(name, "", "struct_size", Bump::Major, why);
        } else if appended.is_none() {
            let why = "struct_size now covers members that were there: a bug fix".to_owned();
            changes.add(name, "", "struct_size", Bump::Patch, why);
        }
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
    if before.zero_is_meaningful != after.zero_is_meaningful && !after.deprecated {
        let why = format!(
            "its 0 or NULL was {} and is {}: what older builds leave in it now means something else",
            zero(before),
            zero(after)
        );
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

/// What 0 or NULL means in a field, for people.
fn zero(field: &Field) -> &'static str {
    if field.zero_is_meaningful { "a value" } else { "\"not there\"" }
}

/// The fields of a struct, by what they are looked up by.
struct Fields<'a> {
    by_name: HashMap<&'a str, &'a Field>,
    by_place: HashMap<(u64, u64, &'a str), &'a Field>,
    /// In the order of their offsets.
    ordered: &'a [Field],
    /// For each of them, where it or one before it ends at the latest.
    reach: Vec<u64>,
}

impl<'a> Fields<'a> {
    fn of(structure: &'a Structure) -> Self {
        let fields = &structure.fields;
        Self {
            by_name: fields.iter().map(|field| (field.name.as_str(), field)).collect(),
            by_place: fields.iter().map(|field| (field.place(), field)).collect(),
            ordered: fields,
            reach: fields
                .iter()
                .scan(0, |reach: &mut u64, field| {
                    *reach = field.end().max(*reach);
                    Some(*reach)
                })
                .collect(),
        }
    }

    /// The first field that shares bytes with `other`.
    fn overlapping(&self, other: &Field) -> Option<&'a Field> {
        // The first that ends behind its beginning; those behind that one begin no earlier.
        let first = self.reach.partition_point(|&reach| reach <= other.offset);
        self.ordered.get(first).filter(|field| field.overlaps(other))
    }
}

/// The old field that a new one took the place and type of, under another name.
fn renamed_from<'a>(before: &Fields<'a>, after: &Fields<'_>, field: &Field) -> Option<&'a Field> {
    let old = before.by_place.get(&field.place())?;
    let is_gone = !after.by_name.contains_key(old.name.as_str());
    let is_new = !before.by_name.contains_key(field.name.as_str());
    (is_gone && is_new).then_some(old)
}

fn lost_field(
    before: &Structure,
    known: &Fields<'_>,
    found: &Fields<'_>,
    field: &Field,
    changes: &mut Changes,
) {
    let name = before.name.as_str();
    let successor = found
        .by_place
        .get(&field.place())
        .filter(|new| renamed_from(known, found, new).is_some_and(|old| old.name == field.name));
    if let Some(successor) = successor {
        let why = format!(
            "it is called {} now: renaming is adding a member behind the last one and deprecating this one",
            successor.name
        );
        changes.add(name, &field.name, "renamed", Bump::Major, why);
    } else {
        let why = if field.deprecated {
            "it was deprecated, and a deprecated member can be removed in a MAJOR".to_owned()
        } else {
            "a member cannot be removed: it can be deprecated by leaving it zero".to_owned()
        };
        changes.add(name, &field.name, "removed", Bump::Major, why);
    }
}

fn compare_values(before: &Structure, after: &Structure, changes: &mut Changes) {
    let numbers = |structure: &'_ Structure| -> HashMap<String, i64> {
        structure.values.iter().cloned().collect()
    };
    let (known, found) = (numbers(before), numbers(after));
    for (value, number) in &before.values {
        let (change, why) = match found.get(value) {
            Some(same) if same == number => continue,
            Some(other) => ("repurposed", format!("its number was {number} and is {other}")),
            None => ("removed", "older builds still send it".to_owned()),
        };
        changes.add(&before.name, value, change, Bump::Major, why);
    }
    let meant: HashMap<i64, &str> =
        before.values.iter().map(|(value, number)| (*number, value.as_str())).collect();
    for (value, number) in &after.values {
        if known.contains_key(value) {
            continue;
        }
        match meant.get(number) {
            Some(old) if found.get(*old) != Some(number) => {
                let why = format!("its number {number} meant {old}");
                changes.add(&before.name, value, "repurposed", Bump::Major, why);
            }
            _ => {
                let why = "a new value is a backwards compatible addition".to_owned();
                changes.add(&before.name, value, "added", Bump::Minor, why);
            }
        }
    }
}

#[cfg(test)]
mod tests;
