//! Arguments of `abi` and of the commands under it.

use clap::{Subcommand, ValueEnum};

/// Commands under `abi`.
#[derive(Debug, Subcommand)]
pub(crate) enum AbiCommand {
    /// Compare two layouts: print the part of MAJOR, MINOR, PATCH that must move from OLD to NEW,
    /// by the StreamExecutor versioning strategy.
    #[command(after_help = ABI_DIFF_HELP)]
    Diff {
        /// A layout: one that is built in (tensorflow-2.14, pjrt-0.54), a C header (FILE.h), or
        /// JSON (FILE or FILE#SECTION).
        old: String,
        /// A layout, as OLD.
        new: String,
        /// The largest bump that is fine; above it the status is 1.
        #[arg(long, value_enum, value_name = "BUMP")]
        allow: Option<AllowedBump>,
        /// Status 1 unless the version moved as it must: far enough, not back, with the lower
        /// numbers at 0.
        #[arg(long)]
        require_moved: bool,
    },
}

/// Text of `serdes abi diff --help` about layouts, examples last.
const ABI_DIFF_HELP: &str = "Layouts:
  {\"SP_TimerFns\": {\"struct_size\": 24, \"fields\": [
     {\"name\": \"ext\", \"kind\": \"void*\", \"offset\": 8, \"size\": 8, \"zero\": \"no-op\"}]},
   \"version\": {\"SE_MAJOR\": 1, \"SE_MINOR\": 0, \"SE_PATCH\": 0}}

  Of a field:
    name, kind     its name and its type in C (`fn` for a function pointer)
    offset, size   in bytes
    signature      of a function, compared as text
    zero           \"no-op\": 0 or NULL is a no-op, so that it can be deprecated at MINOR;
                   \"meaningful\": it is a value, or says \"not provided\". Unmarked counts as
                   meaningful. What OLD says counts
    required       true: one side cannot do without it; adding it needs MAJOR
    deprecated     true: left zero from now on; \"announced\": will be, and works until then (MINOR)
    replaced_by    beside deprecated: a member of the struct, or STRUCT.MEMBER
  Of a struct:     struct_size, alignof (bytes); fields; values (an enumeration: names and
                   numbers); same_as (a section of the file); deprecated; replaced_by (a struct)
  Of a file:       sections, nested as deep as one likes (FILE#history/1.2.0); the version of a
                   section is its `version`, or SECTION_version beside it

C headers: structs, enumerations, STRUCT_SIZE macros and SE_MAJOR, SE_MINOR, SE_PATCH are read; what zero
means stands in a member's comment: `NULL is no-op`, `0 is no-op`, `[no-op]`, `[optional]`, `[value]`,
`[required]`; `Deprecated. Use `name`.` deprecates; `Deprecating soon.` or `will be deprecated` announces
it, which is MINOR for every member; `Replaces `name`.` at the successor names it as well. A successor that
is not there is an error. FILE.h#NAME=NUMBER sets a macro first.

Examples:
  serdes abi diff tensorflow-2.8 tensorflow-2.14
  serdes abi diff released/api.h include/api.h --allow minor
  serdes abi diff api.json#released api.json#next --allow minor --require-moved";

/// The largest accepted bump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum AllowedBump {
    /// Backwards compatible bug fixes.
    Patch,
    /// Backwards compatible changes.
    Minor,
    /// Everything.
    Major,
}
