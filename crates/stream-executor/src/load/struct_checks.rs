//! Checks every struct that a plug-in filled, and reports the results.

use serdes_abi::StructLayout;

use crate::{
    border::{BLOCK_BYTES, Status, StructMemory},
    error::{Error, StatusError},
    report::Report,
};

/// Records the size of a struct, warns of irregularities in it, and refuses the size 0.
pub(super) fn check_struct(
    memory: &StructMemory,
    structure: &'static StructLayout,
    report: &mut Report,
) {
    report.struct_sizes.push((structure.name, memory.struct_size()));
    warn_of_oddities(memory, structure, report);
    if memory.struct_size() == 0 {
        refuse_zero(structure, report);
    }
}

/// Warns of bytes beyond the known layout, and of deprecated fields that are set.
pub(super) fn warn_of_oddities(
    memory: &StructMemory,
    structure: &StructLayout,
    report: &mut Report,
) {
    warn_of_unknown_bytes(memory, structure, report);
    warn_of_deprecated_fields(memory, structure, report);
}

/// Warns of bytes that are set beyond the known layout: fields that were removed, or that are
/// newer. They are not read.
fn warn_of_unknown_bytes(memory: &StructMemory, structure: &StructLayout, report: &mut Report) {
    if let Some(at) = memory.first_set_from(structure.size_of) {
        report.warnings.push(format!(
            "{} has a value at byte {at}, beyond the {} bytes that are known: a dropped or a newer field, ignored",
            structure.name, structure.size_of
        ));
    }
}

/// Warns of deprecated fields that the plug-in has set nevertheless (seed 000, "Conventions"). They
/// are not used.
fn warn_of_deprecated_fields(memory: &StructMemory, structure: &StructLayout, report: &mut Report) {
    let size = memory.struct_size();
    let deprecated = structure.fields.iter().filter(|field| field.deprecated);
    for field in deprecated.filter(|field| field.end() <= size && field.end() <= BLOCK_BYTES) {
        if (field.offset..field.end()).any(|at| memory.read::<u8>(at) != 0) {
            report.warnings.push(format!(
                "{}.{} is deprecated, and the plug-in sets it: it is not used; leave it zero in the plug-in",
                structure.name, field.name
            ));
        }
    }
}

/// Refuses a struct whose size is 0.
pub(super) fn refuse_zero(structure: &'static StructLayout, report: &mut Report) {
    report.refuse(
        structure.name,
        "struct_size",
        "0",
        format!("{} ({})", structure.struct_size_macro, structure.struct_size),
        "set struct_size from the macro in the plug-in",
    );
}

/// Refuses a plug-in for a call that failed.
pub(super) fn refuse_call(error: &StatusError, report: &mut Report) {
    report.refuse(
        error.call,
        "",
        format!("{}: {}", error.code, error.message_or_none()),
        "status OK",
        "see the plug-in's message",
    );
}

/// Returns true if the call succeeded; otherwise the report gets its error.
pub(super) fn succeeded(status: Status, call: &'static str, report: &mut Report) -> bool {
    match status.into_result(call) {
        Err(Error::Status(error)) => {
            refuse_call(&error, report);
            false
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serdes_abi::{FieldLayout, Zero};

    use super::*;

    /// A struct of a future header, in which a field is deprecated.
    static LATER: StructLayout = StructLayout {
        name: "SP_Later",
        size_of: 32,
        align_of: 8,
        struct_size_macro: "SP_LATER_STRUCT_SIZE",
        macro_last_field: "last",
        struct_size: 32,
        fields: &[
            field("struct_size", 0, Zero::Required, false),
            field("ext", 8, Zero::NoOp, false),
            field("old", 16, Zero::NoOp, true),
            field("last", 24, Zero::NoOp, true),
        ],
    };

    const fn field(name: &'static str, offset: usize, zero: Zero, deprecated: bool) -> FieldLayout {
        FieldLayout { name, kind: "void*", offset, size: 8, zero, deprecated }
    }

    #[test]
    fn a_deprecated_field_that_a_plugin_sets_is_warned_of() {
        let memory = StructMemory::new(32);
        memory.write(8, 1usize);
        let mut report = Report::default();
        warn_of_deprecated_fields(&memory, &LATER, &mut report);
        assert_eq!(report.warnings, [""; 0]);
        memory.write(16, 1usize << 40);
        memory.write(24, 1usize);
        // The plug-in's own struct ends before the last one.
        memory.write(0, 24usize);
        warn_of_deprecated_fields(&memory, &LATER, &mut report);
        assert_eq!(report.warnings.len(), 1);
        assert!(report.warnings[0].starts_with("SP_Later.old is deprecated"), "{report:?}");
        assert!(report.accepted());
    }
}
