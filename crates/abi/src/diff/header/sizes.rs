//! The macros of a header: the sizes that structs announce, and the version.

use std::collections::HashMap;

use super::tokens::{Macros, Word, number_of};
use crate::diff::layout::{Field, Structure};

/// The struct and the member at which it ends, as a macro at the top level says it.
#[derive(Debug)]
pub(super) struct End {
    /// The macro.
    pub(super) by: String,
    pub(super) structure: String,
    pub(super) member: String,
}

/// The structs of a header, to which sizes are given.
struct Sizes<'a> {
    structs: &'a mut [Structure],
    by_name: HashMap<String, usize>,
    /// By the names that their macros have: without underscores, in capitals.
    by_macro: HashMap<String, usize>,
    remarks: Vec<String>,
}

/// Takes the sizes that structs announce from the STRUCT_SIZE macros and from macros at the top
/// level. Returns remarks on macros that do not fit; fails where one names a member that its struct
/// does not have.
pub(super) fn announce_sizes(
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
            let (structure, member) = named(meaning.words()?)?;
            Some((name, structure, member))
        })
        .collect();
    // The macro that has a struct's name decides over others that speak of it.
    found.sort_by_key(|(name, ..)| (sizes.struct_of(name).is_some(), *name));
    for (name, structure, member) in found {
        sizes.apply(name, structure, member)?;
    }
    Ok(sizes.remarks)
}

impl Sizes<'_> {
    /// The struct whose size a macro of that name is.
    fn struct_of(&self, name: &str) -> Option<usize> {
        let stem = name.strip_suffix("_STRUCT_SIZE").or_else(|| name.strip_suffix("_SIZE"))?;
        self.by_macro.get(&in_capitals(stem)).copied()
    }

    /// The end of a member of a struct, or of the struct; `None` if there is no such member.
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

    /// The macro `name`, which gives where `member` of `structure` ends, or how long it is.
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

/// A name as macros are called: `SP_TimerFns` and `SP_TIMER_FNS` are `SPTIMERFNS`.
fn in_capitals(name: &str) -> String {
    name.chars().filter(|c| *c != '_').map(|c| c.to_ascii_uppercase()).collect()
}

/// The struct, and the member at which it ends, that a macro stands for.
fn named(words: &[Word]) -> Option<(&str, Option<&str>)> {
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
