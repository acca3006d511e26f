//! The built-in layouts and their names.

use super::{
    layout::{Field, LayoutDocument, Source, Structure, Zero},
    outcome::Deprecation,
};
use crate::{LAYOUTS, pjrt::Minor};

/// The prefix of the names of PJRT's layouts, before the version.
const PJRT: &str = "pjrt-";

/// Returns the minor of the layout with this name, such as `pjrt-0.54`.
pub(super) fn pjrt_minor(name: &str) -> Option<Minor> {
    name.strip_prefix(PJRT).and_then(Minor::parse).filter(|minor| minor.is_known())
}

/// Returns all names, for people.
pub(super) fn names() -> String {
    let names: Vec<&str> = LAYOUTS.iter().map(|layout| layout.name).collect();
    format!("{}, {PJRT}{} to {PJRT}{}", names.join(", "), Minor::OLDEST, Minor::NEWEST)
}

impl LayoutDocument {
    /// Converts a layout of this crate.
    #[must_use]
    pub fn of(layout: &crate::Layout) -> Self {
        let structs = layout.structs.iter().map(|structure| Structure {
            name: structure.name.to_owned(),
            struct_size: structure.struct_size as u64,
            alignment: Some(structure.align_of as u64),
            deprecation: None,
            replaced_by: None,
            fields: structure.fields.iter().map(field).collect(),
            values: Vec::new(),
        });
        let version = [crate::SE_MAJOR, crate::SE_MINOR, crate::SE_PATCH];
        Self {
            structs: structs.collect(),
            version: Some(version.map(i64::from)),
            source: Source::BuiltIn,
            remarks: Vec::new(),
        }
    }
}

fn field(field: &crate::FieldLayout) -> Field {
    Field {
        name: field.name.to_owned(),
        kind: field.kind.to_owned(),
        offset: field.offset as u64,
        size: field.size as u64,
        signature: None,
        deprecation: field.deprecated.then_some(Deprecation::ByZero),
        replaced_by: None,
        zero: match field.zero {
            crate::Zero::NoOp => Zero::NoOp,
            crate::Zero::Required => Zero::Unmarked,
            crate::Zero::Optional | crate::Zero::Value => Zero::Meaningful,
        },
        required: field.is_required(),
    }
}
