//! Catalogue of VHLO's operations, types and attributes, with the version that introduced each.
//!
//! Names and numbers are StableHLO's (`VhloOps.td`, `VhloBytecode.cpp`); 1.21 and 1.22 brought no
//! new ones. Of what came before 1.13 the versions are measured: jaxlib 0.10.2 writes no program with
//! it for an older one.

use super::StableHloVersion;

/// The dialect of portable artifacts.
pub(super) const VHLO: &str = "vhlo";

const fn minor(minor: u32) -> StableHloVersion {
    StableHloVersion::new(1, minor, 0)
}

/// Operations that came after [`StableHloVersion::OLDEST_TARGET`], in the order of their letters.
const LATER_OPERATIONS: [(&str, StableHloVersion); 28] = [
    ("all_gather_v2", minor(5)),
    ("all_reduce_v2", minor(5)),
    ("all_to_all_v2", minor(5)),
    ("async_done_v1", minor(15)),
    ("async_start_v1", minor(15)),
    ("cbrt_v2", minor(10)),
    ("collective_broadcast_v2", minor(20)),
    ("collective_reduce_v1", minor(19)),
    ("composite_v2", minor(14)),
    ("cosine_v2", minor(10)),
    ("custom_call_v2", minor(18)),
    ("dot_general_v2", minor(6)),
    ("dynamic_gather_v2", minor(1)),
    ("exponential_minus_one_v2", minor(10)),
    ("exponential_v2", minor(9)),
    ("gather_v2", minor(1)),
    ("log_plus_one_v2", minor(10)),
    ("log_v2", minor(10)),
    ("logistic_v2", minor(10)),
    ("recv_v2", minor(12)),
    ("rsqrt_v2", minor(10)),
    ("scatter_v2", minor(1)),
    ("send_v2", minor(12)),
    ("sine_v2", minor(10)),
    ("sqrt_v2", minor(10)),
    ("tan_v1", minor(4)),
    ("tan_v2", minor(10)),
    ("tanh_v2", minor(10)),
];

/// Operations of [`StableHloVersion::OLDEST_TARGET`], in the order of their letters; also the earlier
/// forms of later ones, which every reader still takes.
const OPERATIONS: &[&str] = &[
    "abs_v1",
    "add_v1",
    "after_all_v1",
    "all_gather_v1",
    "all_reduce_v1",
    "all_to_all_v1",
    "and_v1",
    "atan2_v1",
    "batch_norm_grad_v1",
    "batch_norm_inference_v1",
    "batch_norm_training_v1",
    "bitcast_convert_v1",
    "broadcast_in_dim_v1",
    "broadcast_v1",
    "call_v1",
    "case_v1",
    "cbrt_v1",
    "ceil_v1",
    "cholesky_v1",
    "clamp_v1",
    "collective_broadcast_v1",
    "collective_permute_v1",
    "compare_v1",
    "complex_v1",
    "composite_v1",
    "concatenate_v1",
    "constant_v1",
    "convert_v1",
    "convolution_v1",
    "cosine_v1",
    "count_leading_zeros_v1",
    "create_token_v1",
    "cross-replica-sum_v1",
    "custom_call_v1",
    "divide_v1",
    "dot_general_v1",
    "dot_v1",
    "dynamic_broadcast_in_dim_v1",
    "dynamic_conv_v1",
    "dynamic_conv_v2",
    "dynamic_gather_v1",
    "dynamic_iota_v1",
    "dynamic_pad_v1",
    "dynamic_reshape_v1",
    "dynamic_slice_v1",
    "dynamic_update_slice_v1",
    "einsum_v1",
    "exponential_minus_one_v1",
    "exponential_v1",
    "fft_v1",
    "floor_v1",
    "func_v1",
    "gather_v1",
    "get_dimension_size_v1",
    "get_tuple_element_v1",
    "if_v1",
    "imag_v1",
    "infeed_v1",
    "iota_v1",
    "is_finite_v1",
    "log_plus_one_v1",
    "log_v1",
    "logistic_v1",
    "map_v1",
    "maximum_v1",
    "minimum_v1",
    "multiply_v1",
    "negate_v1",
    "not_v1",
    "optimization_barrier_v1",
    "or_v1",
    "outfeed_v1",
    "pad_v1",
    "partition_id_v1",
    "popcnt_v1",
    "power_v1",
    "real_dynamic_slice_v1",
    "real_v1",
    "recv_v1",
    "reduce_precision_v1",
    "reduce_scatter_v1",
    "reduce_v1",
    "reduce_window_v1",
    "remainder_v1",
    "replica_id_v1",
    "reshape_v1",
    "return_v1",
    "reverse_v1",
    "rng_bit_generator_v1",
    "rng_v1",
    "round_nearest_afz_v1",
    "round_nearest_even_v1",
    "rsqrt_v1",
    "scatter_v1",
    "select_and_scatter_v1",
    "select_v1",
    "send_v1",
    "set_dimension_size_v1",
    "shift_left_v1",
    "shift_right_arithmetic_v1",
    "shift_right_logical_v1",
    "sign_v1",
    "sine_v1",
    "slice_v1",
    "sort_v1",
    "sqrt_v1",
    "subtract_v1",
    "tanh_v1",
    "torch_index_select_v1",
    "transpose_v1",
    "triangular_solve_v1",
    "tuple_v1",
    "unary_einsum_v1",
    "uniform_dequantize_v1",
    "uniform_quantize_v1",
    "while_v1",
    "xor_v1",
];

/// The version since when an operation is known; [`StableHloVersion::OLDEST_TARGET`] for all that
/// are as old or older, `None` if it is not known here.
pub(super) fn operation(name: &str) -> Option<StableHloVersion> {
    if OPERATIONS.binary_search(&name).is_ok() {
        return Some(StableHloVersion::OLDEST_TARGET);
    }
    let found = LATER_OPERATIONS.binary_search_by_key(&name, |(later, _)| later).ok()?;
    LATER_OPERATIONS.get(found).map(|(_, since)| *since)
}

/// As [`operation`], of the attribute with that code. The accuracy of results (19 and 20) is part of
/// operations that are as new, and counts with them.
pub(super) fn attribute(code: u64) -> Option<StableHloVersion> {
    match code {
        1..=20 => Some(StableHloVersion::OLDEST_TARGET),
        21..=25 => Some(minor(16)),
        _ => None,
    }
}

/// As [`operation`], of the type with that code. The type of nothing (33) is part of the algorithm of
/// `dot_general_v2`, and counts with it.
pub(super) fn of_type(code: u64) -> Option<StableHloVersion> {
    Some(match code {
        0..=30 | type_code::NONE => StableHloVersion::OLDEST_TARGET,
        // Integers of 2 bits.
        31 | 32 => minor(2),
        // TF32.
        34 => minor(6),
        // Floats of 8 bits with 3 or 4 bits of exponent.
        35 | 36 => minor(7),
        // Floats of 4 and 6 bits, and of 8 bits with no other than those of the exponent.
        37..=40 => minor(8),
        // Buffers.
        41 => minor(13),
        FUTURE_TYPE => minor(15),
        _ => return None,
    })
}

/// The version since when custom calls name a function of the typed interface.
pub(super) const TYPED_CUSTOM_CALLS: StableHloVersion = minor(3);

/// The version since when operations of other dialects stand beside those of VHLO.
pub(super) const OTHER_DIALECTS: StableHloVersion = minor(11);

/// The version since when custom calls take futures.
pub(super) const CUSTOM_CALLS_TAKE_FUTURES: StableHloVersion = minor(17);

/// The code of the type of what an operation that runs on the side will give.
pub(super) const FUTURE_TYPE: u64 = 42;
/// Codes of attributes that are read or written here.
pub(super) mod attribute_code {
    pub(in crate::stablehlo) const ARRAY: u64 = 1;
    pub(in crate::stablehlo) const BOOLEAN: u64 = 2;
    pub(in crate::stablehlo) const CUSTOM_CALL_VERSION: u64 = 5;
    pub(in crate::stablehlo) const STRING: u64 = 14;
    pub(in crate::stablehlo) const TENSOR: u64 = 15;
    pub(in crate::stablehlo) const TYPE: u64 = 17;
    pub(in crate::stablehlo) const ACCURACY_MODE: u64 = 19;
    pub(in crate::stablehlo) const ACCURACY: u64 = 20;
    pub(in crate::stablehlo) const SUB_AXIS: u64 = 21;
    pub(in crate::stablehlo) const AXIS_REFERENCE: u64 = 22;
    pub(in crate::stablehlo) const REPLICA_GROUP_MESH_AXES: u64 = 23;
    pub(in crate::stablehlo) const MESH_AXIS: u64 = 24;
    pub(in crate::stablehlo) const MESH: u64 = 25;
    /// Attributes that occur only as parts of group attributes.
    pub(in crate::stablehlo) const PARTS_OF_MESHES: [u64; 4] =
        [SUB_AXIS, AXIS_REFERENCE, MESH_AXIS, MESH];
}

/// Codes of types that are read or written here.
pub(super) mod type_code {
    pub(in crate::stablehlo) const SIGNED_64: u64 = 14;
    pub(in crate::stablehlo) const RANKED_TENSOR: u64 = 20;
    pub(in crate::stablehlo) const NONE: u64 = 33;
}

/// Codes of MLIR's own dialect that are read here.
pub(super) mod builtin_code {
    pub(in crate::stablehlo) const ARRAY: u64 = 0;
    pub(in crate::stablehlo) const DICTIONARY: u64 = 1;
    pub(in crate::stablehlo) const STRING: u64 = 2;
    pub(in crate::stablehlo) const TYPED_STRING: u64 = 3;
    pub(in crate::stablehlo) const SYMBOL: u64 = 4;
    pub(in crate::stablehlo) const INTEGER: u64 = 8;
    pub(in crate::stablehlo) const DENSE_ELEMENTS: u64 = 18;
    pub(in crate::stablehlo) const DENSE_STRINGS: u64 = 19;
    /// The type of integers: a width and a sign.
    pub(in crate::stablehlo) const INTEGER_TYPE: u64 = 0;
}
