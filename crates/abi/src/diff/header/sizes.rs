//! The macros of a header: the sizes that structs announce, and the version.

use std::collections::HashMap;

use super::tokens::{Macros, Word, number_of};
use crate::diff::document::{Field, Structure};

/// What the STRUCT_SIZE macros, and macros at the top level, say that structs announce.
pub(super) fn announce_sizes(
    structs: &mut [Structure],
    macros: &Macros,
    ends: &[(String, String)],
) {
    let names: HashMap<String, usize> =
        structs.iter().enumerate().map(|(at, found)| (found.name.clone(), at)).collect();
    let mut announce = |structure: &str, member: Option<&str>| {
        let Some(found) = names.get(structure).and_then(|&at| structs.get_mut(at)) else { return };
        let end = match member {
            Some(member) => found.fields.iter().find(|field| field.name == member).map(Field::end),
            None => {
                let last = found.fields.iter().map(Field::end).max();
                last.map(|end| end.next_multiple_of(found.alignment.unwrap_or(1)))
            }
        };
        if let Some(end) = end {
            found.struct_size = end;
        }
    };
    for (structure, member) in ends {
        announce(structure, Some(member));
    }
    let sizes = macros.iter().filter(|(name, _)| name.ends_with("SIZE"));
    for (_, words) in sizes {
        match words.as_slice() {
            [Word::Name(name), Word::Sign('('), Word::Name(structure), Word::Sign(')')]
                if name == "sizeof" =>
            {
                announce(structure, None);
            }
            [
                Word::Name(_),
                Word::Sign('('),
                Word::Name(structure),
                Word::Sign(','),
                Word::Name(member),
                Word::Sign(')'),
            ] => announce(structure, Some(member)),
            _ => {}
        }
    }
}

/// The version that a header defines: `SE_MAJOR`, or another `..._MAJOR`, with its MINOR and, if
/// there is one, PATCH.
pub(super) fn version(macros: &Macros) -> Option<[i64; 3]> {
    let mut prefixes: Vec<&str> =
        macros.keys().filter_map(|name| name.strip_suffix("MAJOR")).collect();
    prefixes.sort_by_key(|prefix| (*prefix != "SE_", *prefix));
    prefixes.into_iter().find_map(|prefix| {
        let number = |name: &str| number_of(&format!("{prefix}{name}"), macros);
        Some([number("MAJOR")?, number("MINOR")?, number("PATCH").unwrap_or_default()])
    })
}
