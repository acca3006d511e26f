//! What changed between two layouts, struct by struct.

use std::collections::{HashMap, HashSet};

use super::{
    alignment::Alignments,
    document::{Field, LayoutDocument, Structure, Zero},
    outcome::{Bump, Change, Diff},
};

/// Compares two layouts.
#[must_use]
pub fn diff<'a>(old: &'a LayoutDocument, new: &'a LayoutDocument) -> Diff {
    let mut changes = Changes::default();
    let alignments = Alignments::of(new);
    let by_name = |document: &'a LayoutDocument| -> HashMap<&'a str, &'a Structure> {
        document.structs.iter().map(|structure| (structure.name.as_str(), structure)).collect()
    };
    let (known, found) = (by_name(old), by_name(new));
    for before in &old.structs {
        match found.get(before.name.as_str()) {
            Some(after) => compare(before, after, &alignments, &mut changes),
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
            compare_alignment(None, after, &alignments, &mut changes);
        }
    }
    let changes = changes.into_list();
    let required = changes.iter().map(|change| change.requires).max().unwrap_or(Bump::None);
    Diff { required, changes, versions: (old.version, new.version) }
}

/// The changes so far.
#[derive(Debug, Default)]
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
            replaced_by: None,
        });
    }

    /// As [`Self::add`], of something that was deprecated, with what takes its place.
    fn add_deprecated(
        &mut self,
        (structure, field): (&str, &str),
        requires: Bump,
        why: &str,
        replaced_by: Option<&String>,
    ) {
        let why = match replaced_by {
            Some(successor) => format!("{why}; {successor} replaces it"),
            None => why.to_owned(),
        };
        self.add(structure, field, "deprecated", requires, why);
        if let Some(change) = self.0.last_mut() {
            change.replaced_by = replaced_by.cloned();
        }
    }

    fn into_list(self) -> Vec<Change> {
        self.0
    }
}

/// Compares a struct with what became of it.
fn compare(
    before: &Structure,
    after: &Structure,
    alignments: &Alignments<'_>,
    changes: &mut Changes,
) {
    let name = before.name.as_str();
    let (known, found) = (Fields::of(before), Fields::of(after));
    if after.deprecated && !before.deprecated {
        let why = "it works until a MAJOR removes it: its members can be left zero";
        changes.add_deprecated((name, ""), Bump::Minor, why, after.replaced_by.as_ref());
    }
    for field in &before.fields {
        match found.by_name.get(field.name.as_str()) {
            Some(other) => compare_field(name, field, other, changes),
            None => lost_field(before, &known, &found, field, changes),
        }
    }
    let appended = added_fields(before, after, (&known, &found), changes);
    compare_struct_size(before, after, appended, changes);
    compare_alignment(Some(before), after, alignments, changes);
    compare_values(before, after, changes);
}

/// The fields that only the new struct has. Answers where the last one ends that was appended.
fn added_fields(
    before: &Structure,
    after: &Structure,
    (known, found): (&Fields<'_>, &Fields<'_>),
    changes: &mut Changes,
) -> Option<u64> {
    let name = before.name.as_str();
    let end = before.fields.iter().map(Field::end).max().unwrap_or_default();
    let mut appended = None;
    for field in &after.fields {
        if known.by_name.contains_key(field.name.as_str())
            || renamed_from(known, found, field).is_some()
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
            let (requires, why) = if field.required {
                let why = "it is required: a build that does not know it neither sets nor reads it, and cannot be told to do so by struct_size".to_owned();
                (Bump::Major, why)
            } else {
                let why = format!(
                    "a member behind the last one is found by struct_size ({} and more)",
                    field.end()
                );
                (Bump::Minor, why)
            };
            changes.add(name, &field.name, "appended", requires, why);
            appended = appended.max(Some(field.end()));
        }
    }
    appended
}

/// What struct_size announces must move with the members, and no further.
fn compare_struct_size(
    before: &Structure,
    after: &Structure,
    appended: Option<u64>,
    changes: &mut Changes,
) {
    let name = before.name.as_str();
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
}

/// The longest alignment that the strategy supports, in bytes (seed 000, "Limitations").
const LONGEST_ALIGNMENT: u64 = 8;

/// The alignment of a struct, and of the fields that it did not have before.
fn compare_alignment(
    before: Option<&Structure>,
    after: &Structure,
    alignments: &Alignments<'_>,
    changes: &mut Changes,
) {
    let was = before.and_then(|before| before.alignment);
    if after.alignment.is_some_and(|alignment| alignment > LONGEST_ALIGNMENT)
        && after.alignment != was
    {
        let why = "the strategy supports an alignment of 8 bytes at most".to_owned();
        changes.add(&after.name, "", "alignment", Bump::Major, why);
    }
    let known: HashSet<&str> = before
        .into_iter()
        .flat_map(|before| &before.fields)
        .map(|field| field.name.as_str())
        .collect();
    for field in after.fields.iter().filter(|field| !known.contains(field.name.as_str())) {
        let Some(alignment) = alignments.of_field(field) else { continue };
        if alignment > LONGEST_ALIGNMENT {
            let why = format!(
                "{} is aligned to {alignment} bytes, and the strategy supports 8 at most",
                field.kind
            );
            changes.add(&after.name, &field.name, "alignment", Bump::Major, why);
        } else if !field.offset.is_multiple_of(alignment) {
            let why = format!(
                "it lies at byte {}, and {} is aligned to {alignment} bytes: compilers that do not pack the struct put it elsewhere",
                field.offset, field.kind
            );
            changes.add(&after.name, &field.name, "alignment", Bump::Major, why);
        }
    }
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
    if after.deprecated {
        if !before.deprecated {
            deprecated(name, before, after, changes);
        }
        return;
    }
    if before.zero.is_no_op() != after.zero.is_no_op() {
        let why = format!(
            "its 0 or NULL was {} and is {}: what older builds leave in it now means something else (where it was so all along, mark it in OLD too)",
            before.zero.meaning(),
            after.zero.meaning()
        );
        add("repurposed", Bump::Major, why);
    }
    if before.required != after.required {
        let why = if after.required {
            "it is required now: builds that left it out are refused"
        } else {
            "it is no longer required: older builds still refuse who leaves it out"
        };
        changes.add(name, &before.name, "repurposed", Bump::Major, why.to_owned());
    }
}

/// A field that became deprecated: that it can be left zero must have been said before.
fn deprecated(name: &str, before: &Field, after: &Field, changes: &mut Changes) {
    let (requires, why) = match before.zero {
        Zero::NoOp => (
            Bump::Minor,
            "0 or NULL is a no-op in it: older builds do nothing with what newer ones leave zero",
        ),
        Zero::Meaningful => (
            Bump::Major,
            "0 or NULL is a value of it, or says that it is not provided, so that leaving it zero does not say that it is deprecated",
        ),
        Zero::Unmarked => (
            Bump::Major,
            "nothing says that 0 or NULL is a no-op in it, so that older builds may take it for a value: if the old header says so, mark it \"zero\": \"no-op\" in OLD",
        ),
    };
    changes.add_deprecated((name, &before.name), requires, why, after.replaced_by.as_ref());
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
            by_place: fields.iter().map(|field| (field.position(), field)).collect(),
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
    let old = before.by_place.get(&field.position())?;
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
        .get(&field.position())
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
