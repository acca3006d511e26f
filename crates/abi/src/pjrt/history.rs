//! Look-ups in the history of the PJRT C API by name, without allocation: functions, structs and
//! enumerations.

use super::{
    generated::{ENUMERATIONS, FUNCTIONS, MINORS, STRUCTS},
    layout::{Enumeration, Function, MinorRecord, Struct, StructSize, same},
    minor::Minor,
};

/// Returns every known minor with the sizes of its table, oldest first.
#[must_use]
pub const fn minors() -> &'static [MinorRecord] {
    MINORS
}

/// Returns every function of any minor, sorted by name.
#[must_use]
pub const fn functions() -> &'static [Function] {
    FUNCTIONS
}

/// Returns every struct of any minor, sorted by name, except the table of functions
/// ([`functions`]).
#[must_use]
pub const fn structures() -> &'static [Struct] {
    STRUCTS
}

/// Returns every enumeration of any minor.
#[must_use]
pub const fn enumerations() -> &'static [Enumeration] {
    ENUMERATIONS
}

/// Returns the function with this name in C.
#[must_use]
pub const fn function(name: &str) -> Option<&'static Function> {
    let mut functions = FUNCTIONS;
    while let [function, behind @ ..] = functions {
        if same(function.name, name) {
            return Some(function);
        }
        functions = behind;
    }
    None
}

/// Returns the struct with this name in C.
#[must_use]
pub const fn structure(name: &str) -> Option<&'static Struct> {
    let mut structs = STRUCTS;
    while let [structure, behind @ ..] = structs {
        if same(structure.name, name) {
            return Some(structure);
        }
        structs = behind;
    }
    None
}

/// Returns the enumeration with this name in C.
#[must_use]
pub const fn enumeration(name: &str) -> Option<&'static Enumeration> {
    let mut enumerations = ENUMERATIONS;
    while let [enumeration, behind @ ..] = enumerations {
        if same(enumeration.name, name) {
            return Some(enumeration);
        }
        enumerations = behind;
    }
    None
}

/// Returns the sizes of the table of functions in `minor`. A minor newer than the tables has the
/// sizes of the newest known one.
#[must_use]
pub const fn table_size(minor: Minor) -> Option<StructSize> {
    let number = minor.or_newest().number();
    let mut minors = MINORS;
    while let [record, behind @ ..] = minors {
        if record.minor as u32 == number {
            return Some(StructSize {
                size_of: record.size_of as usize,
                declared: record.declared as usize,
            });
        }
        minors = behind;
    }
    None
}
