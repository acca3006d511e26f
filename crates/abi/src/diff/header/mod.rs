//! Layouts as a C header declares them, laid out as compilers for LP64 do it that are not told to
//! pack.
//!
//! Read are structs, enumerations, names of types and the macros that give sizes and versions;
//! functions and what other headers define are passed over. What zero means in a member is read
//! from its comment: `NULL is no-op`, `0 is no-op`, or the marks `[no-op]`, `[optional]`, `[value]`
//! and `[required]`. A comment that begins with "Deprecated" deprecates the member, or the struct that
//! it stands before; "Deprecating soon" and "will be deprecated" announce that. `` Use `name` `` in it
//! names the successor, and `` Replaces `name` `` at the successor what it is for.

mod claims;
#[cfg(test)]
mod deprecation_tests;
#[cfg(test)]
mod macro_tests;
mod marks;
mod parser;
mod sizes;
#[cfg(test)]
mod tests;
mod tokens;
mod types;

pub(in crate::diff) use parser::parse;
