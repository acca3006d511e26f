//! The functions that custom calls name.

use std::collections::BTreeSet;

use super::{
    bytecode::Bytecode,
    properties::{attributes_of, names_one_of, string},
};

/// The index of the name among the properties of a custom call, in both of its forms.
const TARGET: usize = 2;

/// Names of properties that must not occur in a dictionary as well: readers differ in which of the
/// two they use.
const NAMES: [&[u8]; 2] = [b"call_target_name", b"called_computations"];

/// Tells whether an operation of VHLO is a custom call.
pub(super) fn is_one(operation: &str) -> bool {
    operation.starts_with("custom_call_")
}

/// Returns the names in the custom calls with these properties; `None` if a name cannot be read, or
/// one of the `dictionaries` beside the properties may have another name.
pub(super) fn targets<'a>(
    file: &Bytecode<'a>,
    properties: impl Iterator<Item = Option<u64>>,
    dictionaries: impl IntoIterator<Item = u64>,
) -> BTreeSet<Option<&'a str>> {
    let target = |properties: Option<u64>| {
        let properties = file.properties.get(usize::try_from(properties?).ok()?)?;
        let name = string(file, *attributes_of(properties)?.get(TARGET)?)?;
        std::str::from_utf8(name).ok()
    };
    let mut dictionaries = dictionaries.into_iter();
    let is_ambiguous = dictionaries.any(|number| names_one_of(file, number, &NAMES) != Some(false));
    properties.map(target).chain(is_ambiguous.then_some(None)).collect()
}
