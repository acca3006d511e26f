//! Comparison of two layouts, struct by struct, and the version bump that each change requires.

use std::collections::{HashMap, HashSet};

use super::{
    alignment::Alignments,
    changes::Changes,
    conventions,
    layout::{Field, LayoutDocument, Source, Structure, Zero},
    outcome::{Bump, Deprecation, Diff},
    values::compare_values,
};

/// Compares two layouts and returns the changes, with the version bump that they require.
#[must_use]
pub fn diff<'a>(old: &'a LayoutDocument, new: &'a LayoutDocument) -> Diff {
    let mut changes = Changes::default();
    let mut remarks: Vec<String> = old.remarks.iter().chain(&new.remarks).cloned().collect();
    remarks.dedup();
    let scope = Scope::of(old, new, &mut remarks);
    let alignments = Alignments::of(new);
    let by_name = |document: &'a LayoutDocument| -> HashMap<&'a str, &'a Structure> {
        document.structs.iter().map(|structure| (structure.name.as_str(), structure)).collect()
    };
    let (old_structs, new_structs) = (by_name(old), by_name(new));
    for before in &old.structs {
        match new_structs.get(before.name.as_str()) {
            Some(after) => compare(before, after, (&scope, &alignments), &mut changes),
            None if scope.excludes(before) => {}
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
        if !old_structs.contains_key(after.name.as_str()) && !scope.excludes(after) {
            changes.add(
                &after.name,
                "",
                "added",
                Bump::Minor,
                "a new struct is a backwards compatible addition".to_owned(),
            );
            compare_alignment(None, after, &alignments, &mut changes);
            remarks.extend(conventions::of_added(after, old));
        }
    }
    let changes = changes.into_list();
    let required = changes.iter().map(|change| change.requires).max().unwrap_or(Bump::None);
    Diff { required, changes, versions: (old.version, new.version), remarks }
}

/// The kinds of facts that both layouts have, and that can therefore be compared.
#[derive(Debug)]
struct Scope {
    /// True if both sources can contain enumerations; the built-in layout cannot.
    enumerations: bool,
    /// True if both layouts have the meaning of zero and the required fields, or neither does.
    marks: bool,
    /// True if the old layout is not a header, or has marks or a version. A field that is then
    /// marked deprecated without an announcement is deprecated by leaving it zero.
    versioned: bool,
}

impl Scope {
    fn of(old: &LayoutDocument, new: &LayoutDocument, remarks: &mut Vec<String>) -> Self {
        let built_in = |document: &LayoutDocument| document.source == Source::BuiltIn;
        let any_field = |document: &LayoutDocument, is_marked: fn(&Field) -> bool| {
            document.structs.iter().flat_map(|structure| &structure.fields).any(is_marked)
        };
        let has_marks =
            |document| any_field(document, |field| field.required || field.zero.is_no_op());
        let has_zero_marks = |document| any_field(document, |field| field.zero != Zero::Unmarked);
        let has_enumerations =
            |document: &LayoutDocument| document.structs.iter().any(Structure::is_enumeration);
        let enumerations = built_in(old) == built_in(new);
        if !enumerations && (has_enumerations(old) || has_enumerations(new)) {
            let remark = "enumerations are not compared: the layout that is built in has none";
            remarks.push(remark.to_owned());
        }
        let marks = built_in(old) == built_in(new) || has_marks(old) == has_marks(new);
        if !marks {
            let remark = "what 0 means and which members are required is not compared: the layout that is built in says it, and the other one does not";
            remarks.push(remark.to_owned());
        }
        let versioned = old.source != Source::Header
            || old.version.is_some()
            || has_marks(old)
            || has_zero_marks(old);
        Self { enumerations, marks, versioned }
    }

    /// Returns `true` for a struct on one side that the source of the other side cannot contain.
    fn excludes(&self, structure: &Structure) -> bool {
        !self.enumerations && structure.is_enumeration()
    }
}

/// Compares the old and the new version of a struct.
fn compare(
    before: &Structure,
    after: &Structure,
    (scope, alignments): (&Scope, &Alignments<'_>),
    changes: &mut Changes,
) {
    let name = before.name.as_str();
    let (old_fields, new_fields) = (FieldIndex::of(before), FieldIndex::of(after));
    if let Some(state) = after.deprecation.filter(|_| after.deprecation > before.deprecation) {
        let why = match state {
            Deprecation::Announced => ANNOUNCED,
            Deprecation::ByZero => {
                "it works until a MAJOR removes it: its members can be left zero"
            }
        };
        let successor = after.replaced_by.as_ref();
        changes.add_deprecated((name, ""), state, (Bump::Minor, why), successor);
    }
    for field in &before.fields {
        match new_fields.by_name.get(field.name.as_str()) {
            Some(same_name) => compare_field(name, (field, same_name), scope, changes),
            None => compare_removed_field(before, &old_fields, &new_fields, field, changes),
        }
    }
    let appended_end = compare_added_fields(before, after, (&old_fields, &new_fields), changes);
    compare_struct_size(before, after, appended_end, changes);
    compare_alignment(Some(before), after, alignments, changes);
    compare_values(before, after, changes);
}

/// Reports the fields that only the new struct has. Returns the end of the last appended one, in
/// bytes from the start of the struct.
fn compare_added_fields(
    before: &Structure,
    after: &Structure,
    (old_fields, new_fields): (&FieldIndex<'_>, &FieldIndex<'_>),
    changes: &mut Changes,
) -> Option<u64> {
    let name = before.name.as_str();
    let end = before.fields.iter().map(Field::end).max().unwrap_or_default();
    let mut appended_end = None;
    for field in &after.fields {
        if old_fields.by_name.contains_key(field.name.as_str())
            || renamed_from(old_fields, new_fields, field).is_some()
        {
            continue;
        }
        if let Some(old) = old_fields.overlapping(field) {
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
            appended_end = appended_end.max(Some(field.end()));
        }
    }
    appended_end
}

/// Checks that struct_size grows with the appended members, and no further than their end.
fn compare_struct_size(
    before: &Structure,
    after: &Structure,
    appended_end: Option<u64>,
    changes: &mut Changes,
) {
    let name = before.name.as_str();
    if let Some(end) = appended_end.filter(|&end| after.struct_size < end) {
        let why = format!(
            "struct_size is {} and the last member ends at {end}: it must move with the members, because readers find them by it",
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
        let members_end = after.fields.iter().map(Field::end).max().unwrap_or_default();
        // A struct with appended members may count the padding after the last one.
        let largest_size =
            if appended_end.is_some() { members_end.next_multiple_of(8) } else { members_end };
        if after.struct_size > largest_size {
            let why = format!(
                "struct_size announces {} bytes and the last member ends at {members_end}: readers would take what is added later for there",
                after.struct_size
            );
            changes.add(name, "", "struct_size", Bump::Major, why);
        } else if appended_end.is_none() {
            let why = "struct_size now covers members that were there: a bug fix".to_owned();
            changes.add(name, "", "struct_size", Bump::Patch, why);
        }
    }
}

/// Largest alignment that the versioning strategy supports, in bytes (seed 000, "Limitations").
const MAX_ALIGNMENT: u64 = 8;

/// Checks the alignment of a struct and of its added fields.
fn compare_alignment(
    before: Option<&Structure>,
    after: &Structure,
    alignments: &Alignments<'_>,
    changes: &mut Changes,
) {
    let old_alignment = before.and_then(|before| before.alignment);
    if after.alignment.is_some_and(|alignment| alignment > MAX_ALIGNMENT)
        && after.alignment != old_alignment
    {
        let why = "the strategy supports an alignment of 8 bytes at most".to_owned();
        changes.add(&after.name, "", "alignment", Bump::Major, why);
    }
    let old_names: HashSet<&str> = before
        .into_iter()
        .flat_map(|before| &before.fields)
        .map(|field| field.name.as_str())
        .collect();
    for field in after.fields.iter().filter(|field| !old_names.contains(field.name.as_str())) {
        let Some(alignment) = alignments.of_field(field) else { continue };
        if alignment > MAX_ALIGNMENT {
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

/// The explanation of a deprecation that is only announced, which breaks no build.
const ANNOUNCED: &str =
    "it will be deprecated, and works until then: builds go on setting and reading it";

/// Compares a field that both structs have: its position, type, signature, deprecation and marks.
fn compare_field(
    name: &str,
    (before, after): (&Field, &Field),
    scope: &Scope,
    changes: &mut Changes,
) {
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
    if after.deprecation > before.deprecation {
        compare_deprecation(name, (before, after), scope, changes);
    } else if before.deprecation == Some(Deprecation::ByZero)
        && after.deprecation < before.deprecation
    {
        report_restored(name, before, changes);
    }
    if after.deprecation != Some(Deprecation::ByZero) && scope.marks {
        compare_marks(name, before, after, changes);
    }
}

/// Compares the marks of a field that is not deprecated: the meaning of zero, and if the field is
/// required.
fn compare_marks(name: &str, before: &Field, after: &Field, changes: &mut Changes) {
    if before.zero.is_no_op() != after.zero.is_no_op() {
        let why = format!(
            "its 0 or NULL was {} and is {}: what older builds leave in it now means something else (where it was so all along, mark it in OLD too)",
            before.zero.meaning(),
            after.zero.meaning()
        );
        changes.add(name, &before.name, "repurposed", Bump::Major, why);
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

/// Reports a field that was deprecated further. Deprecation by leaving it zero breaks older builds
/// unless their header says that zero is a no-op.
fn compare_deprecation(
    name: &str,
    (before, after): (&Field, &Field),
    scope: &Scope,
    changes: &mut Changes,
) {
    let state = match after.deprecation {
        Some(Deprecation::ByZero) if scope.versioned || before.zero.is_no_op() => {
            Deprecation::ByZero
        }
        _ => Deprecation::Announced,
    };
    let requirement = match (state, before.zero) {
        (Deprecation::Announced, _) if after.deprecation == Some(Deprecation::ByZero) => (
            Bump::Minor,
            "OLD marks no member and has no version, so that it is not said what 0 means in it: who fills the struct goes on setting it while there are readers that do not look for 0",
        ),
        (Deprecation::Announced, _) => (Bump::Minor, ANNOUNCED),
        (Deprecation::ByZero, Zero::NoOp) => (
            Bump::Minor,
            "0 or NULL is a no-op in it: older builds do nothing with what newer ones leave zero",
        ),
        (Deprecation::ByZero, Zero::Meaningful) => (
            Bump::Major,
            "0 or NULL is a value of it, or says that it is not provided, so that leaving it zero does not say that it is deprecated (where it still works, announce it: `Deprecating soon`)",
        ),
        (Deprecation::ByZero, Zero::Unmarked) => (
            Bump::Major,
            "nothing says that 0 or NULL is a no-op in it, so that older builds may take it for a value: if the old header says so, mark it \"zero\": \"no-op\" in OLD (where it still works, announce it: `Deprecating soon`)",
        ),
    };
    changes.add_deprecated((name, &before.name), state, requirement, after.replaced_by.as_ref());
}

/// Reports a field that was deprecated by leaving it zero, and is in use again.
fn report_restored(name: &str, before: &Field, changes: &mut Changes) {
    let (requires, why) = if before.zero.is_no_op() {
        (Bump::Minor, "it was deprecated: builds of that time leave it zero, which is a no-op")
    } else {
        (
            Bump::Major,
            "it was deprecated: builds of that time leave it zero, which is a value of it",
        )
    };
    changes.add(name, &before.name, "restored", requires, why.to_owned());
}

/// Look-up tables for the fields of a struct.
struct FieldIndex<'a> {
    by_name: HashMap<&'a str, &'a Field>,
    /// By offset, size and type.
    by_position: HashMap<(u64, u64, &'a str), &'a Field>,
    /// In the order of their offsets.
    ordered: &'a [Field],
    /// For each field in `ordered`, the largest end of this field and all fields before it.
    max_ends: Vec<u64>,
}

impl<'a> FieldIndex<'a> {
    fn of(structure: &'a Structure) -> Self {
        let fields = &structure.fields;
        Self {
            by_name: fields.iter().map(|field| (field.name.as_str(), field)).collect(),
            by_position: fields.iter().map(|field| (field.position(), field)).collect(),
            ordered: fields,
            max_ends: fields
                .iter()
                .scan(0, |end: &mut u64, field| {
                    *end = field.end().max(*end);
                    Some(*end)
                })
                .collect(),
        }
    }

    /// Returns the first field that shares bytes with `other`.
    fn overlapping(&self, other: &Field) -> Option<&'a Field> {
        // The first field that ends after the start of `other`. Later fields start no earlier, so
        // they overlap only if this one does.
        let first = self.max_ends.partition_point(|&end| end <= other.offset);
        self.ordered.get(first).filter(|field| field.overlaps(other))
    }
}

/// Returns the old field that was renamed to `field`: it has the same position and type, under
/// another name.
fn renamed_from<'a>(
    old_fields: &FieldIndex<'a>,
    new_fields: &FieldIndex<'_>,
    field: &Field,
) -> Option<&'a Field> {
    let old = old_fields.by_position.get(&field.position())?;
    let is_removed = !new_fields.by_name.contains_key(old.name.as_str());
    let is_new = !old_fields.by_name.contains_key(field.name.as_str());
    (is_removed && is_new).then_some(old)
}

/// Reports a field that only the old struct has, as renamed or removed.
fn compare_removed_field(
    before: &Structure,
    old_fields: &FieldIndex<'_>,
    new_fields: &FieldIndex<'_>,
    field: &Field,
    changes: &mut Changes,
) {
    let name = before.name.as_str();
    let successor = new_fields.by_position.get(&field.position()).filter(|new| {
        renamed_from(old_fields, new_fields, new).is_some_and(|old| old.name == field.name)
    });
    if let Some(successor) = successor {
        let why = format!(
            "it is called {} now: renaming is adding a member behind the last one and deprecating this one",
            successor.name
        );
        changes.add(name, &field.name, "renamed", Bump::Major, why);
    } else {
        let why = if field.deprecation.is_some() {
            "it was deprecated, and a deprecated member can be removed in a MAJOR".to_owned()
        } else {
            "a member cannot be removed: it can be deprecated by leaving it zero".to_owned()
        };
        changes.add(name, &field.name, "removed", Bump::Major, why);
    }
}
