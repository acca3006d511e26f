//! The macros of a C header that give the declared sizes of structs, and its version.

use std::collections::HashMap;

use super::tokens::{Macros, Word, number_of};
use crate::diff::layout::{Field, Structure};

/// A use of a macro at the top level of a header, such as
/// `PJRT_DEFINE_STRUCT_TRAITS(PJRT_Error_Destroy_Args, error)`: the declared size of the struct is
/// the end of the member.
#[derive(Debug)]
pub(super) struct End {
    /// The name of the macro.
    pub(super) by: String,
    pub(super) structure: String,
    pub(super) member: String,
}

/// The structs of a header, while their declared sizes are being set.
struct Sizes<'a> {
    structs: &'a mut [Structure],
    by_name: HashMap<String, usize>,
    /// Indexes by the name that macros use: in capitals, without underscores.
    by_macro: HashMap<String, usize>,
    remarks: Vec<String>,
}

/// Sets the declared size of each struct from its STRUCT_SIZE macro, or from a use of a macro at
/// the top level. Returns remarks on inconsistent macros.
///
/// # Errors
/// If a macro names a member that its struct does not have.
pub(super) fn set_declared_sizes(
    structs: &mut [Structure],
    macros: &Macros,
    ends: &[End],
) -> Result<Vec<String>, String> {
    let names = |of: fn(&str) -> String| {
        structs.iter().enumerate().map(|(at, found)| (of(&found.name), at)).collect()
    };
    let (by_name, by_macro) = (names(str::to_owned), names(in_capitals));
    let mut sizes = Sizes { structs, by_name, by_macro, remarks: Vec::new() };
    for End { by, structure, member } in ends {
        let known = sizes.by_name.get(structure).copied();
        let end = known.map(|at| sizes.end_of(at, Some(member)));
        match (known, end) {
            (Some(at), Some(Some(end))) => sizes.announce(at, end),
            (Some(_), _) if by.contains("STRUCT") => {
                return Err(format!("`{by}({structure}, {member})`"));
            }
            _ => {}
        }
    }
    let mut found: Vec<(&String, &str, Option<&str>)> = macros
        .iter()
        .filter(|(name, _)| name.ends_with("SIZE"))
        .filter_map(|(name, meaning)| {
            let (structure, member) = struct_and_member(meaning.words()?)?;
            Some((name, structure, member))
        })
        .collect();
    // Macros are applied in order; the one named after a struct is applied last and decides.
    found.sort_by_key(|(name, ..)| (sizes.struct_of(name).is_some(), *name));
    for (name, structure, member) in found {
        sizes.apply(name, structure, member)?;
    }
    Ok(sizes.remarks)
}

impl Sizes<'_> {
    /// Returns the index of the struct whose declared size the named macro gives.
    fn struct_of(&self, name: &str) -> Option<usize> {
        let stem = name.strip_suffix("_STRUCT_SIZE").or_else(|| name.strip_suffix("_SIZE"))?;
        self.by_macro.get(&in_capitals(stem)).copied()
    }

    /// Returns the end of a member, or of the struct if `member` is `None`, in bytes; `None` if
    /// there is no such member.
    fn end_of(&self, at: usize, member: Option<&str>) -> Option<u64> {
        let found = self.structs.get(at)?;
        match member {
            Some(member) => found.fields.iter().find(|field| field.name == member).map(Field::end),
            None => {
                let last = found.fields.iter().map(Field::end).max();
                last.map(|end| end.next_multiple_of(found.alignment.unwrap_or(1)))
            }
        }
    }

    fn announce(&mut self, at: usize, end: u64) {
        if let Some(found) = self.structs.get_mut(at) {
            found.struct_size = end;
        }
    }

    /// Applies the macro `name`, whose value is the end of `member` in `structure`, or the size of
    /// `structure` without a member.
    fn apply(&mut self, name: &str, structure: &str, member: Option<&str>) -> Result<(), String> {
        let owner = self.struct_of(name);
        let own_name = |at: usize| self.structs.get(at).map_or("", |found| found.name.as_str());
        let Some(&at) = self.by_name.get(structure) else {
            if name.ends_with("STRUCT_SIZE") {
                let own = owner.map(|at| {
                    format!(
                        "; the size of {} is taken to be where its last member ends",
                        own_name(at)
                    )
                });
                self.remarks.push(format!(
                    "the macro {name} names the struct {structure}, which the header does not declare{}",
                    own.unwrap_or_default()
                ));
            }
            return Ok(());
        };
        let end = self.end_of(at, member);
        let Some(end) = end else {
            return match member {
                Some(member) => Err(format!("`{member}` of {structure} in the macro {name}")),
                None => Ok(()),
            };
        };
        let owner = owner.unwrap_or(at);
        if owner != at {
            self.remarks.push(format!(
                "the macro {name} gives the size of {structure}, and by its name it is the size of {}, which so announces {end} bytes",
                own_name(owner)
            ));
        }
        self.announce(owner, end);
        Ok(())
    }
}

/// Returns a name in the form that macros use: `SPTIMERFNS` for `SP_TimerFns` and `SP_TIMER_FNS`.
fn in_capitals(name: &str) -> String {
    name.chars().filter(|c| *c != '_').map(|c| c.to_ascii_uppercase()).collect()
}

/// Returns the struct and the member in the replacement of a macro: `sizeof(STRUCT)` or
/// `MACRO(STRUCT, MEMBER)`.
fn struct_and_member(words: &[Word]) -> Option<(&str, Option<&str>)> {
    let words = match words {
        [Word::Sign('('), inner @ .., Word::Sign(')')] => inner,
        _ => words,
    };
    match words {
        [Word::Name(name), Word::Sign('('), Word::Name(structure), Word::Sign(')')]
            if name == "sizeof" =>
        {
            Some((structure, None))
        }
        [
            Word::Name(_),
            Word::Sign('('),
            Word::Name(structure),
            Word::Sign(','),
            Word::Name(member),
            Word::Sign(')'),
        ] => Some((structure, Some(member))),
        _ => None,
    }
}

/// Returns the version that a header defines as macros: `SE_MAJOR` or another `..._MAJOR`, with the
/// MINOR and PATCH of the same prefix. PATCH is optional.
pub(super) fn version(macros: &Macros) -> Option<[i64; 3]> {
    let mut prefixes: Vec<&str> =
        macros.keys().filter_map(|name| name.strip_suffix("MAJOR")).collect();
    prefixes.sort_by_key(|prefix| (*prefix != "SE_", *prefix));
    prefixes.into_iter().find_map(|prefix| {
        let number = |name: &str| number_of(&format!("{prefix}{name}"), macros);
        Some([number("MAJOR")?, number("MINOR")?, number("PATCH").unwrap_or_default()])
    })
}
