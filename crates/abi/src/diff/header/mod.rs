//! Layouts as a C header declares them, laid out as compilers for LP64 do it that are not told to
//! pack.
//!
//! Read are structs, enumerations, names of types and the macros that give sizes and versions;
//! functions and what other headers define are passed over. What zero means in a member is read
//! from its comment: `NULL is no-op`, `0 is no-op`, or the marks `[no-op]`, `[optional]`, `[value]`
//! and `[required]`. A comment that begins with "deprecat" marks the member, or the struct that it
//! stands before, as deprecated; `` Use `name` `` in it names the successor.

mod marks;
mod parser;
mod sizes;
#[cfg(test)]
mod tests;
mod tokens;

pub(in crate::diff) use parser::parse;
