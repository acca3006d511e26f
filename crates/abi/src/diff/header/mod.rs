//! Layouts that a C header declares, laid out like an LP64 compiler that is not told to pack.
//!
//! The parser reads structs, enumerations, names of types and the macros that give sizes and
//! versions; it skips functions and does not read included headers. The meaning of zero in a member
//! comes from its comment: `NULL is no-op`, `0 is no-op`, or the marks `[no-op]`, `[optional]`,
//! `[value]` and `[required]`. A comment that begins with "Deprecated" deprecates the member, or
//! the struct that follows it; "Deprecating soon" and "will be deprecated" announce a deprecation.
//! `` Use `name` `` in such a comment names the successor, and `` Replaces `name` `` at the
//! successor names the deprecated item.

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
