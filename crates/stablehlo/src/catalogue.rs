//! Catalogue of VHLO's operations, types and attributes, with the version that introduced each.
//!
//! Names and numbers are StableHLO's (`VhloOps.td`, `VhloBytecode.cpp`); 1.21 and 1.22 brought no
//! new ones. The versions before 1.13 are measured: jaxlib 0.10.2 refuses to write the entry for an
//! older version.

use serdes_mlir_bytecode::vhlo;

use super::StableHloVersion;

/// The dialect of portable artifacts.
pub(super) const VHLO: &str = "vhlo";

const fn minor(minor: u32) -> StableHloVersion {
    StableHloVersion::new(1, minor, 0)
}

/// Returns the version that introduced an operation; [`StableHloVersion::OLDEST_TARGET`] for all
/// that are as old or older, `None` if the operation is not known.
pub(super) fn operation(name: &str) -> Option<StableHloVersion> {
    vhlo::operation(name).map(|operation| minor(u32::from(operation.since_minor)))
}

/// Like [`operation`], for the attribute with that code. The accuracy of results (19 and 20) is
/// part of operations that are equally new, and counts as these.
pub(super) fn attribute(code: u64) -> Option<StableHloVersion> {
    match code {
        1..=20 => Some(StableHloVersion::OLDEST_TARGET),
        21..=25 => Some(minor(16)),
        _ => None,
    }
}

/// Like [`operation`], for the type with that code. The none type (33) is part of the algorithm of
/// `dot_general_v2`, and counts as it.
pub(super) fn of_type(code: u64) -> Option<StableHloVersion> {
    Some(match code {
        0..=30 | type_code::NONE => StableHloVersion::OLDEST_TARGET,
        // Integers of 2 bits.
        31 | 32 => minor(2),
        // TF32.
        34 => minor(6),
        // Floats of 8 bits with 3 or 4 bits of exponent.
        35 | 36 => minor(7),
        // Floats of 4 and 6 bits, and of 8 bits with exponent bits only.
        37..=40 => minor(8),
        // Buffers.
        41 => minor(13),
        FUTURE_TYPE => minor(15),
        _ => return None,
    })
}

/// The version in which custom calls got the typed FFI.
pub(super) const TYPED_CUSTOM_CALLS: StableHloVersion = minor(3);

/// The version from which a program may have operations of other dialects than VHLO.
pub(super) const OTHER_DIALECTS: StableHloVersion = minor(11);

/// The version in which custom calls got futures as operands.
pub(super) const CUSTOM_CALLS_TAKE_FUTURES: StableHloVersion = minor(17);

/// The code of the future type, the type of the result of an asynchronous operation.
pub(super) const FUTURE_TYPE: u64 = 42;
/// Codes of attributes that are read or written here.
pub(super) mod attribute_code {
    pub(crate) const ARRAY: u64 = 1;
    pub(crate) const BOOLEAN: u64 = 2;
    pub(crate) const COMPARISON_DIRECTION: u64 = 3;
    pub(crate) const CUSTOM_CALL_VERSION: u64 = 5;
    pub(crate) const INTEGER: u64 = 9;
    pub(crate) const STRING: u64 = 14;
    pub(crate) const TENSOR: u64 = 15;
    pub(crate) const TYPE: u64 = 17;
    pub(crate) const ACCURACY_MODE: u64 = 19;
    pub(crate) const ACCURACY: u64 = 20;
    pub(crate) const SUB_AXIS: u64 = 21;
    pub(crate) const AXIS_REFERENCE: u64 = 22;
    pub(crate) const REPLICA_GROUP_MESH_AXES: u64 = 23;
    pub(crate) const MESH_AXIS: u64 = 24;
    pub(crate) const MESH: u64 = 25;
    /// Attributes that are a value of an enumeration.
    pub(crate) const ENUMERATIONS: [u64; 8] = [3, 4, 5, 7, 11, 12, 13, 16];
    /// Attributes that occur only as parts of group attributes.
    pub(crate) const PARTS_OF_MESHES: [u64; 4] = [SUB_AXIS, AXIS_REFERENCE, MESH_AXIS, MESH];
}

/// Codes of types that are read or written here.
pub(super) mod type_code {
    pub(crate) const SIGNED_64: u64 = 14;
    pub(crate) const RANKED_TENSOR: u64 = 20;
    pub(crate) const NONE: u64 = 33;
}

/// Codes of MLIR's own dialect that are read here.
pub(super) mod builtin_code {
    pub(crate) const ARRAY: u64 = 0;
    pub(crate) const DICTIONARY: u64 = 1;
    pub(crate) const STRING: u64 = 2;
    pub(crate) const TYPED_STRING: u64 = 3;
    pub(crate) const SYMBOL: u64 = 4;
    pub(crate) const INTEGER: u64 = 8;
    pub(crate) const DENSE_ELEMENTS: u64 = 18;
    pub(crate) const DENSE_STRINGS: u64 = 19;
    /// The type of integers: a width and a sign.
    pub(crate) const INTEGER_TYPE: u64 = 0;
}
