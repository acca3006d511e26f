//! The fields and values that each release knows, and the differences between their parsers.
//!
//! Identifies releases by their GraphDef versions. Does not depend on the meaning of fields.

use super::{
    GRAPH_DEF, MessageId,
    fields::{
        graph_debug_info, graph_debug_info_stack_trace, graph_def, signature_def, structured_value,
    },
    generated::tables::{
        GRAPH_DEBUG_INFO, GRAPH_DEBUG_INFO_STACK_TRACE, SIGNATURE_DEF, STRUCTURED_VALUE,
    },
};

/// GraphDef versions of the releases that added fields or values to the table, found by comparing
/// their descriptors from TensorFlow 2.12. Fields and values of 2.12 count as known to every
/// release.
pub const TENSORFLOW_2_13: i32 = 1482;
pub const TENSORFLOW_2_14: i32 = 1575;
const TENSORFLOW_2_15: i32 = 1645;
const TENSORFLOW_2_19: i32 = 2129;
const TENSORFLOW_2_20: i32 = 2288;
const TENSORFLOW_2_21: i32 = 2474;

/// The last release that requires protobuf 4.
const TENSORFLOW_2_17: i32 = 1882;

/// The differences between releases in reading one form: two releases with equal dialects read
/// everything in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseDialect {
    /// Number of changes to fields or values up to this release.
    known: usize,
    has_old_text_parser: bool,
}

impl ReleaseDialect {
    /// Returns the dialect of the binary form for the release with this GraphDef version; it
    /// depends on the known fields.
    pub fn binary(release: i32) -> Self {
        let changes = [TENSORFLOW_2_13, TENSORFLOW_2_14];
        Self { known: count_until(&changes, release), has_old_text_parser: false }
    }

    /// Returns the dialect of the text form for a release; it depends also on the known names of
    /// values, and on the parser.
    pub fn text(release: i32) -> Self {
        let changes = [
            TENSORFLOW_2_13,
            TENSORFLOW_2_14,
            TENSORFLOW_2_15,
            TENSORFLOW_2_19,
            TENSORFLOW_2_20,
            TENSORFLOW_2_21,
        ];
        let known = count_until(&changes, release);
        Self { known, has_old_text_parser: has_old_text_parser(release) }
    }

    /// Returns true if both have the same parser: the newer one then accepts whatever the older one
    /// does.
    pub fn has_parser_of(self, other: Self) -> bool {
        self.has_old_text_parser == other.has_old_text_parser
    }
}

fn count_until(changes: &[i32], release: i32) -> usize {
    changes.iter().filter(|first| release >= **first).count()
}

/// Returns true if a release comes with protobuf 4, whose text parser reads some numbers and
/// escapes differently.
pub const fn has_old_text_parser(release: i32) -> bool {
    release <= TENSORFLOW_2_17
}

/// Returns true if a release of this GraphDef version knows a field of the table.
#[inline]
pub fn knows_field(release: i32, message: MessageId, number: u32) -> bool {
    let first = match (message, number) {
        (GRAPH_DEF, graph_def::DEBUG_INFO) | (STRUCTURED_VALUE, structured_value::TENSOR_VALUE) => {
            TENSORFLOW_2_13
        }
        (SIGNATURE_DEF, signature_def::DEFAULTS)
        | (STRUCTURED_VALUE, structured_value::NUMPY_VALUE)
        | (
            GRAPH_DEBUG_INFO,
            graph_debug_info::FRAMES_BY_ID
            | graph_debug_info::NAME_TO_TRACE_ID
            | graph_debug_info::TRACES_BY_ID,
        )
        | (GRAPH_DEBUG_INFO_STACK_TRACE, graph_debug_info_stack_trace::FRAME_ID) => TENSORFLOW_2_14,
        _ => return true,
    };
    release >= first
}

/// Returns true if a release of this GraphDef version knows a name of an enumeration's value.
pub fn knows_value(release: i32, name: &str) -> bool {
    let first = match name.strip_suffix("_REF").unwrap_or(name) {
        "DT_INT4" | "DT_UINT4" => TENSORFLOW_2_15,
        "DT_FLOAT8_E4M3FNUZ" | "DT_FLOAT8_E4M3B11FNUZ" | "DT_FLOAT8_E5M2FNUZ" => TENSORFLOW_2_19,
        "DT_INT2" | "DT_UINT2" => TENSORFLOW_2_20,
        "DT_FLOAT4_E2M1FN" => TENSORFLOW_2_21,
        _ => return true,
    };
    release >= first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_knows_the_fields_and_names_that_it_has() {
        // The GraphDef versions of TensorFlow 2.12 to 2.21, in order; each field or value with the
        // first version that has it.
        let releases = [1395, 1482, 1575, 1645, 1766, 1882, 1994, 2129, 2288, 2474];
        for (message, number, first) in [
            (GRAPH_DEF, 4, 1395),
            (GRAPH_DEF, 5, 1482),
            (STRUCTURED_VALUE, 55, 1482),
            (STRUCTURED_VALUE, 56, 1575),
            (SIGNATURE_DEF, 4, 1575),
            (GRAPH_DEBUG_INFO, 2, 1395),
            (GRAPH_DEBUG_INFO, 5, 1575),
            (GRAPH_DEBUG_INFO_STACK_TRACE, 2, 1575),
        ] {
            for release in releases {
                assert_eq!(knows_field(release, message, number), release >= first, "{number}");
            }
        }
        // Two releases with one dialect know the same fields and values.
        for (release, next) in releases.iter().zip(&releases[1..]) {
            let text = ReleaseDialect::text(*release) == ReleaseDialect::text(*next);
            let binary = ReleaseDialect::binary(*release) == ReleaseDialect::binary(*next);
            assert_eq!(text, [1645, 1766].contains(release), "{release}");
            assert_eq!(binary, *release >= 1575, "{release}");
        }
        for (name, first) in [
            ("DT_FLOAT", 1395),
            ("DT_FLOAT8_E5M2", 1395),
            ("DT_INT4_REF", 1645),
            ("DT_FLOAT8_E5M2FNUZ", 2129),
            ("DT_UINT2", 2288),
            ("DT_FLOAT4_E2M1FN_REF", 2474),
        ] {
            for release in releases {
                assert_eq!(knows_value(release, name), release >= first, "{name} {release}");
            }
        }
    }
}
