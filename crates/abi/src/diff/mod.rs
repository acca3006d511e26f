//! Compares two layouts of a C API, and determines the version bump that their differences require
//! by the StreamExecutor versioning strategy (seed 000).
//!
//! A layout is a built-in one (`tensorflow-2.14`, `rfc-257`, `pjrt-0.54`), or comes from a C header
//! or a JSON file, for an API under development that this crate does not have. The format of a JSON
//! file, of which `crates/abi/layouts.json` is an example:
//!
//! ```json
//! {
//!   "released": {
//!     "SP_TimerFns": {
//!       "struct_size": 24,
//!       "fields": [
//!         {"name": "struct_size", "kind": "size_t", "offset": 0, "size": 8, "required": true},
//!         {"name": "ext", "kind": "void*", "offset": 8, "size": 8, "zero": "no-op"},
//!         {"name": "nanoseconds", "kind": "fn", "offset": 16, "size": 8, "zero": "meaningful"}
//!       ]
//!     }
//!   },
//!   "released_version": {"SE_MAJOR": 0, "SE_MINOR": 0, "SE_PATCH": 1}
//! }
//! ```
//!
//! * A layout is an object of structs. A file is one layout, or contains several at any depth:
//!   `FILE#released`, `FILE#history/2.6.5`.
//! * A struct may be `{"same_as": "SECTION"}`, which is the struct of the same name in that
//!   section. It may have `struct_size` and `alignof` in bytes, `"deprecated"` and
//!   `"replaced_by": "STRUCT"`. A struct with `values` (names and numbers) instead of fields is an
//!   enumeration.
//! * A field has `name`, `kind` (its type in C, `fn` for a function pointer), `offset` and `size`
//!   in bytes. It may have
//!   * `signature`: text that is compared (blanks do not count, nor do they in `kind`);
//!   * `"zero": "no-op"`, where the header says that 0 or NULL is a no-op: such a field can be
//!     deprecated by leaving it zero. `"meaningful"` is a field whose zero is a value, or says that
//!     something optional is not provided. A field without a mark counts as meaningful,
//!     since no build was told otherwise (seed 000, "Conventions": such fields must be marked
//!     explicitly). Of two marks, that of the old layout counts;
//!   * `"required": true`: one side cannot do without the field, so that adding it breaks builds
//!     that do not know it;
//!   * `"deprecated": true` for a field that is left zero from now on, or `"announced"` for one
//!     that will be and works until then; beside either `"replaced_by"`: the member that takes its
//!     place, of the same struct or as `STRUCT.MEMBER`.
//! * The version of a section is its own `version`, or `SECTION_version` beside it, or
//!   `released_version` of the file, with the numbers `SE_MAJOR`, `SE_MINOR` and `SE_PATCH` (or
//!   without `SE_`).
//!
//! A header, a file whose name ends in `.h`, is laid out like an LP64 compiler does;
//! `FILE.h#NAME=NUMBER` defines a macro before it is read. The meaning of zero in a member comes
//! from its comment: `NULL is no-op`, `0 is no-op`, or `[no-op]`, `[optional]`, `[value]`,
//! `[required]`. A comment that begins with "Deprecated" deprecates; "Deprecating soon" and "will
//! be deprecated" announce it. ``Use `name` `` in it names the successor, and ``Replaces `name` ``
//! at the successor does the same. `..._SIZE` macros that name a struct and its last member give
//! struct_size; `SE_MAJOR`, `SE_MINOR` and `SE_PATCH` (or other names with these endings) give the
//! version.
//!
//! The module compares descriptions. It does not depend on running plug-ins.

mod alignment;
mod built_in;
mod changes;
mod compare;
mod conventions;
mod document;
mod error;
mod header;
mod layout;
mod outcome;
mod pjrt;
mod read;
mod successors;
#[cfg(test)]
mod tests;
mod values;

pub use compare::diff;
pub use error::LayoutFileError;
pub use layout::LayoutDocument;
pub use outcome::{Bump, Change, Deprecation, Diff, VersionStep};
