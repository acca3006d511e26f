//! Conventions of the RFC for structs and their names that do not affect the version (seed 004,
//! "Implementation Conventions").

use super::layout::{LayoutDocument, Structure};

/// The prefixes of structs that the core fills, and of structs that the plug-in fills.
const PREFIXES: [&str; 2] = ["SE_", "SP_"];

/// The names of a struct's second member: in the RFC, in the strategy's first draft, and in PJRT.
const EXTENSIONS: [&str; 4] = ["ext", "next", "priv", "extension_start"];

/// Returns the remarks on a struct that only the new layout has.
pub(super) fn of_added(added: &Structure, old: &LayoutDocument) -> Vec<String> {
    let name = &added.name;
    let mut remarks = Vec::new();
    let has_beginning = || match added.fields.as_slice() {
        [size, ext, ..] => {
            (size.name.as_str(), size.offset, size.size) == ("struct_size", 0, 8)
                && EXTENSIONS.contains(&ext.name.as_str())
                && (ext.offset, ext.size) == (8, 8)
        }
        _ => false,
    };
    if !added.fields.is_empty() && !has_beginning() {
        remarks.push(format!(
            "{name} is new and does not begin with `size_t struct_size` and `void* ext`: builds cannot tell which members it has, so that nothing can be appended to it later"
        ));
    }
    let (expected, what): (&[&str], _) = if added.is_enumeration() {
        (&PREFIXES[..1], "enumerations of this API begin with SE_")
    } else {
        (
            &PREFIXES,
            "structs of this API begin with SE_ (the core fills them) or SP_ (the plug-in does)",
        )
    };
    let begins =
        |name: &str, prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    let mut structs = old.structs.iter().filter(|found| !found.is_enumeration()).peekable();
    let keeps_prefixes =
        structs.peek().is_some() && structs.all(|found| begins(&found.name, &PREFIXES));
    if keeps_prefixes && !begins(name, expected) {
        remarks.push(format!("{name} is new, and the {what}"));
    }
    remarks
}
