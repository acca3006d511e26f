//! The encodings of dialects' attributes and types: one row per code, one letter per part.
//!
//! The meaning of the letters:
//!
//! | letter | part |
//! |---|---|
//! | `a` `t` | the number of an attribute, of a type |
//! | `l` `n` | the number of an attribute that must be a location, a string |
//! | `o` | the number of an attribute, or none |
//! | `s` | the number of a string |
//! | `v` `z` | a number, a number with a sign |
//! | `B` | a number that is 0 or 1 |
//! | `2`…`9` | a number below that |
//! | `y` | a byte |
//! | `b` | a length and as many bytes |
//! | `I` `F` | an integer, a float, of the type that came last |
//! | `[…]` | a count, and as many of these parts |
//!
//! Rules: `VhloBytecode.cpp` of StableHLO 1.22, `BuiltinDialectBytecode.td` of MLIR, and shardy's
//! dialect as of 2026-08.

use crate::release::StableHlo;

/// The encodings of a dialect.
#[derive(Debug)]
pub(super) struct Layouts {
    pub(super) attributes: &'static [&'static str],
    pub(super) types: &'static [&'static str],
}

pub(super) const VHLO: Layouts = Layouts {
    attributes: &[
        NEVER, "[a]", "B", "6", "5", "5", "[aa]", "4", "tF", "tI", "[z]z[z]", "3", "3", "2", "s",
        "tb", "4", "t", "[z]", "3", "zzza", "zz", "ao", "aa", "az", "[a]o",
    ],
    types: &{
        // Most types consist of their code only.
        let mut types = [""; 43];
        types[1] = "t";
        types[8] = "[t][t]";
        types[20] = "[z]t";
        types[21] = "a[z]t";
        types[23] = "[t]";
        types[24] = "vttzzzz";
        types[25] = "t";
        types[30] = "vttzzz[z][z]";
        types[41] = "[z]t";
        types[42] = "[t]";
        types
    },
};

pub(super) const SDY: Layouts = Layouts {
    attributes: &[
        "[a]",
        "sz",
        "[a][z]",
        "zz",
        "so",
        "[a]yv",
        "a[a][a]",
        "[a]",
        "[z]",
        "[a]",
        "[z][a][a][z][z][z][z]y",
        "[a]",
        "[a]",
        "[a]zz",
        "[a]",
        "a[a][a][a]",
        "[a]",
        "a[a][a][a]z",
    ],
    types: &[],
};

pub(super) const BUILTIN: Layouts = Layouts {
    attributes: &[
        "[a]", "[na]", "s", "st", "n", "n[a]", "t", "", "tI", "tF", "ll", "nvv", "[l]", "[l]a",
        "nl", "", "tv", "tvb", "tb", "tv[s]", "taa", "a", "n[v]",
    ],
    types: &[
        "v", "", "[t][t]", "", "", "", "", "", "", "t", "[z]ta", "a[z]ta", "", "[z]t", "a[z]t",
        "[t]", "t", "at", "t", "[z]t", "[v][z]t",
    ],
};

/// The layout of an unused code.
pub(super) const NEVER: &str = "!";

/// Returns true for the codes of builtin attributes that are locations.
pub(super) fn is_location(code: u64) -> bool {
    matches!(code, 10..=15 | 22)
}

/// Returns the width of an integer or float type of VHLO.
pub(super) fn vhlo_width(code: u64) -> Option<(u32, Number)> {
    Some(match code {
        0 => (1, Number::Integer),
        2 | 3 => (16, Number::Float),
        4 => (32, Number::Float),
        5 => (64, Number::Float),
        6 | 7 | 27..=29 | 35 | 36 | 40 => (8, Number::Float),
        9 | 14 | 19 => (64, Number::Integer),
        10 | 15 => (4, Number::Integer),
        11 | 16 => (8, Number::Integer),
        12 | 17 => (16, Number::Integer),
        13 | 18 => (32, Number::Integer),
        31 | 32 => (2, Number::Integer),
        34 => (19, Number::Float),
        37 => (4, Number::Float),
        38 | 39 => (6, Number::Float),
        _ => return None,
    })
}

/// Returns the width of an integer or float type of builtin, whose code is followed by `detail`.
pub(super) fn builtin_width(code: u64, detail: u64) -> Option<(u32, Number)> {
    Some(match code {
        0 => (u32::try_from(detail >> 2).ok()?, Number::Integer),
        1 => (64, Number::Integer),
        3 | 4 => (16, Number::Float),
        5 => (32, Number::Float),
        6 => (64, Number::Float),
        7 => (80, Number::Float),
        8 => (128, Number::Float),
        _ => return None,
    })
}

/// The encoding of a number in an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Integer,
    Float,
}

/// Returns the version that introduced an attribute of VHLO, unless every judged release has it.
pub(crate) fn vhlo_attribute_since(code: u8) -> Option<StableHlo> {
    matches!(code, 21..=25).then_some(StableHlo::new(1, 16, 0))
}

/// Returns the version that introduced a type of VHLO, unless every judged release has it.
pub(crate) fn vhlo_type_since(code: u8) -> Option<StableHlo> {
    (code == 42).then_some(StableHlo::new(1, 15, 0))
}

/// Returns the name of an attribute of VHLO, for messages.
pub(crate) fn vhlo_attribute_name(code: u8) -> &'static str {
    match code {
        21 => "sub_axis_info_v1",
        22 => "axis_ref_v1",
        23 => "replica_group_mesh_axes_v1",
        24 => "mesh_axis_v1",
        25 => "mesh_v1",
        _ => "an attribute",
    }
}

/// The code of shardy's sharding with a reduction, which not every judged release has.
pub(crate) const SDY_SHARDING_WITH_REDUCTION: u8 = 17;
/// The StableHLO of 0.11.0, the first jaxlib that knows it.
pub(crate) const SDY_REDUCTION_SINCE: StableHlo = StableHlo::new(1, 18, 0);
