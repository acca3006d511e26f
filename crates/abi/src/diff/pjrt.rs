//! The PJRT C API as layouts that can be compared; every minor is built in.

use super::layout::{Field, LayoutDocument, Source, Structure, Zero};
use crate::pjrt::{self, Enumeration, Minor, Struct};

/// The minor in which the table's pointer to extensions got its name; the pointers of arguments got
/// theirs later.
const RENAMED_IN_TABLE: Minor = Minor::new(31);

impl LayoutDocument {
    /// Returns the PJRT C API of `minor`, or of the newest known minor if `minor` is newer: the
    /// table `PJRT_Api`, the structs of its calls, and its enumerations. No field is marked,
    /// because the header does not say in which fields 0 or NULL is a no-op.
    #[must_use]
    pub fn of_pjrt(minor: Minor) -> Self {
        let structs = pjrt::structures().iter().filter_map(|found| structure(found, minor));
        let values = pjrt::enumerations().iter().map(|found| enumeration(found, minor));
        let values = values.filter(|found| !found.values.is_empty());
        Self {
            structs: std::iter::once(table(minor)).chain(structs).chain(values).collect(),
            version: Some([0, minor.number().into(), 0]),
            source: Source::File,
            remarks: Vec::new(),
        }
    }
}

fn structure(found: &Struct, minor: Minor) -> Option<Structure> {
    let fields = found
        .fields(minor)
        .map(|known| field(known.name, known.kind, known.offset.into(), known.size.into()));
    Some(named(found.name, found.size(minor)?.declared as u64, fields.collect()))
}

/// Returns the table of functions as a struct.
fn table(minor: Minor) -> Structure {
    let (name, kind) = if minor < RENAMED_IN_TABLE {
        ("priv", "void*")
    } else {
        ("extension_start", "PJRT_Extension_Base*")
    };
    let mut fields = vec![
        field("struct_size", "size_t", 0, 8),
        field(name, kind, 8, 8),
        field("pjrt_api_version", "PJRT_Api_Version", 16, 24),
    ];
    let functions = pjrt::functions().iter();
    fields.extend(
        functions.filter_map(|found| Some(field(found.name, "fn", found.offset(minor)? as u64, 8))),
    );
    let declared = pjrt::table_size(minor).map_or(0, |size| size.declared as u64);
    named("PJRT_Api", declared, fields)
}

fn enumeration(found: &Enumeration, minor: Minor) -> Structure {
    let values = found.values(minor).map(|known| (known.name.to_owned(), known.value.into()));
    Structure { alignment: None, values: values.collect(), ..named(found.name, 0, Vec::new()) }
}

fn named(name: &str, struct_size: u64, mut fields: Vec<Field>) -> Structure {
    fields.sort_by_key(|field| field.offset);
    Structure {
        name: name.to_owned(),
        struct_size,
        alignment: Some(8),
        deprecation: None,
        replaced_by: None,
        fields,
        values: Vec::new(),
    }
}

fn field(name: &str, kind: &str, offset: u64, size: u64) -> Field {
    Field {
        name: name.to_owned(),
        kind: kind.to_owned(),
        offset,
        size,
        signature: None,
        deprecation: None,
        replaced_by: None,
        zero: Zero::Unmarked,
        required: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{Bump, diff};

    fn at(minor: u32) -> LayoutDocument {
        LayoutDocument::of_pjrt(Minor::new(minor))
    }

    /// Returns the changes from one minor to the next for which the strategy demands a MAJOR, as
    /// `STRUCT.FIELD change`, without the names and types of fields that did not move.
    fn broken_at(minor: u32) -> Vec<String> {
        let found = diff(&at(minor - 1), &at(minor));
        let breaks = found.changes.iter().filter(|change| change.requires == Bump::Major);
        breaks
            .filter(|change| !matches!(change.field.as_str(), "priv" | "extension_start"))
            .map(|change| format!("{}.{} {}", change.structure, change.field, change.change))
            .collect()
    }

    #[test]
    fn a_minor_is_named_as_a_layout() {
        assert_eq!(LayoutDocument::read("pjrt-0.54").unwrap(), at(54));
        for name in ["pjrt-0.0", "pjrt-0.118", "pjrt-54", "pjrt-"] {
            let error = LayoutDocument::read(name).unwrap_err().to_string();
            assert!(error.contains("pjrt-0.1 to pjrt-0.117"), "{error}");
        }
    }

    /// The list of docs/abi.md: the changes in which upstream broke the strategy's rules, among the
    /// minors that a host can call.
    #[test]
    fn diff_of_minors_lists_where_upstream_broke_the_rules() {
        const BROKEN: [(u32, &[&str]); 11] = [
            (35, &["PJRT_Api. struct_size"]),
            (39, &["PJRT_ExecuteOptions. struct_size"]),
            (40, &["PJRT_Api. struct_size"]),
            (41, &["PJRT_Structure_Base. removed", "PJRT_Structure_Type. removed"]),
            (
                45,
                &[
                    "PJRT_Extension_Base.type reordered",
                    "PJRT_Extension_Base.next reordered",
                    "PJRT_Extension_Base.struct_size repurposed",
                ],
            ),
            (
                47,
                &[
                    "PJRT_HostBufferSemantics.PJRT_HostBufferSemantics_kZeroCopy removed",
                    "PJRT_HostBufferSemantics.PJRT_HostBufferSemantics_kImmutableZeroCopy repurposed",
                ],
            ),
            (
                48,
                &[
                    "PJRT_Api. struct_size",
                    "PJRT_Memory_Kind_Args.memory_kind renamed",
                    "PJRT_Memory_Kind_Args.memory_kind_size renamed",
                ],
            ),
            (52, &["PJRT_Api. struct_size"]),
            (56, &["PJRT_Executable_DeserializeAndLoad_Args. struct_size"]),
            (
                57,
                &[
                    "PJRT_Executable_DeserializeAndLoad_Args.overridden_serialized_compile_options removed",
                    "PJRT_Executable_DeserializeAndLoad_Args.overridden_serialized_compile_options_size removed",
                ],
            ),
            (
                75,
                &[
                    "PJRT_ProcessInfo.task_id reordered",
                    "PJRT_ProcessInfo.incarnation_id reordered",
                    "PJRT_ProcessInfo.state reordered",
                    "PJRT_ProcessInfo.error_code reordered",
                    "PJRT_ProcessInfo.error_message reordered",
                    "PJRT_ProcessInfo.error_message_size reordered",
                    "PJRT_ProcessInfo.struct_size repurposed",
                ],
            ),
        ];
        let later = Minor::OLDEST_SUPPORTED.number() + 1..=Minor::NEWEST.number();
        let broken = later.map(|minor| (minor, broken_at(minor)));
        let broken: Vec<_> = broken.filter(|(_, changes)| !changes.is_empty()).collect();
        assert_eq!(
            broken,
            BROKEN
                .map(|(minor, changes)| (minor, changes.iter().map(ToString::to_string).collect()))
        );
    }

    /// Plug-ins refuse a change that the strategy calls a fix, because they compare the caller's
    /// declared sizes with those that they were built with.
    #[test]
    fn a_size_that_was_put_right_is_a_patch_by_the_rules() {
        let found = diff(&at(70), &at(71));
        let fixed = found.changes.iter().find(|change| {
            change.structure == "PJRT_Plugin_Attributes_Args" && change.change == "struct_size"
        });
        assert_eq!(fixed.map(|change| change.requires), Some(Bump::Patch));
    }

    #[test]
    fn growth_between_two_plugins_is_listed() {
        let found = diff(&at(54), &at(112));
        assert_eq!(found.versions, (Some([0, 54, 0]), Some([0, 112, 0])));
        let has = |structure: &str, field: &str, change: &str| {
            found.changes.iter().any(|found| {
                (found.structure.as_str(), found.field.as_str(), found.change)
                    == (structure, field, change)
            })
        };
        assert!(has("PJRT_Api", "PJRT_Buffer_CopyRawToHost", "appended"));
        assert!(has("PJRT_ExecuteOptions", "context", "appended"));
        assert!(has("PJRT_Plugin_Attributes_Args", "", "struct_size"));
        assert!(has("PJRT_Buffer_Type", "PJRT_Buffer_Type_S1", "added"));
        // Two minors with the same structs.
        assert_eq!(diff(&at(49), &at(49)).changes, []);
    }
}
